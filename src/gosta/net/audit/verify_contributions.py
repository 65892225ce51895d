"""Checking what the participants of a release of private sums said, and what their logs tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from gosta.net.audit import recompute
from gosta.net.audit.findings import Problems
from gosta.net.audit.recompute import Release
from gosta.net.protocol import site, statements
from gosta.net.protocol.messages import Announcement
from gosta.net.protocol.statements import Commit, Join, Part, Refusal, Roster, Slot
from gosta.net.protocol.sums import SumPeer
from gosta.private.deviations import CHECKS
from gosta.private.log import LogEntry
from gosta.private.noise import open_totals
from gosta.runtime.arrays import Words
from gosta.views import numbers

FALSE_ALARMS = 1e-9  # how often random masks are said not to be random
ROW_FIELDS = ("rows", "people", "rows_per_person", "rows_of")  # of entries of logs


def check_statements(release: Release, problems: Problems) -> str:
    """Check that all statements are signed and belong together, and that masks hide and cancel."""
    report = release.report
    problems.unknown += release.not_here
    for name, key in zip(report.participants, report.keys, strict=True):
        has_other = release.trust.keys.get(name) != key
        problems.add_unknown(has_other, f"{name} has another key in the member list of today")
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
    count = sum(peer.said(Part, release.round_count) is not None for peer in joined.values())
    return f"{numbers.count(count, 'contribution')} of {len(report.participants)} sites"


def _check_own(release: Release, peer: SumPeer, problems: Problems) -> None:
    """Check what a participant itself said, as its journal has it."""
    join = peer.said(Join)
    if join is None:
        problems.unknown.append(f"{peer.name} no longer has what it said when it joined")
        return
    _check_signatures(release, peer, problems)
    has_others = not join.key or join.snapshot != release.tags[peer.name]
    problems.add_wrong(has_others, f"{peer.name} joined with other rows than those reported")
    has_refused = peer.said(Refusal) is not None
    problems.add_wrong(has_refused, f"{peer.name} refused to contribute")


def _check_signatures(release: Release, peer: SumPeer, problems: Problems) -> None:
    name, network, trust = peer.name, peer.identity.network, release.trust
    join = peer.said(Join)
    has_same_keys = join is not None and join.list_digest == trust.list_digest
    where = problems.wrong if has_same_keys else problems.unknown
    for signed, statement in peer.all_said():
        if not statements.verify(signed, name, network, trust):
            where.append(f"{statement.__struct_config__.tag} of {name} is not signed with its key")
        is_other = (statement.epoch, statement.origin) != release.id
        problems.add_wrong(is_other, f"{name} has a statement of another epoch")


def _check_origin(release: Release, joined: Mapping[str, SumPeer], problems: Problems) -> None:
    """Compare the list of participants with what these say, also if its author takes no part."""
    name = release.report.origin
    origin = release.peers.get(name)
    roster = origin.said(Roster) if origin is not None and release.is_of(origin) else None
    if origin is None or roster is None:
        what = f"the list of participants, which {name} has signed, is not here"
        problems.unknown.append(what)
        return
    if name not in joined:
        _check_signatures(release, origin, problems)
    ids, id = dict(roster.participants), origin.slots[roster.slot][0]
    has_others = tuple(ids) != release.report.participants
    problems.add_wrong(has_others, f"{name} signed a list of other participants")
    for participant, peer in joined.items():
        join, part = peer.slots.get(Slot("join", participant)), peer.said(Part, 1)
        is_other_join = join is not None and ids.get(participant) != join[0]
        is_other_list = part is not None and part.roster != id
        what = f"{participant} joined otherwise than in the list of participants"
        problems.add_wrong(is_other_join, what)
        problems.add_wrong(
            is_other_list, f"{participant} contributed to another list of participants"
        )


def _check_keys(joined: Mapping[str, SumPeer], problems: Problems) -> None:
    keys = [join.key for peer in joined.values() if (join := peer.said(Join)) is not None]
    problems.add_wrong(len(set(keys)) < len(keys), "several sites joined with the same key")


def _check_round(
    release: Release, number: int, joined: Mapping[str, SumPeer], problems: Problems
) -> None:
    parts, commits = dict[str, Part](), dict[str, bytes]()
    for name, peer in joined.items():
        commit, part = peer.said(Commit, number), peer.said(Part, number)
        if commit is None or part is None:
            what = f"{name} no longer has its contribution to round {number}"
            problems.unknown.append(what)
            continue
        parts[name], commits[name] = part, peer.slots[commit.slot][0]
        _check_part(release, name, commit, part, problems)
    are_different = len({part.roster for part in parts.values()}) > 1
    problems.add_wrong(are_different, "they are for different lists of participants")
    vectors = {name: statements.unpack(part.vector) for name, part in parts.items()}
    if len(parts) == len(release.report.participants):
        digest = statements.digest_of(list(commits.values()))
        are_other = {part.commits for part in parts.values()} != {digest}
        what = f"contributions to round {number} are for other commitments"
        problems.add_wrong(are_other, what)
        _check_sum(release, number, vectors, problems)
    if not release.differences:
        for name in vectors.keys() & release.snapshots.keys():
            _check_mask(release, number, name, vectors[name], problems)


def _check_part(
    release: Release, name: str, commit: Commit, part: Part, problems: Problems
) -> None:
    digest, report, number = recompute.digest(part.vector), release.report, part.round
    is_other = (commit.digest, commit.roster) != (digest, part.roster)
    what = f"{name} contributed something else to round {number} than it had committed to"
    problems.add_wrong(is_other, what)
    reported = report.parts[report.participants.index(name)]
    is_unreported = number == release.round_count and reported != digest
    what = f"{name} has another contribution than the reported one"
    problems.add_wrong(is_unreported, what)


def _check_sum(
    release: Release, number: int, vectors: Mapping[str, Words], problems: Problems
) -> None:
    """Compare the sum of all contributions to a round, without pads, with the reported total."""
    report, is_last = release.report, number == release.round_count
    if not is_last and release.differences:
        what = f"the total of round {number} in other units: the settings have changed"
        problems.unknown.append(what)
        return
    total = report.vector if is_last else report.earlier_totals[number - 1]
    size = len(total) // 8
    if {len(vector) for vector in vectors.values()} != {size + CHECKS}:
        problems.wrong.append(f"contributions to round {number} have the wrong length")
        return
    noise = release.wanted_rounds[number - 1].noise
    exact, totals = open_totals([vector[:size] for vector in vectors.values()], noise)
    found = statements.pack(exact.view(np.uint64)) if is_last else totals.astype("<f8").tobytes()
    problems.add_wrong(found != total, f"they do not add up to the total of round {number}")


def _check_mask(
    release: Release, number: int, name: str, vector: Words, problems: Problems
) -> None:
    """Check that what a contribution has beyond sums and noise is random in each number."""
    sums, noise = release.own_sums(name, release.rounds[number - 1])
    if len(vector) != len(sums) + CHECKS:
        return  # which is wrong for another reason
    mask = vector[: len(sums)] - sums - noise
    least = np.uint64(2.0**64 * FALSE_ALARMS / len(mask))
    is_small = bool((np.minimum(mask, -mask) < least).any())
    is_repeated = len(np.unique(mask)) < len(mask)
    what = f"the contribution of {name} to round {number} is not masked"
    problems.add_wrong(is_small or is_repeated, what)


# Logs.


def check_logs(release: Release, problems: Problems) -> str:
    """Compare the sites' logs with the release."""
    unread = [name for name in release.here if name not in release.snapshots]
    problems.unknown += release.not_here
    problems.unknown += [f"the rows in the log of {name}" for name in unread]
    problems.unknown += [f"other settings: {difference}" for difference in release.differences[:1]]
    count = 0
    for name, peer in release.peers.items():
        if name in release.here or release.reported_by(peer) is not None:
            problems.wrong += [f"{name} has {what}" for what in _wrong_in_log(release, peer)]
            count += len(release.entries(peer))
    return f"{count:,} entries about epoch {release.report.epoch}"


