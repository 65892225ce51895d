"""The folders of a network: one for the network with its authority, and in it one for each node."""

from __future__ import annotations

import contextlib
import errno
import math
import shutil
import socket
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from gosta.datasets.tables import Format
from gosta.errors import DataError, InputError, NetworkError, unknown
from gosta.net import addresses, config, members
from gosta.net.agreements import AGREED_FILE
from gosta.net.config import NETWORK_FILE, NODE_FILE, NetworkConfig, NodeConfig, NodeSettings, Task
from gosta.net.deploy import authority, certificates, membership
from gosta.net.deploy.authority import Authority, Passphrase
from gosta.net.deploy.certificates import Pair
from gosta.net.deploy.membership import declared_rows, forwarders_of, neighbours_of
from gosta.net.deploy.plan import Plan
from gosta.net.deploy.policies import write_policy
from gosta.net.members import Member
from gosta.net.node import lock
from gosta.net.node.rows import encoded_names, read_rows
from gosta.private.policy import POLICY_FILE
from gosta.runtime.arrays import Floats
from gosta.runtime.files import write_atomically
from gosta.statistics import references

FIRST_PORT = 7400
# a status page of a node at port 443 is at port 7443
MIN_UNPRIVILEGED_PORT, PRIVILEGED_OFFSET = (1024, 7000)
RESERVED_NAMES = {
    authority.FOLDER,
    "data.csv",
    "key.pem",
    "cert.pem",
    "ca.pem",
    NODE_FILE,
    NETWORK_FILE,
}
RESERVED_NAMES |= {config.JOURNAL_FILE, config.HEAD_FILE, config.LOCK_FILE, config.LOG_FILE}
RESERVED_NAMES |= {
    members.MEMBERS_FILE,
    members.ACCEPTED_FILE,
    members.PROPOSED_FILE,
    members.CONFLICT_FILE,
}
RESERVED_NAMES |= {POLICY_FILE, AGREED_FILE, "next-key.pem", "request.json", "request.csr"}
RESERVED_NAMES |= {"invitation.json", "requests", "bundles"}


def create(
    folder: Path,
    plan: Plan,
    hosts: Sequence[str] = ("127.0.0.1",),
    port: int = FIRST_PORT,
    exchanges_per_second: float = 10.0,
    ca: Path | None = None,
    passphrase: Passphrase | None = None,
) -> NetworkConfig:
    """Create the folders of a network, all or none.

    The nodes are at one host, or at one host each ("outbound": the node only dials out), and listen at `port`; of
    several nodes on one machine, the k-th at port + 2k. Their status pages are one port above.
    `ca` is a folder with the key and certificate of an existing authority. With a passphrase, the authority's keys are
    encrypted.
    """
    check_shared_files(plan)
    places = _choose_places(plan.nodes, hosts, port)
    signer = authority.make(plan.task.id, ca, passphrase, encrypt=passphrase is not None)
    names = [f"node-{k}" for k in range(plan.nodes)]
    edges = tuple((names[a], names[b]) for a, b in plan.edges)
    nodes = {name: address_of(place) for name, place in zip(names, places, strict=True)}
    network = NetworkConfig(plan.task, plan.graph, nodes, edges, plan.nodes)
    membership.check_reachable(network)
    with new_folder(folder) as draft:
        config.write(draft / NETWORK_FILE, network)
        authority.write(draft, signer)
        for file in plan.shared_files:
            shutil.copyfile(file, draft / file.name)
        listed = {}
        for k, name in enumerate(names):
            node = msgspec.structs.replace(
                node_settings(name, places[k], exchanges_per_second), **plan.reading
            )
            count = plan.counts[k] if plan.counts else 0
            listed[name] = _write_node(draft / name, draft, network, node, signer, count)
            if plan.node_rows:
                write_atomically(draft / name / "data.csv", to_csv(plan.node_rows[k]), mode=0o600)
            if plan.node_files:
                write_atomically(draft / name / "data.csv", plan.node_files[k], mode=0o600)
            config.read_node(draft / name / NODE_FILE)
        membership.publish(
            draft, network, membership.make_list(draft, network, signer, listed), signer
        )
    return network


