"""Verifying private sums: corrupted networks are never said to be right, and honest ones never to
be wrong.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import ports
import pytest
from fault_schedules import GRAPHS
from msgspec.structs import replace
from private_schedules import COMPLETE, FAULT_SECONDS, PARTS, QUIET_SECONDS, make_schedule, strict
from processes import gosta
from sum_network import OPEN_POLICY, SumNetwork

from gosta import __version__
from gosta.net.audit import recompute, verify_sums
from gosta.net.audit.findings import Finding
from gosta.net.members import Keyring
from gosta.net.node.restore import load_peer
from gosta.net.node.source import SumSource
from gosta.net.protocol import statements
from gosta.net.protocol.records import Released
from gosta.net.protocol.site import SumReport
from gosta.net.protocol.statements import Commit, Join, Part, Pool, Refusal, Roster, Slot
from gosta.net.protocol.sum_epoch import Contributor, Round, noise_context
from gosta.net.protocol.sums import SumPeer
from gosta.net.storage import contributions
from gosta.net.storage.contributions import Logged
from gosta.net.storage.journal import Journal
from gosta.private import masks
from gosta.private.deviations import CHECKS
from gosta.private.log import LogEntry
from gosta.private.noise import Noise, draw
from gosta.private.settings import FitSettings, PrivateSettings
from gosta.private.snapshots import take_snapshot

Words = np.ndarray[Any, Any]
SEEDS = int(os.environ.get("GOSTA_CORRUPTIONS", "1"))  # of each corruption of each network
CLAIMS = list(verify_sums.CLAIMS)
CHAINS = "the log of every site is a chain without gaps"
REPORTS, LOGGED, SET, SIGNED = CLAIMS[:4]
TOTAL, NOISE, FILES, BOUNDS, RESULTS, BRACKETS, OTHERS, COEFFICIENTS = CLAIMS[4:]
RNG = np.random.default_rng(77)
PAIRS = [RNG.random((rows, 2)).round(3) for rows in (25, 18, 40)]
SCORES = [np.column_stack([rows[:, 0], np.arange(len(rows)) % 2]) for rows in PAIRS]
GROUPS = [
    np.column_stack([rows[:, 0], np.arange(len(rows)) % 2, np.arange(len(rows)) // 2 % 2])
    for rows in PAIRS
]
LABEL: dict[str, Any] = {"score": "score", "label": "label", "classes": (0, 1)}
# rows, settings of private sums, and of the network
Mode = tuple[list[Words], dict[str, Any], dict[str, Any]]
MODES: dict[str, Mode] = {
    "plain": (PARTS, {}, {}),
    "edges": (PAIRS, {"find_edges": True}, {"statistic": "kendall-tau:first+second"}),
    "several": (
        PAIRS,
        {},
        {"statistic": "variance:first,kendall-tau:first+second,quantiles:second"},
    ),
    "strata": (
        GROUPS,
        {"strata": {"ward": (0, 1)}},
        {"statistic": "auc,kolmogorov-smirnov", **LABEL},
    ),
    "fit": (
        SCORES,
        {"ranges": {"score": (0.0, 1.0)}},
        {
            "statistic": "logistic",
            "fit": FitSettings(("score",)),
            "options": {"outcome": "label", "classes": (0, 1)},
        },
    ),
    "laplace": (SCORES, {"epsilon": 2.0}, {"statistic": "auc", **LABEL}),
    "gaussian": (PARTS, {"epsilon": 2.0, "delta": 1e-5}, {}),
    "noisy edges": (
        PAIRS,
        {"find_edges": True, "epsilon": 4.0},
        {"statistic": "kendall-tau:first+second"},
    ),
}


class Case(NamedTuple):
    """A network whose files can be corrupted."""

    peers: dict[str, SumPeer]
    logs: dict[str, list[Logged]]

    @property
    def report(self) -> SumReport:
        return next(peer.report for peer in self.peers.values() if peer.report is not None)

    @property
    def rounds(self) -> tuple[Round, ...]:
        return recompute.Release(self.report, self.peers).rounds

    def verify(self) -> list[Finding]:
        for name, peer in self.peers.items():
            peer.log = [one.entry for one in self.logs[name]]
        breaks = {name: contributions.find_break(self.logs[name]) for name in self.peers}
        return verify_sums.check_release(
            self.peers, {name: f"entry {at}" if at else "" for name, at in breaks.items()}
        )

    def outcomes(self) -> dict[str, bool | None]:
        return {one.claim: one.holds for one in self.verify()}


def network_of(mode: str, seed: int = 0) -> SumNetwork:
    parts, settings, others = MODES[mode]
    rows = [part if seed == 0 else part[seed:] for part in parts]
    known = {"bins": 8, "ranges": {"": (0.0, 1.0)}, "deadline_seconds": 2.0}
    chosen = PrivateSettings(**{**known, **settings})
    network = SumNetwork(
        rows,
        COMPLETE[: len(rows) * 2 - 3] if len(rows) > 3 else [(0, 1), (1, 2)],
        settings=chosen,
        **others,
    )
    network.clock.run(5.0)
    return network


@functools.cache
def honest(mode: str, seed: int = 0) -> Case:
    return case_of(network_of(mode, seed))


def case_of(network: SumNetwork) -> Case:
    peers = {name: network.restore_peer(name) for name in network.names}
    return Case(peers, {name: network.journals[name].contributions() for name in network.names})


def copied(case: Case) -> Case:
    """Return a case that can be changed, with the same sources."""
    peers = {name: copy.copy(peer) for name, peer in case.peers.items()}
    for peer in peers.values():
        peer.current, peer.memory, pool = (
            copy.copy(peer.current),
            copy.copy(peer.memory),
            peer.current.pool,
        )
        peer.current.pool = Pool()
        peer.current.pool.statements, peer.current.pool.slots = (
            dict(pool.statements),
            dict(pool.slots),
        )
    return Case(peers, dict(case.logs))


@pytest.mark.parametrize("mode", MODES)
def test_honest_networks(mode: str) -> None:
    """Everything is right where everything is there; with noise there is no bracket."""
    case = honest(mode)
    assert len(case.report.participants) == len(MODES[mode][0])
    for one in case.verify():
        is_noisy = one.claim == OTHERS and case.report.law != "none"
        assert one.holds is (None if is_noisy else True), one
        assert ("because of noise" in one.evidence) == is_noisy
        assert "not checked" not in one.evidence


# What a participant contributes: all others report the total with it.


def say(peer: SumPeer, new: statements.AnyStatement, signature: bytes | None = None) -> None:
    """Let a node have said something else."""
    old = peer.current.pool.slots.pop(new.slot)[0]
    del peer.current.pool.statements[old]
    signed = statements.sign(new, peer.identity.network, peer.trust)
    peer.current.pool.insert(signed if signature is None else signed._replace(signature=signature))


def change_reports(case: Case, change: Callable[[SumReport], SumReport], *names: str) -> None:
    for name in names or case.peers:
        report = case.peers[name].report
        assert report is not None
        case.peers[name].report = change(report)


def contribute(case: Case, name: str, words: Words) -> None:
    """Let a participant have added something to its sums, before its masks.

    All nodes report what follows.
    """
    (number, layout, noise, _), peer, report = case.rounds[-1], case.peers[name], case.report
    commit, part = peer.said(Commit, number), peer.said(Part, number)
    assert commit is not None
    assert part is not None
    masked = statements.unpack(part.vector)
    masked[: layout.size] += words
    vector = statements.pack(masked)
    say(peer, replace(commit, digest=recompute.digest(vector)))
    say(peer, replace(part, vector=vector))
    agree_on_commitments(case, number)
    total = statements.unpack(report.vector) + words
    found = list(report.results)
    with contextlib.suppress(ArithmeticError):  # of totals that no node would report
        totals = np.asarray(total.view(np.int64) / 2.0**noise.bits)
        found = layout.results(totals, report.min_cell, noise.variance, 0.95, noise.bits)
    parts = dict(zip(report.participants, report.parts, strict=True)) | {
        name: recompute.digest(vector)
    }
    new = {
        "vector": statements.pack(total),
        "results": tuple(found),
        "parts": tuple(parts.values()),
    }
    change_reports(case, lambda one: replace(one, **new))


def agree_on_commitments(case: Case, number: int) -> None:
    """Let all contributions to a round be for the commitments that there are."""
    commits = statements.digest_of(
        [peer.slots[Slot("commit", name, number)][0] for name, peer in case.peers.items()]
    )
    for peer in case.peers.values():
        part = peer.said(Part, number)
        assert part is not None
        say(peer, replace(part, commits=commits))


def own_noise(case: Case, name: str) -> Words:
    report, peer, current = case.report, case.peers[name], case.rounds[-1]
    sites = [
        Contributor(*one) for one in zip(report.participants, report.keys, report.tags, strict=True)
    ]
    context = noise_context(peer.identity.network, sites, current)
    return draw(current.noise, current.layout.size, masks.random_bytes(peer.memory.secret, context))


def own_sums(case: Case, name: str, rows: slice = slice(None)) -> Words:
    rows_of, (_, layout, noise, _) = case.peers[name].rows, case.rounds[-1]
    assert rows_of is not None
    return layout.sums(rows_of.x[rows], noise.bits)


def million_rows(case: Case, name: str, rng: np.random.Generator) -> Words:
    count = int(rng.integers(1, 9))
    return own_sums(case, name, slice(count)) * np.uint64(1_000_000 // count)


def removed_rows(case: Case, name: str, rng: np.random.Generator) -> Words:
    return np.uint64(0) - own_sums(case, name, slice(int(rng.integers(1, 9))))


def minus_one(case: Case, _name: str, rng: np.random.Generator) -> Words:
    words = np.zeros(case.rounds[-1].layout.size, dtype=np.uint64)
    words[rng.integers(len(words))] = 2**64 - (1 << case.report.bits)
    return words


def one_bit(case: Case, _name: str, rng: np.random.Generator) -> Words:
    words = np.zeros(case.rounds[-1].layout.size, dtype=np.uint64)
    words[rng.integers(len(words))] = 1 << int(rng.integers(64))
    return words


def half_noise(case: Case, name: str, _rng: np.random.Generator) -> Words:
    return (own_noise(case, name).view(np.int64) // 2 - own_noise(case, name).view(np.int64)).view(
        np.uint64
    )


def fresh_noise(case: Case, name: str, rng: np.random.Generator) -> Words:
    noise, size = case.rounds[-1].noise, case.rounds[-1].layout.size
    return draw(noise, size, rng.bytes) - own_noise(case, name)


CONTRIBUTIONS: list[Callable[[Case, str, np.random.Generator], Words]] = [
    million_rows,
    removed_rows,
    minus_one,
    one_bit,
    half_noise,
    fresh_noise,
    lambda case, name, rng: own_noise(case, name),  # twice as much
    lambda case, name, rng: np.uint64(0) - own_noise(case, name),  # none
    lambda case, name, rng: own_sums(case, name),  # all rows twice
    lambda case, name, rng: rng.integers(0, 1 << 63, case.rounds[-1].layout.size).astype(np.uint64),
]


# What a participant keeps.


def another_snapshot(case: Case, name: str, rng: np.random.Generator) -> None:
    peer = case.peers[name]
    assert peer.rows is not None
    x = peer.rows.x[rng.permutation(peer.rows.rows)][: int(rng.integers(1, peer.rows.rows))]
    peer.memory.rows = take_snapshot(x, case.rounds[0].layout, None, peer.rows.time)


def another_secret(case: Case, name: str, rng: np.random.Generator) -> None:
    case.peers[name].memory.secret = rng.bytes(32)


def another_signature(case: Case, name: str, rng: np.random.Generator) -> None:
    own = case.peers[name].all_said()
    signed, statement = own[int(rng.integers(len(own)))]
    place = int(rng.integers(len(signed.signature)))
    flipped = bytes(
        [*signed.signature[:place], signed.signature[place] ^ 1, *signed.signature[place + 1 :]]
    )
    say(case.peers[name], statement, flipped)


def another_part(case: Case, name: str, rng: np.random.Generator) -> None:
    """A contribution that is signed, but is none of the release."""
    part = case.peers[name].said(Part, int(rng.integers(1, 1 + len(case.rounds))))
    assert part is not None
    say(case.peers[name], replace(part, vector=rng.bytes(len(part.vector))))


def another_commit(case: Case, name: str, rng: np.random.Generator) -> None:
    commit = case.peers[name].said(Commit, int(rng.integers(1, 1 + len(case.rounds))))
    assert commit is not None
    say(case.peers[name], replace(commit, digest=rng.bytes(32)))


def another_join(case: Case, name: str, rng: np.random.Generator) -> None:
    join = case.peers[name].said(Join)
    assert join is not None
    say(case.peers[name], replace(join, snapshot=rng.bytes(16)))


def another_roster(case: Case, _name: str, _rng: np.random.Generator) -> None:
    peer = case.peers[case.report.origin]
    roster = peer.said(Roster)
    assert roster is not None
    say(peer, replace(roster, participants=roster.participants[:-1]))


STATES = [
    another_snapshot,
    another_secret,
    another_signature,
    another_part,
    another_commit,
    another_join,
    another_roster,
]


# Logs: with and without hashes that fit.


def chained(entries: list[LogEntry]) -> list[Logged]:
    return contributions.extend(None, entries)


def dropped_entry(case: Case, name: str, rng: np.random.Generator) -> None:
    log = case.logs[name]
    # that the last one is gone shows only beside the journal
    place = int(rng.integers(len(log) - 1))
    case.logs[name] = log[:place] + log[place + 1 :]


def dropped_and_chained(case: Case, name: str, rng: np.random.Generator) -> None:
    entries = [one.entry for one in case.logs[name]]
    del entries[int(rng.integers(len(entries)))]
    case.logs[name] = chained(entries)


def changed_fields(entry: LogEntry, rng: np.random.Generator) -> LogEntry:
    fields: dict[str, Any] = {
        "epoch": entry.epoch + 1,
        "origin": "node-7",
        "statistics": "auc:another",
        "columns": ("another",),
        "bins": entry.bins + 1,
        "layout": "0" * 16,
        "rows": entry.rows + int(rng.integers(1, 1000)),
        "people": 5,
        "law": "laplace" if entry.law != "laplace" else "gaussian",
        "epsilon": entry.epsilon + 0.5,
        "delta": entry.delta + 1e-6,
        "scale": entry.scale + 1.0,
        "participants": entry.participants[1:],
        "noise": "00" * 16,
        "rows_of": entry.rows_of + 1.0,
        "rows_per_person": 2,
        "event": "suppressed",
        "round": 3 - entry.round,
    }
    field = str(rng.choice(sorted(fields)))
    return replace(entry, **{field: fields[field]})


def changed_entry(case: Case, name: str, rng: np.random.Generator) -> None:
    place = int(rng.integers(len(case.logs[name])))
    one = case.logs[name][place]
    text = msgspec.json.encode(changed_fields(one.entry, rng)).decode()
    case.logs[name] = [
        *case.logs[name][:place],
        one._replace(text=text),
        *case.logs[name][place + 1 :],
    ]


def changed_and_chained(case: Case, name: str, rng: np.random.Generator) -> None:
    entries = [one.entry for one in case.logs[name]]
    place = int(rng.integers(len(entries)))
    entries[place] = changed_fields(entries[place], rng)
    case.logs[name] = chained(entries)


LOGS = [
    dropped_entry,
    dropped_and_chained,
    changed_entry,
    changed_and_chained,
    changed_and_chained,
    changed_and_chained,
]


# Reports: at one node, or at all.


def changed_report(
    field: str, case: Case, rng: np.random.Generator
) -> Callable[[SumReport], SumReport]:
    report = case.report
    names, bit = report.participants, 1 << int(rng.integers(8))
    place = int(rng.integers(len(report.results)))
    result = report.results[place]

    def with_result(**changes: Any) -> tuple[Any, ...]:
        return (*report.results[:place], result._replace(**changes), *report.results[place + 1 :])

    def flipped(content: bytes) -> bytes:
        at = int(rng.integers(len(content)))
        return bytes([*content[:at], content[at] ^ bit, *content[at + 1 :]])

    law = "gaussian" if report.law != "gaussian" else "laplace"
    new: dict[str, Any] = {
        "epoch": report.epoch + int(rng.choice([-1, 1])),
        "origin": next(name for name in names if name != report.origin),
        "participants": (*names[:-1], "node-7"),
        "fewer participants": names[:-1],
        "tags": (*report.tags[:-1], rng.bytes(16)),
        "keys": (*report.keys[:-1], rng.bytes(32)),
        "fewer tags": report.tags[:-1],
        "parts": (rng.bytes(32), *report.parts[1:]),
        "vector": flipped(report.vector),
        "shorter vector": report.vector[: int(rng.integers(len(report.vector)))],
        "earlier_totals": tuple(map(flipped, report.earlier_totals))
        or (bytes(8 * case.rounds[0].layout.size),),
        "no earlier_totals": (),
        "layout": "0123456789abcdef",
        "bits": report.bits + 1,
        "law": law,
        "no law": "none",
        "epsilon": report.epsilon + 0.25,
        "delta": report.delta + 1e-9,
        "min_cell": report.min_cell + int(rng.integers(1, 9)),
        "value": with_result(value=tuple(1.01 * one + 0.01 for one in result.value)),
        "low": with_result(low=tuple(one - 0.125 for one in result.low)),
        "high": with_result(high=tuple(one + 0.125 for one in result.high)),
        "interval": with_result(interval=(-3.0, 4.0)),
        "rows": with_result(rows=result.rows + 1),
        "clipped": with_result(clipped=result.clipped + 1),
        "has_value": with_result(has_value=not result.has_value),
        "is_certified": with_result(is_certified=not result.is_certified),
        "standard_error": with_result(standard_error=1e-9),
        "another bracket": with_result(
            low=tuple(one + 0.1 for one in result.high),
            high=tuple(one + 0.2 for one in result.high),
        ),
        "NaN": with_result(value=(float("nan"),)),
        "no results": (),
        "left_out": ("node-9",),
        "time": report.time + 1.0,
        "rows_of": report.rows_of - 1.0,
    }
    value, name = new[field], field.split()[-1]
    name = "results" if field in RESULT_FIELDS else name
    return lambda one: replace(one, **{name: value})


RESULT_FIELDS = [
    "value",
    "low",
    "high",
    "interval",
    "rows",
    "clipped",
    "has_value",
    "is_certified",
    "standard_error",
]
RESULT_FIELDS += ["NaN", "another bracket"]
OTHER_FIELDS = [
    "epoch",
    "origin",
    "participants",
    "fewer participants",
    "tags",
    "fewer tags",
    "parts",
    "vector",
]
OTHER_FIELDS += [
    "shorter vector",
    "earlier_totals",
    "no earlier_totals",
    "layout",
    "bits",
    "law",
    "no law",
    "epsilon",
    "delta",
]
OTHER_FIELDS += ["min_cell", "no results", "left_out", "time", "rows_of"]


class Corrupted(NamedTuple):
    what: str
    case: Case


def corrupted(mode: str, rng: np.random.Generator) -> Iterator[Corrupted]:
    """Yield corrupted copies of a network."""
    names = sorted(honest(mode).peers)

    def fresh() -> tuple[Case, str]:
        return copied(honest(mode)), str(rng.choice(names))

    for kind in CONTRIBUTIONS:
        case, name = fresh()
        words = kind(case, name, rng)
        if words.any():  # there is no noise without a law of noise
            contribute(case, name, words)
            yield Corrupted(f"{name} contributed {kind.__name__}", case)
    for change in [*STATES, *LOGS]:
        case, name = fresh()
        change(case, name, rng)
        yield Corrupted(f"{name}: {change.__name__}", case)
    for field in [*OTHER_FIELDS, *RESULT_FIELDS]:
        for who in ([str(rng.choice(names))], names):
            case, _ = fresh()
            other = changed_report(field, case, rng)
            if msgspec.msgpack.encode(other(case.report)) != msgspec.msgpack.encode(case.report):
                change_reports(case, other, *who)
                yield Corrupted(f"{field} at {', '.join(who)}", case)
    foreign = honest(mode, 1).report
    for who in ([str(rng.choice(names))], names):
        case, _ = fresh()
        change_reports(case, lambda _: foreign, *who)
        yield Corrupted(f"another network's report at {', '.join(who)}", case)


@pytest.mark.parametrize("mode", MODES)
def test_corrupted_networks_are_not_right(mode: str) -> None:
    count = 0
    for seed in range(SEEDS):
        for what, case in corrupted(mode, np.random.default_rng(seed)):
            found = case.outcomes()
            assert False in found.values(), f"{what} (seed {seed}): {case.verify()}"
            if "contributed" in what:
                assert found[TOTAL] is False
                assert found.get(NOISE, False) is False or "million" not in what
                assert set(list(found.values())[:5]) == {True}, "nothing else shows it"
            if what.partition(" at ")[0] in RESULT_FIELDS:
                assert found[RESULTS] is False
            if what.startswith("another bracket at node-0, ") and case.report.law == "none":
                assert found[RESULTS if mode == "fit" else BRACKETS] is False
            count += 1
    assert count >= 70 * SEEDS


@pytest.mark.parametrize(("version", "named"), [("0.0.9", "gosta 0.0.9"), ("", "an earlier")])
def test_other_results_of_another_version_name_both(version: str, named: str) -> None:
    case = copied(honest("plain"))
    first, *others = case.report.results
    results = (first._replace(rows=first.rows + 1), *others)
    change_reports(case, lambda one: replace(one, results=results, version=version))
    (finding,) = [one for one in case.verify() if one.claim == RESULTS]
    assert finding.holds is False
    assert f"{named} " in finding.evidence
    assert f"gosta {__version__} verifies it" in finding.evidence


@pytest.mark.parametrize("mode", ["edges", "noisy edges"])
def test_a_false_first_round_shows(mode: str) -> None:
    """Also where the edges of bins that follow from it are the same."""
    rng, same_edges = np.random.default_rng(3), 0
    for _ in range(10):
        case, name = copied(honest(mode)), "node-1"
        (_, layout, noise, _), peer = case.rounds[0], case.peers[name]
        commit, part = peer.said(Commit, 1), peer.said(Part, 1)
        assert commit is not None
        assert part is not None
        masked = statements.unpack(part.vector)
        totals = np.frombuffer(case.report.earlier_totals[0], dtype="<f8").copy()
        moved = np.zeros(layout.size, dtype=np.int64)
        moved[int(rng.integers(layout.size - 1)) + np.arange(2)] = 1, -1  # a row of the next bin
        masked[: layout.size] += (moved << noise.bits).view(np.uint64)
        totals += moved
        vector = statements.pack(masked)
        say(peer, replace(commit, digest=recompute.digest(vector)))
        say(peer, replace(part, vector=vector))
        earlier = (totals.tobytes(),)
        change_reports(case, lambda one, new=earlier: replace(one, earlier_totals=new))  # type: ignore[misc]
        found = case.outcomes()
        assert False in found.values()
        same_edges += found[SET] is True and found[TOTAL] is False
    assert same_edges > 0


def without(case: Case, *names: str) -> Case:
    """Return a case where the folders of some sites are elsewhere."""
    found = copied(case)
    for name in names:
        del found.peers[name]
    return found


@pytest.mark.parametrize("mode", MODES)
def test_what_is_not_here_is_not_checked(mode: str) -> None:
    """Nor is it said to be wrong, unless no rows of the missing sites can have what remains."""
    rng = np.random.default_rng(5)
    for name in sorted(honest(mode).peers):
        found = without(honest(mode), name).outcomes()
        assert False not in found.values(), found
        assert [claim for claim, holds in found.items() if holds] == [SET], found
        for kind in CONTRIBUTIONS:
            case = copied(honest(mode))
            words = kind(case, name, rng)
            if words.any():
                contribute(case, name, words)
                assert without(case, name).outcomes()[TOTAL] is not True
        case = copied(honest(mode))
        contribute(case, name, million_rows(case, name, rng))
        assert without(case, name).outcomes()[TOTAL] is False
    nobody = without(honest(mode), *honest(mode).peers)
    assert [one.holds for one in nobody.verify()] == [None, None]


@pytest.mark.parametrize(("rows", "within_bound"), [(3000, True), (100_500, False)])
def test_rows_that_do_not_exist_show_in_the_file_or_the_bound(
    rows: int, within_bound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site that contributes invented rows, keeps them as its snapshot, and does all else as it
    should.
    """
    network = SumNetwork([*PARTS[:2], RNG.random((rows, 1))], [(0, 1), (1, 2)], declared=0)
    with monkeypatch.context() as lax:
        lax.setattr("gosta.net.protocol.site.UNDECLARED_ROWS", 10**6)
        network.clock.run(5.0)
    network.parts["node-2"] = PARTS[2]
    found = case_of(network).outcomes()
    assert (found.pop(FILES), found.pop(BOUNDS), set(found.values())) == (
        None,
        within_bound,
        {True},
    )


