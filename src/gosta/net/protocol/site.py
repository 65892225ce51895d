"""What a site brings to private sums, what its policy says about them, and what it reports."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import inf
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from gosta.net.protocol.messages import Announcement
from gosta.net.protocol.records import Baseline, LogEntry
from gosta.private import policy
from gosta.private.accounting import Spent
from gosta.private.noise import Noise, Random
from gosta.private.policy import Past, Policy, Subject
from gosta.private.settings import PrivateSettings
from gosta.sketches import Layout, StratumResult


class SumSource(Protocol):
    """What a site brings."""

    @property
    def statistics(self) -> str: ...

    @property
    def layout(self) -> Layout:
        """The sums of the first round."""

    @property
    def settings(self) -> PrivateSettings: ...

    @property
    def policy(self) -> Policy: ...

    @property
    def confidence_level(self) -> float | None: ...

    @property
    def rows(self) -> int: ...

    @property
    def people(self) -> int | None:
        """People that have rows here; None if the policy names no column of persons."""

    @property
    def rows_per_person(self) -> int:
        """Rows that one person has at most."""

    @property
    def rows_digest(self) -> str:
        """Digest of the rows."""

    def subject(self) -> Subject:
        """Return what the policy has to decide about."""

    def vector(self, layout: Layout, noise: Noise, random: Random) -> NDArray[np.uint64]:
        """Return this site's sums, with its share of the noise."""

    def row_digests(self, key: bytes) -> bytes:
        """Return a digest of each row, from which nobody without the key learns anything."""


class SumReport(msgspec.Struct, frozen=True, array_like=True):
    """A total, and what follows from it."""

    epoch: int
    origin: str
    time: float  # in seconds since 1970
    participants: tuple[str, ...]
    left_out: tuple[str, ...]  # other members
    results: tuple[StratumResult, ...]
    vector: bytes  # the total, as unsigned numbers of 64 bits
    layout: str  # its fingerprint
    bits: int  # of fractions in the total
    law: str  # of the noise
    epsilon: float
    delta: float
    min_cell: int


def history_of(log: Sequence[LogEntry]) -> list[Past]:
    """Return the contributions in a log, as policies look at them; a second round belongs to the first one."""
    return [
        Past(
            one.time if one.round == 1 else -inf,
            None if one.law == "none" else Spent(one.law, one.epsilon, one.delta, one.rows_per_person),
        )
        for one in log
        if one.event == "contribution"
    ]


def verdict_on_changes(
    source: SumSource,
    baselines: Sequence[Baseline],
    row_key: bytes,
    participants: Collection[str],
    members: Collection[str],
    has_noise: bool,
) -> str:
    """Return what a site's policy forbids about participants and changed rows; empty if nothing.

    Without noise, the rows are compared with those of the last contributions to any of the same sums. Of a contribution
    whose total this node never had, members that are no longer there do not count as participants: their sites removed
    them, and only they could know that total.
    """
    count, rules = len(participants), source.policy
    verdict = policy.verdict_to_contribute(rules, count, has_noise=has_noise, members=len(members))
    if verdict or has_noise:
        return verdict
    digests = source.row_digests(row_key)
    for one in reversed(baselines):
        if not verdict and set(one.blocks) & set(source.layout.blocks):
            then = set(one.participants) if one.is_released else set(one.participants) & set(members)
            changed = policy.changed_rows(one.rows, digests)
            verdict = policy.verdict_to_contribute(rules, count, changed, then == set(participants))
    return verdict


def make_entry(
    source: SumSource,
    event: str,
    now: float,
    announcement: Announcement,
    number: int,
    layout: Layout,
    noise: Noise,
    participants: tuple[str, ...] = (),
    sent_to: tuple[str, ...] = (),
    size: int = 0,
    reason: str = "",
    rows: int = 0,
) -> LogEntry:
    """Return an entry of the log of contributions."""
    return LogEntry(
        time=now,
        event=event,
        epoch=announcement.epoch,
        origin=announcement.origin,
        round=number,
        reason=reason,
        statistics=source.statistics,
        columns=layout.columns,
        bins=layout.bins,
        strata=layout.final.strata,
        layout=layout.fingerprint,
        rows=rows,
        people=source.people if rows else None,
        law=noise.law,
        epsilon=noise.epsilon,
        delta=noise.delta,
        scale=noise.scale,
        participants=participants,
        sent_to=sent_to,
        bytes=size,
        rows_per_person=source.rows_per_person,
    )
