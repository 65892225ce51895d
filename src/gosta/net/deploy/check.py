"""Checks of a node's folder before it sends anything: data, certificate, members, neighbours, disk, policy.

A check never raises: what is missing or wrong is a finding. Its `text` holds no value of the data, and no count that
the site's policy would not show; what may hold such values is in `detail`, which stays at the site.
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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from gosta.errors import GostaError, InputError, shorten
from gosta.net import addresses, members
from gosta.net.addresses import certificate_name
from gosta.net.agreements import read_agreements
from gosta.net.config import (
    HEAD_FILE,
    JOURNAL_FILE,
    NODE_FILE,
    NodeConfig,
    NodeSettings,
    Task,
    read_node,
)
from gosta.net.deploy.check_data import Counted, Finding, Level, check_data
from gosta.net.deploy.site_log import read_history
from gosta.net.deploy.terms import row_words
from gosta.net.limits import SECONDS_PER_EPOCH, UNDECLARED_ROWS
from gosta.net.members import MemberList
from gosta.net.node import lock
from gosta.net.node.credentials import EXPIRY_WARNING, ListFolder
from gosta.net.node.rows import layout_of, subject_of
from gosta.net.node.source import fingerprint
from gosta.net.storage.contributions import find_damage, find_lost
from gosta.net.storage.journal import Journal
from gosta.net.transport.base import CHECK, FORWARDS, Greeting
from gosta.net.transport.connection import MAX_GREETING_BYTES
from gosta.net.transport.dialling import ProxyError, open_socket
from gosta.net.transport.frames import encode_frame
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
PROBE_THREADS = 32
TLS_HINT = "compare the member lists; firewalls and proxies must not open TLS for this address"
HINT = "is its node running, and are firewalls open?"
MIN_FREE_BYTES = 100 << 20
CLOCK_WARNING_SECONDS, CLOCK_ERROR_SECONDS = 5.0, 60.0  # difference from the neighbours' clocks


def check(folder: Path) -> list[Finding]:
    """Check all that a node's folder holds, and whether its neighbours can be reached."""
    try:
        config = read_node(folder / NODE_FILE)
    except GostaError as error:
        return [Finding("settings", "error", str(error))]
    found = [Finding("settings", "ok", f"{config.node.name} of network {config.network.id}")]
    policy, verdict = _check_policy(folder)
    listed, credentials = _check_credentials(folder, config)
    counted, data = check_data(folder, config, policy)
    found += [
        verdict,
        *credentials,
        *data,
        *_check_disk(folder, config),
        _check_address(folder, config.node),
    ]
    if config.network.private:
        found.append(_check_sums(config.network))
        found += [*_check_declared(folder, config, listed, counted), *_check_agreements(folder)]
    found += _check_neighbours(folder, config, listed)
    sites = len(listed.members) if listed else len(config.neighbours) + 1
    return [*found, _check_verdict(folder, config, policy, counted, sites, found)]


# Policy.


def _check_policy(folder: Path) -> tuple[Policy, Finding]:
    try:
        policy = read_policy(folder)
    except GostaError as error:
        return Policy(), Finding("policy", "error", str(error))
    return policy, Finding("policy", "ok", f"modes allowed: {', '.join(policy.modes)}")


def _check_sums(task: Task) -> Finding:
    try:
        layout = layout_of(task)
    except GostaError as error:
        return Finding("sums", "error", str(error))
    words = layout.describe()
    text = f"{layout.numbers} numbers leave this site, masked; their fingerprint is {layout.fingerprint}"
    return Finding("sums", "ok", f"{words['statistics']}: {text}")


def _check_verdict(
    folder: Path,
    config: NodeConfig,
    policy: Policy,
    counted: Counted,
    sites: int,
    found: list[Finding],
) -> Finding:
    """Return whether the site would take part now, together with all other sites."""
    task, errors = config.network, [one.check for one in found if one.level == "error"]
    if config.node.tls and not (folder / members.MEMBERS_FILE).exists():
        hint = "install the bundle of this site: gosta node join"
        return Finding("takes part", "error", "not yet: this site has not joined the network", hint)
    if not counted.rows:
        return Finding("takes part", "error", "not as long as its rows cannot be used")
    try:
        history = read_history(folder, config)
        verdict = verdict_to_join(policy, subject_of(task, *counted, sites), history, time.time())
        if task.private is not None and "member list" not in errors:
            verdict = verdict or verdict_to_contribute(policy, sites, members=sites)
    except GostaError as error:
        return Finding("takes part", "error", "no: it cannot be decided", detail=str(error))
    if verdict and "policy" not in errors:
        hint = f"change {POLICY_FILE} if that is not meant"
        return Finding("takes part", "error", "no: the site's policy forbids it", hint, verdict)
    if wrong := [name for name in errors if not name.startswith("neighbour")]:
        return Finding("takes part", "error", f"no: correct this first: {', '.join(wrong)}")
    if task.private is None or task.private.epsilon is None:
        return Finding("takes part", "ok", "yes")
    spent = total_epsilon(
        [one.spent for one in history if one.spent is not None], policy.delta_budget
    )
    return Finding(
        "takes part", "ok", f"yes; epsilon {spent:.3g} of {policy.epsilon_budget:g} spent"
    )