def test_a_journal_that_has_gone_on() -> None:
    network = network_of("plain")
    network.crash("node-3", 60.0)
    network.change("node-1", np.concatenate([PARTS[1], PARTS[1]]))
    network.clock.run(6.5)
    case = case_of(network)
    assert {peer.epoch for name, peer in case.peers.items() if name != "node-3"} == {2}
    found = case.outcomes()
    assert False not in found.values()
    assert {claim for claim, holds in found.items() if holds is None} == {
        SIGNED,
        FILES,
        BOUNDS,
        RESULTS,
    }
    assert "the journal of node-0 has gone on to epoch 2" in case.verify()[4].evidence
    assert "the file of node-1 has other rows than those contributed" in str(case.verify())


Change = Callable[[Case, SumPeer], None]


def forget(*kinds: tuple[type[statements.AnyStatement], int]) -> Change:
    """Let a journal lack some of what its node said."""

    def change(_: Case, peer: SumPeer) -> None:
        for kind, number in kinds:
            slot = statements.Slot(str(kind.__struct_config__.tag), peer.name, number)
            del peer.current.pool.statements[peer.current.pool.slots.pop(slot)[0]]

    return change


def retell(kind: type[Any], number: int = 0, **changes: Any) -> Change:
    """Let a node have said something else, with its signature."""

    def change(_: Case, peer: SumPeer) -> None:
        found: Any = peer.said(kind, number)
        say(peer, replace(found, **changes))

    return change


