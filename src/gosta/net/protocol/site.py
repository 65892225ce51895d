"""What a site brings to private sums, what its policy says about them, and what it reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
import numpy as np

from gosta.net.limits import UNDECLARED_ROWS
from gosta.net.members import Trust
from gosta.net.protocol.messages import Announcement
from gosta.private.log import LogEntry
from gosta.private.noise import Noise
from gosta.private.policy import Policy, Subject
from gosta.private.settings import PrivateSettings
from gosta.private.snapshots import RowSnapshot
from gosta.sketches.results import StratumResult
from gosta.sketches.sums import Sums


class Agreed(Protocol):
    """What the operator of a site agreed to."""

    @property
    def sites(self) -> Mapping[str, float]:
        """Sites whose sums totals may show by their difference, and when that was agreed to."""

    @property
    def leaves(self) -> bool:
        """Whether this site takes part in no further epoch."""


class SumSource(Protocol):
    """What a site brings."""

    @property
    def statistics(self) -> str: ...

    @property
    def layout(self) -> Sums:
        """The sums of the first round."""

    @property
    def settings(self) -> PrivateSettings: ...

    @property
    def policy(self) -> Policy: ...

    @property
    def agreed(self) -> Agreed: ...

    @property
    def trust(self) -> Trust: ...

    @property
    def confidence_level(self) -> float | None: ...

    @property
    def file_rows(self) -> RowSnapshot:
        """The rows of the site's file."""

    @property
    def encoded_settings(self) -> bytes:
        """The settings from which the sums follow, to be remembered with a contribution."""

    def layout_of(self, settings: bytes) -> Sums:
        """Return the sums of the first round by earlier settings."""

    def rows_of(self, settings: bytes) -> RowSnapshot:
        """Return the rows of the site's file by earlier settings.

        Raise `GostaError` if it lacks a column.
        """

    def counted_otherwise(self, settings: bytes) -> list[int]:
        """Return how many rows, and people, only earlier settings count, or only those of today."""

    def subject(self, rows: RowSnapshot) -> Subject:
        """Return what the policy has to decide about."""


class SumReport(msgspec.Struct, frozen=True, array_like=True):
    """A total, and what follows from it."""

    epoch: int
    origin: str
    time: float  # in seconds since 1970
    participants: tuple[str, ...]
    left_out: tuple[str, ...]  # other members
    results: tuple[StratumResult, ...]
    vector: bytes  # the total, as unsigned numbers of 64 bits
    # Of the rounds before the last one, as floats of 64 bits in units of features.
    earlier_totals: tuple[bytes, ...]
    settings: str  # fingerprint of what is computed, and how
    layout: str  # fingerprint of the sums
    bits: int  # of fractions in the total
    law: str  # of the noise
    epsilon: float
    delta: float
    min_cell: int
    tags: tuple[bytes, ...]  # of the participants' snapshots
    keys: tuple[bytes, ...]  # by which the participants sign
    rows_of: float  # when this site read the rows that it contributed; 0: it took no part
    # digests of the participants' contributions, to which all had committed
    parts: tuple[bytes, ...]
    version: str = ""  # of gosta at this site; "" in reports of versions that did not note it

    @property
    def epoch_id(self) -> tuple[int, str]:
        """The number of the epoch, and the node that started it."""
        return self.epoch, self.origin


def largest_rows(trust: Trust, name: str) -> int:
    """Return how many rows a member can contribute at most, as the member list says."""
    return trust.members.get(name, 0) or UNDECLARED_ROWS


def layouts_of_rounds(
    layout: Sums, earlier_totals: Sequence[bytes], min_cell: int = 0
) -> list[Sums]:
    """Return the sums of the first round, and of those that follow from the totals of earlier ones.

    They end where a total is none of the round's sums, or where no round follows.
    """
    layouts = [layout]
    for packed in earlier_totals:
        is_total = len(packed) == 8 * layouts[-1].size
        totals = np.frombuffer(packed, dtype="<f8").astype(np.float64) if is_total else None
        if totals is None or not np.isfinite(totals).all():
            break
        following = layouts[-1].following(totals, min_cell)
        if following is None:
            break
        layouts.append(following)
    return layouts


def make_entry(
    source: SumSource,
    event: str,
    now: float,
    announcement: Announcement,
    number: int,
    layout: Sums,
    noise: Noise,
    rows: RowSnapshot | None = None,
    participants: tuple[str, ...] = (),
    sent_to: tuple[str, ...] = (),
    size: int = 0,
    reason: str = "",
    noise_id: str = "",
) -> LogEntry:
    """Return an entry of the log of contributions.

    `rows` are those of this site that are counted.
    """
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
        rows=0 if rows is None else rows.rows,
        people=None if rows is None else rows.people_count,
        law=noise.law,
        epsilon=noise.epsilon,
        delta=noise.delta,
        scale=noise.scale,
        participants=participants,
        sent_to=sent_to,
        bytes=size,
        rows_per_person=1 if rows is None else rows.rows_per_person,
        noise=noise_id,
        shown=layout.shown,
        rows_of=0.0 if rows is None else rows.time,
    )