# Key, certificate and member list.


def _check_credentials(folder: Path, config: NodeConfig) -> tuple[MemberList | None, list[Finding]]:
    if not config.node.tls:
        return None, [
            Finding("certificate", "warning", "tls = false: for tests on one machine only")
        ]
    listed, found = None, []
    try:
        members.read_private_key(folder / "key.pem")
        found.append(Finding("key", "ok", "only this user can read it"))
    except GostaError as error:
        found.append(Finding("key", "error", str(error)))
    found.append(_check_certificate(folder / "cert.pem", config))
    try:
        listed = members.read_keyring(folder, config.node.name, config.network.id).list
        accepted = f"list {listed.serial}, {len(listed.members)} members, signed and accepted"
        found.append(Finding("member list", "ok", accepted))
    except GostaError as error:
        found.append(Finding("member list", "error", str(error)))
    if listed is not None:
        found.append(_check_task(folder, config.network, listed))
        lists = ListFolder(folder, config.network.id, lambda *_, **__: None)
        if conflict := lists.conflict(listed.serial, members.digest_of(listed)):
            found.append(Finding("member list", "error", conflict))
    return listed, found


def _check_certificate(path: Path, config: NodeConfig) -> Finding:
    try:
        certificate = load_certificate(path.read_bytes())
    except OSError as error:
        hint = "'gosta network certify' makes one, or 'gosta node join' installs one"
        return Finding("certificate", "error", f"cannot read {path}: {error.strerror}", hint)
    except InputError as error:
        return Finding("certificate", "error", f"{path}: {error}")
    holder, names = (
        certificate_name(config.node.name, config.network.id),
        members.dns_names(certificate),
    )
    if holder not in names:
        hint = "install the bundle of this site: gosta node join"
        return Finding(
            "certificate",
            "error",
            f"is for {', '.join(names)[:100] or 'no node'}, not for {holder}",
            hint,
        )
    now, start, end = (
        datetime.now(UTC),
        certificate.not_valid_before_utc,
        certificate.not_valid_after_utc,
    )
    if now < start:
        hint = "set this machine's clock (NTP)"
        return Finding(
            "certificate",
            "error",
            f"not valid before {start:%Y-%m-%d %H:%M} UTC: is the clock right?",
            hint,
        )
    renew = "ask the coordinator for a new bundle, or: gosta network certify"
    if now > end:
        return Finding("certificate", "error", f"expired on {end:%Y-%m-%d}", renew)
    if end - now < EXPIRY_WARNING:
        return Finding("certificate", "warning", f"expires on {end:%Y-%m-%d}", renew)
    return Finding("certificate", "ok", f"valid until {end:%Y-%m-%d}")


def _check_task(folder: Path, task: Task, listed: MemberList) -> Finding:
    try:
        is_same = fingerprint(task, folder) == listed.statistic
    except OSError as error:
        return Finding("agreement", "error", f"cannot read {error.filename}: {error.strerror}")
    if is_same:
        return Finding("agreement", "ok", "this site computes what the members agreed on")
    hint = "take [network] from the invitation or from the coordinator"
    return Finding(
        "agreement", "error", "[network] in node.toml is not what the members agreed on", hint
    )


def _check_declared(
    folder: Path, config: NodeConfig, listed: MemberList | None, counted: Counted
) -> Iterator[Finding]:
    """Check that the site has no more rows than it declared in the member list."""
    if listed is None or not counted.rows:
        return
    declared = {one.name: one.rows for one in listed.members}.get(config.node.name, 0)
    limit, check = declared or UNDECLARED_ROWS, "declared rows"
    if counted.rows > limit:
        renew = f"ask the coordinator for a new list: gosta node request INVITATION {folder}, or gosta network certify"
        yield Finding(
            check, "error", f"more than the list allows, {limit:,}", renew, f"{counted.rows:,} rows"
        )
        return
    most = f", so that it can contribute {limit:,} at most" * (declared == 0)
    yield Finding(check, "ok", f"declares {row_words(declared, is_bound=True)}{most}")