def retold_epoch(_: Case, peer: SumPeer) -> None:
    part = peer.said(Part, 1)
    assert part is not None
    say(peer, replace(part, epoch=part.epoch + 1))


def lengthened(case: Case, peer: SumPeer) -> None:
    part, commit = peer.said(Part, 1), peer.said(Commit, 1)
    assert part is not None
    assert commit is not None
    vector = part.vector + bytes(8)
    say(peer, replace(part, vector=vector))
    say(peer, replace(commit, digest=recompute.digest(vector)))
    place = case.report.participants.index(peer.name)
    parts = (*case.report.parts[:place], recompute.digest(vector), *case.report.parts[place + 1 :])
    change_reports(case, lambda one: replace(one, parts=parts))


def unlike_the_total(case: Case, peer: SumPeer) -> None:
    """A contribution that is reported, with a total to which it does not belong."""
    report, words = case.report, np.ones(case.rounds[-1].layout.size, dtype=np.uint64)
    contribute(case, peer.name, words)
    change_reports(case, lambda one: replace(one, vector=report.vector, results=report.results))


def of_others(case: Case, _: SumPeer) -> None:
    another_roster(case, "", np.random.default_rng(0))


def without_a_number(case: Case, _: SumPeer) -> None:
    change_reports(case, lambda one: replace(one, vector=one.vector[:-8]))


