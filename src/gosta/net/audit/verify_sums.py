"""Verifying a stopped network of private sums from the folders of its nodes.

A claim holds, does not hold, or was not checked, with the reason. What is missing is never taken
for right: the folder of a participant that is elsewhere, the journal of an epoch that is over, a
file or settings that have changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec
import numpy as np

import gosta
from gosta.errors import GostaError, NetworkError, shorten
from gosta.net.audit import recompute
from gosta.net.audit.findings import MOST_NAMED, Finding, Problems, some
from gosta.net.audit.recompute import Recomputed, Release
from gosta.net.audit.verify_contributions import check_logs, check_statements
from gosta.net.config import HEAD_FILE, JOURNAL_FILE, NODE_FILE, read_node
from gosta.net.deploy.network import Network
from gosta.net.deploy.site_log import find_missing, read_log
from gosta.net.node.restore import load_peer
from gosta.net.node.source import fingerprint
from gosta.net.protocol import site, statements
from gosta.net.protocol.site import SumReport
from gosta.net.protocol.statements import Join
from gosta.net.protocol.sums import SumPeer
from gosta.runtime.arrays import Floats
from gosta.sketches.results import StratumResult, Values
from gosta.views import numbers

SECRET_BYTES = 32  # of a site's secret
LEAST_VALUES = 8  # different bytes of a secret: a random one has more
SAME_FIT = 1e-5  # standard errors by which coefficients differ that are the same but for rounding
LAST_DIGITS = 1e-9  # results that differ by less can be those of another processor
# Fields of reports that differ between nodes, or are compared apart.
APART = ("time", "left_out", "results", "rows_of", "version")

# Adds to the problems, and returns the evidence; None: it has nothing to say about this release.
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
            what = f"{name} is running, and its journal changes; stop the network first"
            raise NetworkError(what)
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

    `incomplete` says why a site's log cannot be all that it was, `unread` why its journal could not
    be read, and `unknown` what of the logs cannot be checked.
    """
    reports = [peer.report for peer in peers.values() if peer.report is not None]
    if not reports:
        missing = Finding("there is a release", None, "no node whose journal is here has one yet")
        unknown = [*unknown, *unread.values()] if peers or unread else ["no journal is here"]
        return [missing, _check_chains(peers, incomplete, unknown)]
    # Of two epochs with one number, nodes follow to that of the lower name.
    latest = min(reports, key=lambda report: (-report.epoch, report.origin))
    release = Release(latest, peers, unread)
    chains = _check_chains(peers, incomplete, [*unknown, *release.not_here])
    if what := _why_malformed(latest):
        return [Finding("there is a release", False, what), chains]
    found = [_run(claim, check, release) for claim, check in CLAIMS.items()]
    first, *others = [finding for finding in found if finding is not None]
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
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        problems.unknown.append(f"something is damaged ({what})")
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
        others = ", ".join(f"{count} {what}" for what, count in counts.items())
        return f"a report has {len(names)} participants, {others}"
    return ""


# Reports and logs.


def _check_reports(release: Release, problems: Problems) -> str:
    report = release.report
    problems.unknown += release.not_here
    for name, peer in release.peers.items():
        reported = release.reported_by(peer)
        if reported is not None:
            _compare_reports(release, peer, reported, problems)
        elif name in report.participants:
            is_known = any(entry.event == "release" for entry in release.entries(peer))
            where = problems.wrong if is_known else problems.unknown
            where.append(f"{name} has no report of epoch {report.epoch}")
        elif peer.report is not None:
            problems.unknown.append(f"{name} reports epoch {peer.report.epoch}")
    evidence = f"epoch {report.epoch}, {len(report.participants)} sites"
    left_out = [name for name in sorted(release.trust.members) if name not in report.participants]
    return f"{evidence}, left out: {', '.join(left_out[:MOST_NAMED])}" if left_out else evidence


def _compare_reports(
    release: Release, peer: SumPeer, reported: SumReport, problems: Problems
) -> None:
    report, name = release.report, peer.name
    compared = [field for field in reported.__struct_fields__ if field not in APART]
    fields = [field for field in compared if getattr(reported, field) != getattr(report, field)]
    same_results = _is_same(reported.results, report.results)
    if same_results is False:
        fields.append("results")
    problems.add_wrong(bool(fields), f"another {', '.join(fields)} at {name}")
    problems.add_unknown(same_results is None, f"the last digits of the results at {name}")
    members, join = peer.trust.members, peer.said(Join)
    is_same_list = join is not None and join.list_digest == peer.trust.list_digest
    # With another list, members may have been removed since.
    left_out = [member for member in reported.left_out if is_same_list or member in members]
    if left_out != [member for member in sorted(members) if member not in reported.participants]:
        where = problems.wrong if release.is_of(peer) and is_same_list else problems.unknown
        named = ", ".join(reported.left_out[:MOST_NAMED]) or "nobody"
        where.append(f"{name} says that {named} is left out")


