"""Enrolment without shared secrets: the key of a site is made at the site and stays there.

The coordinator invites; a site requests a certificate for its key; the coordinator signs it and the
member list; the site joins, once it has seen and accepted who the members are and what is computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from gosta import graphs
from gosta.datasets.files import Format
from gosta.errors import DataError, InputError, NetworkError
from gosta.net import addresses, config, members
from gosta.net.addresses import FIRST_PORT, OUTBOUND, Address
from gosta.net.config import NODE_FILE, NetworkConfig, NodeConfig, Task
from gosta.net.deploy import authority, bundles, certificates
from gosta.net.deploy.authority import Authority, Passphrase
from gosta.net.deploy.bundles import (
    CSR_FILE,
    INVITATION_FILE,
    REQUEST_FILE,
    Bundle,
    Invitation,
    Request,
)
from gosta.net.deploy.network import Network, check_reachable
from gosta.net.deploy.node_folder import (
    AUTHORITIES_FILE,
    CERTIFICATE_FILE,
    KEY_FILE,
    NEXT_KEY_FILE,
    REQUESTS,
    RESERVED_NAMES,
    NodeFolder,
    new_folder,
    node_settings,
    read_list,
)
from gosta.net.deploy.plan import Plan, edges_of
from gosta.net.deploy.policies import write_policy
from gosta.net.deploy.terms import declared_rows, has_bounds, row_words, terms_of
from gosta.net.members import (
    COORDINATOR,
    MEMBERS_FILE,
    PROPOSED_FILE,
    Member,
    MemberList,
    SignedList,
)
from gosta.net.node.rows import NODE_HINT, load_table, read_rows
from gosta.net.node.source import fingerprint
from gosta.net.transport.tls import load_certificate
from gosta.runtime.files import write_atomically

SMALL_NETWORK = 6  # members; in a smaller network all are neighbours


class Brought(NamedTuple):
    """What a site brings to its request."""

    data: Path | None = None  # its data file, whose rows are counted
    reading: Mapping[str, Any] = {}  # how it is read: settings of [node]
    drop_missing: bool = False  # whether rows with missing values are left out
    person: str | None = None  # the column that tells people apart, for its policy


NOTHING = Brought()


def invite(
    folder: Path, plan: Plan, ca: Path | None = None, passphrase: Passphrase | None = None
) -> Invitation:
    """Create a network without nodes, and the invitation for its sites."""
    settings = NetworkConfig(plan.task, plan.graph, {}, ())
    with Network.draft(folder, settings, plan.shared_files, ca, passphrase) as (network, signer):
        files = {file.name: file.read_bytes() for file in plan.shared_files}
        invitation = Invitation(plan.task, files, signer.ca.decode("ascii"))
        bundles.write(network.folder / INVITATION_FILE, invitation)
        bundles.read(network.folder / INVITATION_FILE, Invitation)
    return invitation


def request(
    invitation: Invitation,
    folder: Path,
    name: str,
    address: str | None,
    listen: str | None = None,
    brought: Brought = NOTHING,
) -> Request:
    """Make a site's folder with a key of its own, and a request for a certificate.

    This runs the code in the invitation. Neighbours reach the site at `address`, or not at all if
    that is "outbound". By default it listens on all interfaces at the port of that address.
    """
    bundles.check_site_name(name)
    place = _parse_place(address or listen or "")
    if listen is not None:
        addresses.check_address("listen", listen)
    for file in invitation.files:
        if file in RESERVED_NAMES:
            raise InputError(
                f"the invitation has a file called {file}, which would replace one of the node's "
                "own"
            )
    task, data = invitation.network, brought.data
    if brought.drop_missing:
        task = replace(task, drop_missing=True)
    offset = addresses.ENROLLED_OFFSET
    node = node_settings(name, place, listen=listen or "", page_offset=offset)
    node = replace(node, **brought.reading)
    if data is not None:
        node = replace(node, data=str(data.resolve()))
    with new_folder(folder, 0o700) as draft:
        write_atomically(draft / KEY_FILE, certificates.make_key(), mode=0o600)
        authority.split(invitation.authority.encode())
        write_atomically(draft / AUTHORITIES_FILE, invitation.authority)
        for file, content in invitation.files.items():
            write_atomically(draft / file, content)
        config.write(draft / NODE_FILE, NodeConfig(task, node, {}))
        config.read_node(draft / NODE_FILE)
        write_policy(draft, task, brought.person)
        if data is not None and brought.person is not None:
            load_table(data, node.format).select(brought.person)  # an error without the column
        rows = 0 if data is None else _count_rows(task, data, draft, node.format)
        reached = addresses.reachable_at(place)
        return _make_request(draft, KEY_FILE, task, name, reached, rows)


def _parse_place(address: str) -> Address:
    """Return where neighbours reach a site; its host is "outbound" if it only dials out."""
    if address == OUTBOUND:
        return addresses.free_address(OUTBOUND, FIRST_PORT)
    addresses.check_address("address", address)
    place = addresses.parse(address)
    addresses.require_reachable("address", address, place.host)
    return place


def _count_rows(task: Task, data: Path, draft: Path, form: Format) -> int:
    try:
        return len(read_rows(task, data, draft, form))
    except DataError as error:
        if error.remedy == NODE_HINT:
            error.remedy = "correct them, or leave those rows out with --drop-missing"
        raise


def request_again(folder: Path, address: str | None = None, new_key: bool = False) -> Request:
    """Make another request of a site that has a folder.

    Its rows are counted again; its key and its address can change.
    """
    node = NodeFolder(folder)
    site = node.read()
    if new_key:
        write_atomically(folder / NEXT_KEY_FILE, certificates.make_key(), mode=0o600)
    reached = site.node.advertise or site.node.listen
    if (folder / REQUEST_FILE).exists():
        reached = bundles.read(folder / REQUEST_FILE, Request).address
    if address is not None:
        place = _parse_place(address)
        reached = addresses.reachable_at(place)
        moved = node_settings(site.node.name, place, listen=site.node.listen)
        settings = replace(site.node, listen=moved.listen, advertise=moved.advertise)
        node.write(replace(site, node=settings))
    key = NEXT_KEY_FILE if (folder / NEXT_KEY_FILE).exists() else KEY_FILE
    return _make_request(folder, key, site.network, site.node.name, reached, node.count_rows())


def _make_request(
    folder: Path, key: str, task: Task, name: str, address: str, rows: int
) -> Request:
    csr = certificates.make_request((folder / key).read_bytes(), task.id, name)
    made = Request(task.id, name, address, declared_rows(task, rows), csr.decode("ascii"))
    bundles.write(folder / REQUEST_FILE, made)
    write_atomically(folder / CSR_FILE, csr)
    return made


def read_requests(folder: Path, paths: Sequence[Path]) -> list[Request]:
    """Read requests for a network and check that each is signed by its key."""
    network = Network.read(folder)
    requests: dict[str, Request] = {}
    for path in paths:
        new = bundles.read(path, Request)
        if new.network != network.task.id:
            raise InputError(f"{path} is for network {new.network}, not for {network.task.id}")
        if new.name in requests:
            raise InputError(f"{path}: there are two requests for {new.name}; give one")
        node = network.node(new.name)
        if node.is_here:
            raise InputError(
                f"{path}: {new.name} has its folder and its key here, in {node.path}; choose "
                "another name"
            )
        certificates.check_request(new.request.encode(), new.network, new.name)
        requests[new.name] = new
    return list(requests.values())


def sign(
    folder: Path,
    requests: Sequence[Request],
    issued: Sequence[Path] = (),
    passphrase: Passphrase | None = None,
) -> MemberList:
    """Make the sites of these requests members, and write new bundles for all members.

    Returns the new member list. `issued` are certificates in PEM, for requests where the
    authority's key is elsewhere.
    """
    network = Network.read(folder)
    signer = network.authority(passphrase)
    keys = {
        new.name: certificates.check_request(new.request.encode(), network.task.id, new.name)
        for new in requests
    }
    (folder / REQUESTS).mkdir(exist_ok=True)
    for new in requests:
        write_atomically(folder / REQUESTS / f"{new.name}.csr", new.request)
    signer, given = _read_issued(network, signer, keys, issued)
    for name in () if signer.is_here else keys.keys() - given.keys():
        raise InputError(
            "the authority's key is elsewhere: have it sign "
            f"{folder / REQUESTS / f'{name}.csr'}, and give the result with --certificate"
        )
    changed = Network(folder, _with_sites(network.config, requests))
    if not changed.config.nodes:
        raise InputError(f"{folder} has no member yet; give the requests of its sites")
    check_reachable(changed.config)
    listed = {new.name: Member(new.name, keys[new.name].hex(), new.rows) for new in requests}
    signed = changed.make_list(signer, listed)
    authority.write(folder, signer)
    for name, certificate in given.items():
        write_atomically(folder / REQUESTS / f"{name}.pem", certificate)
    for new in requests:
        bundles.write(folder / REQUESTS / f"{new.name}.json", new)
    changed.write()
    changed.publish(signed, signer)
    return signed.list


def _read_issued(
    network: Network, signer: Authority, keys: Mapping[str, bytes], paths: Sequence[Path]
) -> tuple[Authority, dict[str, bytes]]:
    """Read certificates that an authority elsewhere issued for the sites or the coordinator.

    Returns the authority, with the coordinator's certificate, and those of the sites.
    """
    old = network.members()
    known = {} if old is None else old.list.keys
    coordinator = certificates.public_bytes(signer.coordinator.key)
    holders = {COORDINATOR: coordinator, **known, **keys}
    given: dict[str, bytes] = {}
    for path in paths:
        try:
            certificate = path.read_bytes()[: members.MAX_LIST_BYTES]
            name = _holder(certificate, network.task.id, holders)
            if name == COORDINATOR:
                signer = signer.with_coordinator_certificate(certificate)
                continue
            trusted = signer.trusted_certificates
            certificates.check_certificate(certificate, trusted, network.task.id, name)
            given[name] = certificate
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
    return signer, given


def _holder(certificate: bytes, network: str, keys: Mapping[str, bytes]) -> str:
    """Return whose key a certificate is for."""
    key = members.key_of(load_certificate(certificate))
    for name, known in keys.items():
        if known == key:
            return name
    raise InputError(f"the certificate is for a key that no request for network {network} has")


def _with_sites(network: NetworkConfig, requests: Sequence[Request]) -> NetworkConfig:
    """Add nodes and edges.

    The first nodes get a whole graph, later ones the two nodes with the fewest neighbours.
    """
    nodes = {**network.nodes, **{new.name: new.address for new in requests}}
    names, edges, graph = list(nodes), list(network.edges), network.graph
    if not edges and len(names) > 1:
        graph = graph or ("complete" if len(names) < SMALL_NETWORK else "watts-strogatz")
        edges = [(names[a], names[b]) for a, b in edges_of(graphs.load(graph, len(names), 0))]
    for name in names if len(names) > 1 else ():
        degrees = Counter(end for edge in edges for end in edge)
        if not degrees[name]:
            others = [other for other in names if degrees[other]]
            fewest = sorted(others, key=lambda other: degrees[other])[:2]
            edges += [(other, name) for other in fewest]
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
    """Read a bundle and check it.

    It must be for this site, its key and its task, and the coordinator must have signed it.
    """
    site = _read_site(folder)
    bundle = bundles.read(path, Bundle)
    name, listed = site.node.name, bundle.members.list
    if bundle.name != name:
        raise InputError(f"{path} is for {bundle.name}; this site is {name}")
    old = _check_list(folder, site, bundle.members)
    trusted = [
        load_certificate(certificate)
        for pem in listed.authorities
        for certificate in authority.split(pem.encode())
    ]
    certificate = bundle.certificate.encode()
    try:
        key = certificates.check_certificate(certificate, trusted, site.network.id, name)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    private_key = b""
    for file in (folder / KEY_FILE, folder / NEXT_KEY_FILE):
        if file.exists():
            members.check_private(file)
            pem = file.read_bytes()
            private_key = pem if certificates.public_bytes(pem) == key else private_key
    if not private_key:
        raise InputError(
            f"{path}: the certificate is for another key than this site's; send the coordinator "
            f"{folder / REQUEST_FILE}"
        )
    if listed.keys.get(name) != key:
        raise InputError(f"{path}: the member list has another key for {name} than its certificate")
    return Proposal(
        old, bundle.members, bundle.neighbours, bundle.forwarders, certificate, private_key
    )


def read_proposed(folder: Path) -> Proposal | None:
    """Read a list that was put into a site's folder and is not accepted yet, if there is one."""
    site = _read_site(folder)
    lists = [read_list(folder / name) for name in (PROPOSED_FILE, MEMBERS_FILE)]
    newest = max(filter(None, lists), key=lambda signed: signed.list.serial, default=None)
    if newest is None or newest.list == NodeFolder(folder).accepted():
        return None
    old = _check_list(folder, site, newest)
    key = members.key_of(load_certificate((folder / CERTIFICATE_FILE).read_bytes()))
    if newest.list.keys.get(site.node.name) not in (None, key):
        raise NetworkError(
            f"list {newest.list.serial} has another key for {site.node.name}; install its bundle: "
            "gosta node join"
        )
    return Proposal(old, newest, None, {})


