"""The files of a network: network.toml for its operator, node.toml for each node."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

import msgspec

from gosta.datasets.tables import Format
from gosta.errors import DataError, InputError, shorten
from gosta.net.addresses import NAME_PATTERN, NAME_RULE, parse, parse_proxy
from gosta.net.limits import MAX_ROW_NUMBERS, SECONDS_PER_EPOCH
from gosta.private.settings import PrivateSettings, check_settings
from gosta.runtime.files import read_toml, write_atomically

if TYPE_CHECKING:
    from gosta.protocols import Protocol
    from gosta.statistics.definition import Statistic

NODE_FILE, NETWORK_FILE = "node.toml", "network.toml"
JOURNAL_FILE, LOCK_FILE, LOG_FILE = "journal.sqlite", "node.lock", "log.jsonl"
HEAD_FILE = "contributions.json"  # where the log of contributions in the journal ended last
MAX_NODE_FILE_BYTES = 1 << 20  # 10,000 neighbours take a third of it
MAX_NETWORK_FILE_BYTES = 1 << 26  # a million edges take half of it
MAX_ENCODING_CHARACTERS, MAX_SHEET_CHARACTERS = 40, 31  # 31: of the name of a sheet, in Excel
MIN_SITES = 3  # of private sums: of two sites, each learns the sums of the other one
FIX_HINT = "fix the line; 'gosta network init' writes such files"
RENAMED_KEYS = {  # keys of earlier versions
    "encoded": "encoded_columns",
    "interval": "confidence_level",
    "most": "max_exchanges_per_second",
    "rate": "exchanges_per_second",
    "renew": "epoch_seconds",
    "status": "status_page",
    "used": "nodes_created",
}


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Section [network]: what the network computes, equal at all of its nodes."""

    id: str  # of the network, drawn at random: 16 hexadecimal digits
    # A name, or FILE.py:NAME with the file in the node's folder; or several, each with columns: "auc,kendall-tau:a+b".
    statistic: str
    protocol: str = "tracking"
    confidence_level: float | None = None  # of the intervals, such as 0.95; None: no intervals
    options: dict[str, Any] = {}  # of the statistic
    # Numbers in a row, if data files hold rows as kernels take them, for each encoding of several statistics;
    encoded_columns: int | tuple[int, ...] = 0  # 0: they do not, and
    columns: tuple[str, ...] = ()  # these columns,
    label: str | None = None  # this label
    score: str | None = None  # and this score are read from them
    classes: tuple[
        str | int | float, ...
    ] = ()  # of all sites, in order: one site need not have them all
    drop_missing: bool = False  # leave out rows with missing values
    until: float = 0.0  # relative error, such as 0.01, from which on nodes initiate no exchanges; 0: they never stop
    private: PrivateSettings | None = (
        None  # of private sums, where no row leaves a site; None: rows are exchanged
    )

    @property
    def row_widths(self) -> tuple[int, ...]:
        """Numbers of each encoding in the rows of data files; (0,): files are tables."""
        return (
            (self.encoded_columns,)
            if isinstance(self.encoded_columns, int)
            else self.encoded_columns
        )


class NodeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Section [node]: a node's name, addresses, data file and rates."""

    name: str
    listen: str  # host:port where it listens for neighbours; empty: nowhere, it only dials out
    status_page: str = ""  # host:port of its status page; empty: none
    advertise: str = ""  # host:port where neighbours reach it, if that is not `listen`
    proxy: str = ""  # HTTP proxy through which it dials: http://host:port; empty: the environment's; "none": none
    forward: bool = True  # whether it forwards connections between members that can only dial out
    data: str = "data.csv"  # its data file: beside node.toml, or an absolute path
    exchanges_per_second: float = 10.0  # that it initiates, on average
    max_exchanges_per_second: float = 1000.0  # that it takes part in; above that it answers "busy"
    durable: bool = False  # whether the journal survives a loss of power, not only of the process
    epoch_seconds: float = (
        0.0  # after which a new epoch starts; 0: only when rows, neighbours or settings changed
    )
    tls: bool = True
    keep_exchanges: int = (
        100_000  # of the epoch that the journal keeps at least, for verify and replay
    )
    secure_delete: bool = False  # whether what the journal deletes is overwritten on the disk
    max_disclosures: int = (
        0  # to neighbours of each of its rows, counted once for a neighbour and epoch; 0: no limit
    )
    # How the data file is read, as by the options of the same names; which of them count depends on its suffix.
    sep: str | None = None  # between values; None: found in the first line
    decimal: str = "."
    encoding: str = "utf-8"
    header: str = "auto"  # whether the first line holds names: "yes", "no" or "auto"
    sheet: str | None = None  # of an Excel file; None: the first

    @property
    def format(self) -> Format:
        """How the data file is read."""
        return Format(
            "\t" if self.sep == "tab" else self.sep,
            self.decimal,
            self.encoding,
            self.header,
            self.sheet,
        )


class NodeConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    network: Task
    node: NodeSettings
    neighbours: dict[str, str]  # name: host:port; empty if the neighbour only dials out
    # name: host:port of members that connect it to such neighbours, if it only dials out too
    forwarders: dict[str, str] = {}


class NetworkConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of a network.toml: all nodes and edges, for the operator of the network."""

    network: Task
    graph: str
    nodes: dict[str, str]  # name: host:port where neighbours reach it; empty if it only dials out
    edges: tuple[tuple[str, str], ...]
    nodes_created: int = 0  # including removed ones, since a number is never reused


Config = TypeVar("Config", NodeConfig, NetworkConfig)


def read_node(path: Path) -> NodeConfig:
    return _read(path, NodeConfig, MAX_NODE_FILE_BYTES, _check_node)


def read_network(path: Path) -> NetworkConfig:
    return _read(path, NetworkConfig, MAX_NETWORK_FILE_BYTES, _check_network)


def _read(
    path: Path, kind: type[Config], max_bytes: int, check: Callable[[Config], None]
) -> Config:
    try:
        values = read_toml(path, max_bytes, FIX_HINT)
    except FileNotFoundError:
        if path.name == NODE_FILE and (path.parent / NETWORK_FILE).exists():
            nodes = shorten(
                [str(file.parent) for file in sorted(path.parent.glob(f"*/{NODE_FILE}"))]
            )
            why = f"{path.parent} is a network's folder; name that of a node"
            raise InputError(f"{why}: {nodes}" if nodes else f"{why}, which is not here") from None
        raise InputError(
            f"no such file: {path}; 'gosta network init' makes a network's folders"
        ) from None
    try:
        config = msgspec.convert(values, kind)
        check(config)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {_explain(str(error), values, kind)}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return config


def _explain(error: str, values: Mapping[str, Any], kind: type) -> str:
    """Add to a message of msgspec the field, its value and the fields that exist."""
    problem, _, place = error.partition(" - at ")
    keys = [key for key in re.split(r"[.\[\]`$]+", place) if key]
    section: Any = kind
    for key in keys:
        hint = get_type_hints(section).get(key) if hasattr(section, "__struct_fields__") else None
        section = next(
            (one for one in get_args(hint) if hasattr(one, "__struct_fields__")), hint
        )  # of `X | None`
    if "field" in problem and hasattr(section, "__struct_fields__"):  # missing or unknown
        where = f" in [{'.'.join(keys)}]" if keys else ""
        key = problem.split("`")[-2]
        if key in RENAMED_KEYS:
            return f"key {key!r}{where} is now called {RENAMED_KEYS[key]!r}; rename it"
        return f"{problem[0].lower()}{problem[1:]}{where}; there are: {', '.join(section.__struct_fields__)}"
    value: Any = values
    for key in keys:
        with contextlib.suppress(LookupError, TypeError):
            value = value[int(key) if isinstance(value, list) else key]
    return f"{'.'.join(keys)} = {str(value)[:60]!r}: {problem[0].lower()}{problem[1:]}; {FIX_HINT}"


def _check_task(task: Task) -> None:
    from gosta import statistics
    from gosta.statistics import references
    from gosta.statistics.references import parse_references

    if not re.fullmatch(r"[0-9a-f]{16}", task.id):
        raise InputError(
            f"network.id = {task.id[:40]!r} must be 16 hexadecimal digits, the same at all nodes"
        )
    if task.private is not None:
        _check_private(task, task.private)
    else:
        for one in parse_references(task.statistic):
            if references.split_reference(one.name) is None:
                statistics.find(one.name)
        if any(file.name != str(file) for file, _ in references.own_references(task.statistic)):
            where = "the file must be beside node.toml; name no folder"
            raise InputError(f"network.statistic = {task.statistic!r}: {where}")
    if min(task.row_widths, default=0) < 0 or sum(task.row_widths) > MAX_ROW_NUMBERS:
        limits = f"0 or more, and at most {MAX_ROW_NUMBERS:,} together"
        raise InputError(f"network.encoded_columns = {task.encoded_columns!r} must be {limits}")
    check_protocol(task.protocol)
    level = task.confidence_level
    if level is not None and is_for_one_row_each(task.protocol):
        why = f"protocol = {task.protocol!r} has no intervals; remove the line, or use tracking, at all nodes"
        raise InputError(f"network.confidence_level = {level!r}: {why}")
    if level is not None and not 0 < level < 1:
        raise InputError(
            f"network.confidence_level = {level!r} must be between 0 and 1, such as 0.95"
        )
    if not 0 <= task.until < 1:
        raise InputError(
            f"network.until = {task.until!r} must be a relative error below 1, such as 0.01, or 0"
        )
    if len({str(name) for name in task.classes}) < len(task.classes):
        raise InputError(f"network.classes = {list(task.classes)!r} must name each class once")


def _check_private(task: Task, private: PrivateSettings) -> None:
    if ".py:" in task.statistic or not all(
        re.match(r"[A-Za-z]", name) for name in task.statistic.split(",")
    ):
        what = "statistics that have sketches ('gosta statistics'), as auc or auc,gini-index:income"
        raise InputError(f"network.statistic = {task.statistic!r}: private sums are of {what}")
    if task.until:
        raise InputError(
            f"network.until = {task.until!r} is for exchanges of rows; private sums end by themselves"
        )
    check_settings(private, "network.private.")


def check_protocol(name: str) -> None:
    """Raise `InputError` for protocols that need a shared clock or all rows, which nodes do not have."""
    from gosta import protocols
    from gosta.protocols.protocol import Start

    rule = protocols.find(name)
    is_rule = isinstance(rule, protocols.Protocol) and rule.start is not Start.ROW_MEAN
    if not is_rule or not (rule.supports_tables or rule.uses_tree or is_for_one_row_each(name)):
        raise InputError(
            f"protocol = {name!r} is for simulations; nodes of a network run tracking, relay, gosta-async, or "
            "carried-means where each has one row"
        )


def protocol_of_nodes(name: str, statistic: Statistic, has_interval: bool) -> Protocol:
    """Return the rule that nodes run for a statistic; raise `InputError` where it cannot be used.

    A protocol for one row at each node is not replaced by another one where an interval or a statistic needs that: on a
    network, all sites agree on what runs.
    """
    from gosta import protocols
    from gosta.estimation.setting import protocol_for

    is_for_one_row = is_for_one_row_each(name)
    if is_for_one_row and (has_interval or statistic.local is not None):
        subject = (
            "has no intervals, which need"
            if has_interval
            else f"does not estimate {statistic.name}, which needs"
        )
        way_out = "use tracking, or --interval none" if has_interval else "use tracking"
        raise InputError(f"protocol = {name!r} {subject} each row's own mean; {way_out}")
    rule = protocol_for(name, statistic, has_interval, has_tables=not is_for_one_row)
    assert isinstance(rule, protocols.Protocol)
    return rule


def is_for_one_row_each(name: str) -> bool:
    """Return whether a protocol is for networks whose nodes have one row each."""
    from gosta import protocols

    rule = protocols.find(name)
    return isinstance(rule, protocols.Protocol) and rule.carries_means and not rule.uses_tree


def check_row_count(protocol: str, rows: int, where: object) -> None:
    """Raise `DataError` for a site with several rows if the protocol is for one at each node."""
    if rows != 1 and is_for_one_row_each(protocol):
        needs = f"protocol = {protocol!r} is for exactly one row at each node"
        raise DataError(
            f"{where} has {rows:,} rows, and {needs}; leave one row, or use tracking at all nodes"
        )


def _check_node(config: NodeConfig) -> None:
    node = config.node
    _check_task(config.network)
    _check_name(node.name, "node.name")
    for field in ("listen", "status_page", "advertise"):
        if address := getattr(node, field):
            _check_address(f"node.{field}", address)
    if node.advertise and not node.listen:
        why = "the node does not listen, as node.listen is empty; give both, or none"
        raise InputError(f"node.advertise = {node.advertise!r}: {why}")
    if node.listen and node.listen == node.status_page:
        raise InputError(
            f"node.status_page = {node.status_page!r} is node.listen too; give it another port"
        )
    try:
        parse_proxy(node.proxy)
    except InputError as error:
        raise InputError(f"node.proxy = {error}") from None
    if not node.data:
        raise InputError("node.data = '' must name a file, such as 'data.csv'")
    for field in ("exchanges_per_second", "max_exchanges_per_second", "epoch_seconds"):
        number = getattr(node, field)
        if not (number >= 0 and math.isfinite(number)):
            raise InputError(f"node.{field} = {number!r} must be a finite number, 0 or more")
    for field in ("keep_exchanges", "max_disclosures"):
        count = getattr(node, field)
        if count < 0:
            raise InputError(f"node.{field} = {count!r} must be 0 or more")
    if node.max_disclosures == 1 and is_for_one_row_each(config.network.protocol):
        why = f"protocol = {config.network.protocol!r} sends two visitors of its row to neighbours"
        raise InputError(f"node.max_disclosures = 1: {why}; set 2 or more, or 0 for no limit")
    _check_format(config)
    if 0 < node.epoch_seconds < SECONDS_PER_EPOCH:
        raise InputError(
            f"node.epoch_seconds = {node.epoch_seconds!r} must be 0, or at least {SECONDS_PER_EPOCH:g}"
        )
    for name, address in config.neighbours.items():
        _check_name(name, "neighbours")
        if name == node.name:
            raise InputError(f"neighbours.{name} is the node itself; remove it")
        if address:
            _check_address(f"neighbours.{name}", address)
    for name, address in config.forwarders.items():
        _check_name(name, "forwarders")
        _check_address(f"forwarders.{name}", address)


def _check_format(config: NodeConfig) -> None:
    """Check how the data file is to be read."""
    given = config.node.format
    for name, most in {"encoding": MAX_ENCODING_CHARACTERS, "sheet": MAX_SHEET_CHARACTERS}.items():
        if len(getattr(given, name) or "") > most:
            raise InputError(
                f"node.{name} = {getattr(given, name)[:40]!r}... has more than {most} characters"
            )
    try:
        given.check()
    except InputError as error:
        raise InputError(f"node.{error}") from None
    for name in given.options() if any(config.network.row_widths) else ():
        why = "rows of this network are encoded by 'gosta network init --data'; leave it out"
        raise InputError(
            f"node.{name} = {getattr(config.node, name)!r} is for a site's own table; {why}"
        )


def _check_network(config: NetworkConfig) -> None:
    _check_task(config.network)
    for name, address in config.nodes.items():
        _check_name(name, "nodes")
        if address:
            _check_address(f"nodes.{name}", address)
    for a, b in config.edges:
        for name in {a, b} - config.nodes.keys():
            raise InputError(
                f"edges has {name!r}, which is not among the nodes; add it there or remove it"
            )
        if a == b:
            raise InputError(f"edges joins {a!r} to itself; remove that edge")


def _check_name(name: str, field: str) -> None:
    if not NAME_PATTERN.fullmatch(name):
        raise InputError(f"{field} = {name[:80]!r}: a node's name has {NAME_RULE}")


def _check_address(field: str, address: str) -> None:
    try:
        port = parse(address).port
    except InputError as error:
        raise InputError(f"{field} = {error}") from None
    if port == 0:
        raise InputError(
            f"{field} = {address!r} must end in a port from 1 to 65535, such as 127.0.0.1:7400"
        )


NODE_HEADER = """\
# A node of a network that computes a statistic by gossip. Start it with: gosta node FOLDER
# [network]: what is computed; the same at all nodes. With private = {...}, only masked sums leave a site, never a row:
#   bins: of each column; ranges: lowest and highest value of a column, beyond which values count as these
#   edges: between the bins of a column, instead of bins of equal width; find_edges: a first sum finds them
#   strata: columns and their values; there are results for each combination
#   epsilon, delta: differential privacy of a release; colluding: sites that may combine what they know despite it
#   deadline_seconds: that a site has to join, and then to contribute, before the others go on without it
#   Whether this site takes part is decided by policy.toml beside this file, which nobody else can change.
# [neighbours]: their names and addresses; "": the neighbour only dials out.
# [forwarders]: members that connect this node to neighbours that only dial out, if it only dials out too.
# [node]:
#   listen: address where it listens for neighbours, "" if it only dials out; status_page: of its status page, or ""
#   advertise: address where neighbours reach it, if that is another one, as behind NAT
#   proxy: "http://user:password@host:port" through which it dials; "": that of HTTPS_PROXY; "none": none
#   forward: whether it forwards connections, which it cannot read, between members that only dial out
#   data: its data file, beside this file or an absolute path
#   sep, decimal, encoding, header: of a text file, as sep = ";" decimal = "," encoding = "latin-1" header = "no"
#   sheet: of an Excel file
#   exchanges_per_second: exchanges that it initiates, on average
#   max_exchanges_per_second: exchanges that it takes part in, whoever initiates them
#   durable: whether its journal survives a loss of power
#   epoch_seconds: seconds after which everything is computed anew; 0: only when something changed
#   keep_exchanges: exchanges with rows of others that its journal keeps, for verify and replay; 0: none
#   secure_delete: whether deleted rows of others are overwritten on the disk
#   max_disclosures: times that each of its rows may be sent to neighbours, once for a neighbour and epoch; 0: no limit
# A running node reloads this file and its data when they change.
"""
NETWORK_HEADER = """\
# A network whose nodes compute a statistic by gossip: what it computes, its nodes and their addresses, its edges.
# For the operator of the network: a node reads its own node.toml only. 'gosta network add' and 'remove' change both.
"""


def write(path: Path, config: NodeConfig | NetworkConfig) -> None:
    header = NODE_HEADER if isinstance(config, NodeConfig) else NETWORK_HEADER
    write_atomically(path, header + to_toml(msgspec.to_builtins(config)))


def to_toml(sections: Mapping[str, Any]) -> str:
    """Return TOML with the plain values first, then a section for each mapping; values that are None are left out."""
    plain = [
        f"{_key(k)} = {_value(v)}"
        for k, v in sections.items()
        if v is not None and not isinstance(v, Mapping)
    ]
    lines = [*plain, *([""] if plain else [])]
    for name, section in sections.items():
        if isinstance(section, Mapping):
            lines += [
                f"[{_key(name)}]",
                *(f"{_key(k)} = {_value(v)}" for k, v in section.items() if v is not None),
                "",
            ]
    return "\n".join(lines)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        nested = any(isinstance(item, list | tuple) for item in value)
        items = [_value(item) for item in value]
        return (
            "[\n" + "".join(f"  {item},\n" for item in items) + "]"
            if nested
            else f"[{', '.join(items)}]"
        )
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # inf and nan, as TOML writes them
    return json.dumps(value, ensure_ascii=False).replace(
        "\x7f", "\\u007f"
    )  # the one character that TOML forbids
