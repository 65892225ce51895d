"""The folders of a network: one for the whole, with its authority, and in it one for each node."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import math
import shutil
import socket
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from gosta.errors import InputError, unknown
from gosta.net import addresses
from gosta.net import config as files
from gosta.net.config import NetworkFile, NodeFile, Place
from gosta.net.deploy import certificates
from gosta.net.deploy.certificates import Pair
from gosta.net.deploy.plan import Plan
from gosta.net.node.rows import own_rows
from gosta.runtime.arrays import Floats

RESERVED = {"authority", "data.csv", "key.pem", "cert.pem", "ca.pem"}
RESERVED |= {files.NODE, files.NETWORK, files.JOURNAL, files.LOCK, files.LOG}
KEEP_SAFE = """\
key.pem is the key of this network's authority: whoever has it can join the network as any node.
Keep it safe, and away from the nodes, which do not need it; 'gosta network add' does.
"""


def make(
    folder: Path,
    plan: Plan,
    hosts: Sequence[str] = ("127.0.0.1",),
    port: int = 7400,
    rate: float = 10.0,
    ca: Path | None = None,
) -> NetworkFile:
    """Make the folders of a network, all or none.

    Nodes are at one host, or at a host each; node k listens at port + 2k, and its status page is one port above.
    """
    for file in plan.copies:
        if file.name in RESERVED or [other.name for other in plan.copies].count(file.name) > 1:
            raise InputError(f"{file} is copied into the nodes' folders, where there is such a name; call it otherwise")
    places = _places(plan.nodes, hosts, port)
    trusted = certificates.authority(plan.task.id) if ca is None else _authority(ca)
    names = [f"node-{k}" for k in range(plan.nodes)]
    edges = tuple((names[a], names[b]) for a, b in plan.edges)
    network = NetworkFile(plan.task, plan.graph, dict(zip(names, map(str, places), strict=True)), edges, plan.nodes)
    with _whole(folder) as building:
        files.write_network(building / files.NETWORK, network)
        _write_pair(building / "authority", trusted)
        files.write(building / "authority" / "README", KEEP_SAFE)
        for file in plan.copies:
            shutil.copyfile(file, building / file.name)
        for k, name in enumerate(names):
            _write_node(building / name, building, network, _place(name, places[k], rate), trusted)
            if plan.tables:
                files.write(building / name / "data.csv", csv(plan.tables[k]), mode=0o600)
            files.read_node(building / name / files.NODE)
    return network


def overview(folder: Path) -> NetworkFile:
    """The nodes and edges of a network, from its folder."""
    if not folder.is_dir():
        raise InputError(f"no such folder: {folder}; make a network with: gosta network init {folder}")
    return files.read_network(folder / files.NETWORK)


class Change(NamedTuple):
    """What came of adding or forgetting a node."""

    name: str
    edges: tuple[tuple[str, str], ...]  # that are new
    away: tuple[str, ...]  # neighbours whose folders are not here, so that their node.toml has to be mended there


def add(
    folder: Path,
    data: Path | None = None,
    neighbours: Sequence[str] = (),
    host: str = "127.0.0.1",
    port: int | None = None,
    rate: float = 10.0,
) -> Change:
    """Add a node to a network, with some neighbours: by default two that have the fewest."""
    network = overview(folder)
    for other in neighbours:
        _check_there(folder, network, other)
    degrees = Counter(other for edge in network.edges for other in edge)
    joined = tuple(dict.fromkeys(neighbours)) or tuple(sorted(network.nodes, key=lambda n: degrees[n])[:2])
    name = f"node-{network.used}"
    if (folder / name).exists():
        raise InputError(f"{folder / name} is there already, but no node of network.toml; move it away")
    place = _place(name, _free_place(network, host, port), rate)
    if data is not None:
        _check_table(folder, network, data)
        place = msgspec.structs.replace(place, data=f"data{''.join(data.suffixes[-2:])}")
    new = tuple((other, name) for other in joined)
    changed = msgspec.structs.replace(
        network,
        nodes={**network.nodes, name: place.listen},
        edges=(*network.edges, *new),
        used=network.used + 1,
    )
    trusted = _authority(folder / "authority")
    with _whole(folder / name) as building:
        _write_node(building, folder, changed, place, trusted)
        if data is not None:
            shutil.copyfile(data, building / place.data)
            (building / place.data).chmod(0o600)
        files.read_node(building / files.NODE)
    try:
        files.write_network(folder / files.NETWORK, changed)
    except BaseException:
        shutil.rmtree(folder / name)
        raise
    return Change(name, new, _tell_neighbours(folder, changed, joined))


def forget(folder: Path, name: str, delete: bool = False) -> Change:
    """Take out a node that left for good; where the rest would fall apart, its neighbours are joined."""
    network = overview(folder)
    _check_there(folder, network, name)
    if len(network.nodes) <= 2:
        raise InputError(f"{folder} has {len(network.nodes)} nodes; without {name} there would be nobody to talk to")
    if running(folder / name):
        raise InputError(f"{name} is running; stop it first: kill {process_of(folder / name)}")
    kept = tuple(edge for edge in network.edges if name not in edge)
    former = [a if b == name else b for a, b in network.edges if name in (a, b)]
    parts = _parts([n for n in network.nodes if n != name], kept)
    ends = [next(n for n in former if n in part) for part in parts if part & set(former)]
    new = tuple(pairwise(ends))
    nodes = {n: where for n, where in network.nodes.items() if n != name}
    changed = msgspec.structs.replace(network, nodes=nodes, edges=(*kept, *new))
    files.write_network(folder / files.NETWORK, changed)
    away = _tell_neighbours(folder, changed, former)
    left = folder / name
    if left.is_dir() and delete:
        shutil.rmtree(left)
    elif left.is_dir():
        left.rename(folder / f"{name}.forgotten")
    return Change(name, new, away)


def _check_there(folder: Path, network: NetworkFile, name: str) -> None:
    if name not in network.nodes:
        raise unknown(f"node of {folder}", name, network.nodes)


def certify(folder: Path, names: Sequence[str]) -> list[str]:
    """New keys and certificates for nodes whose folders are here, by default for all; they count from a restart on."""
    network, trusted = overview(folder), _authority(folder / "authority")
    for name in names:
        _check_there(folder, network, name)
    here = [name for name in names or network.nodes if (folder / name).is_dir()]
    for name in here:
        _write_pair(folder / name, certificates.issue(trusted, network.network.id, name))
    return here


def running(folder: Path) -> bool:
    """Whether a node runs from this folder: it holds a lock on node.lock."""
    try:
        with (folder / files.LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def process_of(folder: Path) -> int:
    """The process of a node that runs, which its lock tells."""
    try:
        return int((folder / files.LOCK).read_text()[:20])
    except (OSError, ValueError):
        raise InputError(f"{folder / files.LOCK} does not tell the process of the node; stop it by hand") from None


def csv(x: Floats) -> str:
    """A table of numbers, each to its last bit."""
    head = ",".join(f"x{k + 1}" for k in range(x.shape[1]))
    return "\n".join([head, *(",".join(map(repr, row)) for row in x.tolist()), ""])


def _places(nodes: int, hosts: Sequence[str], port: int) -> list[addresses.Address]:
    if len(hosts) not in (1, nodes):
        raise InputError(f"host is given {len(hosts)} times for {nodes} nodes; give it once, or once for each node")
    ports = [port + 2 * k for k in range(nodes)]
    if not 1 <= port <= max(ports) < 65535:
        raise InputError(f"port = {port}: {nodes} nodes need ports up to {max(ports) + 1}; ports go from 1 to 65535")
    where = list(hosts) * (nodes // len(hosts))
    places = [addresses.Address(host, p) for host, p in zip(where, ports, strict=True)]
    for place in places:
        addresses.parse(str(place))
        for p in (place.port, place.port + 1):
            if not _free(place.host, p):
                raise InputError(
                    f"port {p} of {place.host} is in use or not yours; choose another first port with --port"
                )
    return places


def _free(host: str, port: int) -> bool:
    """Whether one could listen there; another machine's ports are taken to be free."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            return error.errno not in (errno.EADDRINUSE, errno.EACCES)
    return True


