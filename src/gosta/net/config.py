"""The files of a network: network.toml for its operator, node.toml for each node."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from gosta.datasets.dictionary import Column, check_dictionary
from gosta.datasets.files import Format
from gosta.datasets.harmonise import Harmonisation
from gosta.errors import DataError, InputError, shorten
from gosta.net.addresses import check_address, check_name, parse_proxy
from gosta.net.limits import MAX_ROW_NUMBERS, SECONDS_PER_EPOCH
from gosta.private.settings import FitSettings, PrivateSettings, check_settings
from gosta.runtime.files import write_atomically
from gosta.runtime.settings_file import Key, check_numbers, comments, read_settings, to_toml

if TYPE_CHECKING:
    from gosta.protocols import Protocol
    from gosta.statistics.definition import Statistic

NODE_FILE = "node.toml"
NETWORK_FILE = "network.toml"
JOURNAL_FILE = "journal.sqlite"
LOCK_FILE = "node.lock"
LOG_FILE = "log.jsonl"
HEAD_FILE = "contributions.json"  # where the log of contributions in the journal ended last
MAX_NODE_FILE_BYTES = 1 << 20  # 10,000 neighbours take a third of it
MAX_NETWORK_FILE_BYTES = 1 << 26  # a million edges take half of it
MAX_ENCODING_CHARACTERS = 40
MAX_SHEET_CHARACTERS = 31  # the limit of Excel
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

    id: Annotated[str, Key("of the network, drawn at random: 16 hexadecimal digits")]
    statistic: Annotated[
        str,
        Key(
            "a name, or FILE.py:NAME with the file beside this one; or several, each with columns: "
            "auc,kendall-tau:a+b"
        ),
    ]
    protocol: Annotated[str, Key("rule by which nodes estimate")] = "tracking"
    confidence_level: Annotated[
        float | None, Key("of the intervals; without it there are none", 0, 1, True, "0.95")
    ] = None
    options: Annotated[dict[str, Any], Key("of the statistic")] = {}
    encoded_columns: Annotated[
        int | tuple[int, ...],
        Key(
            "numbers in a row, where data files hold rows as kernels take them, for each of "
            "several statistics; 0: they are tables, and columns, label and score are read from "
            "them"
        ),
    ] = 0
    columns: Annotated[tuple[str, ...], Key("that are read")] = ()
    label: Annotated[str | None, Key("column of classes")] = None
    score: Annotated[
        str | tuple[str, ...] | None, Key("column of scores, or of the scores of two models")
    ] = None
    time: Annotated[str | None, Key("column of times to an event")] = None
    event: Annotated[
        str | None, Key("column that says whether the event was seen then (1) or not (0)")
    ] = None
    classes: Annotated[
        tuple[str | int | float, ...],
        Key("of all sites, in order: one site need not have them all"),
    ] = ()
    drop_missing: Annotated[bool, Key("whether rows with missing values are left out")] = False
    until: Annotated[
        float,
        Key("relative error, such as 0.01, at which nodes initiate no more exchanges; 0: never"),
    ] = 0.0
    dictionary: Annotated[
        dict[str, Column],
        Key("what columns mean, at all sites: type, unit, range, classes and a description"),
    ] = {}
    private: Annotated[
        PrivateSettings | None,
        Key("settings of private sums, with which only masked sums leave a site, never a row:"),
    ] = None
    fit: Annotated[
        FitSettings | None,
        Key("what is declared of a regression model, whose name is the statistic's:"),
    ] = None

    @property
    def scores(self) -> tuple[str, ...]:
        """The columns of scores: none, one, or those of two models."""
        score = self.score
        return () if score is None else (score,) if isinstance(score, str) else score

    @property
    def row_widths(self) -> tuple[int, ...]:
        """Numbers of each encoding in the rows of data files; (0,): files are tables."""
        if isinstance(self.encoded_columns, int):
            return (self.encoded_columns,)
        return self.encoded_columns


class NodeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Section [node]: a node's name, addresses, data file and rates."""

    name: Annotated[str, Key("of the node")]
    listen: Annotated[
        str, Key('host:port where it listens for neighbours, "" if it only dials out')
    ]
    status_page: Annotated[str, Key('host:port of its status page; "": none')] = ""
    advertise: Annotated[
        str, Key("host:port where neighbours reach it, if that is another one, as behind NAT")
    ] = ""
    proxy: Annotated[
        str,
        Key(
            '"http://user:password@host:port" through which it dials; "": that of HTTPS_PROXY; '
            '"none": none'
        ),
    ] = ""
    forward: Annotated[
        bool,
        Key(
            "whether it forwards connections, which it cannot read, between members that only dial "
            "out"
        ),
    ] = True
    data: Annotated[str, Key("its data file, beside this file or an absolute path")] = "data.csv"
    exchanges_per_second: Annotated[float, Key("exchanges that it initiates, on average", 0)] = 10.0
    max_exchanges_per_second: Annotated[
        float, Key("exchanges that it takes part in, whoever initiates them", 0)
    ] = 1000.0
    durable: Annotated[bool, Key("whether its journal survives a loss of power")] = False
    epoch_seconds: Annotated[
        float,
        Key("seconds after which everything is computed anew; 0: only when something changed", 0),
    ] = 0.0
    tls: Annotated[bool, Key("whether connections are encrypted; false for tests only")] = True
    keep_exchanges: Annotated[
        int,
        Key(
            "exchanges with rows of others that its journal keeps, for verify and replay; 0: none",
            0,
        ),
    ] = 100_000
    secure_delete: Annotated[
        bool, Key("whether deleted rows of others are overwritten on the disk")
    ] = False
    max_disclosures: Annotated[
        int,
        Key(
            "times that each of its rows may be sent to neighbours, once for a neighbour and "
            "epoch; 0: no limit",
            0,
        ),
    ] = 0
    sep: Annotated[str | None, Key('between values of a text file, as ";"; found without it')] = (
        None
    )
    decimal: Annotated[str, Key("sign of decimals in a text file")] = "."
    encoding: Annotated[str, Key('of a text file, as "latin-1"')] = "utf-8"
    header: Annotated[
        str, Key('whether the first line of a text file holds names: "yes", "no" or "auto"')
    ] = "auto"
    sheet: Annotated[str | None, Key("of an Excel file; the first without it")] = None
    skip: Annotated[
        int | None,
        Key("lines above the names of columns; without it found where they are certain", 0),
    ] = None
    skip_end: Annotated[
        int | None,
        Key("rows at the end that are left out; without it one of totals, if it is certain", 0),
    ] = None
    harmonise: Annotated[
        Harmonisation | None,
        Key("how the file's names, values and units become those of the network:"),
    ] = None

    @property
    def format(self) -> Format:
        """How the data file is read."""
        sep = "\t" if self.sep == "tab" else self.sep
        rules = self.harmonise or Harmonisation()
        return Format(
            sep,
            self.decimal,
            self.encoding,
            self.header,
            self.sheet,
            self.skip,
            self.skip_end,
            rules,
        )


class NodeConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Contents of a node.toml."""

    network: Task
    node: NodeSettings
    neighbours: dict[str, str]  # name: host:port; empty if the neighbour only dials out
    # Members that connect it to such neighbours, if it only dials out too; name: host:port.
    forwarders: dict[str, str] = {}


class NetworkConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of a network.toml: all nodes and edges, for the operator of the network."""

    network: Task
    graph: str
    nodes: dict[str, str]  # name: host:port where neighbours reach it; empty if it only dials out
    edges: tuple[tuple[str, str], ...]
    nodes_created: int = 0  # including removed ones, since a number is never reused


def read_node(path: Path) -> NodeConfig:
    """Read a node.toml."""
    try:
        return read_settings(
            path, NodeConfig, MAX_NODE_FILE_BYTES, _check_node, FIX_HINT, RENAMED_KEYS
        )
    except FileNotFoundError:
        if not (path.parent / NETWORK_FILE).exists():
            raise _no_file(path) from None
        nodes = [str(file.parent) for file in sorted(path.parent.glob(f"*/{NODE_FILE}"))]
        where = f": {shorten(nodes)}" if nodes else ", which is not here"
        raise InputError(
            f"{path.parent} is a network's folder; name that of a node{where}"
        ) from None


def read_network(path: Path) -> NetworkConfig:
    """Read a network.toml."""
    try:
        return read_settings(
            path, NetworkConfig, MAX_NETWORK_FILE_BYTES, _check_network, FIX_HINT, RENAMED_KEYS
        )
    except FileNotFoundError:
        raise _no_file(path) from None


def _no_file(path: Path) -> InputError:
    return InputError(f"no such file: {path}; 'gosta network init' makes a network's folders")


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
    elif task.fit is not None:
        raise InputError("network.fit is for private sums; give a section [network.private], too")
    else:
        for reference in parse_references(task.statistic):
            if references.split_reference(reference.name) is None:
                statistics.find(reference.name)
        if any(file.name != str(file) for file, _ in references.own_references(task.statistic)):
            where = "the file must be beside node.toml; name no folder"
            raise InputError(f"network.statistic = {task.statistic!r}: {where}")
    if min(task.row_widths, default=0) < 0 or sum(task.row_widths) > MAX_ROW_NUMBERS:
        limits = f"0 or more, and at most {MAX_ROW_NUMBERS:,} together"
        raise InputError(f"network.encoded_columns = {task.encoded_columns!r} must be {limits}")
    check_protocol(task.protocol)
    if task.confidence_level is not None and is_for_one_row_each(task.protocol):
        raise InputError(
            f"network.confidence_level = {task.confidence_level!r}: protocol = {task.protocol!r} "
            "has no intervals; remove the line, or use tracking, at all nodes"
        )
    check_numbers(task, "network.")
    check_dictionary(task.dictionary)
    if not 0 <= task.until < 1:
        raise InputError(
            f"network.until = {task.until!r} must be a relative error below 1, such as 0.01, or 0"
        )
    if len({str(name) for name in task.classes}) < len(task.classes):
        raise InputError(f"network.classes = {list(task.classes)!r} must name each class once")


