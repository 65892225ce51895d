"""Enrolment without shared secrets: the key of a site is made at the site and stays there.

The coordinator invites; a site requests a certificate for its key; the coordinator signs it and the member list; the
site joins, once it has seen and accepted who the members are and what is computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from msgspec.structs import replace

from gosta import graphs
from gosta.datasets.tables import Format
from gosta.errors import DataError, InputError, NetworkError
from gosta.net import addresses, config, members
from gosta.net.addresses import OUTBOUND, Address
from gosta.net.config import NETWORK_FILE, NODE_FILE, NetworkConfig, NodeConfig, Task
from gosta.net.deploy import authority, bundles, certificates, membership
from gosta.net.deploy.authority import Passphrase
from gosta.net.deploy.bundles import (
    CSR_FILE,
    INVITATION_FILE,
    REQUEST_FILE,
    Bundle,
    Invitation,
    Request,
)
from gosta.net.deploy.folders import (
    FIRST_PORT,
    RESERVED_NAMES,
    address_of,
    check_shared_files,
    free_place,
    load_network,
    new_folder,
    node_settings,
)
from gosta.net.deploy.membership import REQUESTS, declared_rows, has_bounds, row_words
from gosta.net.deploy.plan import Plan, edges_of
from gosta.net.deploy.policies import write_policy
from gosta.net.members import (
    ACCEPTED_FILE,
    COORDINATOR,
    MEMBERS_FILE,
    PROPOSED_FILE,
    Member,
    MemberList,
    SignedList,
)
from gosta.net.node.rows import NODE_HINT, read_rows
from gosta.net.node.source import fingerprint
from gosta.net.transport.tls import load_certificate
from gosta.runtime.files import write_atomically

NEXT_KEY = "next-key.pem"  # requested, not certified yet
SMALL_NETWORK = 6  # below that, all members are neighbours


def invite(
    folder: Path, plan: Plan, ca: Path | None = None, passphrase: Passphrase | None = None
) -> Invitation:
    """Create a network without nodes, and the invitation for its sites."""
    check_shared_files(plan)
    signer = authority.make(plan.task.id, ca, passphrase, encrypt=passphrase is not None)
    files = {file.name: file.read_bytes() for file in plan.shared_files}
    invitation = Invitation(plan.task, files, signer.ca.decode("ascii"))
    with new_folder(folder) as draft:
        config.write(draft / NETWORK_FILE, NetworkConfig(plan.task, plan.graph, {}, ()))
        authority.write(draft, signer)
        for name, content in files.items():
            write_atomically(draft / name, content)
        bundles.write(draft / INVITATION_FILE, invitation)
        bundles.read(draft / INVITATION_FILE, Invitation)
    return invitation


def request(
    invitation: Invitation,
    folder: Path,
    name: str,
    address: str | None,
    listen: str | None = None,
    data: Path | None = None,
    reading: Mapping[str, str] = MappingProxyType({}),
) -> Request:
    """Make a site's folder with a key of its own, and a request for a certificate. It runs code in the invitation.

    Neighbours reach it at `address`, or not at all if that is "outbound". By default it listens on all interfaces at
    the port of that address. `reading` says how the data file is read: settings of [node].
    """
    bundles.check_name(name)
    place = _parse_place(address or listen or "")
    if listen is not None:
        bundles.check_address("listen", listen)
    for file in invitation.files:
        if file in RESERVED_NAMES:
            raise InputError(
                f"the invitation has a file called {file}, which would replace one of the node's own"
            )
    task = invitation.network
    node = replace(node_settings(name, place, listen=listen or ""), **reading)
    if data is not None:
        node = replace(node, data=str(data.resolve()))
    with new_folder(folder, 0o700) as draft:
        write_atomically(draft / "key.pem", certificates.make_key(), mode=0o600)
        authority.split(invitation.authority.encode())
        write_atomically(draft / "ca.pem", invitation.authority)
        for file, content in invitation.files.items():
            write_atomically(draft / file, content)
        config.write(draft / NODE_FILE, NodeConfig(task, node, {}))
        config.read_node(draft / NODE_FILE)
        write_policy(draft, task)
        rows = 0 if data is None else _count_rows(task, data, draft, node.format)
        return _make_request(draft, "key.pem", task, name, address_of(place), rows)


def _parse_place(address: str) -> Address:
    """Return where neighbours reach a site; its host is "outbound" if it only dials out."""
    if address == OUTBOUND:
        return free_place(OUTBOUND, FIRST_PORT)
    bundles.check_address("address", address)
    place = addresses.parse(address)
    addresses.require_reachable("address", address, place.host)
    return place


def _count_rows(task: Task, data: Path, draft: Path, form: Format) -> int:
    try:
        return len(read_rows(task, data, draft, form))
    except DataError as error:
        hint = "correct them; or make the request without --data, and then name the file and set drop_missing = true in "
        raise DataError(str(error).replace(NODE_HINT, f"{hint}the site's node.toml")) from None


def request_again(folder: Path, address: str | None = None, new_key: bool = False) -> Request:
    """Make another request of a site that has a folder: its rows are counted again, its key and address can change."""
    site = config.read_node(folder / NODE_FILE)
    if new_key:
        write_atomically(folder / NEXT_KEY, certificates.make_key(), mode=0o600)
    old = bundles.read(folder / REQUEST_FILE, Request) if (folder / REQUEST_FILE).exists() else None
    reached = old.address if old else site.node.advertise or site.node.listen
    if address is not None:
        place = _parse_place(address)
        reached, moved = (
            address_of(place),
            node_settings(site.node.name, place, listen=site.node.listen),
        )
        node = replace(site.node, listen=moved.listen, advertise=moved.advertise)
        config.write(folder / NODE_FILE, replace(site, node=node))
    data = folder / site.node.data
    rows = len(read_rows(site.network, data, folder, site.node.format)) if data.is_file() else 0
    key = NEXT_KEY if (folder / NEXT_KEY).exists() else "key.pem"
    return _make_request(folder, key, site.network, site.node.name, reached, rows)


def _make_request(
    folder: Path, key: str, task: Task, name: str, address: str, rows: int
) -> Request:
    csr = certificates.make_request((folder / key).read_bytes(), task.id, name)
    made = Request(task.id, name, address, declared_rows(task, rows), csr.decode("ascii"))
    bundles.write(folder / REQUEST_FILE, made)
    write_atomically(folder / CSR_FILE, csr)
    return made


class Enrolled(NamedTuple):
    members: MemberList
    bundles: list[Path]  # one for each site whose folder is not here


def read_requests(folder: Path, paths: Sequence[Path]) -> list[Request]:
    """Read requests for a network and check that each is signed by its key."""
    network, found = load_network(folder), {}
    for path in paths:
        one = bundles.read(path, Request)
        if one.network != network.network.id:
            raise InputError(f"{path} is for network {one.network}, not for {network.network.id}")
        if one.name in found:
            raise InputError(f"{path}: there are two requests for {one.name}; give one")
        if (folder / one.name / NODE_FILE).exists():
            raise InputError(
                f"{path}: {one.name} has its folder and its key here, in {folder / one.name}; choose another name"
            )
        certificates.check_request(one.request.encode(), one.network, one.name)
        found[one.name] = one
    return list(found.values())


def sign(
    folder: Path,
    requests: Sequence[Request],
    issued: Sequence[Path] = (),
    passphrase: Passphrase | None = None,
) -> Enrolled:
    """Make the sites of these requests members, and write new bundles for all members.

    `issued` are certificates in PEM, for requests of which the authority's key is elsewhere.
    """
    network = load_network(folder)
    task, signer = network.network, authority.read(folder, network.network.id, passphrase)
    asked = {
        one.name: bytes(certificates.check_request(one.request.encode(), task.id, one.name))
        for one in requests
    }
    (folder / REQUESTS).mkdir(exist_ok=True)
    for one in requests:
        write_atomically(folder / REQUESTS / f"{one.name}.csr", one.request)
    known = {one.name: bytes.fromhex(one.key) for one in _listed(folder)} | asked
    given = {}
    for path in issued:
        try:
            cert = path.read_bytes()[: members.MAX_LIST_BYTES]
            name = _holder(
                cert,
                task.id,
                {COORDINATOR: certificates.public_bytes(signer.coordinator.key), **known},
            )
            if name == COORDINATOR:
                signer = signer.with_coordinator_certificate(cert)
            else:
                certificates.check_certificate(cert, signer.trusted_certificates, task.id, name)
                given[name] = cert
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
    for name in () if signer.is_here else asked.keys() - given.keys():
        csr = folder / REQUESTS / f"{name}.csr"
        raise InputError(
            f"the authority's key is elsewhere: have it sign {csr}, and give the result with --certificate"
        )
    changed = _with_sites(network, requests)
    listed = {one.name: Member(one.name, asked[one.name].hex(), one.rows) for one in requests}
    if not changed.nodes:
        raise InputError(f"{folder} has no member yet; give the requests of its sites")
    membership.check_reachable(changed)
    signed = membership.make_list(folder, changed, signer, listed)
    authority.write(folder, signer)
    for name, cert in given.items():
        write_atomically(folder / REQUESTS / f"{name}.pem", cert)
    for one in requests:
        bundles.write(folder / REQUESTS / f"{one.name}.json", one)
    config.write(folder / NETWORK_FILE, changed)
    return Enrolled(signed.list, membership.publish(folder, changed, signed, signer))


def _listed(folder: Path) -> tuple[Member, ...]:
    return (
        members.read_list(folder / MEMBERS_FILE).list.members
        if (folder / MEMBERS_FILE).exists()
        else ()
    )


def _holder(cert: bytes, network: str, keys: dict[str, bytes]) -> str:
    """Return whose key a certificate is for."""
    key = members.key_of(load_certificate(cert))
    for name, one in keys.items():
        if one == key:
            return name
    raise InputError(f"the certificate is for a key that no request for network {network} has")


def _with_sites(network: NetworkConfig, requests: Sequence[Request]) -> NetworkConfig:
    """Add nodes and edges; the first nodes get a whole graph, later ones the two nodes with the fewest neighbours."""
    nodes = {**network.nodes, **{one.name: one.address for one in requests}}
    names, edges, graph = list(nodes), list(network.edges), network.graph
    if not edges and len(names) > 1:
        graph = graph or ("complete" if len(names) < SMALL_NETWORK else "watts-strogatz")
        edges = [(names[a], names[b]) for a, b in edges_of(graphs.load(graph, len(names), 0))]
    for name in names if len(names) > 1 else ():
        degrees = Counter(end for edge in edges for end in edge)
        if not degrees[name]:
            others = sorted(
                (other for other in names if degrees[other]), key=lambda other: degrees[other]
            )
            edges += [(other, name) for other in others[:2]]
    return replace(network, graph=graph, nodes=nodes, edges=tuple(edges))


class Proposal(NamedTuple):
    """A member list that a site has not accepted yet, checked against what it trusts."""

    old: MemberList | None  # what it accepted before
    signed: SignedList
    neighbours: dict[str, str] | None  # None: unchanged, as forwarders are
    forwarders: dict[str, str]
    certificate: bytes = b""  # empty: unchanged
    key: bytes = b""  # the requested key, if the certificate is for that one


def read_bundle(path: Path, folder: Path) -> Proposal:
    """Read a bundle and check that it is for this site, its key and its task, and that the coordinator signed it."""
    site, bundle = _read_site(folder), bundles.read(path, Bundle)
    name, network = site.node.name, site.network.id
    if bundle.name != name:
        raise InputError(f"{path} is for {bundle.name}; this site is {name}")
    old = _check_list(folder, site, bundle.members)
    trusted = [
        one for pem in bundle.members.list.authorities for one in authority.split(pem.encode())
    ]
    cert = bundle.certificate.encode()
    try:
        key = certificates.check_certificate(
            cert, list(map(load_certificate, trusted)), network, name
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    own = b""
    for file in ("key.pem", NEXT_KEY):
        if (folder / file).exists():
            members.check_private(folder / file)
            pem = (folder / file).read_bytes()
            own = pem if certificates.public_bytes(pem) == key else own
    if not own:
        raise InputError(
            f"{path}: the certificate is for another key than this site's; send the coordinator {folder / REQUEST_FILE}"
        )
    if bundle.members.list.keys.get(name) != key:
        raise InputError(f"{path}: the member list has another key for {name} than its certificate")
    return Proposal(old, bundle.members, bundle.neighbours, bundle.forwarders, cert, own)


def read_proposed(folder: Path) -> Proposal | None:
    """Read a list that was put into a site's folder and is not accepted yet, if there is one."""
    site, found = _read_site(folder), None
    for name in (PROPOSED_FILE, MEMBERS_FILE):
        if (folder / name).exists():
            signed = members.read_list(folder / name)
            found = max(filter(None, (found, signed)), key=lambda one: one.list.serial)
    accepted = (
        members.read_list(folder / ACCEPTED_FILE).list
        if (folder / ACCEPTED_FILE).exists()
        else None
    )
    if found is None or found.list == accepted:
        return None
    old = _check_list(folder, site, found)
    own = members.key_of(load_certificate((folder / "cert.pem").read_bytes()))
    if found.list.keys.get(site.node.name) not in (None, own):
        raise NetworkError(
            f"list {found.list.serial} has another key for {site.node.name}; install its bundle: gosta node join"
        )
    return Proposal(old, found, None, {})