def of_no_rows(case: Case, _: SumPeer) -> None:
    change_reports(case, lambda one: replace(one, vector=one.vector[:-1] + b"\x7f"))


def with_list(_: Case, peer: SumPeer, **changes: Any) -> None:
    trust = peer.trust
    assert isinstance(trust, Keyring)
    peer.trust = Keyring(None, replace(trust.list, **changes))


def without_member(case: Case, peer: SumPeer) -> None:
    trust = peer.trust
    assert isinstance(trust, Keyring)
    members = tuple(one for one in trust.list.members if one.name != peer.name)
    for one in case.peers.values():
        with_list(case, one, serial=2, members=members)


def without_column(_: Case, peer: SumPeer) -> None:
    source = peer.source
    assert isinstance(source, SumSource)
    peer.source = dataclasses.replace(
        source, data=dataclasses.replace(source.data, columns={"other": np.ones(3)})
    )


def nearly_the_same(_: Case, peer: SumPeer) -> None:
    assert peer.report is not None
    first, *others = peer.report.results
    value = tuple(one * (1 + 1e-13) for one in first.value)
    peer.report = replace(peer.report, results=(first._replace(value=value), *others))


def without_rows(_: Case, peer: SumPeer) -> None:
    peer.memory.rows = None


def another_identity(_: Case, peer: SumPeer) -> None:
    peer.identity = peer.identity._replace(fingerprint="another")