def _check_private(task: Task, private: PrivateSettings) -> None:
    names = task.statistic.split(",")
    if ".py:" in task.statistic or not all(re.match(r"[A-Za-z]", name) for name in names):
        raise InputError(
            f"network.statistic = {task.statistic!r}: private sums are of statistics that have "
            "sketches ('gosta statistics'), as auc or auc,gini-index:income"
        )
    if task.until:
        raise InputError(
            f"network.until = {task.until!r} is for exchanges of rows; private sums end by "
            "themselves"
        )
    check_settings(private, "network.private.")


def check_protocol(name: str) -> None:
    """Raise `InputError` for protocols that need a shared clock or all rows."""
    from gosta import protocols
    from gosta.protocols.protocol import Start

    rule = protocols.find(name)
    is_rule = isinstance(rule, protocols.Protocol) and rule.start is not Start.ROW_MEAN
    if not is_rule or not (rule.supports_tables or rule.uses_tree or is_for_one_row_each(name)):
        raise InputError(
            f"protocol = {name!r} is for simulations; nodes of a network run tracking, relay, "
            "gosta-async, or carried-means where each has one row"
        )


def protocol_of_nodes(name: str, statistic: Statistic, has_interval: bool) -> Protocol:
    """Return the rule that nodes run for a statistic; raise `InputError` where it cannot be used.

    A protocol for one row at each node is not replaced by another one where an interval or a
    statistic needs that: on a network, all sites agree on what runs.
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
    check_name("node.name", node.name)
    for field in ("listen", "status_page", "advertise"):
        if address := getattr(node, field):
            check_address(f"node.{field}", address)
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
    check_numbers(node, "node.")
    if node.max_disclosures == 1 and is_for_one_row_each(config.network.protocol):
        why = f"protocol = {config.network.protocol!r} sends two visitors of its row to neighbours"
        raise InputError(f"node.max_disclosures = 1: {why}; set 2 or more, or 0 for no limit")
    _check_format(config)
    if 0 < node.epoch_seconds < SECONDS_PER_EPOCH:
        raise InputError(
            f"node.epoch_seconds = {node.epoch_seconds!r} must be 0, or at least "
            f"{SECONDS_PER_EPOCH:g}"
        )
    for name, address in config.neighbours.items():
        check_name("neighbours", name)
        if name == node.name:
            raise InputError(f"neighbours.{name} is the node itself; remove it")
        if address:
            check_address(f"neighbours.{name}", address)
    for name, address in config.forwarders.items():
        check_name("forwarders", name)
        check_address(f"forwarders.{name}", address)


def _check_format(config: NodeConfig) -> None:
    """Check how the data file is to be read."""
    form = config.node.format
    for name, most in {"encoding": MAX_ENCODING_CHARACTERS, "sheet": MAX_SHEET_CHARACTERS}.items():
        if len(getattr(form, name) or "") > most:
            raise InputError(
                f"node.{name} = {getattr(form, name)[:40]!r}... has more than {most} characters"
            )
    try:
        form.check()
    except InputError as error:
        raise InputError(f"node.{error}") from None
    for name in form.options() if any(config.network.row_widths) else ():
        why = "rows of this network are encoded by 'gosta network init --data'; leave it out"
        raise InputError(
            f"node.{name} = {getattr(config.node, name)!r} is for a site's own table; {why}"
        )


def _check_network(config: NetworkConfig) -> None:
    _check_task(config.network)
    for name, address in config.nodes.items():
        check_name("nodes", name)
        if address:
            check_address(f"nodes.{name}", address)
    for a, b in config.edges:
        for name in {a, b} - config.nodes.keys():
            raise InputError(
                f"edges has {name!r}, which is not among the nodes; add it there or remove it"
            )
        if a == b:
            raise InputError(f"edges joins {a!r} to itself; remove that edge")


NODE_HEADER = f"""\
# A node of a network that computes a statistic by gossip. Start it with: gosta node FOLDER
# A running node reloads this file and its data when they change. Whether this site takes part is
# decided by policy.toml beside this file, which nobody else can change.
# [network]: what is computed; the same at all nodes.
{comments(Task, "   ")}{comments(PrivateSettings, "     ")}\
# [neighbours]: their names and addresses; "": the neighbour only dials out.
# [forwarders]: members that connect this node to neighbours that only dial out, if it only dials
# out too.
# [node]:
{comments(NodeSettings, "   ")}{comments(Harmonisation, "     ")}"""
NETWORK_HEADER = """\
# A network whose nodes compute a statistic by gossip: what it computes, its nodes and their
# addresses, its edges. For the operator of the network: a node reads its own node.toml only.
# 'gosta network add' and 'remove' change both.
"""


def write(path: Path, config: NodeConfig | NetworkConfig) -> None:
    """Write a node.toml or a network.toml, with comments on its keys."""
    header = NODE_HEADER if isinstance(config, NodeConfig) else NETWORK_HEADER
    write_atomically(path, header + to_toml(msgspec.to_builtins(config)))
