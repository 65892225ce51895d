"""Verifying a stopped network of private sums from the folders of all its nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gosta.errors import NetworkError, shorten
from gosta.estimation.estimand import Estimand
from gosta.net.audit.verify import Finding
from gosta.net.config import NODE_FILE, read_node
from gosta.net.deploy.folders import load_network
from gosta.net.deploy.site_log import find_missing, read_log
from gosta.net.node import lock
from gosta.net.node.source import fingerprint
from gosta.net.node.stopped import load_sum_peer
from gosta.net.node.sum_source import SumSource
from gosta.net.protocol import statements
from gosta.net.protocol.messages import Signed
from gosta.net.protocol.site import SumReport
from gosta.net.protocol.sums import SumPeer
from gosta.private.noise import SUM_BITS
from gosta.runtime.arrays import Floats
from gosta.sketches import Layout, StratumResult
from gosta.sketches.layout import Part
from gosta.statistics import STATISTICS, find
from gosta.views import numbers

Words = NDArray[np.uint64]


def load_sum_peers(folder: Path) -> dict[str, SumPeer]:
    network, peers = load_network(folder), {}
    for name in network.nodes:
        if lock.is_running(folder / name):
            raise NetworkError(f"{name} is running, and its journal changes; stop the network first")
        _, peers[name] = load_sum_peer(folder / name)
        if peers[name].identity.fingerprint != fingerprint(network.network, folder):
            raise NetworkError(f"[network] in {name}/node.toml and in network.toml differ; correct one of them")
    return peers


def verify_sums(folder: Path, peers: dict[str, SumPeer]) -> list[Finding]:
    """Return all findings about the last release of a network."""
    chains = _check_chains(folder, peers)
    reports = {name: peer.report for name, peer in peers.items() if peer.report is not None}
    if not reports:
        return [Finding("there is a release", None, "no node has one yet"), chains]
    latest = max(reports.values(), key=lambda one: (one.epoch, one.origin))
    findings = [_check_agreement(reports, latest, peers), chains, _check_parts(peers, latest)]
    return [*findings, *_check_rows(peers, latest)]


def _check_agreement(reports: dict[str, SumReport], latest: SumReport, peers: dict[str, SumPeer]) -> Finding:
    claim = "all participants report the same total, of the same sites"
    members = [name for name in latest.participants if name in peers]
    wrong = [name for name in members if name not in reports or _key(reports[name]) != _key(latest)]
    evidence = f"epoch {latest.epoch}, {len(latest.participants)} sites"
    evidence += f", left out: {shorten(latest.left_out)}" * bool(latest.left_out)
    return Finding(claim, not wrong, evidence + f"; another one at {shorten(wrong)}" * bool(wrong))


def _key(report: SumReport) -> tuple[object, ...]:
    return report.epoch, report.origin, report.participants, report.vector, report.layout


def _check_chains(folder: Path, peers: dict[str, SumPeer]) -> Finding:
    logs = {name: read_log(folder / name) for name in peers}
    missing = {name: find_missing(folder / name, read_node(folder / name / NODE_FILE), logs[name]) for name in logs}
    broken = [f"{name}: {why}" for name, why in missing.items() if why]
    evidence = f"{sum(map(len, logs.values())):,} entries" + f"; {'; '.join(broken)}" * bool(broken)
    return Finding("the log of every site is a chain without gaps", not broken, evidence)


def _check_parts(peers: dict[str, SumPeer], latest: SumReport) -> Finding:
    """Check the contributions of the last round, as far as the journals have them."""
    claim = "the contributions are signed by their sites, and their masks cancel in the total"
    total, wrong, unknown = np.zeros(len(latest.vector) // 8, dtype=np.uint64), [], []
    for name in latest.participants:
        peer = peers.get(name)
        own = _own_part(peer, latest) if peer is not None else None
        if peer is None or own is None:
            unknown.append(name)
            continue
        signed, part = own
        if not statements.verify(signed, name, peer.identity.network, peer.trust):
            wrong.append(name)
        total += statements.unpack(part.vector)
    if wrong:
        return Finding(claim, False, f"not signed by their sites: {shorten(wrong)}")
    if unknown:
        return Finding(claim, None, f"of another epoch, or not here: {shorten(unknown)}")
    is_same = statements.pack(total) == latest.vector
    return Finding(claim, is_same, f"{len(latest.participants)} contributions of {len(total):,} numbers")


def _own_part(peer: SumPeer, latest: SumReport) -> tuple[Signed, statements.Part] | None:
    """Return a node's contribution to the last round of a release, if that is its current epoch."""
    if peer.announcement[:2] != (latest.epoch, latest.origin):
        return None
    parts = [(id, one) for id, one in peer.slots.values() if isinstance(one, statements.Part) and one.home == peer.name]
    if not parts:
        return None
    id, part = max(parts, key=lambda pair: pair[1].round)
    return peer.pool.statements[id], part


