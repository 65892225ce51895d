"""Changing a network's member list, and writing it to the folders of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from gosta.errors import InputError
from gosta.estimation.exchange import MAX_SAMPLE_ROWS
from gosta.net import members
from gosta.net.config import NODE_FILE, NetworkConfig, Task, is_for_one_row_each
from gosta.net.deploy import bundles
from gosta.net.deploy.authority import Authority, texts
from gosta.net.deploy.bundles import Bundle
from gosta.net.members import ACCEPTED_FILE, MEMBERS_FILE, Member, MemberList, SignedList
from gosta.net.node.rows import layout_of
from gosta.net.node.source import fingerprint
from gosta.private.settings import PrivateSettings
from gosta.runtime.files import write_atomically
from gosta.statistics.references import own_references
from gosta.views import numbers

MAX_FORWARDERS = 8  # of a node
MODE = "mode"  # key of the words on private sums
REQUESTS, BUNDLES = "requests", "bundles"  # folders in that of a network


def make_list(
    folder: Path, network: NetworkConfig, authority: Authority, changed: Mapping[str, Member]
) -> SignedList:
    """Return a signed list of the network's nodes, some of which are new or changed; the old list if it is the same.

    Keys that are no longer used are revoked.
    """
    old = members.read_list(folder / MEMBERS_FILE) if (folder / MEMBERS_FILE).exists() else None
    known = {one.name: one for one in old.list.members} if old else {}
    listed = []
    for name in network.nodes:
        if name not in changed and name not in known:
            raise InputError(
                f"{folder / MEMBERS_FILE} does not list {name}; make new keys with: gosta network certify"
            )
        listed.append(changed.get(name) or known[name])
    gone = {one.key for one in known.values()} - {one.key for one in listed}
    revoked = (*(old.list.revoked if old else ()), *sorted(gone))[-members.MAX_REVOKED :]
    task, trusted = network.network, texts(authority.trusted)
    digest, policy = fingerprint(task, folder), policy_of(task)
    made = MemberList(task.id, 1, digest, policy, tuple(listed), revoked, trusted)
    if old is None:
        return authority.sign(made)
    is_same = replace(made, serial=old.list.serial) == old.list
    is_same = is_same and old.certificate.encode() == authority.coordinator.cert
    return old if is_same else authority.sign(replace(made, serial=old.list.serial + 1))


def publish(
    folder: Path, network: NetworkConfig, signed: SignedList, authority: Authority
) -> list[Path]:
    """Write a list, as accepted, to the network's folder and to those of its nodes that are here.

    For sites that enrolled, write new bundles, and return their paths.
    """
    members.write_list(folder / MEMBERS_FILE, signed)
    written = []
    for name in network.nodes:
        if (folder / name / NODE_FILE).exists():
            install(folder / name, signed, authority.ca)
        elif (folder / REQUESTS / f"{name}.json").exists():
            written.append(folder / BUNDLES / f"{name}.json")
            written[-1].parent.mkdir(exist_ok=True)
            issued = folder / REQUESTS / f"{name}.pem"
            cert = (
                authority.certify(name, signed.list.keys[name])
                if authority.is_here
                else issued.read_bytes()
            )
            neighbours, forwarders = neighbours_of(network, name), forwarders_of(network, name)
            bundles.write(
                written[-1], Bundle(name, cert.decode("ascii"), neighbours, signed, forwarders)
            )
    return written


def withdraw(folder: Path, name: str) -> None:
    """Delete the request and the bundle of a site that is no longer a member."""
    for path in (
        *(folder / REQUESTS / f"{name}.{end}" for end in ("json", "csr", "pem")),
        folder / BUNDLES / f"{name}.json",
    ):
        path.unlink(missing_ok=True)


def neighbours_of(network: NetworkConfig, name: str) -> dict[str, str]:
    others = {a if b == name else b for a, b in network.edges if name in (a, b)}
    return {other: address for other, address in network.nodes.items() if other in others}


def forwarders_of(network: NetworkConfig, name: str) -> dict[str, str]:
    """Return the members that connect a node to its neighbours if neither end can be reached; else none."""
    if network.nodes[name] or all(neighbours_of(network, name).values()):
        return {}
    return dict(
        [(other, address) for other, address in network.nodes.items() if address][:MAX_FORWARDERS]
    )


def check_reachable(network: NetworkConfig) -> None:
    """Raise `InputError` if two neighbours only dial out and no member could connect them."""
    for a, b in network.edges if not any(network.nodes.values()) else ():
        why = f"{a} and {b} only dial out (host 'outbound'), and no member can be reached, which could connect them"
        raise InputError(f"{why}; at least one needs an address")


def install(folder: Path, signed: SignedList, ca: bytes) -> None:
    """Write an accepted list and the authorities' certificates into a node's folder."""
    write_atomically(folder / "ca.pem", ca)
    members.write_list(folder / ACCEPTED_FILE, signed)
    members.write_list(folder / MEMBERS_FILE, signed)


def declared_rows(task: Task, rows: int) -> int:
    """Return how many rows a site declares: in private sums a bound, as nobody is told how many it has."""
    return members.declared_bound(rows) if task.private else rows


def has_bounds(listed: MemberList) -> bool:
    """Return whether the rows that members declare are bounds, as in private sums."""
    return MODE in listed.policy


def row_words(rows: int, is_bound: bool) -> str:
    """Return in words what a site declares.

    >>> row_words(200, True), row_words(220, False), row_words(0, True)
    ('at most 200 rows', '220 rows', 'no number of rows')
    """
    if not rows:
        return "no number of rows"
    return "at most " * is_bound + numbers.count(rows, "row")


def policy_of(task: Task) -> dict[str, str]:
    """Return in words what a network computes and what its sites show each other."""
    if task.private is not None:
        return _clean(_private_words(task, task.private))
    level, files = task.confidence_level, [str(file) for file, _ in own_references(task.statistic)]
    statistic = (
        task.statistic
        if not files or "," in task.statistic
        else own_references(task.statistic)[0][1]
    )
    is_for_one_row = is_for_one_row_each(task.protocol)
    shown = (
        "the row of each site" if is_for_one_row else f"samples of at most {MAX_SAMPLE_ROWS} rows"
    )
    words = {
        "statistic": statistic
        + f" (Python code in {', '.join(files)}, which every site runs)" * bool(files),
        "protocol": task.protocol,
        "interval": "none" if level is None else f"{numbers.percent(level, 'g')}",
        "columns": ", ".join(task.columns),
        "score": task.score or "",
        "label": task.label or "",
        "classes": ", ".join(map(str, task.classes)),
        "incomplete rows": "left out" * task.drop_missing,
        "exchanges end": f"when nodes expect an error of at most {numbers.error(task.until)}"
        * bool(task.until),
        "shown to others": f"{shown}, as numbers that the statistic needs",
    }
    words |= {f"option {name}": str(value) for name, value in task.options.items()}
    return _clean(words)


def _private_words(task: Task, private: PrivateSettings) -> dict[str, str]:
    layout, level = layout_of(task), task.confidence_level
    noise = "none: all members know the exact totals, of which curves merge small bins"
    if private.epsilon is not None:
        noise = f"every release is ({private.epsilon:g}, {private.delta:g})-differentially private for each row"
        one, some = (
            "against each other site",
            f"if {private.colluding} of the sites combine what they know",
        )
        noise += f", also {one if private.colluding == 1 else some}" * (private.colluding > 0)
    words = {MODE: "private sums: no row leaves a site", **layout.describe()}
    words |= {
        "interval": "none" if level is None else f"{numbers.percent(level, 'g')}",
        "score": task.score or "",
        "label": task.label or "",
        "classes": ", ".join(map(str, task.classes)),
        "incomplete rows": "left out" * task.drop_missing,
        "noise": noise,
        "shown to others": f"{layout.numbers} masked sums a site; only their total over all sites in an epoch is known",
        "declared": "a bound of each site's rows, with room for half as many again, rounded up; it is public",
        "left out": f"sites that do not answer within {private.deadline_seconds:g} s",
    }
    return words | {f"option {name}": str(value) for name, value in task.options.items()}


def _clean(words: Mapping[str, str]) -> dict[str, str]:
    return {
        _printable(key)[:100]: _printable(value)[:1000] for key, value in words.items() if value
    }


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
