"""The files of a network: what its operator keeps, and what a node's folder holds."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import msgspec

from gosta.errors import InputError
from gosta.net.addresses import parse
from gosta.net.names import ALLOWED, NAME

NODE, NETWORK, JOURNAL, LOCK, LOG = "node.toml", "network.toml", "journal.sqlite", "node.lock", "log.jsonl"
MOST_BYTES = 1 << 20  # of a node.toml
MOST_NETWORK_BYTES = 1 << 26
MEND = "mend the line; 'gosta network init' writes such files"


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a network computes: all of its nodes must say the same."""

    id: str  # of the network, made at random: 16 hexadecimal digits
    statistic: str  # a name, or FILE.py:NAME with the file in the node's folder
    protocol: str = "tracking"
    interval: float | None = None  # the confidence level
    options: dict[str, Any] = {}  # of the statistic
    encoded: int = 0  # how many numbers a row has, where the data files hold what the kernel needs; otherwise:
    columns: tuple[str, ...] = ()
    label: str | None = None
    score: str | None = None
    classes: tuple[str | int | float, ...] = ()  # all classes of all sites, in order: a site may not have them all
    drop_missing: bool = False


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A node and how it runs."""

    name: str
    listen: str  # host:port
    status: str = ""  # host:port of its status page; empty: none
    data: str = "data.csv"  # beside the file, or an absolute path
    rate: float = 10.0  # meetings that it begins in a second, on average
    most: float = 1000.0  # meetings in a second that it takes part in; beyond that it is busy
    durable: bool = False  # whether the journal survives a loss of power, not only of the process
    renew: float = 0.0  # seconds after which a new epoch begins; 0: only when something changed
    tls: bool = True


class NodeFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """node.toml: all that a node needs to know."""

    network: Task
    node: Place
    neighbours: dict[str, str]  # names, and where to call them; empty: they call


class NetworkFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """network.toml: all nodes, for whoever runs the whole."""

    network: Task
    graph: str
    nodes: dict[str, str]  # names, and where they listen
    edges: tuple[tuple[str, str], ...]
    used: int = 0  # how many nodes there have been: numbers are not given twice


Kind = TypeVar("Kind", NodeFile, NetworkFile)


def read_node(path: Path) -> NodeFile:
    """Read and check a node.toml."""
    file = _read(path, NodeFile, MOST_BYTES)
    with _about(path):
        check_task(file.network)
        check_place(file.node)
        for name, where in file.neighbours.items():
            check_name(name, "neighbours")
            if name == file.node.name:
                raise InputError(f"neighbours.{name} is the node itself; take it out")
            if where:
                _field(f"neighbours.{name}", where)
    return file


def read_network(path: Path) -> NetworkFile:
    """Read and check a network.toml."""
    file = _read(path, NetworkFile, MOST_NETWORK_BYTES)
    with _about(path):
        check_task(file.network)
        for name, where in file.nodes.items():
            check_name(name, "nodes")
            _field(f"nodes.{name}", where)
        for edge in file.edges:
            for name in edge:
                if name not in file.nodes:
                    raise InputError(f"edges has {name!r}, which is not among the nodes; add it there or take it out")
            if edge[0] == edge[1]:
                raise InputError(f"edges joins {edge[0]!r} to itself; take that out")
    return file


@contextlib.contextmanager
def _about(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _read(path: Path, kind: type[Kind], most: int) -> Kind:
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except FileNotFoundError:
        raise InputError(f"no such file: {path}; 'gosta network init' makes a network's folders") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    if len(content) > most:
        raise InputError(f"{path} has more than {most >> 20} MiB, which no such file needs; is it another file?")
    try:
        given = tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise InputError(f"cannot read {path}: it is not text in UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"cannot read {path}: {error}; {MEND}") from None
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {_explained(str(error), given, kind)}") from None


def _explained(error: str, given: Mapping[str, Any], kind: type) -> str:
    """What is wrong, with the field, its value and what may stand there."""
    what, _, place = error.partition(" - at ")
    names = [name for name in re.split(r"[.\[\]`$]+", place) if name]
    hints: dict[str, Any] = get_type_hints(kind)
    section = hints.get(names[0], kind) if names else kind
    if "field" in what and hasattr(section, "__struct_fields__"):  # one that is missing, or unknown
        where = f" in [{names[0]}]" if names else ""
        return f"{what[0].lower()}{what[1:]}{where}; there are: {', '.join(section.__struct_fields__)}"
    value: Any = given
    for name in names:
        with contextlib.suppress(LookupError, TypeError):
            value = value[int(name) if isinstance(value, list) else name]
    return f"{'.'.join(names)} = {str(value)[:60]!r}: {what[0].lower()}{what[1:]}; {MEND}"


def check_task(task: Task) -> None:
    """Refuse a task that no node could work on."""
    from gosta import statistics
    from gosta.statistics import user_file

    if not re.fullmatch(r"[0-9a-f]{16}", task.id):
        raise InputError(f"network.id = {task.id[:40]!r} must be 16 hexadecimal digits, the same at all nodes")
    file = user_file.split_reference(task.statistic)
    if file is None:
        statistics.find(task.statistic)
    elif file[0].name != str(file[0]):
        raise InputError(f"network.statistic = {task.statistic!r}: the file must lie beside node.toml; name no folder")
    check_protocol(task.protocol)
    if task.interval is not None and not 0 < task.interval < 1:
        raise InputError(f"network.interval = {task.interval!r} must lie between 0 and 1, such as 0.95")
    if len({str(name) for name in task.classes}) < len(task.classes):
        raise InputError(f"network.classes = {list(task.classes)!r}: each class may stand there once")


def check_protocol(name: str) -> None:
    """Refuse protocols that need what nodes of a network do not have: a shared clock, two visitors, all rows."""
    from gosta import protocols

    rule = protocols.find(name)
    if not isinstance(rule, protocols.Protocol) or "share" not in rule.samples or rule.begins == "row":
        raise InputError(f"protocol = {name!r} is for simulations; nodes of a network go by tracking or gosta-async")


def check_place(place: Place) -> None:
    """Refuse a node that could not run."""
    check_name(place.name, "node.name")
    for field, where in (("listen", place.listen), ("status", place.status)):
        if where or field == "listen":
            _field(f"node.{field}", where)
    if place.listen == place.status:
        raise InputError(f"node.status = {place.status!r} is where the node listens for others; give it another port")
    if not place.data:
        raise InputError("node.data = '' must name a file, such as 'data.csv'")
    for field, number in (("rate", place.rate), ("most", place.most), ("renew", place.renew)):
        if not (number >= 0 and math.isfinite(number)):
            raise InputError(f"node.{field} = {number!r} must be a finite number, 0 or more")


def check_name(name: str, field: str) -> None:
    """Refuse what cannot be the name of a node, which is also that of a folder."""
    if not NAME.fullmatch(name):
        raise InputError(f"{field} = {name[:80]!r}: a node's name has {ALLOWED}")


def _field(field: str, where: str) -> None:
    try:
        port = parse(where).port
    except InputError as error:
        raise InputError(f"{field} = {error}") from None
    if port == 0:
        raise InputError(f"{field} = {where!r} must end in a port from 1 to 65535, such as 127.0.0.1:7400")


NODE_HEAD = """\
# A node of a network that computes a statistic by gossip. Start it with: gosta node FOLDER
# [network] says what is computed, and must be the same at all nodes; [neighbours] who they are and where to call them.
# [node]: listen, where neighbours call; status, its status page; data, its table, beside this file or an absolute path;
# rate, meetings that it begins in a second; most, meetings in a second that it takes part in, whoever begins them;
# durable, whether its journal is to survive a loss of power; renew, seconds after which all is computed anew (0: when
# something changed). A running node notices changes of this file.
"""
NETWORK_HEAD = """\
# A network whose nodes compute a statistic by gossip: what it computes, its nodes and where they listen, its edges.
# For whoever runs the whole: nodes read their own node.toml only. 'gosta network add' and 'forget' change both.
"""


def write_node(path: Path, file: NodeFile) -> None:
    """Write a node.toml, or leave the old one as it is."""
    write(path, NODE_HEAD + toml(msgspec.to_builtins(file)))


def write_network(path: Path, file: NetworkFile) -> None:
    """Write a network.toml, or leave the old one as it is."""
    write(path, NETWORK_HEAD + toml(msgspec.to_builtins(file)))


def write(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a whole file or nothing."""
    try:
        given = content.encode() if isinstance(content, str) else content
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(given)
                file.flush()
                os.fsync(handle)
            Path(name).chmod(mode)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    except UnicodeEncodeError:
        raise InputError(f"cannot write {path}: a name in it is not text in UTF-8") from None


def toml(sections: Mapping[str, Any]) -> str:
    """Plain values, then a section for each mapping, as TOML has them; what is None is left out."""
    plain = [f"{_key(k)} = {_value(v)}" for k, v in sections.items() if v is not None and not isinstance(v, Mapping)]
    lines = [*plain, *([""] if plain else [])]
    for name, section in sections.items():
        if isinstance(section, Mapping):
            lines += [f"[{_key(name)}]", *(f"{_key(k)} = {_value(v)}" for k, v in section.items() if v is not None), ""]
    return "\n".join(lines)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        nested = any(isinstance(item, list | tuple) for item in value)
        items = [_value(item) for item in value]
        return "[\n" + "".join(f"  {item},\n" for item in items) + "]" if nested else f"[{', '.join(items)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # inf and nan, as TOML writes them
    return json.dumps(value, ensure_ascii=False).replace(
        "\x7f", "\\u007f"
    )  # strings too, but for one sign that TOML forbids