def unmasked(case: Case, _: SumPeer) -> None:
    """Contributions that are the plain sums, but for one unit, consistent in all else."""
    digests = {}
    for k, (name, one) in enumerate(case.peers.items()):
        current = case.rounds[-1]
        words = np.concatenate(
            [own_sums(case, name) + own_noise(case, name), np.zeros(CHECKS, dtype=np.uint64)]
        )
        words[:1] += np.uint64({0: 1, 1: 2**64 - 1}.get(k, 0))
        commit, part = (one.said(Commit, current.number), one.said(Part, current.number))
        assert commit is not None
        assert part is not None
        vector = statements.pack(words)
        digests[name] = recompute.digest(vector)
        say(one, replace(commit, digest=digests[name]))
        say(one, replace(part, vector=vector))
    agree_on_commitments(case, case.rounds[-1].number)
    change_reports(
        case, lambda one: replace(one, parts=tuple(digests[name] for name in one.participants))
    )


def with_one_key(case: Case, peer: SumPeer) -> None:
    join = peer.said(Join)
    assert join is not None
    for one in case.peers.values():
        own = one.said(Join)
        assert own is not None
        say(one, replace(own, key=join.key))


def refused(_: Case, peer: SumPeer) -> None:
    refusal = Refusal(*peer.current.id, peer.name, bytes(16), ())
    peer.current.pool.insert(statements.sign(refusal, peer.identity.network, peer.trust))