def accept(folder: Path, proposal: Proposal) -> None:
    """Install what a site has accepted; a running node reloads it."""
    node = NodeFolder(folder)
    site = node.read()
    if proposal.key and proposal.key != (folder / KEY_FILE).read_bytes():
        write_atomically(folder / KEY_FILE, proposal.key, mode=0o600)
    if proposal.certificate:
        write_atomically(folder / CERTIFICATE_FILE, proposal.certificate)
        (folder / NEXT_KEY_FILE).unlink(missing_ok=True)
    node.install(proposal.signed, "".join(proposal.signed.list.authorities).encode())
    if proposal.neighbours is not None:
        changed = replace(site, neighbours=proposal.neighbours, forwarders=proposal.forwarders)
        if changed != site:
            node.write(changed)
    (folder / PROPOSED_FILE).unlink(missing_ok=True)


def own_settings(folder: Path, listed: MemberList) -> list[str]:
    """Return what a site's node.toml says otherwise than the list, as other names of columns."""
    own = terms_of(_read_site(folder).network)
    return [
        f"{key}: {own.get(key, 'none')}, in the list {listed.policy.get(key, 'none')}"
        for key in _changed_keys(own, listed.policy)
    ]


def differences(old: MemberList, new: MemberList) -> list[str]:
    """Return in words what a list changes."""
    before = {member.name: member for member in old.members}
    after = {member.name: member for member in new.members}
    lines = [f"new member: {name}" for name in after if name not in before]
    lines += [f"no longer a member: {name}" for name in before if name not in after]
    for name in (name for name in after if name in before):
        if before[name].key != after[name].key:
            lines.append(f"new key of {name}")
        if before[name].rows != after[name].rows:
            now = row_words(after[name].rows, has_bounds(new))
            then = row_words(before[name].rows, has_bounds(old))
            lines.append(f"{name} declares {now}, before {then}")
    for key in _changed_keys(old.policy, new.policy):
        now, then = new.policy.get(key, "none"), old.policy.get(key, "none")
        lines.append(f"{key}: {now}, before {then}")
    if old.statistic != new.statistic:
        lines.append("another statistic: all nodes need the new settings")
    if old.authorities != new.authorities:
        lines.append(
            f"certificates of {len(new.authorities)} authorities are trusted, before "
            f"{len(old.authorities)}"
        )
    return lines


def _changed_keys(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    return [key for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key)]


def _read_site(folder: Path) -> NodeConfig:
    if not NodeFolder(folder).is_here:
        raise InputError(f"{folder} is no site's folder; make one with: gosta node request")
    return NodeFolder(folder).read()


def _check_list(folder: Path, site: NodeConfig, signed: SignedList) -> MemberList | None:
    """Check a list against what the site trusts and computes.

    Returns the list that the site accepted before.
    """
    try:
        trusted = (folder / AUTHORITIES_FILE).read_bytes()
        listed = members.verify_list(signed, trusted, site.network.id)
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from None
    if listed.statistic != fingerprint(site.network, folder):
        raise InputError(
            "the members compute something else than [network] in node.toml says; ask the "
            f"coordinator for the invitation that belongs to list {listed.serial}"
        )
    if not listed.authorities:
        raise InputError("the member list names no authority; ask the coordinator for it again")
    old = NodeFolder(folder).accepted()
    if old is None:
        return None
    if listed.serial < old.serial or (listed.serial == old.serial and listed != old):
        raise InputError(
            f"list {listed.serial} is not newer than list {old.serial}, which this site accepted "
            "already"
        )
    return old
