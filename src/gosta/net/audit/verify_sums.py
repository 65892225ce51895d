"""Verifying a stopped network of private sums from the folders of its nodes.

A claim holds, does not hold, or was not checked, with the reason. What is missing is never taken for right: the folder
of a participant that is elsewhere, the journal of an epoch that is over, a file or settings that have changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec
import numpy as np

from gosta.errors import GostaError, NetworkError, shorten
from gosta.net.audit import recompute
from gosta.net.audit.findings import MOST_NAMED, Finding, Problems, some
from gosta.net.audit.recompute import Recomputed, Release
from gosta.net.audit.verify_contributions import check_statements
from gosta.net.config import HEAD_FILE, JOURNAL_FILE, NODE_FILE, read_node
from gosta.net.deploy.network import Network
from gosta.net.deploy.site_log import find_missing, read_log
from gosta.net.node.restore import load_peer
from gosta.net.node.source import fingerprint
from gosta.net.protocol import site, statements
from gosta.net.protocol.messages import Announcement
from gosta.net.protocol.records import LogEntry
from gosta.net.protocol.site import SumReport
from gosta.net.protocol.statements import Join, Part
from gosta.net.protocol.sums import SumPeer
from gosta.private.deviations import CHECKS
from gosta.runtime.arrays import Floats
from gosta.sketches.layout import StratumResult
from gosta.views import numbers

SECRET_BYTES, LEAST_VALUES = (
    32,
    8,
)  # of a site, and how many values its bytes have: a random one has more
LAST_DIGITS = 1e-9  # results that differ by less can be those of another processor
APART = (
    "time",
    "left_out",
    "results",
    "rows_of",
)  # fields of reports that differ between nodes, or are compared apart
ROW_FIELDS = ("rows", "people", "rows_per_person", "rows_of")  # of entries of logs


# Adds what it finds to the problems, and returns the evidence; None: it has nothing to say about this release.
Check = Callable[[Release, Problems], str | None]


def load_sum_peers(folder: Path) -> tuple[dict[str, SumPeer], dict[str, str]]:
    """Restore the nodes whose journals are here; return also why others cannot be restored."""
    network = Network.read(folder)
    peers: dict[str, SumPeer] = {}
    unread: dict[str, str] = {}
    for node in network.nodes_here():
        name = node.name
        if not (node.path / JOURNAL_FILE).is_file():
            continue
        if node.is_running:
            raise NetworkError(
                f"{name} is running, and its journal changes; stop the network first"
            )
        try:
            _, peer, journal = load_peer(node.path)
            journal.close()
        except (GostaError, msgspec.MsgspecError) as error:
            unread[name] = f"{name}: {error}"
            continue
        if peer.identity.fingerprint != fingerprint(network.task, folder):
            raise NetworkError(
                f"[network] in {name}/node.toml and in network.toml differ; correct one of them"
            )
        assert isinstance(peer, SumPeer)
        peers[name] = peer
    return peers, unread


def verify_sums(folder: Path) -> list[Finding]:
    """Return all findings about the last release of a network."""
    peers, unread = load_sum_peers(folder)
    logs = {name: read_log(folder / name) for name in peers}
    incomplete = {
        name: find_missing(folder / name, read_node(folder / name / NODE_FILE), logs[name])
        for name in peers
    }
    heads = [name for name, log in logs.items() if log and not (folder / name / HEAD_FILE).exists()]
    unknown = [f"{name}: {HEAD_FILE}, which says where its log ended, is missing" for name in heads]
    return check_release(peers, incomplete, unread, unknown)


def check_release(
    peers: Mapping[str, SumPeer],
    incomplete: Mapping[str, str],
    unread: Mapping[str, str] = MappingProxyType({}),
    unknown: Sequence[str] = (),
) -> list[Finding]:
    """Return all findings about the last release that nodes report.

    `incomplete` says why a site's log cannot be all that it was, `unread` why its journal could not be read, and
    `unknown` what of the logs cannot be checked.
    """
    reports = [peer.report for peer in peers.values() if peer.report is not None]
    if not reports:
        missing = Finding("there is a release", None, "no node whose journal is here has one yet")
        unknown = [*unknown, *unread.values()] if peers or unread else ["no journal is here"]
        return [missing, _check_chains(peers, incomplete, unknown)]
    latest = min(
        reports, key=lambda one: (-one.epoch, one.origin)
    )  # as nodes follow from one epoch to another
    release = Release(latest, peers, unread)
    chains = _check_chains(peers, incomplete, [*unknown, *release.not_here])
    if what := _why_malformed(latest):
        return [Finding("there is a release", False, what), chains]
    first, *others = [
        found
        for claim, check in CLAIMS.items()
        if (found := _run(claim, check, release)) is not None
    ]
    return [first, chains, *others]


def _run(claim: str, check: Check, release: Release) -> Finding | None:
    """Return what a check finds; what damaged content does not let it finish was not checked."""
    problems, evidence = Problems(), ""
    try:
        with np.errstate(all="ignore"):
            found = check(release, problems)
    except GostaError as error:
        problems.unknown.append(str(error))
    except Exception as error:
        problems.unknown.append(
            f"something is damaged ({type(error).__name__}: {' '.join(str(error).split())})"
        )
    else:
        if found is None:
            return None
        evidence = found
    return problems.finding(claim, evidence)


def _why_malformed(report: SumReport) -> str:
    """Return why no release has such a report; empty if one can have it."""
    names = report.participants
    if list(names) != sorted(set(names)) or len(names) < 2:
        return f"a report names these participants: {some(names) or 'none'}"
    counts = {"tags": len(report.tags), "keys": len(report.keys), "digests": len(report.parts)}
    if set(counts.values()) != {len(names)}:
        return f"a report has {len(names)} participants, {', '.join(f'{count} {what}' for what, count in counts.items())}"
    return ""


# Reports and logs.


def _check_reports(release: Release, problems: Problems) -> str:
    report = release.report
    problems.unknown += release.not_here
    for name, peer in release.peers.items():
        own = release.reported_by(peer)
        if own is not None:
            _compare_reports(release, peer, own, problems)
        elif name in report.participants:
            is_known = any(one.event == "release" for one in release.entries(peer))
            (problems.wrong if is_known else problems.unknown).append(
                f"{name} has no report of epoch {report.epoch}"
            )
        elif peer.report is not None:
            problems.unknown.append(f"{name} reports epoch {peer.report.epoch}")
    left_out = [name for name in sorted(release.trust.members) if name not in report.participants]
    evidence = f"epoch {report.epoch}, {len(report.participants)} sites"
    return evidence + f", left out: {', '.join(left_out[:MOST_NAMED])}" * bool(left_out)


def _compare_reports(release: Release, peer: SumPeer, own: SumReport, problems: Problems) -> None:
    report, name = release.report, peer.name
    fields = [
        one
        for one in own.__struct_fields__
        if one not in APART and getattr(own, one) != getattr(report, one)
    ]
    same_results = _is_same(own.results, report.results)
    fields += ["results"] * (same_results is False)
    problems.wrong += [f"another {', '.join(fields)} at {name}"] if fields else []
    problems.unknown += [f"the last digits of the results at {name}"] * (same_results is None)
    members, join = peer.trust.members, peer.said(Join)
    is_same_list = join is not None and join.list_digest == peer.trust.list_digest
    left_out = [
        one for one in own.left_out if is_same_list or one in members
    ]  # others have been removed since
    if left_out != [one for one in sorted(members) if one not in own.participants]:
        what = f"{name} says that {', '.join(own.left_out[:MOST_NAMED]) or 'nobody'} is left out"
        (problems.wrong if release.is_of(peer) and is_same_list else problems.unknown).append(what)


def _is_same(found: Sequence[StratumResult], wanted: Sequence[StratumResult]) -> bool | None:
    """Return whether results are the same; None if only last digits differ."""
    values, others = _leaves(tuple(found)), _leaves(tuple(wanted))
    if len(values) != len(others):
        return False
    differing = [
        (a, b) for a, b in zip(values, others, strict=True) if a != b and not (a != a and b != b)
    ]
    if not differing:
        return True
    are_near = [
        isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=LAST_DIGITS)
        for a, b in differing
    ]
    return None if all(are_near) else False


def _leaves(value: object) -> list[object]:
    """Return the numbers and texts in nested tuples, and how long these are."""
    if not isinstance(value, tuple):
        return [value]
    return [len(value), *(leaf for one in value for leaf in _leaves(one))]


def _check_chains(
    peers: Mapping[str, SumPeer], incomplete: Mapping[str, str], unknown: Sequence[str]
) -> Finding:
    problems = Problems(
        [f"{name}: {incomplete[name]}" for name in peers if incomplete[name]], [*unknown]
    )
    evidence = f"{sum(len(peer.log) for peer in peers.values()):,} entries"
    return problems.finding("the log of every site is a chain without gaps", evidence)


def _check_logs(release: Release, problems: Problems) -> str:
    problems.unknown += release.not_here
    problems.unknown += [
        f"the rows in the log of {name}" for name in release.here if name not in release.snapshots
    ]
    problems.unknown += [f"other settings: {release.differences[0]}"] if release.differences else []
    count = 0
    for name, peer in release.peers.items():
        if name in release.here or release.reported_by(peer) is not None:
            problems.wrong += [f"{name} has {what}" for what in _wrong_in_log(release, peer)]
            count += len(release.entries(peer))
    return f"{count:,} entries about epoch {release.report.epoch}"


def _wrong_in_log(release: Release, peer: SumPeer) -> Iterator[str]:
    entries, own = release.entries(peer), release.reported_by(peer)
    made = [one for one in entries if one.event == "contribution"]
    rounds = range(1, 1 + release.round_count) if peer.name in release.here else []
    order = [
        (one.event == "release", one.round)
        for one in entries
        if one.event in ("contribution", "release")
    ]
    others = {one.event for one in entries} - {"contribution", "release", "agreement"}
    if made and (others or order != sorted(order)):
        yield f"entries {', '.join(one.event for one in entries)}, which no site with a contribution has in this order"
    if [one.round for one in made] != list(rounds):
        yield f"entries of contributions to rounds {[one.round for one in made]}, by the report {list(rounds)}"
    released = [one for one in entries if one.event == "release"]
    wanted = [] if own is None else [(release.round_count, own.time, own.rows_of)]
    if [(one.round, one.time, one.rows_of) for one in released] != wanted:
        yield f"{len(released)} entries of the release, and none is of its report"
    for entry in [*made, *released]:
        if differing := _differing_fields(release, peer, entry):
            yield f"another {', '.join(differing)} in the entry of its {entry.event}"


def _differing_fields(release: Release, peer: SumPeer, entry: LogEntry) -> list[str]:
    """Return the fields of an entry that are not those which an honest node writes."""
    if release.differences or entry.round > release.round_count:
        wanted = msgspec.structs.replace(entry, participants=release.report.participants)
        if entry.round == release.round_count:
            wanted = msgspec.structs.replace(
                wanted, layout=release.report.layout, law=release.report.law
            )
    else:
        wanted = _wanted_entry(release, peer, entry)
    return [one for one in entry.__struct_fields__ if getattr(entry, one) != getattr(wanted, one)]


def _wanted_entry(release: Release, peer: SumPeer, entry: LogEntry) -> LogEntry:
    current, rows, names = (
        release.rounds[entry.round - 1],
        release.snapshots.get(peer.name),
        release.report.participants,
    )
    size, noise_id = 0, ""
    if entry.event == "contribution":
        vector = bytes(8 * (current.layout.size + CHECKS))
        size = len(
            msgspec.msgpack.encode(
                Part(*release.id, peer.name, bytes(16), current.number, bytes(16), vector)
            )
        )
        noise_id = release.noise_id(current).hex() if current.noise.law != "none" else ""
    announcement = Announcement(*release.id, "", b"")
    wanted = site.make_entry(
        peer.source,
        entry.event,
        entry.time,
        announcement,
        *current[:3],
        rows,
        names,
        entry.sent_to,
        size,
        "",
        noise_id,
    )
    unknown = (
        []
        if peer.name not in names
        else ROW_FIELDS
        if rows is None
        else []
        if release.is_of(peer)
        else ["rows_of"]
    )
    return msgspec.structs.replace(wanted, **{one: getattr(entry, one) for one in unknown})


def _check_settings(release: Release, problems: Problems) -> str:
    """Compare the report with the settings."""
    identities = {peer.identity[1:] for peer in release.peers.values()}
    problems.wrong += ["the nodes have different settings"] * (len(identities) > 1)
    (problems.unknown if release.has_other_settings else problems.wrong).extend(release.differences)
    law = release.report.law
    return f"layout {release.report.layout}, {'no' if law == 'none' else law} noise"


# Totals.


def _check_totals(release: Release, problems: Problems) -> str:
    problems.unknown += release.not_here
    for name, peer in release.here.items():
        if name not in release.snapshots:
            is_wrong = release.is_of(peer) and peer.rows is not None
            problems.wrong += [f"the snapshot of {name} is another one than it said"] * is_wrong
            problems.unknown += [f"{name} has its snapshot no more"] * (not is_wrong)
    for one in release.recomputed:
        _check_rest(release, one, problems)
    sizes = " and ".join(f"{one.round.layout.size:,}" for one in release.recomputed)
    return f"{sizes} numbers" + ", bit for bit" * (
        not release.without_snapshot and not problems.wrong
    )


def _check_rest(release: Release, found: Recomputed, problems: Problems) -> None:
    """Check what the total of a round has beyond the sites that are here: nothing, or sums of the other sites."""
    missing, (number, layout, noise, _) = release.without_snapshot, found.round
    if found.total is None:
        problems.wrong.append(f"the total of round {number} cannot be one")
    elif not missing:
        count = np.count_nonzero(found.rest)
        problems.wrong += [f"{count:,} of {layout.size:,} numbers of round {number} differ"] * bool(
            count
        )
    else:
        rest = found.rest.view(np.int64) / 2.0**noise.bits
        most = sum(site.largest_rows(release.trust, name) for name in missing)
        if not layout.is_plausible(rest, noise.reach, most):
            who = ", ".join(missing[:MOST_NAMED])
            problems.wrong.append(
                f"what remains in round {number} for {who} is no sum over the rows that it may have"
            )


def _check_noise(release: Release, problems: Problems) -> str | None:
    if release.report.law == "none" and not release.source.settings.epsilon:
        return None
    missing, found = release.without_snapshot, list[str]()
    _check_secrets(
        {name: release.peers[name].memory.secret for name in release.snapshots}, problems
    )
    problems.unknown += [
        f"the sums of {name}, which cannot be told from its noise" for name in missing
    ]
    for one in () if missing else release.recomputed:
        noise = one.round.noise
        sizes = np.abs((one.rest + one.noise).view(np.int64) / 2.0**noise.bits)
        mean, largest = float(sizes.mean()), float(sizes.max())
        low, high = recompute.allowed_mean(noise, len(sizes))
        text = f"round {one.round.number}: {noise.law}, its size {mean:.3g} on average (allowed: {low:.3g} to {high:.3g})"
        found.append(f"{text}, {largest:.3g} at most ({noise.reach:.3g})")
        is_of_law = low <= mean <= high and largest <= noise.reach
        problems.wrong += [f"the noise of round {one.round.number} is of another law"] * (
            not is_of_law
        )
    return "; ".join(found)


def _check_secrets(secrets: Mapping[str, bytes], problems: Problems) -> None:
    """Check that noise follows from random numbers which no two sites share."""
    weak = [
        name
        for name, secret in secrets.items()
        if len(secret) != SECRET_BYTES or len(set(secret)) < LEAST_VALUES
    ]
    problems.wrong += [
        f"the secret of {name}, from which its noise follows, is not random" for name in weak
    ]
    if len(set(secrets.values())) < len(secrets):
        problems.wrong.append("the noise of several sites follows from the same secret")


def _check_files(release: Release, problems: Problems) -> str:
    problems.unknown += release.not_here
    for name, peer in release.here.items():
        try:
            is_same = peer.memory.tag_of(peer.source.file_rows) == release.tags[name]
        except GostaError as error:
            problems.unknown.append(f"the file of {name}: {error}")
            continue
        problems.unknown += [f"the file of {name} has other rows than those contributed"] * (
            not is_same
        )
    return f"{numbers.count(len(release.report.participants) - len(problems.unknown), 'file')} compared"


def _check_bounds(release: Release, problems: Problems) -> str:
    trust = release.trust
    lists = {
        peer.trust.list_digest
        for peer in release.peers.values()
        if peer.trust.serial == trust.serial
    }
    problems.wrong += [f"there are {len(lists)} member lists with number {trust.serial}"] * (
        len(lists) > 1
    )
    problems.unknown += release.not_here
    for name in release.here:
        rows, most = release.snapshots.get(name), site.largest_rows(trust, name)
        if rows is None:
            problems.unknown.append(f"{name} has its snapshot no more")
        elif name not in trust.members:
            problems.unknown.append(f"{name} is no member any more")
        elif not release.joined_with_latest_list(name):
            problems.unknown.append(
                f"{name} contributed by another member list than number {trust.serial}"
            )
        elif rows.rows > most:
            problems.wrong.append(
                f"{name} contributed {rows.rows:,} rows, and {most:,} are allowed"
            )
    return f"member list {trust.serial}"


# Results.


def _check_results(release: Release, problems: Problems) -> str:
    report = release.report
    _check_min_cell(release, problems)
    totals = _reported_totals(release)
    if not release.rounds[-1].layout.is_plausible(totals, release.rounds[-1].noise.reach):
        problems.wrong.append("no rows have such a total")
        return ""
    wanted = _wanted_results(release, totals)
    for peer in release.peers.values():
        own = release.reported_by(peer)
        same = True if own is None else _is_same(own.results, wanted)
        problems.wrong += [f"other ones at {peer.name}"] * (same is False)
        problems.unknown += [f"the last digits of those at {peer.name}"] * (same is None)
    return f"{numbers.count(len(wanted), 'result')}, with cells of at least {report.min_cell}"


def _reported_totals(release: Release) -> Floats:
    layout, noise = release.rounds[-1].layout, release.rounds[-1].noise
    if len(release.report.vector) != 8 * layout.size:
        raise NetworkError(
            f"{layout.size:,} numbers are needed, and the total has {len(release.report.vector) // 8:,}"
        )
    return np.asarray(statements.unpack(release.report.vector).view(np.int64) / 2.0**noise.bits)


def _wanted_results(release: Release, totals: Floats) -> tuple[StratumResult, ...]:
    (_, layout, noise, _), least, level = (
        release.rounds[-1],
        release.report.min_cell,
        release.source.confidence_level,
    )
    found = layout.results(totals, least, noise.variance, level, noise.bits)
    return msgspec.msgpack.decode(
        msgspec.msgpack.encode(found), type=tuple[StratumResult, ...]
    )  # as it is in a report


def _check_min_cell(release: Release, problems: Problems) -> None:
    asked, count = [], len(release.report.participants)
    problems.unknown += [f"the least cell that {name} asks for" for name in release.absent]
    for name, peer in release.here.items():
        join = peer.said(Join) if release.is_of(peer) else None
        if join is None:
            problems.unknown.append(f"the least cell that {name} asked for")
            continue
        asked.append(join.min_cell)
        has_changed = peer.source.policy.min_cell != join.min_cell
        problems.unknown += [f"the policy of {name} has another min_cell now"] * has_changed
    most = max(asked, default=0)
    if most > release.report.min_cell or (len(asked) == count and most < release.report.min_cell):
        problems.wrong.append(f"cells of {most} rows are asked for")


def _check_brackets(release: Release, problems: Problems) -> str | None:
    """Compare brackets with values over the rows in one place, where there are both."""
    problems.unknown += [f"the rows of {name} are not here" for name in release.without_snapshot]
    if problems.unknown:
        return ""
    checked = []
    for one, exact in release.results:
        if exact is not None and not _why_not(release, one, exact):
            checked.append(f"{_title(one)} {numbers.number(exact[:3])}")
            inside = all(
                low <= value <= high
                for low, value, high in zip(one.low, exact, one.high, strict=True)
            )
            problems.wrong += [] if inside else [f"{_title(one)} is outside"]
    return shorten(checked) if checked else None


def _check_others(release: Release, problems: Problems) -> str | None:
    """Name the results whose brackets could not be compared with a value."""
    if release.without_snapshot:
        return None
    problems.unknown += [
        f"{_title(one)}: {why}"
        for one, exact in release.results
        if (why := _why_not(release, one, exact))
    ]
    return "" if problems.unknown else None


def _title(one: StratumResult) -> str:
    return one.statistic + f" ({one.stratum})" * bool(one.stratum)


def _why_not(release: Release, one: StratumResult, exact: tuple[float, ...] | None) -> str:
    """Return why a result cannot be compared with a value over the rows; empty if it can."""
    if not one.has_value:
        return "it has no value"
    if release.report.law != "none":
        return "it has no bracket, because of noise"
    if one.clipped:  # these count as the ends of the range: the bracket is for them
        return f"{numbers.count(round(one.clipped), 'row')} beyond the range"
    if not one.is_certified:
        return "it has no bracket, because its sketch is random"
    return "only its sums give it a value" if exact is None else ""


IN_BRACKETS = "the value over the participants' rows in one place lies in the bracket"
CLAIMS: Mapping[str, Check] = {
    "all participants report the same release": _check_reports,
    "the logs tell of the release, and of the participants' contributions to it": _check_logs,
    "the sums and their noise are those of the settings": _check_settings,
    "the contributions are signed by their sites, and their masks cancel in the total": check_statements,
    "the total is the sum over the snapshots of the participants' rows, with the noise of their secrets": _check_totals,
    "the noise in the total has its law": _check_noise,
    "the rows contributed are those of the sites' files": _check_files,
    "no site contributed more rows than the member list allows": _check_bounds,
    "the results follow from the total": _check_results,
    IN_BRACKETS: _check_brackets,
    f"{IN_BRACKETS}, of the other results": _check_others,
}
