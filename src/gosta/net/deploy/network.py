"""The folder of a network, and in it one for its authority and one for each node that is here.

Nodes that are elsewhere have addresses and edges in network.toml only; sites that enrolled also
have their requests and bundles here.
"""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from gosta.datasets.files import Format
from gosta.errors import DataError, InputError, NetworkError, unknown
from gosta.net import addresses, config, members
from gosta.net.addresses import FIRST_PORT, OUTBOUND, Address
from gosta.net.config import NETWORK_FILE, NetworkConfig, NodeConfig, NodeSettings, Task
from gosta.net.deploy import authority, bundles, certificates
from gosta.net.deploy.authority import Authority, Passphrase
from gosta.net.deploy.bundles import Bundle
from gosta.net.deploy.certificates import Pair
from gosta.net.deploy.node_folder import (
    BUNDLES,
    CERTIFICATE_FILE,
    DATA_FILE,
    REQUESTS,
    RESERVED_NAMES,
    NodeFolder,
    new_folder,
    node_settings,
    read_list,
)
from gosta.net.deploy.policies import write_policy
from gosta.net.deploy.terms import declared_rows, terms_of
from gosta.net.members import MEMBERS_FILE, Member, MemberList, SignedList
from gosta.net.node import lock
from gosta.net.node.rows import read_rows
from gosta.net.node.source import fingerprint
from gosta.runtime.files import write_atomically
from gosta.statistics import references

if TYPE_CHECKING:
    from gosta.net.deploy.plan import Plan

MAX_FORWARDERS = 8  # of a node


class Change(NamedTuple):
    """What adding or removing a node changed."""

    name: str
    new_edges: tuple[tuple[str, str], ...]
    elsewhere: tuple[str, ...]  # neighbours whose node.toml must be edited at their sites