def _free_place(network: NetworkFile, host: str, port: int | None) -> addresses.Address:
    if port is not None:
        return _places(1, [host], port)[0]
    taken = {addresses.parse(where) for where in network.nodes.values()}
    for p in range(max(where.port for where in taken) + 2, 65534, 2):
        if _free(host, p) and _free(host, p + 1):
            return addresses.Address(host, p)
    raise InputError(f"no port of {host} is free; name one with --port")


@contextlib.contextmanager
def _whole(folder: Path) -> Iterator[Path]:
    """A folder to fill, which gets its place only when all went well."""
    place = folder.resolve()
    if place == Path.cwd() or (place.exists() and (not place.is_dir() or any(place.iterdir()))):
        raise InputError(f"{folder} is there already; name a folder that does not exist yet")
    try:
        building = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}-"))
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from None
    try:
        yield building
        building.chmod(0o755)
        building.rename(place)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


def _write_pair(folder: Path, pair: Pair) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    files.write(folder / "key.pem", pair.key, mode=0o600)
    files.write(folder / "cert.pem", pair.cert)


def _authority(folder: Path) -> Pair:
    try:
        return Pair((folder / "key.pem").read_bytes(), (folder / "cert.pem").read_bytes())
    except OSError as error:
        raise InputError(f"authority = {str(folder)!r} must hold cert.pem and key.pem: {error.strerror}") from None