def _check_agreements(folder: Path) -> Iterator[Finding]:
    try:
        agreed = read_agreements(folder)
    except GostaError as error:
        yield Finding("agreements", "error", str(error))
        return
    if agreed.leaves:
        yield Finding(
            "agreements",
            "error",
            "this site leaves",
            f"to come back: gosta node leave {folder} --back",
        )
    elif agreed.sites:
        whose = shorten([*agreed.sites], 12)
        yield Finding(
            "agreements",
            "ok",
            f"exact sums may be computed, from totals with and without them, of {whose}",
        )


# Disk.


def _check_disk(folder: Path, config: NodeConfig) -> Iterator[Finding]:
    trial = folder / f".check-{os.getpid()}"
    try:
        trial.write_bytes(b"x")
        trial.unlink()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        yield Finding(
            "disk",
            "error",
            f"cannot write {folder}: {error.strerror}",
            "the node writes its journal there",
        )
        return
    few = free < MIN_FREE_BYTES
    yield Finding("disk", "warning" if few else "ok", f"{free >> 20:,} MiB free", "make room" * few)
    path = folder / JOURNAL_FILE
    if lock.is_running(folder):
        yield Finding("journal", "ok", "in use by the running node")
    elif not path.exists():
        lost = find_lost(folder / HEAD_FILE, [])
        yield (
            Finding("journal", "error", f"missing: its log {lost}")
            if lost
            else Finding("journal", "ok", "none yet")
        )
    else:
        yield _check_journal(path, config.node.name)


def _check_journal(path: Path, name: str) -> Finding:
    try:
        journal = Journal(path, read_only=True)
    except GostaError as error:
        return Finding("journal", "error", str(error))
    try:
        journal.check_owner(name)
        start, _ = journal.load_epoch()
        if damage := find_damage(path.with_name(HEAD_FILE), journal.contributions()):
            return Finding(
                "journal",
                "error",
                f"not this site's last one: its log {damage}",
                "put back the last one",
            )
    except GostaError as error:
        return Finding("journal", "error", str(error))
    finally:
        journal.close()
    if start is not None and start.announcement.epoch > time.time() / SECONDS_PER_EPOCH + 1:
        return Finding(
            "journal",
            "error",
            "its epoch is of the future: is this machine's clock right?",
            "set the clock",
        )
    return Finding("journal", "ok", "can be read")


# Addresses.


def _check_address(folder: Path, node: NodeSettings) -> Finding:
    """Check that neighbours can connect to this machine, as far as it can tell."""
    listen = node.listen
    if not listen:
        return Finding("address", "ok", "none: this node only dials out")
    reached = f"; neighbours reach it at {node.advertise}" if node.advertise else ""
    if lock.is_running(folder):
        return Finding("address", "ok", f"{listen}, where the running node listens{reached}")
    try:
        addresses.listen(listen, "node.listen").close()
    except GostaError as error:
        return Finding("address", "error", str(error))
    return Finding(
        "address", "ok", f"{listen} is free; firewalls must let neighbours connect to it{reached}"
    )


class Probe(NamedTuple):
    finding: Finding
    clock_offset: float | None = None  # seconds that the neighbour's clock is ahead of this one
    forwards: bool = False


def _check_neighbours(folder: Path, config: NodeConfig, listed: MemberList | None) -> list[Finding]:
    if not config.neighbours:
        return [
            Finding(
                "neighbours",
                "warning",
                "none yet",
                "install the bundle of this site: gosta node join",
            )
        ]
    context = None
    if config.node.tls:
        try:
            files = TlsFiles(folder / "cert.pem", folder / "key.pem", folder / "ca.pem")
            context = make_context(files, ssl.PROTOCOL_TLS_CLIENT)
        except GostaError as error:
            return [
                Finding(
                    "neighbours",
                    "error",
                    "not tried, as this node has no usable certificate",
                    str(error),
                )
            ]
    try:
        own = Greeting(
            config.node.name, config.network.id, fingerprint(config.network, folder), note=CHECK
        )
    except OSError as error:
        return [Finding("neighbours", "error", f"not tried: cannot read {error.filename}")]

    def probe(place: tuple[str, str, str]) -> Probe:
        kind, name, address = place
        return _probe(f"{kind} {name}", name, address, own, context, listed, config.node.proxy)

    places = [("neighbour", *place) for place in config.neighbours.items() if place[1]]
    places += [
        ("forwarder", *place)
        for place in config.forwarders.items()
        if place[0] not in config.neighbours
    ]
    with ThreadPoolExecutor(PROBE_THREADS) as pool:
        probes = list(pool.map(probe, places))
    can_forward = any(
        one.forwards and name in config.forwarders
        for one, (_, name, _) in zip(probes, places, strict=True)
    )
    outbound = [
        _check_outbound(name, config, can_forward)
        for name, address in config.neighbours.items()
        if not address
    ]
    return [*(one.finding for one in probes), *outbound, _check_clock(probes)]