def _is_same(found: Sequence[StratumResult], wanted: Sequence[StratumResult]) -> bool | None:
    """Return whether results are the same; None if only last digits differ."""
    values, others = _leaves(tuple(found)), _leaves(tuple(wanted))
    if len(values) != len(others):
        return False
    pairs = zip(values, others, strict=True)
    differing = [(a, b) for a, b in pairs if a != b and not (a != a and b != b)]
    if not differing:
        return True
    return None if all(_is_near(a, b) for a, b in differing) else False


def _is_near(a: object, b: object) -> bool:
    are_numbers = isinstance(a, float) and isinstance(b, float)
    return are_numbers and math.isclose(a, b, rel_tol=LAST_DIGITS)  # type: ignore[arg-type]


def _leaves(value: object) -> list[object]:
    """Return the numbers and texts in nested tuples, and how long these are."""
    if not isinstance(value, tuple):
        return [value]
    return [len(value), *(leaf for item in value for leaf in _leaves(item))]


def _check_chains(
    peers: Mapping[str, SumPeer], incomplete: Mapping[str, str], unknown: Sequence[str]
) -> Finding:
    wrong = [f"{name}: {incomplete[name]}" for name in peers if incomplete[name]]
    evidence = f"{sum(len(peer.log) for peer in peers.values()):,} entries"
    claim = "the log of every site is a chain without gaps"
    return Problems(wrong, [*unknown]).finding(claim, evidence)


def _check_settings(release: Release, problems: Problems) -> str:
    """Compare the report with the settings."""
    identities = {peer.identity[1:] for peer in release.peers.values()}
    problems.add_wrong(len(identities) > 1, "the nodes have different settings")
    (problems.unknown if release.has_other_settings else problems.wrong).extend(release.differences)
    law = release.report.law
    return f"layout {release.report.layout}, {'no' if law == 'none' else law} noise"


# Totals.


def _check_totals(release: Release, problems: Problems) -> str:
    problems.unknown += release.not_here
    for name, peer in release.here.items():
        if name in release.snapshots:
            continue
        if release.is_of(peer) and peer.rows is not None:
            problems.wrong.append(f"the snapshot of {name} is another one than it said")
        else:
            problems.unknown.append(f"{name} has its snapshot no more")
    for recomputed in release.recomputed:
        _check_rest(release, recomputed, problems)
    sizes = " and ".join(f"{recomputed.round.layout.size:,}" for recomputed in release.recomputed)
    is_exact = not (release.without_snapshot or problems.wrong)
    return f"{sizes} numbers" + (", bit for bit" if is_exact else "")


def _check_rest(release: Release, found: Recomputed, problems: Problems) -> None:
    """Check what a total has beyond the sites here: nothing, or sums of other sites."""
    missing, (number, layout, noise, _) = release.without_snapshot, found.round
    if found.total is None:
        problems.wrong.append(f"the total of round {number} cannot be one")
    elif missing:
        rest = found.rest.view(np.int64) / 2.0**noise.bits
        most = sum(site.largest_rows(release.trust, name) for name in missing)
        what = f"what remains in round {number} for {', '.join(missing[:MOST_NAMED])}"
        is_wrong = not layout.is_plausible(rest, noise.reach, most)
        problems.add_wrong(is_wrong, f"{what} is no sum over the rows that it may have")
    else:
        count = int(np.count_nonzero(found.rest))
        what = f"{count:,} of {layout.size:,} numbers of round {number} differ"
        problems.add_wrong(count > 0, what)


def _check_noise(release: Release, problems: Problems) -> str | None:
    if release.report.law == "none" and not release.source.settings.epsilon:
        return None
    missing, evidence = release.without_snapshot, list[str]()
    secrets = {name: release.peers[name].memory.secret for name in release.snapshots}
    _check_secrets(secrets, problems)
    what = "which cannot be told from its noise"
    problems.unknown += [f"the sums of {name}, {what}" for name in missing]
    for recomputed in () if missing else release.recomputed:
        noise = recomputed.round.noise
        sizes = np.abs((recomputed.rest + recomputed.noise).view(np.int64) / 2.0**noise.bits)
        mean, largest = sizes.mean().item(), sizes.max().item()
        low, high = recompute.allowed_mean(noise, len(sizes))
        number = recomputed.round.number
        evidence.append(
            f"round {number}: {noise.law}, its size {mean:.3g} on average "
            f"(allowed: {low:.3g} to {high:.3g}), {largest:.3g} at most ({noise.reach:.3g})"
        )
        is_of_law = low <= mean <= high and largest <= noise.reach
        what = f"the noise of round {number} is of another law"
        problems.add_wrong(not is_of_law, what)
    return "; ".join(evidence)