def check_shared_files(plan: Plan) -> None:
    for file in plan.shared_files:
        if (
            file.name in RESERVED_NAMES
            or [other.name for other in plan.shared_files].count(file.name) > 1
        ):
            raise InputError(
                f"{file} is copied into the nodes' folders, where its name is taken; rename it"
            )


def load_network(folder: Path) -> NetworkConfig:
    if not folder.is_dir():
        raise InputError(
            f"no such folder: {folder}; make a network with: gosta network init {folder}"
        )
    return config.read_network(folder / NETWORK_FILE)


def local_nodes(folder: Path) -> list[str]:
    """Return the names of a network's nodes whose folders are on this machine; raise `NetworkError` if none is."""
    names = [name for name in load_network(folder).nodes if (folder / name / NODE_FILE).exists()]
    if not names:
        raise NetworkError(f"{folder} has no node's folder: are they all at their sites?")
    return names


class Change(NamedTuple):
    name: str
    new_edges: tuple[tuple[str, str], ...]
    # neighbours whose folders are not here, so that their node.toml must be edited there
    remote: tuple[str, ...]


def add(
    folder: Path,
    data: Path | None = None,
    neighbours: Sequence[str] = (),
    host: str = "127.0.0.1",
    port: int | None = None,
    exchanges_per_second: float = 10.0,
    passphrase: Passphrase | None = None,
    reading: Mapping[str, str] = MappingProxyType({}),
) -> Change:
    """Add a node to a network, with some neighbours: by default the two nodes that have the fewest.

    `reading` says how its data file is read: settings of [node].
    """
    network = load_network(folder)
    for other in neighbours:
        _check_known(folder, network, other)
    degrees = Counter(other for edge in network.edges for other in edge)
    chosen = tuple(dict.fromkeys(neighbours)) or tuple(
        sorted(network.nodes, key=lambda n: degrees[n])[:2]
    )
    created = network.nodes_created
    while f"node-{created}" in network.nodes:  # a site that enrolled under such a name
        created += 1
    name = f"node-{created}"
    if (folder / name).exists():
        raise NetworkError(
            f"{folder / name} exists, but is not a node of network.toml; move it away"
        )
    node, rows = (
        node_settings(name, _free_place(folder, network, host, port), exchanges_per_second),
        0,
    )
    node = msgspec.structs.replace(node, **reading)
    if data is not None:
        rows = _check_data(folder, network, data, node.format)
        node = msgspec.structs.replace(node, data=f"data{''.join(data.suffixes[-2:])}")
    new_edges = tuple((other, name) for other in chosen)
    nodes, edges = (
        {**network.nodes, name: node.advertise or node.listen},
        (*network.edges, *new_edges),
    )
    changed = msgspec.structs.replace(network, nodes=nodes, edges=edges, nodes_created=created + 1)
    membership.check_reachable(changed)
    signer = authority.read(folder, network.network.id, passphrase)
    with new_folder(folder / name) as draft:
        listed = {name: _write_node(draft, folder, changed, node, signer, rows)}
        if data is not None:
            shutil.copyfile(data, draft / node.data)
            (draft / node.data).chmod(0o600)
        config.read_node(draft / NODE_FILE)
        signed = membership.make_list(folder, changed, signer, listed)
    try:
        config.write(folder / NETWORK_FILE, changed)
    except BaseException:
        shutil.rmtree(folder / name)
        raise
    membership.publish(folder, changed, signed, signer)
    return Change(name, new_edges, _update_nodes(folder, network, changed))


