"""Checks of a node before it sends anything: certificate, members, neighbours, disk, policy.

A check never raises: what is missing or wrong is a finding. Its `text` holds no value of the data,
and no count that the site's policy would not show; what may hold such values is in `detail`, which
stays at the site.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import ssl
import statistics
import struct
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from gosta.datasets.harmonise import Harmonisation
from gosta.errors import GostaError, InputError, shorten
from gosta.net import addresses, members
from gosta.net.addresses import certificate_name
from gosta.net.agreements import read_agreements
from gosta.net.config import HEAD_FILE, JOURNAL_FILE, NodeConfig, NodeSettings, Task
from gosta.net.deploy.bundles import Invitation
from gosta.net.deploy.check_data import PROPOSAL, Counted, check_data
from gosta.net.deploy.check_values import ABOUT_VALUES
from gosta.net.deploy.findings import Finding, Level
from gosta.net.deploy.node_folder import AUTHORITIES_FILE, CERTIFICATE_FILE, KEY_FILE, NodeFolder
from gosta.net.deploy.site_log import read_history
from gosta.net.deploy.terms import row_words
from gosta.net.limits import SECONDS_PER_EPOCH, UNDECLARED_ROWS
from gosta.net.members import MEMBERS_FILE, MemberList
from gosta.net.node.credentials import EXPIRY_WARNING, ListFolder
from gosta.net.node.rows import subject_of, sums_of
from gosta.net.node.source import fingerprint
from gosta.net.storage.contributions import find_damage, find_lost
from gosta.net.storage.journal import Journal
from gosta.net.transport.base import CHECK, FORWARDS, Greeting
from gosta.net.transport.connection import MAX_GREETING_BYTES, encode_frame
from gosta.net.transport.dialling import ProxyError, open_socket
from gosta.net.transport.tls import (
    TlsFiles,
    check_peer,
    describe_error,
    load_certificate,
    make_context,
)
from gosta.private.accounting import total_epsilon
from gosta.private.policy import (
    POLICY_FILE,
    Policy,
    read_policy,
    verdict_to_contribute,
    verdict_to_join,
)

TIMEOUT_SECONDS = 5.0  # for one neighbour
PROBE_THREADS = 32  # neighbours that are asked at once
MIN_FREE_BYTES = 100 << 20  # on the disk, below which there is a warning
CLOCK_WARNING_SECONDS = 5.0  # difference from the neighbours' clocks
CLOCK_ERROR_SECONDS = 60.0
# What to do.
TLS_HINT = "compare the member lists; firewalls and proxies must not open TLS for this address"
CONNECTION_HINT = "is its node running, and are firewalls open?"
PROXY_HINT = "see HTTPS_PROXY, NO_PROXY and proxy in node.toml"
JOIN_HINT = "install the bundle of this site: gosta node join"
CLOCK_HINT = "set this machine's clock (NTP)"
RENEW_HINT = "ask the coordinator for a new bundle, or: gosta network certify"


class Trial(NamedTuple):
    """Settings that are tried in a check, though node.toml does not have them."""

    node: Mapping[str, Any] = {}  # keys of [node]
    drop_missing: bool = False

    def apply(self, config: NodeConfig) -> NodeConfig:
        """Return the settings of a node with these."""
        task, node = config.network, config.node
        if self.drop_missing:
            task = replace(task, drop_missing=True)
        rules = node.format.harmonise.updated(self.node.get("harmonise", Harmonisation()))
        node = replace(node, **{**self.node, "harmonise": rules})
        return replace(config, network=task, node=node)


NO_TRIAL = Trial()


def check_file(invitation: Invitation, data: Path, trial: Trial) -> list[Finding]:
    """Check what a data file holds of the columns that an invitation asks for."""
    task = invitation.network
    node = NodeSettings("site", "", data=str(data.resolve()))
    config = trial.apply(NodeConfig(task, node, {}))
    return check_data(data.parent, config, Policy())[1]


def check(folder: Path, trial: Trial = NO_TRIAL) -> list[Finding]:
    """Check all that a node's folder holds, and whether its neighbours can be reached.

    `trial` has settings that its node.toml does not have.
    """
    node = NodeFolder(folder)
    try:
        config = trial.apply(node.read())
    except GostaError as error:
        return [Finding.error("settings", str(error))]
    found = [Finding.ok("settings", f"{config.node.name} of network {config.network.id}")]
    policy, verdict = _check_policy(folder)
    listed, credentials = _check_credentials(folder, config)
    counted, data = check_data(folder, config, policy)
    found += [
        verdict,
        *credentials,
        *data,
        *_check_disk(node, config),
        _check_address(node, config),
    ]
    if config.network.private:
        found.append(_check_sums(config.network))
        found += [*_check_declared(folder, config, listed, counted), *_check_agreements(folder)]
    found += _check_neighbours(folder, config, listed)
    sites = len(listed.members) if listed else len(config.neighbours) + 1
    found.append(_check_verdict(folder, config, policy, counted, sites, found))
    return sorted(found, key=lambda finding: finding.check == PROPOSAL)  # the line to copy is last


def doubts_about_rows(folder: Path) -> list[str]:
    """Return what is doubtful about the values of a new site's file: outcomes that contradict
    events, and risks of another unit.
    """
    config = NodeFolder(folder).read()
    if not (folder / config.node.data).exists():
        return []
    _, found = check_data(folder, config, read_policy(folder))
    doubtful = [one for one in found if one.level != "ok" and one.check.startswith(ABOUT_VALUES)]
    return [f"{one.text}, {one.detail}: {one.hint}" for one in doubtful]


# Policy.


def _check_policy(folder: Path) -> tuple[Policy, Finding]:
    try:
        policy = read_policy(folder)
    except GostaError as error:
        return Policy(), Finding.error("policy", str(error))
    return policy, Finding.ok("policy", f"modes allowed: {', '.join(policy.modes)}")


def _check_sums(task: Task) -> Finding:
    try:
        layout = sums_of(task)
    except GostaError as error:
        return Finding.error("sums", str(error))
    words = layout.describe()
    return Finding.ok(
        "sums",
        f"{words['statistics']}: {layout.numbers} numbers leave this site, masked; their "
        f"fingerprint is {layout.fingerprint}",
    )


def _check_verdict(
    folder: Path,
    config: NodeConfig,
    policy: Policy,
    counted: Counted,
    sites: int,
    found: list[Finding],
) -> Finding:
    """Return whether the site would take part now, together with all other sites."""
    task = config.network
    errors = [finding.check for finding in found if finding.level == "error"]
    if config.node.tls and not (folder / MEMBERS_FILE).exists():
        return Finding.error(
            "takes part", "not yet: this site has not joined the network", JOIN_HINT
        )
    if not counted.rows:
        return Finding.error("takes part", "not as long as its rows cannot be used")
    try:
        history = read_history(folder, config)
        subject = subject_of(task, counted.rows, counted.people, sites)
        subject = subject._replace(alone=counted.alone)
        verdict = verdict_to_join(policy, subject, history, time.time())
        if task.private is not None and "member list" not in errors:
            verdict = verdict or verdict_to_contribute(policy, sites, members=sites)
    except GostaError as error:
        return Finding.error("takes part", "no: it cannot be decided", detail=str(error))
    if verdict and "policy" not in errors:
        hint = f"change {POLICY_FILE} if that is not meant"
        return Finding.error("takes part", "no: the site's policy forbids it", hint, verdict)
    if wrong := [name for name in errors if not name.startswith("neighbour")]:
        return Finding.error("takes part", f"no: correct this first: {', '.join(wrong)}")
    if task.private is None or task.private.epsilon is None:
        return Finding.ok("takes part", "yes")
    releases = [past.spent for past in history if past.spent is not None]
    spent = total_epsilon(releases, policy.delta_budget)
    return Finding.ok("takes part", f"yes; epsilon {spent:.3g} of {policy.epsilon_budget:g} spent")


# Key, certificate and member list.


def _check_credentials(folder: Path, config: NodeConfig) -> tuple[MemberList | None, list[Finding]]:
    if not config.node.tls:
        return None, [Finding.warning("certificate", "tls = false: for tests on one machine only")]
    listed = None
    found: list[Finding] = []
    try:
        members.read_private_key(folder / KEY_FILE)
        found.append(Finding.ok("key", "only this user can read it"))
    except GostaError as error:
        found.append(Finding.error("key", str(error)))
    found.append(_check_certificate(folder / CERTIFICATE_FILE, config))
    try:
        listed = members.read_keyring(folder, config.node.name, config.network.id).list
        accepted = f"list {listed.serial}, {len(listed.members)} members, signed and accepted"
        found.append(Finding.ok("member list", accepted))
    except GostaError as error:
        found.append(Finding.error("member list", str(error)))
    if listed is not None:
        found.append(_check_task(folder, config.network, listed))
        lists = ListFolder(folder, config.network.id, lambda *_, **__: None)
        if conflict := lists.conflict(listed.serial, members.digest_of(listed)):
            found.append(Finding.error("member list", conflict))
    return listed, found


def _check_certificate(path: Path, config: NodeConfig) -> Finding:
    try:
        certificate = load_certificate(path.read_bytes())
    except OSError as error:
        hint = "'gosta network certify' makes one, or 'gosta node join' installs one"
        return Finding.error("certificate", f"cannot read {path}: {error.strerror}", hint)
    except InputError as error:
        return Finding.error("certificate", f"{path}: {error}")
    holder = certificate_name(config.node.name, config.network.id)
    names = members.dns_names(certificate)
    if holder not in names:
        others = ", ".join(names)[:100] or "no node"
        return Finding.error("certificate", f"is for {others}, not for {holder}", JOIN_HINT)
    now = datetime.now(UTC)
    start = certificate.not_valid_before_utc
    end = certificate.not_valid_after_utc
    if now < start:
        text = f"not valid before {start:%Y-%m-%d %H:%M} UTC: is the clock right?"
        return Finding.error("certificate", text, CLOCK_HINT)
    if now > end:
        return Finding.error("certificate", f"expired on {end:%Y-%m-%d}", RENEW_HINT)
    if end - now < EXPIRY_WARNING:
        return Finding.warning("certificate", f"expires on {end:%Y-%m-%d}", RENEW_HINT)
    return Finding.ok("certificate", f"valid until {end:%Y-%m-%d}")


def _check_task(folder: Path, task: Task, listed: MemberList) -> Finding:
    try:
        is_same = fingerprint(task, folder) == listed.statistic
    except OSError as error:
        return Finding.error("agreement", f"cannot read {error.filename}: {error.strerror}")
    if is_same:
        return Finding.ok("agreement", "this site computes what the members agreed on")
    hint = "take [network] from the invitation or from the coordinator"
    return Finding.error(
        "agreement", "[network] in node.toml is not what the members agreed on", hint
    )


def _check_declared(
    folder: Path, config: NodeConfig, listed: MemberList | None, counted: Counted
) -> Iterator[Finding]:
    """Check that the site has no more rows than it declared in the member list."""
    if listed is None or not counted.rows:
        return
    declared = {member.name: member.rows for member in listed.members}.get(config.node.name, 0)
    limit = declared or UNDECLARED_ROWS
    if counted.rows > limit:
        yield Finding.error(
            "declared rows",
            f"more than the list allows, {limit:,}",
            f"ask the coordinator for a new list: gosta node request INVITATION {folder}, or gosta "
            "network certify",
            f"{counted.rows:,} rows",
        )
        return
    most = f", so that it can contribute {limit:,} at most" * (declared == 0)
    yield Finding.ok("declared rows", f"declares {row_words(declared, is_bound=True)}{most}")


def _check_agreements(folder: Path) -> Iterator[Finding]:
    try:
        agreed = read_agreements(folder)
    except GostaError as error:
        yield Finding.error("agreements", str(error))
        return
    if agreed.leaves:
        yield Finding.error(
            "agreements", "this site leaves", f"to come back: gosta node leave {folder} --back"
        )
    elif agreed.sites:
        whose = shorten([*agreed.sites], 12)
        yield Finding.ok(
            "agreements",
            f"exact sums may be computed, from totals with and without them, of {whose}",
        )


# Disk.


def _check_disk(node: NodeFolder, config: NodeConfig) -> Iterator[Finding]:
    folder = node.path
    trial = folder / f".check-{os.getpid()}"
    try:
        trial.write_bytes(b"x")
        trial.unlink()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        yield Finding.error(
            "disk", f"cannot write {folder}: {error.strerror}", "the node writes its journal there"
        )
        return
    few = free < MIN_FREE_BYTES
    yield Finding("disk", "warning" if few else "ok", f"{free >> 20:,} MiB free", "make room" * few)
    path = folder / JOURNAL_FILE
    if node.is_running:
        yield Finding.ok("journal", "in use by the running node")
    elif path.exists():
        yield _check_journal(path, config.node.name)
    elif lost := find_lost(folder / HEAD_FILE, []):
        yield Finding.error("journal", f"missing: its log {lost}")
    else:
        yield Finding.ok("journal", "none yet")


def _check_journal(path: Path, name: str) -> Finding:
    try:
        journal = Journal(path, read_only=True)
    except GostaError as error:
        return Finding.error("journal", str(error))
    try:
        journal.check_owner(name)
        start, _ = journal.load_epoch()
        if damage := find_damage(path.with_name(HEAD_FILE), journal.contributions()):
            return Finding.error(
                "journal", f"not this site's last one: its log {damage}", "put back the last one"
            )
    except GostaError as error:
        return Finding.error("journal", str(error))
    finally:
        journal.close()
    if start is not None and start.announcement.epoch > time.time() / SECONDS_PER_EPOCH + 1:
        return Finding.error(
            "journal", "its epoch is of the future: is this machine's clock right?", "set the clock"
        )
    return Finding.ok("journal", "can be read")


# Addresses.


def _check_address(node: NodeFolder, config: NodeConfig) -> Finding:
    """Check that neighbours can connect to this machine, as far as it can tell."""
    listen, advertise = config.node.listen, config.node.advertise
    if not listen:
        return Finding.ok("address", "none: this node only dials out")
    reached = f"; neighbours reach it at {advertise}" if advertise else ""
    if node.is_running:
        return Finding.ok("address", f"{listen}, where the running node listens{reached}")
    try:
        addresses.listen(listen, "node.listen").close()
    except GostaError as error:
        return Finding.error("address", str(error))
    return Finding.ok(
        "address", f"{listen} is free; firewalls must let neighbours connect to it{reached}"
    )


class Probe(NamedTuple):
    """What is known of a neighbour or forwarder after a greeting."""

    finding: Finding
    clock_offset: float | None = None  # seconds that the neighbour's clock is ahead of this one
    forwards: bool = False


def _check_neighbours(folder: Path, config: NodeConfig, listed: MemberList | None) -> list[Finding]:
    if not config.neighbours:
        return [Finding.warning("neighbours", "none yet", JOIN_HINT)]
    context = None
    if config.node.tls:
        try:
            files = [folder / name for name in (CERTIFICATE_FILE, KEY_FILE, AUTHORITIES_FILE)]
            context = make_context(TlsFiles(*files), ssl.PROTOCOL_TLS_CLIENT)
        except GostaError as error:
            text = "not tried, as this node has no usable certificate"
            return [Finding.error("neighbours", text, str(error))]
    try:
        digest = fingerprint(config.network, folder)
        greeting = Greeting(config.node.name, config.network.id, digest, note=CHECK)
    except OSError as error:
        return [Finding.error("neighbours", f"not tried: cannot read {error.filename}")]

    def probe(place: tuple[str, str, str]) -> Probe:
        kind, name, address = place
        return _probe(f"{kind} {name}", name, address, greeting, context, listed, config.node.proxy)

    places = [("neighbour", *place) for place in config.neighbours.items() if place[1]]
    places += [
        ("forwarder", *place)
        for place in config.forwarders.items()
        if place[0] not in config.neighbours
    ]
    with ThreadPoolExecutor(PROBE_THREADS) as pool:
        probes = list(pool.map(probe, places))
    can_forward = any(
        probe.forwards and name in config.forwarders
        for probe, (_, name, _) in zip(probes, places, strict=True)
    )
    outbound = [
        _check_outbound(name, config, can_forward)
        for name, address in config.neighbours.items()
        if not address
    ]
    return [*(probe.finding for probe in probes), *outbound, _check_clock(probes)]


def _check_outbound(name: str, config: NodeConfig, can_forward: bool) -> Finding:
    """Check whether there is a way to a neighbour that only dials out."""
    check, both = f"neighbour {name}", "it only dials out, as this node"
    if config.node.listen:
        return Finding.ok(check, "it only dials out, and is the one that connects")
    if can_forward:
        return Finding.ok(check, f"{both}: a forwarder connects the two")
    if config.forwarders:
        hint = (
            f"one of {shorten(list(config.forwarders))} has to run, with forward = true in its "
            "node.toml"
        )
        return Finding.warning(check, f"{both}, and no forwarder answers that it forwards", hint)
    hint = "install a new bundle of this site, or add [forwarders]: members that can be reached"
    return Finding.error(check, f"{both}, and there is no forwarder", hint)


def _check_clock(probes: list[Probe]) -> Finding:
    offsets = [probe.clock_offset for probe in probes if probe.clock_offset is not None]
    if not offsets:
        return Finding.ok("clock", "not compared, as no neighbour answered")
    offset = statistics.median(offsets)
    text = "as the neighbours'"
    if abs(offset) > 1:
        text = f"{abs(offset):.0f} s {'behind' if offset > 0 else 'ahead of'} the neighbours"
    level: Level = "ok"
    if abs(offset) > CLOCK_WARNING_SECONDS:
        level = "error" if abs(offset) > CLOCK_ERROR_SECONDS else "warning"
    return Finding("clock", level, text, CLOCK_HINT * (level != "ok"))


def _probe(
    check: str,
    name: str,
    address: str,
    greeting: Greeting,
    context: ssl.SSLContext | None,
    listed: MemberList | None,
    proxy: str,
) -> Probe:
    """Connect to a neighbour or forwarder and exchange greetings, which tell nothing about rows."""
    try:
        with asyncio.run(_open(addresses.parse(address), proxy)) as plain:
            plain.settimeout(TIMEOUT_SECONDS)
            if context is None:
                answer = _greet(plain, greeting)
            else:
                holder = certificate_name(name, greeting.network)
                with context.wrap_socket(plain, server_hostname=holder) as secure:
                    check_peer(secure.getpeercert(True) or b"", name, listed)
                    answer = _greet(secure, greeting)
    except TimeoutError:
        text = f"{address}: no answer within {TIMEOUT_SECONDS:g} s"
        return Probe(Finding.warning(check, text, CONNECTION_HINT))
    except ssl.SSLError as error:
        return Probe(Finding.error(check, f"{address}: {describe_error(error)}", TLS_HINT))
    except (OSError, ValueError, GostaError) as error:
        is_proxy = isinstance(error, ProxyError | InputError)
        hint = PROXY_HINT if is_proxy else CONNECTION_HINT
        return Probe(Finding.warning(check, f"{address}: {describe_error(error)}", hint))
    if answer is None:
        text = f"{address}: it rejects this node"
        return Probe(Finding.error(check, text, "has it accepted this member list?"))
    mismatch = greeting.mismatch(answer)
    forwards = answer.note.endswith(FORWARDS)
    seconds = answer.note.removesuffix(FORWARDS)
    offset = float(seconds) - time.time() if seconds.isdigit() else None
    if mismatch is not None:
        hint = "take [network] from the invitation, and the same version of gosta"
        return Probe(Finding.error(check, f"{address}: {mismatch[1]}", hint), offset, forwards)
    finding = Finding.ok(check, f"{address}: reached, and it computes the same")
    return Probe(finding, offset, forwards)


async def _open(address: addresses.Address, proxy: str) -> socket.socket:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        return await open_socket(address, proxy)


def _greet(connection: socket.socket, greeting: Greeting) -> Greeting | None:
    """Exchange greetings; None if the other end closes without one."""
    connection.sendall(encode_frame(greeting.encode()))
    content = b""
    try:
        while len(content) < 4 or len(content) < 4 + struct.unpack(">I", content[:4])[0]:
            if len(content) > 4 + MAX_GREETING_BYTES or not (more := connection.recv(4096)):
                return None
            content += more
    except ConnectionError:
        return None
    return Greeting.decode(content[4:])