def _check_secrets(secrets: Mapping[str, bytes], problems: Problems) -> None:
    """Check that noise follows from random numbers which no two sites share."""
    for name, secret in secrets.items():
        is_random = len(secret) == SECRET_BYTES and len(set(secret)) >= LEAST_VALUES
        what = f"the secret of {name}, from which its noise follows, is not random"
        problems.add_wrong(not is_random, what)
    is_shared = len(set(secrets.values())) < len(secrets)
    problems.add_wrong(is_shared, "the noise of several sites follows from the same secret")


def _check_files(release: Release, problems: Problems) -> str:
    problems.unknown += release.not_here
    for name, peer in release.here.items():
        try:
            is_same = peer.memory.tag_of(peer.source.file_rows) == release.tags[name]
        except GostaError as error:
            problems.unknown.append(f"the file of {name}: {error}")
            continue
        what = f"the file of {name} has other rows than those contributed"
        problems.add_unknown(not is_same, what)
    count = len(release.report.participants) - len(problems.unknown)
    return f"{numbers.count(count, 'file')} compared"


def _check_bounds(release: Release, problems: Problems) -> str:
    trust, serial = release.trust, release.trust.serial
    trusts = [peer.trust for peer in release.peers.values()]
    lists = {member_list.list_digest for member_list in trusts if member_list.serial == serial}
    what = f"there are {len(lists)} member lists with number {serial}"
    problems.add_wrong(len(lists) > 1, what)
    problems.unknown += release.not_here
    for name in release.here:
        rows, most = release.snapshots.get(name), site.largest_rows(trust, name)
        if rows is None:
            problems.unknown.append(f"{name} has its snapshot no more")
        elif name not in trust.members:
            problems.unknown.append(f"{name} is no member any more")
        elif not release.joined_with_latest_list(name):
            what = f"{name} contributed by another member list than number {serial}"
            problems.unknown.append(what)
        else:
            what = f"{name} contributed {rows.rows:,} rows, and {most:,} are allowed"
            problems.add_wrong(rows.rows > most, what)
    return f"member list {serial}"


# Results.


def _check_results(release: Release, problems: Problems) -> str:
    report, last = release.report, release.rounds[-1]
    _check_min_cell(release, problems)
    totals = _reported_totals(release)
    is_last = last.layout.following(totals, report.min_cell) is None
    problems.add_wrong(not is_last, f"another round follows round {last.number}")
    if not last.layout.is_plausible(totals, last.noise.reach):
        problems.wrong.append("no rows have such a total")
        return ""
    wanted = _wanted_results(release, totals)
    for peer in release.peers.values():
        reported = release.reported_by(peer)
        same = True if reported is None else _is_same(reported.results, wanted)
        problems.add_wrong(same is False, f"other ones at {peer.name}")
        problems.add_unknown(same is None, f"the last digits of those at {peer.name}")
        if same is False and reported is not None and reported.version != gosta.__version__:
            problems.wrong.append(_other_version(reported.version))
    return f"{numbers.count(len(wanted), 'result')}, with cells of at least {report.min_cell}"


def _other_version(version: str) -> str:
    made = f"gosta {version}" if version else "an earlier version of gosta"
    return (
        f"{made} made the release and gosta {gosta.__version__} verifies it; rules of merging "
        "small cells can differ between them: verify with the version that made it"
    )


def _reported_totals(release: Release) -> Floats:
    last, vector = release.rounds[-1], release.report.vector
    if len(vector) != 8 * last.layout.size:
        wanted = f"{last.layout.size:,} numbers are needed"
        raise NetworkError(f"{wanted}, and the total has {len(vector) // 8:,}")
    return np.asarray(statements.unpack(vector).view(np.int64) / 2.0**last.noise.bits)


def _wanted_results(release: Release, totals: Floats) -> tuple[StratumResult, ...]:
    """Return the results of a total, as they are in a report."""
    _, layout, noise, _ = release.rounds[-1]
    least, level = release.report.min_cell, release.source.confidence_level
    found = layout.results(totals, least, noise.variance, level, noise.bits)
    return msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=tuple[StratumResult, ...])