def remove(
    folder: Path, name: str, delete: bool = False, passphrase: Passphrase | None = None
) -> Change:
    """Remove a node that left for good; where the rest would be disconnected, its former neighbours are joined."""
    network = load_network(folder)
    _check_known(folder, network, name)
    if len(network.nodes) <= 2:
        raise NetworkError(
            f"{folder} has {len(network.nodes)} nodes; without {name} the other would have no neighbour"
        )
    signer = authority.read(folder, network.network.id, passphrase)
    kept = tuple(edge for edge in network.edges if name not in edge)
    former = [a if b == name else b for a, b in network.edges if name in (a, b)]
    components = _components([n for n in network.nodes if n != name], kept)
    ends = [
        next(n for n in former if n in component)
        for component in components
        if component & set(former)
    ]
    new_edges = tuple(pairwise(ends))
    nodes = {n: address for n, address in network.nodes.items() if n != name}
    changed = msgspec.structs.replace(network, nodes=nodes, edges=(*kept, *new_edges))
    membership.check_reachable(changed)
    lock.stop_nodes([folder / name])
    signed = membership.make_list(folder, changed, signer, {})
    config.write(folder / NETWORK_FILE, changed)
    membership.publish(folder, changed, signed, signer)
    membership.withdraw(folder, name)
    remote = _update_nodes(folder, network, changed)
    if (folder / name).is_dir():
        if delete:
            shutil.rmtree(folder / name)
        else:
            (folder / name).rename(folder / f"{name}.removed")
    return Change(name, new_edges, remote)


def _check_known(folder: Path, network: NetworkConfig, name: str) -> None:
    if name not in network.nodes:
        raise unknown(f"node of {folder}", name, network.nodes)


def certify(folder: Path, names: Sequence[str], passphrase: Passphrase | None = None) -> list[str]:
    """Make new keys and certificates for nodes whose folders are here, declare their rows; return their names."""
    network = load_network(folder)
    signer = authority.read(folder, network.network.id, passphrase)
    for name in names:
        _check_known(folder, network, name)
    pairs, listed = {}, {}
    for name in names or network.nodes:
        if (folder / name / NODE_FILE).exists():
            pairs[name] = _make_pair(signer, name)
            listed[name] = _member(
                network.network, name, pairs[name], _count_rows(folder, network, name)
            )
    signed = membership.make_list(folder, network, signer, listed)
    authority.write(folder, signer)
    for name, pair in pairs.items():
        _write_pair(folder / name, pair)
    membership.publish(folder, network, signed, signer)
    return list(pairs)


def rotate_authority(
    folder: Path, own: Path | None = None, passphrase: Passphrase | None = None
) -> int:
    """Do the next of the three steps that replace the authority, and return its number: see `authority`."""
    network = load_network(folder)
    step, signer = authority.rotate(
        authority.read(folder, network.network.id, passphrase), own, passphrase
    )
    signed = membership.make_list(folder, network, signer, {})
    authority.write(folder, signer)
    for name in network.nodes:
        if step == 2 and (folder / name / NODE_FILE).exists():
            cert = signer.certify(name, signed.list.keys[name])
            write_atomically(folder / name / "cert.pem", cert)
    membership.publish(folder, network, signed, signer)
    return step


def to_csv(x: Floats) -> str:
    """Return rows of numbers as CSV, each number to its last bit."""
    head = ",".join(encoded_names(x.shape[1]))
    return "\n".join([head, *(",".join(map(repr, row)) for row in x.tolist()), ""])