def accept(folder: Path, proposal: Proposal) -> None:
    """Install what a site has accepted; a running node reloads it."""
    site, listed = config.read_node(folder / NODE_FILE), proposal.signed.list
    if proposal.key and proposal.key != (folder / "key.pem").read_bytes():
        write_atomically(folder / "key.pem", proposal.key, mode=0o600)
    if proposal.certificate:
        write_atomically(folder / "cert.pem", proposal.certificate)
        (folder / NEXT_KEY).unlink(missing_ok=True)
    membership.install(folder, proposal.signed, "".join(listed.authorities).encode())
    if proposal.neighbours is not None:
        changed = replace(site, neighbours=proposal.neighbours, forwarders=proposal.forwarders)
        if changed != site:
            config.write(folder / NODE_FILE, changed)
    (folder / PROPOSED_FILE).unlink(missing_ok=True)


def own_settings(folder: Path, listed: MemberList) -> list[str]:
    """Return what a site's node.toml says otherwise than the list: a site may have other names of columns."""
    own = membership.policy_of(_read_site(folder).network)
    return [
        f"{key}: {own.get(key, 'none')}, in the list {listed.policy.get(key, 'none')}"
        for key in dict.fromkeys((*own, *listed.policy))
        if own.get(key) != listed.policy.get(key)
    ]