def with_other_bounds(case: Case, _: SumPeer) -> None:
    """All accept a list that allows fewer rows, after the release."""
    trust = next(iter(case.peers.values())).trust
    assert isinstance(trust, Keyring)
    members = tuple(replace(one, rows=1) for one in trust.list.members)
    for one in case.peers.values():
        with_list(case, one, serial=2, members=members)


def released_first(case: Case, peer: SumPeer) -> None:
    *before, made, released = case.logs[peer.name]
    case.logs[peer.name] = contributions.extend(
        None, [one.entry for one in (*before, released, made)]
    )


DAMAGES: list[tuple[Change, str, bool | None, str]] = [
    (unmasked, SIGNED, False, "the contribution of node-0 to round 1 is not masked"),
    (with_one_key, SIGNED, False, "several sites joined with the same key"),
    (refused, SIGNED, False, "node-1 refused to contribute"),
    (
        retell(Part, 1, commits=bytes(16)),
        SIGNED,
        False,
        "contributions to round 1 are for other commitments",
    ),
    (
        retell(Commit, 1, roster=bytes(16)),
        SIGNED,
        False,
        "something else to round 1 than it had committed to",
    ),
    (with_other_bounds, BOUNDS, None, "node-0 contributed by another member list than number 2"),
    (released_first, LOGGED, False, "which no site with a contribution has in this order"),
    (forget((Join, 0)), SIGNED, None, "node-1 no longer has what it said when it joined"),
    (forget((Join, 0)), RESULTS, None, "the least cell that node-1 asked for"),
    (forget((Part, 1)), SIGNED, None, "node-1 no longer has its contribution to round 1"),
    (forget((Commit, 1)), SIGNED, None, "node-1 no longer has its contribution to round 1"),
    (
        retell(Join, snapshot=bytes(16)),
        SIGNED,
        False,
        "node-1 joined with other rows than those reported",
    ),
    (retell(Join, key=b""), SIGNED, False, "node-1 joined with other rows than those reported"),
    (
        retell(Join, nonce=bytes(32)),
        SIGNED,
        False,
        "node-1 joined otherwise than in the list of participants",
    ),
    (retell(Join, min_cell=7), RESULTS, False, "cells of 7 rows are asked for"),
    (
        retell(Part, 1, roster=bytes(16)),
        SIGNED,
        False,
        "node-1 contributed to another list of participants",
    ),
    (
        retell(Part, 1, roster=bytes(16)),
        SIGNED,
        False,
        "they are for different lists of participants",
    ),
    (
        retell(Commit, 1, digest=bytes(32)),
        SIGNED,
        False,
        "something else to round 1 than it had committed to",
    ),
    (retold_epoch, SIGNED, False, "node-1 has a statement of another epoch"),
    (lengthened, SIGNED, False, "contributions to round 1 have the wrong length"),
    (unlike_the_total, SIGNED, False, "they do not add up to the total of round 1"),
    (of_others, SIGNED, False, "signed a list of other participants"),
    (without_a_number, TOTAL, False, "the total of round 1 cannot be one"),
    (without_a_number, RESULTS, None, "80 numbers are needed, and the total has 79"),
    (of_no_rows, RESULTS, False, "no rows have such a total"),
    (without_rows, TOTAL, None, "node-1 has its snapshot no more"),
    (without_rows, LOGGED, None, "the rows in the log of node-1"),
    (without_rows, BOUNDS, None, "node-1 has its snapshot no more"),
    (without_rows, BRACKETS, None, "the rows of node-1 are not here"),
    (without_member, BOUNDS, None, "node-1 is no member any more"),
    (without_member, SIGNED, None, "is not signed with its key"),
    (
        lambda case, peer: with_list(case, peer, revoked=("0" * 64,)),
        BOUNDS,
        False,
        "2 member lists with number 1",
    ),
    (without_column, FILES, None, "the file of node-1: "),
    (nearly_the_same, REPORTS, None, "the last digits of the results at node-1"),
    (nearly_the_same, RESULTS, None, "the last digits of those at node-1"),
    (another_identity, SET, False, "the nodes have different settings"),
]


