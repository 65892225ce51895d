"""Checking what the participants of a release of private sums said: joins, roster, commitments, contributions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gosta.net.audit import recompute
from gosta.net.audit.findings import Problems
from gosta.net.audit.recompute import Release
from gosta.net.protocol import statements
from gosta.net.protocol.statements import Commit, Join, Part, Refusal, Roster, Slot
from gosta.net.protocol.sums import SumPeer
from gosta.private.deviations import CHECKS
from gosta.private.noise import open_totals
from gosta.runtime.arrays import Words
from gosta.views import numbers

FALSE_ALARMS = 1e-9  # how often random masks are said not to be random


def check_statements(release: Release, problems: Problems) -> str:
    """Check the signatures of all statements, that they belong together, and that masks hide and cancel."""
    problems.unknown += release.not_here
    keys = zip(release.report.participants, release.report.keys, strict=True)
    other_keys = [name for name, key in keys if release.trust.keys.get(name) != key]
    problems.unknown += [
        f"{name} has another key in the member list of today" for name in other_keys
    ]
    joined = {}
    for name, peer in release.here.items():
        if release.is_of(peer):
            _check_own(release, peer, problems)
            joined[name] = peer
        else:
            problems.unknown.append(f"the journal of {name} has gone on to epoch {peer.epoch}")
    _check_origin(release, joined, problems)
    _check_keys(joined, problems)
    for number in range(1, 1 + release.round_count):
        _check_round(release, number, joined, problems)
    found = sum(peer.said(Part, release.round_count) is not None for peer in joined.values())
    return f"{numbers.count(found, 'contribution')} of {len(release.report.participants)} sites"


def _check_own(release: Release, peer: SumPeer, problems: Problems) -> None:
    """Check what a participant itself said, as its journal has it."""
    join = peer.said(Join)
    if join is None:
        problems.unknown.append(f"{peer.name} no longer has what it said when it joined")
        return
    _check_signatures(release, peer, join, problems)
    if not join.key or join.snapshot != release.tags[peer.name]:
        problems.wrong.append(f"{peer.name} joined with other rows than those reported")
    if peer.said(Refusal) is not None:
        problems.wrong.append(f"{peer.name} refused to contribute")


def _check_signatures(
    release: Release, peer: SumPeer, join: Join | None, problems: Problems
) -> None:
    has_same_keys = join is not None and join.list_digest == release.trust.list_digest
    for signed, one in peer.all_said():
        if not statements.verify(signed, peer.name, peer.identity.network, release.trust):
            what = f"{one.__struct_config__.tag} of {peer.name} is not signed with its key"
            (problems.wrong if has_same_keys else problems.unknown).append(what)
        if (one.epoch, one.origin) != release.id:
            problems.wrong.append(f"{peer.name} has a statement of another epoch")


def _check_origin(release: Release, joined: Mapping[str, SumPeer], problems: Problems) -> None:
    """Compare the list of participants with what these say, also if the site that made it takes no part."""
    name = release.report.origin
    origin = release.peers.get(name)
    roster = origin.said(Roster) if origin is not None and release.is_of(origin) else None
    if origin is None or roster is None:
        problems.unknown.append(f"the list of participants, which {name} has signed, is not here")
        return
    if name not in joined:
        _check_signatures(release, origin, origin.said(Join), problems)
    ids, id = dict(roster.participants), origin.slots[roster.slot][0]
    if tuple(ids) != release.report.participants:
        problems.wrong.append(f"{name} signed a list of other participants")
    for one, peer in joined.items():
        held = peer.slots.get(Slot("join", one))
        if held is not None and ids.get(one) != held[0]:
            problems.wrong.append(f"{one} joined otherwise than in the list of participants")
        part = peer.said(Part, 1)
        if part is not None and part.roster != id:
            problems.wrong.append(f"{one} contributed to another list of participants")


def _check_keys(joined: Mapping[str, SumPeer], problems: Problems) -> None:
    joins = [join for peer in joined.values() if (join := peer.said(Join)) is not None]
    if len({join.key for join in joins}) < len(joins):
        problems.wrong.append("several sites joined with the same key")


def _check_round(
    release: Release, number: int, joined: Mapping[str, SumPeer], problems: Problems
) -> None:
    parts, commits = dict[str, Part](), dict[str, bytes]()
    for name, peer in joined.items():
        commit, part = peer.said(Commit, number), peer.said(Part, number)
        if commit is None or part is None:
            problems.unknown.append(f"{name} no longer has its contribution to round {number}")
            continue
        parts[name], commits[name] = part, peer.slots[commit.slot][0]
        _check_part(release, name, commit, part, problems)
    if len({part.roster for part in parts.values()}) > 1:
        problems.wrong.append("they are for different lists of participants")
    if len(parts) == len(release.report.participants):
        if {part.commits for part in parts.values()} != {
            statements.digest_of(list(commits.values()))
        }:
            problems.wrong.append(f"contributions to round {number} are for other commitments")
        _check_sum(
            release,
            number,
            {name: statements.unpack(part.vector) for name, part in parts.items()},
            problems,
        )
    if not release.differences:
        for name in parts.keys() & release.snapshots.keys():
            _check_mask(release, number, name, statements.unpack(parts[name].vector), problems)


def _check_part(
    release: Release, name: str, commit: Commit, part: Part, problems: Problems
) -> None:
    digest, report = recompute.digest(part.vector), release.report
    if (commit.digest, commit.roster) != (digest, part.roster):
        problems.wrong.append(
            f"{name} contributed something else to round {part.round} than it had committed to"
        )
    if (
        part.round == release.round_count
        and report.parts[report.participants.index(name)] != digest
    ):
        problems.wrong.append(f"{name} has another contribution than the reported one")


def _check_sum(
    release: Release, number: int, vectors: Mapping[str, Words], problems: Problems
) -> None:
    """Compare the sum of all contributions to a round, without their pads, with the reported total."""
    report, is_last = release.report, number == release.round_count
    if not is_last and release.differences:
        problems.unknown.append(
            f"the total of round {number} in other units: the settings have changed"
        )
        return
    total = report.vector if is_last else report.first_total
    size = len(total) // 8
    if {len(vector) for vector in vectors.values()} != {size + CHECKS}:
        problems.wrong.append(f"contributions to round {number} have the wrong length")
        return
    noise = release.wanted_rounds[number - 1].noise
    exact, totals = open_totals([vector[:size] for vector in vectors.values()], noise)
    found = statements.pack(exact.view(np.uint64)) if is_last else totals.astype("<f8").tobytes()
    problems.wrong += [f"they do not add up to the total of round {number}"] * (found != total)


def _check_mask(
    release: Release, number: int, name: str, vector: Words, problems: Problems
) -> None:
    """Check that what a site's contribution has beyond its sums and noise is random in each number."""
    current = release.rounds[number - 1]
    sums, noise = release.own_sums(name, current)
    if len(vector) != len(sums) + CHECKS:
        return  # which is wrong for another reason
    mask = vector[: len(sums)] - sums - noise
    least = np.uint64(2.0**64 * FALSE_ALARMS / len(mask))
    if (np.minimum(mask, -mask) < least).any() or len(np.unique(mask)) < len(mask):
        problems.wrong.append(f"the contribution of {name} to round {number} is not masked")