@dataclass(frozen=True)
class Network:
    """The folder of a network, with the content of its network.toml."""

    folder: Path
    config: NetworkConfig

    @classmethod
    def read(cls, folder: Path) -> Network:
        """Read network.toml."""
        if not folder.is_dir():
            raise InputError(
                f"no such folder: {folder}; make a network with: gosta network init {folder}"
            )
        return cls(folder, config.read_network(folder / NETWORK_FILE))

    @classmethod
    def create(
        cls,
        folder: Path,
        plan: Plan,
        hosts: Sequence[str] = ("127.0.0.1",),
        port: int = FIRST_PORT,
        exchanges_per_second: float = 10.0,
        ca: Path | None = None,
        passphrase: Passphrase | None = None,
    ) -> Network:
        """Create the folders of a network, all or none.

        The nodes are at one host, or at one host each ("outbound": the node only dials out), and
        listen at `port`; several nodes on one machine at port, port + 2, and so on. Their status
        pages are one port above. `ca` is a folder with the key and certificate of an existing
        authority. With a passphrase, the authority's keys are encrypted.
        """
        places = addresses.choose_addresses(plan.nodes, hosts, port)
        names = [f"node-{k}" for k in range(plan.nodes)]
        edges = tuple((names[a], names[b]) for a, b in plan.edges)
        nodes = dict(zip(names, map(addresses.reachable_at, places), strict=True))
        settings = NetworkConfig(plan.task, plan.graph, nodes, edges, plan.nodes)
        check_reachable(settings)
        with cls.draft(folder, settings, plan.shared_files, ca, passphrase) as (draft, signer):
            listed = {}
            for k, name in enumerate(names):
                node = draft.node(name)
                chosen = replace(
                    node_settings(name, places[k], exchanges_per_second), **plan.reading
                )
                rows = plan.counts[k] if plan.counts else 0
                listed[name] = draft.write_node(node, chosen, signer, rows)
                if plan.data_files:
                    write_atomically(node.path / DATA_FILE, plan.data_files[k], mode=0o600)
                node.read()
            draft.publish(draft.make_list(signer, listed), signer)
        return cls(folder, settings)

    @classmethod
    @contextlib.contextmanager
    def draft(
        cls,
        folder: Path,
        settings: NetworkConfig,
        shared_files: Sequence[Path],
        ca: Path | None,
        passphrase: Passphrase | None,
    ) -> Iterator[tuple[Network, Authority]]:
        """Yield a network without nodes in a temporary folder, and its authority.

        The folder is renamed into place if all went well.
        """
        names = Counter(file.name for file in shared_files)
        for file in shared_files:
            if file.name in RESERVED_NAMES or names[file.name] > 1:
                raise InputError(
                    f"{file} is copied into the nodes' folders, where its name is taken; rename it"
                )
        signer = authority.make(settings.network.id, ca, passphrase, encrypt=passphrase is not None)
        with new_folder(folder) as path:
            network = cls(path, settings)
            network.write()
            authority.write(path, signer)
            for file in shared_files:
                shutil.copyfile(file, path / file.name)
            yield network, signer

    @property
    def task(self) -> Task:
        """What the network computes."""
        return self.config.network

    def write(self) -> None:
        """Write network.toml."""
        config.write(self.folder / NETWORK_FILE, self.config)

    def node(self, name: str) -> NodeFolder:
        """Return the folder of a node, which may be on another machine."""
        return NodeFolder(self.folder / name)

    def nodes_here(self) -> list[NodeFolder]:
        """Return the nodes whose folders are here; raise `NetworkError` if there is none."""
        found = [node for node in map(self.node, self.config.nodes) if node.is_here]
        if not found:
            raise NetworkError(f"{self.folder} has no node's folder: are they all at their sites?")
        return found

    def members(self) -> SignedList | None:
        """Return the signed member list; None if there is none yet."""
        return read_list(self.folder / MEMBERS_FILE)

    def authority(self, passphrase: Passphrase | None) -> Authority:
        """Read the network's authority."""
        return authority.read(self.folder, self.task.id, passphrase)

    def add(
        self,
        data: Path | None = None,
        neighbours: Sequence[str] = (),
        host: str = "127.0.0.1",
        port: int | None = None,
        exchanges_per_second: float = 10.0,
        passphrase: Passphrase | None = None,
        reading: Mapping[str, str] = MappingProxyType({}),
    ) -> Change:
        """Add a node with some neighbours: by default the two nodes that have the fewest.

        `reading` says how its data file is read: settings of [node].
        """
        for other in neighbours:
            self._require(other)
        degrees = Counter(other for edge in self.config.edges for other in edge)
        fewest = sorted(self.config.nodes, key=lambda name: degrees[name])[:2]
        created = self.config.nodes_created
        while f"node-{created}" in self.config.nodes:  # a site that enrolled under such a name
            created += 1
        name = f"node-{created}"
        if self.node(name).path.exists():
            raise NetworkError(
                f"{self.folder / name} exists, but is not a node of network.toml; move it away"
            )
        place = self._free_address(host, port)
        node = replace(node_settings(name, place, exchanges_per_second), **reading)
        rows = 0
        if data is not None:
            rows = self._check_data(data, node.format)
            node = replace(node, data=f"data{''.join(data.suffixes[-2:])}")
        new_edges = tuple((other, name) for other in dict.fromkeys(neighbours or fewest))
        changed = self._with(
            nodes={**self.config.nodes, name: addresses.reachable_at(place)},
            edges=(*self.config.edges, *new_edges),
            nodes_created=created + 1,
        )
        signer = self.authority(passphrase)
        with new_folder(self.folder / name) as path:
            listed = {name: changed.write_node(NodeFolder(path), node, signer, rows)}
            if data is not None:
                shutil.copyfile(data, path / node.data)
                (path / node.data).chmod(0o600)
            NodeFolder(path).read()
            signed = changed.make_list(signer, listed)
        try:
            changed.write()
        except BaseException:
            shutil.rmtree(self.folder / name)
            raise
        changed.publish(signed, signer)
        return Change(name, new_edges, changed._update_neighbours(self))

    def remove(
        self, name: str, delete: bool = False, passphrase: Passphrase | None = None
    ) -> Change:
        """Remove a node that left for good.

        Where the rest would be disconnected, its former neighbours are joined.
        """
        self._require(name)
        if len(self.config.nodes) <= 2:
            raise NetworkError(
                f"{self.folder} has {len(self.config.nodes)} nodes; without {name} the other would "
                "have no neighbour"
            )
        signer = self.authority(passphrase)
        kept = tuple(edge for edge in self.config.edges if name not in edge)
        former = [a if b == name else b for a, b in self.config.edges if name in (a, b)]
        nodes = {other: where for other, where in self.config.nodes.items() if other != name}
        ends = [
            next(other for other in former if other in component)
            for component in _components(list(nodes), kept)
            if component & set(former)
        ]
        new_edges = tuple(pairwise(ends))
        changed = self._with(nodes=nodes, edges=(*kept, *new_edges))
        node = self.node(name)
        lock.stop_processes([node.path])
        signed = changed.make_list(signer, {})
        changed.write()
        changed.publish(signed, signer)
        for end in ("json", "csr", "pem"):
            (self.folder / REQUESTS / f"{name}.{end}").unlink(missing_ok=True)
        (self.folder / BUNDLES / f"{name}.json").unlink(missing_ok=True)
        elsewhere = changed._update_neighbours(self)
        if node.path.is_dir() and delete:
            shutil.rmtree(node.path)
        elif node.path.is_dir():
            node.path.rename(self.folder / f"{name}.removed")
        return Change(name, new_edges, elsewhere)

    def certify(self, names: Sequence[str], passphrase: Passphrase | None = None) -> list[str]:
        """Make new keys and certificates for nodes whose folders are here, and declare their rows.

        Returns the nodes' names.
        """
        signer = self.authority(passphrase)
        for name in names:
            self._require(name)
        pairs, listed = {}, {}
        for node in map(self.node, names or self.config.nodes):
            if node.is_here:
                pairs[node.name] = signer.make_pair(node.name)
                listed[node.name] = self._member(pairs[node.name], node.name, node.count_rows())
        signed = self.make_list(signer, listed)
        authority.write(self.folder, signer)
        for name, pair in pairs.items():
            self.node(name).write_pair(pair)
        self.publish(signed, signer)
        return list(pairs)

    def rotate_authority(
        self, new: Path | None = None, passphrase: Passphrase | None = None
    ) -> int:
        """Do the next of the three steps that replace the authority, and return its number."""
        step, signer = authority.rotate(self.authority(passphrase), new, passphrase)
        signed = self.make_list(signer, {})
        authority.write(self.folder, signer)
        for node in map(self.node, self.config.nodes):
            if step == 2 and node.is_here:
                certificate = signer.certify(node.name, signed.list.keys[node.name])
                write_atomically(node.path / CERTIFICATE_FILE, certificate)
        self.publish(signed, signer)
        return step

    def make_list(self, signer: Authority, changed: Mapping[str, Member]) -> SignedList:
        """Return a signed list of the nodes, some of them new or changed.

        It is the old one if nothing changed. Keys that are no longer used are revoked.
        """
        old = self.members()
        known = {member.name: member for member in old.list.members} if old else {}
        listed = []
        for name in self.config.nodes:
            if name not in changed and name not in known:
                raise InputError(
                    f"{self.folder / MEMBERS_FILE} does not list {name}; make new keys with: gosta "
                    "network certify"
                )
            listed.append(changed.get(name) or known[name])
        gone = {member.key for member in known.values()} - {member.key for member in listed}
        revoked = (*(old.list.revoked if old else ()), *sorted(gone))[-members.MAX_REVOKED :]
        new = MemberList(
            self.task.id,
            1 if old is None else old.list.serial,
            fingerprint(self.task, self.folder),
            terms_of(self.task),
            tuple(listed),
            revoked,
            tuple(certificate.decode("ascii") for certificate in signer.trusted),
        )
        if old is None:
            return signer.sign(new)
        if new == old.list and old.certificate.encode() == signer.coordinator.cert:
            return old
        return signer.sign(replace(new, serial=old.list.serial + 1))

    def publish(self, signed: SignedList, signer: Authority) -> None:
        """Write a list, as accepted, to this folder and to those of the nodes that are here.

        Sites that enrolled get new bundles.
        """
        members.write_list(self.folder / MEMBERS_FILE, signed)
        for name in self.config.nodes:
            if self.node(name).is_here:
                self.node(name).install(signed, signer.ca)
            elif (self.folder / REQUESTS / f"{name}.json").exists():
                if signer.is_here:
                    certificate = signer.certify(name, signed.list.keys[name])
                else:
                    certificate = (self.folder / REQUESTS / f"{name}.pem").read_bytes()
                links = links_of(self.config, name)
                pem = certificate.decode("ascii")
                bundle = Bundle(name, pem, links.neighbours, signed, links.forwarders)
                (self.folder / BUNDLES).mkdir(exist_ok=True)
                bundles.write(self.folder / BUNDLES / f"{name}.json", bundle)

    def write_node(
        self, node: NodeFolder, settings: NodeSettings, signer: Authority, rows: int
    ) -> Member:
        """Write a node's files except for its data; shared files are copied from this folder."""
        name = settings.name
        pair = signer.make_pair(name)
        node.write_pair(pair)
        for file in shared_files(self.task, self.folder):
            shutil.copyfile(self.folder / file, node.path / file)
        node.write(NodeConfig(self.task, settings, *links_of(self.config, name)))
        write_policy(node.path, self.task)
        return self._member(pair, name, rows)

    def _member(self, pair: Pair, name: str, rows: int) -> Member:
        key = certificates.public_bytes(pair.key).hex()
        return Member(name, key, declared_rows(self.task, rows))

    def _require(self, name: str) -> None:
        if name not in self.config.nodes:
            raise unknown(f"node of {self.folder}", name, self.config.nodes)

    def _with(self, **changes: object) -> Network:
        changed = replace(self.config, **changes)
        check_reachable(changed)
        return Network(self.folder, changed)

    def _free_address(self, host: str, port: int | None) -> Address:
        """Return an address for a new node, with the others' port or the next free one there."""
        if port is not None:
            return addresses.choose_addresses(1, [host], port)[0]
        host = addresses.parse_host(host)
        places = [addresses.parse(address) for address in self.config.nodes.values() if address]
        for name, address in self.config.nodes.items():
            page = ""
            if not address and self.node(name).is_here:
                page = self.node(name).read().node.status_page
            if page:
                places.append(Address(OUTBOUND, addresses.parse(page).port - 1))
        machine = addresses.machine_of(host)
        here = [place.port + 2 for place in places if addresses.machine_of(place.host) == machine]
        least = min((place.port for place in places), default=FIRST_PORT)
        return addresses.free_address(host, max(here) if here else least)

    def _check_data(self, data: Path, form: Format) -> int:
        """Return how many rows a data file has, whose columns must be those of other nodes."""
        rows = read_rows(self.task, data, self.folder, form)
        for node in map(self.node, self.config.nodes):
            if not node.is_here or not node.data_file().is_file():
                continue
            other = node.data_file()
            expected = read_rows(self.task, other, self.folder, node.read().node.format).shape[1]
            if rows.shape[1] != expected:
                raise DataError(
                    f"{data} has {rows.shape[1]} numbers a row where {other} has {expected}; give "
                    "it the same columns"
                )
            break
        return len(rows)

    def _update_neighbours(self, before: Network) -> tuple[str, ...]:
        """Write links that changed into node.toml; return the nodes whose folders are elsewhere."""
        elsewhere = []
        touched = {end for edge in {*before.config.edges} ^ {*self.config.edges} for end in edge}
        touched |= {name for name, address in self.config.nodes.items() if not address}
        for name in self.config.nodes:
            if name not in touched or name not in before.config.nodes:
                continue
            links = links_of(self.config, name)
            if links == links_of(before.config, name):
                continue
            node = self.node(name)
            if node.is_here:
                node.write(replace(node.read(), **links._asdict()))
            else:
                elsewhere.append(name)
        return tuple(elsewhere)


