"""The log of contributions of a site to private sums, as its policy looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import msgspec

from gosta.private.accounting import Spent
from gosta.private.policy import Past


class LogEntry(msgspec.Struct, frozen=True):
    """An entry of the log of contributions: what left this site, or why nothing did."""

    time: float  # in seconds since 1970
    event: str  # "contribution", "opening" (of masks), "suppressed", "release" or "agreement"
    epoch: int
    origin: str  # the node that started the epoch
    round: int  # counted from 1: each follows from the totals of those before it
    # Of a suppression: which rule of the site's policy forbids it; of an agreement: whose sums it
    # exposes.
    reason: str
    statistics: str
    columns: tuple[str, ...]
    bins: int
    strata: tuple[str, ...]
    layout: str  # fingerprint of everything that the vector of sums depends on
    rows: int  # of this site that are counted
    people: int | None  # that these rows are of; None: the policy names no column of persons
    law: str  # of the noise: "none", "laplace" or "gaussian"
    epsilon: float
    delta: float
    scale: float  # of the total's noise
    participants: tuple[str, ...]
    sent_to: tuple[str, ...]  # neighbours that were connected, which pass it on to all participants
    bytes: int  # of the contribution
    rows_per_person: int = 1  # at most
    # What its noise follows from: contributions with the same have the same noise, paid once.
    noise: str = ""
    shown: str = ""  # what the total shows, where rounds differ in that
    rows_of: float = 0.0  # when the contributed rows were read from the file, in seconds since 1970

    @property
    def epoch_id(self) -> tuple[int, str]:
        """The number of the epoch, and the node that started it."""
        return self.epoch, self.origin


def history_of(log: Sequence[LogEntry]) -> list[Past]:
    """Return the contributions and openings in a log, as policies look at them.

    What belongs to an epoch has the time of the first of them only: it is one release. What was
    sent before with the same noise is no other contribution.
    """
    history = list[Past]()
    paid = set[str]()  # noise that was sent before
    epochs = set[tuple[int, str]]()
    for entry in log:
        is_new = entry.event == "contribution" and (entry.law == "none" or entry.noise not in paid)
        if is_new or entry.event == "opening":
            spent = Spent(entry.law, entry.epsilon, entry.delta, entry.rows_per_person)
            time = -inf if entry.epoch_id in epochs else entry.time
            history.append(Past(time, None if entry.law == "none" else spent))
            paid.add(entry.noise)
            epochs.add(entry.epoch_id)
    return history