def _wrong_in_log(release: Release, peer: SumPeer) -> Iterator[str]:
    entries, reported = release.entries(peer), release.reported_by(peer)
    made = [entry for entry in entries if entry.event == "contribution"]
    released = [entry for entry in entries if entry.event == "release"]
    order = [
        (entry.event, entry.round)
        for entry in entries
        if entry.event in ("contribution", "release")
    ]
    others = {entry.event for entry in entries} - {"contribution", "release", "agreement"}
    if made and (others or order != sorted(order)):
        events = ", ".join(entry.event for entry in entries)
        yield f"entries {events}, which no site with a contribution has in this order"
    rounds = list(range(1, 1 + release.round_count)) if peer.name in release.here else []
    if (found := [entry.round for entry in made]) != rounds:
        yield f"entries of contributions to rounds {found}, by the report {rounds}"
    wanted = [] if reported is None else [(release.round_count, reported.time, reported.rows_of)]
    if [(entry.round, entry.time, entry.rows_of) for entry in released] != wanted:
        yield f"{len(released)} entries of the release, and none is of its report"
    for entry in [*made, *released]:
        if differing := _differing_fields(release, peer, entry):
            yield f"another {', '.join(differing)} in the entry of its {entry.event}"


def _differing_fields(release: Release, peer: SumPeer, entry: LogEntry) -> list[str]:
    """Return the fields of an entry that are not those which an honest node writes."""
    report = release.report
    if not release.differences and entry.round <= release.round_count:
        wanted = _wanted_entry(release, peer, entry)
    elif entry.round != release.round_count:
        wanted = msgspec.structs.replace(entry, participants=report.participants)
    else:
        said = {"participants": report.participants, "layout": report.layout, "law": report.law}
        wanted = msgspec.structs.replace(entry, **said)
    return [
        field
        for field in entry.__struct_fields__
        if getattr(entry, field) != getattr(wanted, field)
    ]


def _wanted_entry(release: Release, peer: SumPeer, entry: LogEntry) -> LogEntry:
    current, rows = release.rounds[entry.round - 1], release.snapshots.get(peer.name)
    names = release.report.participants
    size, noise_id = 0, ""
    if entry.event == "contribution":
        vector = bytes(8 * (current.layout.size + CHECKS))
        part = Part(*release.id, peer.name, bytes(16), current.number, bytes(16), vector)
        size = len(msgspec.msgpack.encode(part))
        noise_id = "" if current.noise.law == "none" else release.noise_id(current).hex()
    wanted = site.make_entry(
        peer.source,
        entry.event,
        entry.time,
        Announcement(*release.id, "", b""),
        *current[:3],
        rows=rows,
        participants=names,
        sent_to=entry.sent_to,
        size=size,
        noise_id=noise_id,
    )
    unknown: Sequence[str] = ()
    if peer.name in names and rows is None:
        unknown = ROW_FIELDS
    elif peer.name in names and not release.is_of(peer):
        unknown = ("rows_of",)
    return msgspec.structs.replace(wanted, **{field: getattr(entry, field) for field in unknown})