@pytest.mark.parametrize(("change", "claim", "holds", "evidence"), DAMAGES)
def test_what_is_said_of_damage(
    change: Change, claim: str, holds: bool | None, evidence: str
) -> None:
    case = copied(honest("several"))
    change(case, case.peers["node-1"])
    (found,) = (one for one in case.verify() if one.claim == claim)
    assert found.holds is holds, found
    assert evidence in found.evidence


@pytest.mark.parametrize("mode", ["laplace", "gaussian"])
@pytest.mark.parametrize("secret", [bytes(32), b"thirty-two letters, of all sites"])
def test_noise_that_others_can_compute_is_no_noise(
    mode: str, secret: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gosta.net.protocol.sums.secrets.token_bytes", lambda _size: secret)
    assert case_of(network_of(mode)).outcomes()[NOISE] is False


@pytest.mark.parametrize(
    ("change", "evidence"),
    [
        (
            lambda case, origin: say(
                origin, replace(roster_of(origin), participants=roster_of(origin).participants[:-1])
            ),
            "signed a list of other participants",
        ),
        (
            lambda case, origin: say(origin, roster_of(origin), bytes(64)),
            "roster of node-3 is not signed with its key",
        ),
        (
            lambda case, origin: retell(Join, key=b"7" * 32)(case, case.peers["node-0"]),
            "node-0 joined otherwise",
        ),
        (
            lambda case, origin: retell(Part, 1, roster=bytes(16))(case, case.peers["node-0"]),
            "another list",
        ),
    ],
)
def test_the_list_of_participants_by_a_site_that_takes_no_part(
    change: Change, evidence: str
) -> None:
    network = network_of("plain")
    network.agree("node-3", leaves=True)
    network.clock.run(12.0)
    case = case_of(network)
    assert case.report.origin == "node-3"
    assert "node-3" not in case.report.participants
    assert False not in case.outcomes().values()
    change(case, case.peers["node-3"])
    (found,) = (one for one in case.verify() if one.claim == SIGNED)
    assert found.holds is False
    assert evidence in found.evidence
    del case.peers["node-3"]
    (found,) = (one for one in case.verify() if one.claim == SIGNED)
    assert found.holds is not True


def roster_of(peer: SumPeer) -> Roster:
    roster = peer.said(Roster)
    assert roster is not None
    return roster


def test_a_later_release_of_others_does_not_hide_a_false_report() -> None:
    """Two sites that agree to anything have a release of their own.

    The others keep theirs, which was changed.
    """
    network = network_of("plain")
    case = case_of(network)
    for name in ("node-0", "node-1"):
        peer = case.peers[name]
        assert peer.report is not None
        peer.report = replace(
            peer.report, epoch=peer.report.epoch - 1, participants=("node-0", "node-1")
        )
    (found,) = (one for one in case.verify() if one.claim == REPORTS)
    assert found.holds is not True
    assert "node-0" in found.evidence


def test_other_confidence_levels_are_other_settings() -> None:
    case = copied(honest("plain"))
    for peer in case.peers.values():
        source = peer.source
        assert isinstance(source, SumSource)
        task = replace(source.task, confidence_level=0.9)
        peer.source = dataclasses.replace(source, task=task)
        peer.identity = peer.identity._replace(fingerprint="of the new settings")
    found = case.outcomes()
    assert False not in found.values()
    assert found[RESULTS] is None


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_check_that_fails_says_nothing(claim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise ValueError("two\nlines")

    monkeypatch.setitem(verify_sums.CLAIMS, claim, fail)
    (found,) = (one for one in honest("plain").verify() if one.claim == claim)
    assert (found.holds, found.evidence) == (None, "something is damaged (ValueError: two lines)")


def test_a_node_that_lacks_the_release() -> None:
    case = copied(honest("several"))
    case.peers["node-1"].report = None
    assert case.logs["node-1"][-1].entry.event == "release"
    assert case.outcomes()[REPORTS] is False, "its log tells of it"
    case.logs["node-1"] = case.logs["node-1"][:-1]
    found = case.outcomes()
    assert (found.pop(REPORTS), set(found.values())) == (None, {True})
    for peer in case.peers.values():
        peer.report = None
    assert [(one.claim, one.holds) for one in case.verify()] == [
        ("there is a release", None),
        (CHAINS, True),
    ]


def test_a_file_with_few_changed_rows() -> None:
    """It is not what was contributed, and verify says so: all else is right."""
    parts = [RNG.random((20, 1)) for _ in range(3)]
    network = strict(parts, [(0, 1), (1, 2)])
    network.clock.run(5.0)
    network.change("node-1", np.concatenate([parts[1][3:], RNG.random((3, 1))]))
    network.nodes["node-0"].request_epoch()
    network.clock.run(12.0)
    case = case_of(network)
    assert case.report.epoch == 2
    found = case.outcomes()
    assert (found.pop(FILES), set(found.values())) == (None, {True})


def test_other_policies_and_settings_are_not_checked() -> None:
    case = copied(honest("plain"))
    policy = replace(OPEN_POLICY, min_cell=5)
    case.peers["node-2"].source = dataclasses.replace(case.peers["node-2"].source, policy=policy)  # type: ignore[type-var]
    found = case.outcomes()
    assert (found.pop(RESULTS), set(found.values())) == (None, {True})
    for mode, other in (
        ("plain", "gaussian"),
        ("gaussian", "plain"),
        ("edges", "noisy edges"),
        ("noisy edges", "edges"),
    ):
        case = copied(honest(mode))
        for name, peer in case.peers.items():
            peer.source, peer.identity = (
                honest(other).peers[name].source,
                honest(other).peers[name].identity,
            )
        found = case.outcomes()
        assert False not in found.values(), case.verify()
        assert {found[claim] for claim in (LOGGED, SET, TOTAL, RESULTS)} == {None}
        assert found[SIGNED] is (None if "edges" in mode else True)


@pytest.mark.parametrize("start", [0, 5, 10])
def test_faults_are_no_corruption(start: int) -> None:
    """Whatever fails, verify says no of no honest network, and yes once all is quiet."""
    for seed in range(start, start + 5):
        graph, faults = make_schedule(seed)
        nodes, edges = GRAPHS[graph]
        network = SumNetwork(PARTS[:nodes], edges, faults, seed)
        for second in np.linspace(0.3, FAULT_SECONDS, 6):
            network.clock.run(second)
            assert False not in case_of(network).outcomes().values(), (
                f"seed {seed}, second {second}"
            )
        network.end_faults()
        network.clock.run(FAULT_SECONDS + QUIET_SECONDS)
        assert set(case_of(network).outcomes().values()) == {True}, f"seed {seed}"


@pytest.mark.parametrize(
    "noise",
    [
        Noise("laplace", 3.0, 0, 1.0, 0.0, 3, 2),
        Noise("laplace", 200.0, 0, 1.0, 0.0, 5, 1),
        Noise("gaussian", 20.0, 24, 1.0, 1e-6, 4, 3),
        Noise("gaussian", 90.0, 0, 1.0, 1e-6, 2, 2),
    ],
)
def test_noise_of_another_scale_is_found(noise: Noise) -> None:
    """Noise of half and of twice the scale is found; noise of its law is not."""
    rng = np.random.default_rng(9)
    for size in (16, 64, 512, 4096):
        low, high = recompute.allowed_mean(noise, size)
        for _ in range(10):
            shares = [
                draw(noise, size, rng.bytes).view(np.int64) / 2.0**noise.bits
                for _ in range(noise.participants)
            ]
            mean = float(np.abs(np.sum(shares, axis=0)).mean())
            assert low <= mean <= high
        if size >= 512:
            assert not low <= mean / 2 <= high
            assert not low <= mean * 2 <= high


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of three processes that released an AUC with noise."""
    net = tmp_path_factory.mktemp("released") / "net"
    options = [
        "--private",
        "--data",
        "breast-cancer",
        "--epsilon",
        "4",
        "--nodes",
        "3",
        "--port",
        ports.free(),
    ]
    made = gosta("network", "init", net, *options)
    assert made.returncode == 0, made.stderr
    up = gosta("network", "up", net, "--until", "1%", "--json")
    assert up.returncode == 0, up.stderr
    return net


@pytest.fixture
def net(released: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(released, tmp_path / "net"))


def verified(net: Path, gosta_: Any) -> tuple[int, dict[str, bool | None]]:
    """Return the exit code, and what holds."""
    code, out, _ = gosta_("network", "verify", net, "--json")
    found = [json.loads(line) for line in out.splitlines()]
    return code, {one["claim"]: one["holds"] for one in found}


def test_processes_with_noise(net: Path, gosta_: Any) -> None:
    code, found = verified(net, gosta_)
    assert (code, found.pop(OTHERS), set(found.values())) == (3, None, {True})
    out = gosta_("network", "verify", net)[1]
    assert re.search(r"^yes  the total is .*\n     \d+ numbers, bit for bit$", out, re.MULTILINE)
    assert re.search(
        r"round 1: laplace, its size [\d.]+ on average \(allowed: [\d.]+ to [\d.]+\)", out
    )


def test_another_report_in_the_journals(net: Path, gosta_: Any) -> None:
    """All nodes have a report with another AUC in their journals."""
    for name in ("node-0", "node-1", "node-2"):
        _, peer, journal = load_peer(net / name)
        journal.close()
        assert isinstance(peer, SumPeer)
        assert peer.report is not None
        results = (peer.report.results[0]._replace(value=(0.05,)),)
        with contextlib.closing(Journal(net / name / "journal.sqlite")) as journal:
            journal.append(
                [Released(msgspec.msgpack.encode(replace(peer.report, results=results)))]
            )
    code, found = verified(net, gosta_)
    assert (code, [claim for claim, holds in found.items() if holds is False]) == (1, [RESULTS])


def test_a_folder_elsewhere_and_another_file(net: Path, gosta_: Any) -> None:
    (net / "node-2" / "data.csv").write_text((net / "node-1" / "data.csv").read_text())
    code, found = verified(net, gosta_)
    assert (code, found[FILES], found[TOTAL]) == (3, None, True)
    for path in (net / "node-2").glob("journal.sqlite*"):
        path.unlink()
    assert verified(net, gosta_)[1][TOTAL] is None
    shutil.rmtree(net / "node-2")
    code, found = verified(net, gosta_)
    assert (code, found[FILES], found[TOTAL], found[NOISE], found[BOUNDS]) == (
        3,
        None,
        None,
        None,
        None,
    )
    assert False not in found.values()
    for name in ("node-0", "node-1"):
        shutil.rmtree(net / name)
    code, _, error = gosta_("network", "verify", net)
    assert (code, "has no node's folder" in error) == (2, True)


def test_an_older_journal(net: Path, gosta_: Any) -> None:
    """The log ends before the entry that the file beside it tells of."""
    with sqlite3.connect(net / "node-0" / "journal.sqlite") as db:
        db.execute(
            "DELETE FROM contributions WHERE number = (SELECT max(number) FROM contributions)"
        )
    db.close()
    code, found = verified(net, gosta_)
    assert (code, found[CHAINS]) == (1, False)