def differences(old: MemberList, new: MemberList) -> list[str]:
    """Return in words what a list changes."""
    before, after = ({one.name: one for one in each.members} for each in (old, new))
    lines = [f"new member: {name}" for name in after if name not in before]
    lines += [f"no longer a member: {name}" for name in before if name not in after]
    for name in (name for name in after if name in before):
        if before[name].key != after[name].key:
            lines.append(f"new key of {name}")
        if before[name].rows != after[name].rows:
            now, then = (
                row_words(after[name].rows, has_bounds(new)),
                row_words(before[name].rows, has_bounds(old)),
            )
            lines.append(f"{name} declares {now}, before {then}")
    for key in dict.fromkeys((*old.policy, *new.policy)):
        if old.policy.get(key) != new.policy.get(key):
            lines.append(
                f"{key}: {new.policy.get(key, 'none')}, before {old.policy.get(key, 'none')}"
            )
    if old.statistic != new.statistic:
        lines.append("another statistic: all nodes need the new settings")
    if old.authorities != new.authorities:
        lines.append(
            f"certificates of {len(new.authorities)} authorities are trusted, before {len(old.authorities)}"
        )
    return lines


def _read_site(folder: Path) -> NodeConfig:
    if not (folder / NODE_FILE).exists():
        raise InputError(f"{folder} is no site's folder; make one with: gosta node request")
    return config.read_node(folder / NODE_FILE)


def _check_list(folder: Path, site: NodeConfig, signed: SignedList) -> MemberList | None:
    """Check a list against what the site trusts and computes; return the list that it accepted before."""
    try:
        listed = members.verify_list(signed, (folder / "ca.pem").read_bytes(), site.network.id)
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from None
    if listed.statistic != fingerprint(site.network, folder):
        why = "the members compute something else than [network] in node.toml says"
        raise InputError(
            f"{why}; ask the coordinator for the invitation that belongs to list {listed.serial}"
        )
    if not listed.authorities:
        raise InputError("the member list names no authority; ask the coordinator for it again")
    if not (folder / ACCEPTED_FILE).exists():
        return None
    old = members.read_list(folder / ACCEPTED_FILE).list
    if listed.serial < old.serial or (listed.serial == old.serial and listed != old):
        raise InputError(
            f"list {listed.serial} is not newer than list {old.serial}, which this site accepted already"
        )
    return old