def _check_rows(peers: dict[str, SumPeer], latest: SumReport) -> list[Finding]:
    """Compare the total and the results with the rows of all participants."""
    claim = "the total is the sum over the rows of all participants"
    changed = [name for name in latest.participants if name not in peers or _has_changed(peers[name])]
    if changed:
        return [Finding(claim, None, f"other rows than in the release, or not here: {shorten(changed)}")]
    x = [_source(peers[name]).x for name in latest.participants]
    layout = _layout(peers[latest.participants[0]], x, latest)
    if layout is None:
        return [Finding(claim, None, "the edges of the bins are not known: they are of a first round with noise")]
    plain = np.sum([layout.sums(own, latest.bits) for own in x], axis=0, dtype=np.uint64)
    total = statements.unpack(latest.vector)
    findings = []
    if latest.law == "none":
        findings.append(Finding(claim, bool(np.array_equal(plain, total)), f"{len(total):,} numbers, bit for bit"))
    else:
        noise = (total - plain).view(np.int64) / 2.0**latest.bits
        evidence = f"{latest.law} noise with a standard deviation of {float(np.std(noise)):.3g} in it"
        findings.append(Finding(f"{claim}, with noise", True, evidence))
    return [*findings, *_check_brackets(layout, np.concatenate(x), latest)]


def _has_changed(peer: SumPeer) -> bool:
    return peer.digest != peer.source.rows_digest


def _source(peer: SumPeer) -> SumSource:
    assert isinstance(peer.source, SumSource)
    return peer.source


def _layout(peer: SumPeer, x: list[Floats], latest: SumReport) -> Layout | None:
    """Return the layout of a release; the edges of its bins may be those of a first round."""
    layout: Layout | None = peer.source.layout
    assert layout is not None
    if layout.fingerprint != latest.layout:
        sums = np.sum([layout.sums(own, SUM_BITS) for own in x], axis=0, dtype=np.uint64)
        layout = layout.following(np.asarray(sums / 2.0**SUM_BITS))
    return layout if layout is not None and layout.fingerprint == latest.layout else None


def _check_brackets(layout: Layout, x: Floats, latest: SumReport) -> list[Finding]:
    claim = "the value over the participants' rows in one place lies in the bracket"
    wrong, checked, skipped = [], [], []
    parts = {part.title: part for part in layout.parts}
    for one in latest.results:
        title = one.statistic + f" ({one.stratum})" * bool(one.stratum)
        if why := _why_not(one):
            skipped.append(f"{title}: {why}")
            continue
        rows = x if not one.stratum else x[x[:, -1] == layout.strata.index(one.stratum)]
        exact = _exact(parts[one.statistic], layout.rows_of(parts[one.statistic], rows))
        if exact is None:
            skipped.append(f"{title}: only its sums give it a value")
            continue
        checked.append(f"{title} {numbers.number(exact.tolist()[:3])}")
        inside = all(low <= value <= high for low, value, high in zip(one.low, exact, one.high, strict=True))
        wrong += [] if inside else [title]
    found = []
    if checked:
        found.append(Finding(claim, not wrong, f"{shorten(checked)}" + f"; outside: {shorten(wrong)}" * bool(wrong)))
    return [*found, *([Finding(claim, None, "; ".join(skipped))] if skipped else [])]


def _why_not(one: StratumResult) -> str:
    """Return why a result cannot be compared with a value over the rows; empty if it can."""
    if not one.has_value:
        return "it has no value"
    if one.clipped:  # these count as the ends of the range: the bracket is for them
        return f"{numbers.count(round(one.clipped), 'row')} beyond the range"
    return "" if one.is_certified else "it has no bracket, because of noise or a random sketch"


def _exact(part: Part, x: Floats) -> Floats | None:
    """Return the value over rows in one place; None where only the sketch has one."""
    found = part.sketch.exact(x)
    if found is not None or part.sketch.name not in STATISTICS:
        return found
    statistic = find(part.sketch.name)
    options = {name: value for name, value in part.sketch.options.items() if name in statistic.options}
    return Estimand(statistic, x, options).value