def _place(name: str, where: addresses.Address, rate: float) -> Place:
    if not 0 < rate < math.inf:
        raise InputError(f"rate = {rate!r} must be a positive number of meetings a second")
    page = addresses.Address("127.0.0.1", where.port + 1)  # it has no password: for this machine only
    return Place(name, str(where), str(page), rate=rate)


def _write_node(folder: Path, shared: Path, network: NetworkFile, place: Place, trusted: Pair) -> None:
    """What a node needs, but for its data; files that all nodes have are copied from the network's folder."""
    _write_pair(folder, certificates.issue(trusted, network.network.id, place.name))
    files.write(folder / "ca.pem", trusted.cert)
    for file in _shared(network, shared):
        shutil.copyfile(shared / file, folder / file)
    files.write_node(folder / files.NODE, NodeFile(network.network, place, neighbours_of(network, place.name)))


def _tell_neighbours(folder: Path, network: NetworkFile, names: Sequence[str]) -> tuple[str, ...]:
    """Write who their neighbours are now into nodes' files, and leave the rest of these; give those not here."""
    away = []
    for name in names:
        path = folder / name / files.NODE
        if path.exists():
            file = msgspec.structs.replace(files.read_node(path), neighbours=neighbours_of(network, name))
            files.write_node(path, file)
        else:
            away.append(name)
    return tuple(away)


def neighbours_of(network: NetworkFile, name: str) -> dict[str, str]:
    """A node's neighbours, and where to call them."""
    others = {a if b == name else b for a, b in network.edges if name in (a, b)}
    return {other: where for other, where in network.nodes.items() if other in others}


def _shared(network: NetworkFile, folder: Path) -> list[str]:
    """The files that all nodes have a copy of: the statistic's own, and those that options name."""
    named = [network.network.statistic.rpartition(":")[0], *network.network.options.values()]
    return [name for name in named if isinstance(name, str) and name and (folder / name).is_file()]


def _check_table(folder: Path, network: NetworkFile, data: Path) -> None:
    """Refuse a file of rows that is not such as the other nodes have."""
    width = own_rows(network.network, data, folder).shape[1]
    for name in network.nodes:
        theirs = folder / name / "data.csv"
        if theirs.is_file():
            wanted = own_rows(network.network, theirs, folder).shape[1]
            if width != wanted:
                raise InputError(
                    f"{data} has {width} numbers a row where {theirs} has {wanted}; give it the same columns"
                )
            return


def _parts(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[set[str]]:
    """The nodes, by what is joined."""
    part = {name: {name} for name in nodes}
    for a, b in edges:
        if part[a] is not part[b]:
            part[a] |= part[b]
            for name in part[b]:
                part[name] = part[a]
    return list({id(p): p for p in part.values()}.values())