def _check_outbound(name: str, config: NodeConfig, can_forward: bool) -> Finding:
    """Check whether there is a way to a neighbour that only dials out."""
    check, both = f"neighbour {name}", "it only dials out, as this node"
    if config.node.listen:
        return Finding(check, "ok", "it only dials out, and is the one that connects")
    if can_forward:
        return Finding(check, "ok", f"{both}: a forwarder connects the two")
    if config.forwarders:
        hint = f"one of {shorten(list(config.forwarders))} has to run, with forward = true in its node.toml"
        return Finding(check, "warning", f"{both}, and no forwarder answers that it forwards", hint)
    hint = "install a new bundle of this site, or add [forwarders]: members that can be reached"
    return Finding(check, "error", f"{both}, and there is no forwarder", hint)


def _check_clock(probes: list[Probe]) -> Finding:
    offsets = [one.clock_offset for one in probes if one.clock_offset is not None]
    if not offsets:
        return Finding("clock", "ok", "not compared, as no neighbour answered")
    offset = statistics.median(offsets)
    text = (
        f"{abs(offset):.0f} s {'behind' if offset > 0 else 'ahead of'} the neighbours"
        if abs(offset) > 1
        else "as the neighbours'"
    )
    level: Level = "ok"
    if abs(offset) > CLOCK_WARNING_SECONDS:
        level = "error" if abs(offset) > CLOCK_ERROR_SECONDS else "warning"
    return Finding("clock", level, text, "set this machine's clock (NTP)" * (level != "ok"))


def _probe(
    check: str,
    name: str,
    address: str,
    own: Greeting,
    context: ssl.SSLContext | None,
    listed: MemberList | None,
    proxy: str,
) -> Probe:
    """Connect to a neighbour or forwarder and exchange greetings, which tell nothing about rows."""
    try:
        with asyncio.run(_open(addresses.parse(address), proxy)) as plain:
            plain.settimeout(TIMEOUT_SECONDS)
            if context is None:
                answer = _greet(plain, own)
            else:
                with context.wrap_socket(
                    plain, server_hostname=certificate_name(name, own.network)
                ) as secure:
                    check_peer(secure.getpeercert(True) or b"", name, listed)
                    answer = _greet(secure, own)
    except TimeoutError:
        return Probe(
            Finding(check, "warning", f"{address}: no answer within {TIMEOUT_SECONDS:g} s", HINT)
        )
    except ssl.SSLError as error:
        return Probe(Finding(check, "error", f"{address}: {describe_error(error)}", TLS_HINT))
    except (OSError, ValueError, GostaError) as error:
        has_proxy = isinstance(error, ProxyError | InputError)
        hint = "see HTTPS_PROXY, NO_PROXY and proxy in node.toml" if has_proxy else HINT
        return Probe(Finding(check, "warning", f"{address}: {describe_error(error)}", hint))
    if answer is None:
        return Probe(
            Finding(
                check,
                "error",
                f"{address}: it rejects this node",
                "has it accepted this member list?",
            )
        )
    mismatch = own.mismatch(answer)
    seconds, forwards = answer.note.removesuffix(FORWARDS), answer.note.endswith(FORWARDS)
    offset = float(seconds) - time.time() if seconds.isdigit() else None
    if mismatch is not None:
        hint = "take [network] from the invitation, and the same version of gosta"
        return Probe(Finding(check, "error", f"{address}: {mismatch[1]}", hint), offset, forwards)
    return Probe(
        Finding(check, "ok", f"{address}: reached, and it computes the same"), offset, forwards
    )


async def _open(address: addresses.Address, proxy: str) -> socket.socket:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        return await open_socket(address, proxy)


def _greet(connection: socket.socket, own: Greeting) -> Greeting | None:
    """Exchange greetings; None if the other end closes without one."""
    connection.sendall(encode_frame(own.encode()))
    content = b""
    try:
        while len(content) < 4 or len(content) < 4 + struct.unpack(">I", content[:4])[0]:
            if len(content) > 4 + MAX_GREETING_BYTES or not (more := connection.recv(4096)):
                return None
            content += more
    except ConnectionError:
        return None
    return Greeting.decode(content[4:])