def _check_min_cell(release: Release, problems: Problems) -> None:
    asked = list[int]()
    problems.unknown += [f"the least cell that {name} asks for" for name in release.absent]
    for name, peer in release.here.items():
        join = peer.said(Join) if release.is_of(peer) else None
        if join is None:
            problems.unknown.append(f"the least cell that {name} asked for")
            continue
        asked.append(join.min_cell)
        has_changed = peer.source.policy.min_cell != join.min_cell
        problems.add_unknown(has_changed, f"the policy of {name} has another min_cell now")
    most, reported = max(asked, default=0), release.report.min_cell
    is_all = len(asked) == len(release.report.participants)
    is_wrong = most > reported or (is_all and most < reported)
    problems.add_wrong(is_wrong, f"cells of {most} rows are asked for")


def _check_brackets(release: Release, problems: Problems) -> str | None:
    """Compare brackets with values over the rows in one place, where there are both."""
    if release.is_fit:
        return None
    problems.unknown += [f"the rows of {name} are not here" for name in release.without_snapshot]
    if problems.unknown:
        return ""
    checked = []
    for result, exact in release.results:
        if exact is not None and not _why_not(release, result, exact):
            checked.append(f"{_title(result)} {numbers.number(exact[:3])}")
            ends = zip(result.low, exact, result.high, strict=True)
            is_inside = all(
                low <= value <= high
                for low, value, high in ends
                if low is not None and value is not None and high is not None
            )
            problems.add_wrong(not is_inside, f"{_title(result)} is outside")
    return shorten(checked) if checked else None


def _check_coefficients(release: Release, problems: Problems) -> str | None:
    """Compare the coefficients of a model with those of the rows in one place."""
    if not release.is_fit or release.report.law != "none":
        return None
    problems.unknown += [f"the rows of {name} are not here" for name in release.without_snapshot]
    if problems.unknown:
        return ""
    largest = 0.0
    for result, exact in release.results[:1]:
        problems.add_wrong(result.has_value != (exact is not None), "only one of them has a fit")
        if exact is None or not result.has_value:
            continue
        errors = np.array(result.standard_errors, dtype=float)
        moved = np.array(result.value, dtype=float) - np.array(exact, dtype=float)
        largest = max(largest, float(np.abs(moved / errors).max()))
    what = f"they differ by {largest:.2g} standard errors"
    problems.add_wrong(not largest < SAME_FIT, what)
    return what


def _check_others(release: Release, problems: Problems) -> str | None:
    """Name the results whose brackets could not be compared with a value."""
    if release.without_snapshot or release.is_fit:
        return None
    problems.unknown += [
        f"{_title(result)}: {why}"
        for result, exact in release.results
        if (why := _why_not(release, result, exact))
    ]
    return "" if problems.unknown else None


def _title(result: StratumResult) -> str:
    return f"{result.statistic} ({result.stratum})" if result.stratum else result.statistic


def _why_not(release: Release, result: StratumResult, exact: Values | None) -> str:
    """Return why a result cannot be compared with a value over the rows; empty if it can."""
    if not result.has_value:
        return "it has no value"
    if release.report.law != "none":
        return "it has no bracket, because of noise"
    if result.clipped:  # they count as the ends of the range, and the bracket is for these
        return f"{numbers.count(round(result.clipped), 'row')} beyond the range"
    if not result.is_certified:
        return "it has no bracket, because its sketch is random"
    if exact is not None and len(exact) != len(result.value):
        return "groups of few rows were merged"
    return "only its sums give it a value" if exact is None else ""


SIGNED = "the contributions are signed by their sites, and their masks cancel in the total"
SUMMED = (
    "the total is the sum over the snapshots of the participants' rows, "
    "with the noise of their secrets"
)
IN_BRACKETS = "the value over the participants' rows in one place lies in the bracket"
CLAIMS: Mapping[str, Check] = {
    "all participants report the same release": _check_reports,
    "the logs tell of the release, and of the participants' contributions to it": check_logs,
    "the sums and their noise are those of the settings": _check_settings,
    SIGNED: check_statements,
    SUMMED: _check_totals,
    "the noise in the total has its law": _check_noise,
    "the rows contributed are those of the sites' files": _check_files,
    "no site contributed more rows than the member list allows": _check_bounds,
    "the results follow from the total": _check_results,
    IN_BRACKETS: _check_brackets,
    f"{IN_BRACKETS}, of the other results": _check_others,
    "the coefficients are those of the participants' rows in one place": _check_coefficients,
}