def _choose_places(nodes: int, hosts: Sequence[str], port: int) -> list[addresses.Address]:
    """Return where nodes can be reached; the host is "outbound" for those that only dial out.

    Nodes on one machine have ports of their own, two each.
    """
    if len(hosts) not in (1, nodes):
        raise InputError(
            f"host is given {len(hosts)} times for {nodes} nodes; give it once, or once for each node"
        )
    chosen, nodes_at = list[addresses.Address](), Counter[str]()
    for host in [addresses.parse_host(text) for text in hosts] * (nodes // len(hosts)):
        chosen.append(addresses.Address(host, port + 2 * nodes_at[_machine(host)]))
        nodes_at[_machine(host)] += 1
    last = max(address.port for address in chosen)
    if not 1 <= port <= last < 65535:
        raise InputError(
            f"port = {port}: {nodes} nodes need ports up to {last + 1}; ports go from 1 to 65535"
        )
    # then nodes that only dial out are on this machine too
    is_trial = any(addresses.is_loopback(address.host) for address in chosen)
    for address in chosen:
        if (is_trial or address.host != addresses.OUTBOUND) and (taken := _taken(address)):
            raise InputError(f"port {taken} is in use or not permitted; choose another with --port")
    return chosen


def _taken(place: addresses.Address) -> str:
    """Return a port of a node that is not free on this machine, and its host; empty if all are."""
    page = _page_of(place.port)
    wanted = [page] if place.host == addresses.OUTBOUND else [place, page._replace(host=place.host)]
    return next((f"{one.port} of {one.host}" for one in wanted if not _is_free(*one)), "")


def _page_of(port: int) -> addresses.Address:
    """Return where the status page of a node with this port is: for this machine only, as it has no password."""
    return addresses.Address(
        "127.0.0.1", port + (1 if port >= MIN_UNPRIVILEGED_PORT else PRIVILEGED_OFFSET)
    )


def address_of(place: addresses.Address) -> str:
    """Return where neighbours reach a node; empty if it only dials out."""
    return "" if place.host == addresses.OUTBOUND else str(place)


def _is_free(host: str, port: int) -> bool:
    """Return whether this machine could listen there; ports of other machines count as free."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            return error.errno not in (errno.EADDRINUSE, errno.EACCES)
    return True


def _machine(host: str) -> str:
    """Return a host by which nodes on one machine are recognised; those that only dial out may be on this one."""
    return "127.0.0.1" if host == addresses.OUTBOUND or addresses.is_loopback(host) else host


def _free_place(
    folder: Path, network: NetworkConfig, host: str, port: int | None
) -> addresses.Address:
    """Return a place for a new node: the port of the others, or the next free one on a machine with several."""
    if port is not None:
        return _choose_places(1, [host], port)[0]
    host = addresses.parse_host(host)
    places = [addresses.parse(address) for address in network.nodes.values() if address]
    for path in (
        folder / name / NODE_FILE for name, address in network.nodes.items() if not address
    ):
        page = config.read_node(path).node.status_page if path.exists() else ""
        places += (
            [addresses.Address(addresses.OUTBOUND, addresses.parse(page).port - 1)] if page else []
        )
    here = [place.port + 2 for place in places if _machine(place.host) == _machine(host)]
    return free_place(
        host, max(here) if here else min((place.port for place in places), default=FIRST_PORT)
    )


def free_place(host: str, first: int) -> addresses.Address:
    """Return the first place from a port on of which the port and that of the status page are free."""
    for port in range(first, 65534, 2):
        if not _taken(place := addresses.Address(host, port)):
            return place
    raise InputError(f"no port of {host} is free; name one with --port")


@contextlib.contextmanager
def new_folder(folder: Path, mode: int = 0o755) -> Iterator[Path]:
    """Yield a temporary folder to fill, which is renamed into place if all went well."""
    target = folder.resolve()
    if target == Path.cwd() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise InputError(f"{folder} exists already; name a folder that does not exist yet")
    try:
        draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from None
    try:
        yield draft
        draft.chmod(mode)
        draft.rename(target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _write_pair(folder: Path, pair: Pair) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    write_atomically(folder / "key.pem", pair.key, mode=0o600)
    write_atomically(folder / "cert.pem", pair.cert)


def _make_pair(signer: Authority, name: str) -> Pair:
    key = certificates.make_key()
    return Pair(key, signer.certify(name, certificates.public_bytes(key)))


def _member(task: Task, name: str, pair: Pair, rows: int) -> Member:
    return Member(name, certificates.public_bytes(pair.key).hex(), declared_rows(task, rows))


def _count_rows(folder: Path, network: NetworkConfig, name: str) -> int:
    """Return how many rows a node has, where its data file is here."""
    node = config.read_node(folder / name / NODE_FILE).node
    path = folder / name / node.data
    return (
        int(read_rows(network.network, path, folder / name, node.format).shape[0])
        if path.is_file()
        else 0
    )


def node_settings(
    name: str, place: addresses.Address, exchanges_per_second: float = 10.0, listen: str = ""
) -> NodeSettings:
    """Return the settings of a node that neighbours reach at a place; its host is "outbound" if they do not.

    It listens on all interfaces, or on loopback if it is reached there, unless another address is given.
    """
    if not 0 < exchanges_per_second < math.inf:
        raise InputError(
            f"exchanges_per_second = {exchanges_per_second!r} must be a positive number"
        )
    reached = address_of(place)
    listen = (listen or str(addresses.everywhere(*place))) if reached else ""
    page = _page_of(addresses.parse(listen).port if listen else place.port)
    advertise = "" if listen == reached else reached
    return NodeSettings(
        name, listen, str(page), advertise, exchanges_per_second=exchanges_per_second
    )


def _write_node(
    folder: Path,
    shared: Path,
    network: NetworkConfig,
    node: NodeSettings,
    signer: Authority,
    rows: int,
) -> Member:
    """Write a node's files except for its data; files that all nodes have are copied from the network's folder."""
    pair = _make_pair(signer, node.name)
    _write_pair(folder, pair)
    for file in shared_files(network.network, shared):
        shutil.copyfile(shared / file, folder / file)
    neighbours, forwarders = neighbours_of(network, node.name), forwarders_of(network, node.name)
    config.write(folder / NODE_FILE, NodeConfig(network.network, node, neighbours, forwarders))
    write_policy(folder, network.network)
    return _member(network.network, node.name, pair, rows)


def _update_nodes(folder: Path, before: NetworkConfig, network: NetworkConfig) -> tuple[str, ...]:
    """Rewrite [neighbours] and [forwarders] where they changed; return the nodes whose folders are not here."""
    remote = []
    touched = {name for edge in set(before.edges) ^ set(network.edges) for name in edge}
    touched |= {name for name, address in network.nodes.items() if not address}
    for name in (name for name in network.nodes if name in touched and name in before.nodes):
        neighbours, forwarders = neighbours_of(network, name), forwarders_of(network, name)
        if (neighbours, forwarders) == (neighbours_of(before, name), forwarders_of(before, name)):
            continue
        path = folder / name / NODE_FILE
        if path.exists():
            node = msgspec.structs.replace(
                config.read_node(path), neighbours=neighbours, forwarders=forwarders
            )
            config.write(path, node)
        else:
            remote.append(name)
    return tuple(remote)


def shared_files(task: Task, folder: Path) -> list[str]:
    """Return the files of which all nodes have a copy: a user's own statistic, and files that options name."""
    named = [
        *(str(file) for file, _ in references.own_references(task.statistic)),
        *task.options.values(),
    ]
    return [name for name in named if isinstance(name, str) and name and (folder / name).is_file()]


def _check_data(folder: Path, network: NetworkConfig, data: Path, form: Format) -> int:
    """Return the number of rows of a data file; raise `DataError` if other nodes have another number of columns."""
    found: tuple[int, ...] = read_rows(network.network, data, folder, form).shape
    rows, width = found
    for name in network.nodes:
        if not (folder / name / NODE_FILE).is_file():
            continue
        node = config.read_node(folder / name / NODE_FILE).node
        other = folder / name / node.data
        if other.is_file():
            expected = read_rows(network.network, other, folder, node.format).shape[1]
            if width != expected:
                raise DataError(
                    f"{data} has {width} numbers a row where {other} has {expected}; give it the same columns"
                )
            break
    return rows


def _components(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[set[str]]:
    component = {name: {name} for name in nodes}
    for a, b in edges:
        if component[a] is not component[b]:
            component[a] |= component[b]
            for name in component[b]:
                component[name] = component[a]
    return list({id(members): members for members in component.values()}.values())