def is_network(folder: Path) -> bool:
    """Return whether a folder is that of a network, and not of one node."""
    return (folder / NETWORK_FILE).exists()


def nodes_in(folder: Path) -> list[NodeFolder]:
    """Return the nodes in a folder: a network's nodes that are here, or the one of the folder."""
    return Network.read(folder).nodes_here() if is_network(folder) else [NodeFolder(folder)]


def task_of(folder: Path) -> Task:
    """Return what the network, or the node, in a folder computes."""
    return Network.read(folder).task if is_network(folder) else NodeFolder(folder).read().network


class Links(NamedTuple):
    """With whom a node exchanges."""

    neighbours: dict[str, str]  # their addresses; empty: the neighbour only dials out
    # Members that connect the node to its neighbours, where neither end can be reached.
    forwarders: dict[str, str]


def links_of(network: NetworkConfig, name: str) -> Links:
    """Return the neighbours of a node, and its forwarders if it needs some."""
    others = {a if b == name else b for a, b in network.edges if name in (a, b)}
    neighbours = {other: where for other, where in network.nodes.items() if other in others}
    if network.nodes[name] or all(neighbours.values()):
        return Links(neighbours, {})
    reachable = [(other, where) for other, where in network.nodes.items() if where]
    return Links(neighbours, dict(reachable[:MAX_FORWARDERS]))


def check_reachable(network: NetworkConfig) -> None:
    """Raise `InputError` if two neighbours only dial out and no member could connect them."""
    for a, b in network.edges if not any(network.nodes.values()) else ():
        raise InputError(
            f"{a} and {b} only dial out (host 'outbound'), and no member can be reached, which "
            "could connect them; at least one needs an address"
        )


def shared_files(task: Task, folder: Path) -> list[str]:
    """Return the files that all nodes copy: a user's own statistic, and files named in options."""
    named = [
        *(str(file) for file, _ in references.own_references(task.statistic)),
        *task.options.values(),
    ]
    return [name for name in named if isinstance(name, str) and name and (folder / name).is_file()]


def _components(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[set[str]]:
    component = {name: {name} for name in nodes}
    for a, b in edges:
        if component[a] is not component[b]:
            component[a] |= component[b]
            for name in component[b]:
                component[name] = component[a]
    return list({id(each): each for each in component.values()}.values())
