"""Cox's proportional hazards, with times in bins.

The partial likelihood needs the rows at risk at each time of events. These are the rows that leave
then or later, so sums of exp(linear predictor) over the rows that leave in each bin of time give
all of them. A bin begins at a declared time of which there are events, and reaches until the next
such time: rows that are censored in between are at risk at its beginning, and no longer at the next
one. So nothing is lost if times are measured on the declared grid. Where bins would hold fewer
events or rows than may be shown, they are joined, and the times of a bin count as tied.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product as combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gosta.datasets.columns import value_text
from gosta.datasets.data import Data
from gosta.errors import DataError, InputError, NumericalError
from gosta.measures.definition import numbers_of
from gosta.models.arithmetic import dot, exp, log, symmetric, upper
from gosta.models.definition import PENALTY, Derivatives, Found, Model, State, binary_columns, model
from gosta.models.fit import Baseline, Fit
from gosta.models.regression import farther, predictor_limit, spread_evenly
from gosta.models.scale import Scale
from gosta.models.terms import Term
from gosta.runtime.arrays import Booleans, Floats, Integers

TIES = ("efron", "breslow")


class Bins(NamedTuple):
    """The bins of time in which there are events, of all strata one after the other."""

    place: Integers  # of each declared time of each stratum; −1: before the first event
    events: Floats  # in each bin
    first: Integers  # place of the first bin of each stratum, and the number of all bins
    starts: Integers  # the declared time at which each bin begins

    @property
    def has_ties(self) -> Booleans:
        """Whether there are several events in each bin."""
        return self.events > 1.5


class AtRisk(NamedTuple):
    """Sums over the rows at risk in each bin: weighted products of columns, the first being 1.

    Of the l-th of d tied events, the share l/d of the rows with an event counts no longer (Efron).
    """

    rows: Floats  # bins × products
    tied: Floats  # the same over rows with an event; 0 where there are no ties
    # Sums over the events of a bin of (l/d)^i / S^j, S being the weight of the rows at risk.
    once: Floats  # i = 0, 1; j = 1
    twice: Floats  # i = 0, 1, 2; j = 2
    log_sum: float  # of log S over all events


@model("cox", "Cox regression", "hazard ratio")
@dataclass(frozen=True, kw_only=True)
class Cox(Model):
    """The hazard of a row is a baseline hazard times exp of a sum of coefficients times columns."""

    has_intercept: ClassVar[bool] = False
    # Place of the time among the declared ones, event, stratum.
    response_width: ClassVar[int] = 3
    validation: ClassVar[str] = "concordance-index"

    time: str  # the column of times
    event: str  # the column that says whether the event was seen then
    # At which bins of time begin: those of all events, or a grid on which times lie.
    times: tuple[float, ...]
    ties: str = "efron"  # how events in one bin are treated, or "breslow"
    # Columns of strata, which have baseline hazards of their own, and their values.
    strata: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ties not in TIES:
            raise InputError(f"ties = {self.ties!r} must be {' or '.join(TIES)}")
        object.__setattr__(self, "times", tuple(numbers_of("times", self.times).tolist()))

    @classmethod
    def completed(cls, data: Data, options: dict[str, Any]) -> dict[str, Any]:
        """Take the times of all events, and all values of strata."""
        options = dict(options)
        if "time" in options and "event" in options and options.get("times") is None:
            x = _event_times(data, options["time"], options["event"])
            options["times"] = tuple(np.unique(x[x[:, 1] == 1, 0]).tolist())
            if not options["times"]:
                raise DataError(f"event {options['event']!r}: no row has one")
        strata = options.get("strata") or ()
        names = [strata] if isinstance(strata, str) else [s for s in strata if isinstance(s, str)]
        if names:
            levels = [replace(data, label=name, declared_classes=()) for name in names]
            values = [tuple(one.class_codes()[1]) for one in levels]
            options["strata"] = tuple(zip(names, values, strict=True))
        return options

    @property
    def response_columns(self) -> tuple[str, ...]:
        return (self.time, self.event, *(name for name, _ in self.strata))

    @property
    def stratum_names(self) -> list[str]:
        """The names of the strata, in order; [""] if there are none."""
        parts = [[f"{name} = {value_text(v)}" for v in values] for name, values in self.strata]
        return [", ".join(part) for part in combinations(*parts)]

    def response(self, data: Data) -> Floats:
        x = _event_times(data, self.time, self.event)
        places = np.searchsorted(np.array(self.times), x[:, 0], side="right") - 1.0
        # A censored row before the first time is never at risk; an event there counts in it.
        places = np.where(x[:, 1] == 1, np.maximum(places, 0.0), places)
        codes = np.zeros(len(x))
        for column, levels in self.strata:
            codes = codes * len(levels) + data.level_codes(column, levels)
        found = np.column_stack([places, x[:, 1], codes])
        found[np.isnan(x).any(axis=1)] = np.nan
        return found

    def mean(self, predictor: Floats) -> Floats:
        return exp(predictor)

    def moment_terms(self, columns: Floats, response: Floats) -> list[Term]:
        """Sum events and their products with columns; count those that leave at each time of each
        stratum, with an event and all.
        """
        events, count = response[:, 1], len(self.stratum_names) * len(self.times)
        times = self._time_places(response)
        is_at_risk, places = (times >= 0).astype(np.float64), np.maximum(times, 0)
        return [
            Term(events, columns, 1),
            Term(events, columns, 0, places, count),
            Term(is_at_risk, columns, 0, places, count),
        ]

    def _time_places(self, response: Floats) -> Integers:
        """Return each row's place among the declared times of all strata; −1: before the first."""
        places = response[:, 2] * len(self.times) + response[:, 0]
        return np.where(response[:, 0] < 0, -1, places).astype(np.int64)

    def start(self, scale: Scale, moments: list[Floats]) -> State:
        """Start from equal hazards, in bins with enough events."""
        events = float(moments[1][0])
        if events < 0.5:
            raise DataError(f"event {self.event!r}: no row over all sites has one")
        if self.penalty == 0:
            self._check_infinite(moments)
        starts = []
        events_at, rows_at = (self._by_stratum(moments, which) for which in (2, 3))
        for name, counts, rows in zip(self.stratum_names, events_at, rows_at, strict=True):
            starts.append(joined_starts(counts, rows, self._are_enough))
            first = starts[-1][0] if starts[-1] else len(counts)
            if starts[-1] and not self._are_enough(counts.sum(), rows[first:].sum()):
                raise self._too_few(name, float(counts.sum()))
        zeros = (0.0,) * len(scale.mean)
        return State(coefficients=zeros, base=zeros, edges=tuple(starts))

    def _are_enough(self, events: float, rows: float) -> bool:
        """Return whether a bin in which so many rows leave shows too little of them.

        Sums of columns are shown of the rows of a bin, of those with an event to treat ties, and so
        of those without one: with at least as many rows as columns, fewer than these rows have.
        """
        if self.min_cell == 0:
            return True
        least = max(self.min_cell, len(self.design.names)) - 0.5
        if self.ties == "breslow":
            return events > self.min_cell - 0.5 and rows > least
        return events > least and not 0.5 < rows - events < least

    def _too_few(self, stratum: str, events: float) -> DataError:
        """Return the error for a stratum that is too small for one bin."""
        least = max(self.min_cell, len(self.design.names))
        if events < self.min_cell - 0.5:
            few = f"fewer than {self.min_cell} "
            where = f"stratum {stratum}: {few}events" if stratum else ""
            what = where or f"event {self.event!r}: {few}rows have one"
        else:
            where = f"stratum {stratum}" if stratum else f"event {self.event!r}"
            what = (
                f"{where}: fewer than {least} rows have one, or have none, as sums of columns need"
            )
        remedy = "join it with another stratum" if stratum else "use fewer columns"
        return DataError(what, remedy=remedy)

    def _by_stratum(self, moments: list[Floats], which: int = 2) -> Floats:
        """Return the events at each declared time: strata × times; with 3, rows that leave."""
        return np.rint(moments[which][:, 0]).reshape(-1, len(self.times))

    def _check_infinite(self, moments: list[Floats]) -> None:
        """Raise an error if a column of 0 and 1 has the same value in all rows with an event."""
        sums = symmetric(moments[0], len(moments[1]))
        for place, name in binary_columns(sums, self.design.names):
            both = moments[1][place]
            if min(both, moments[1][0] - both) < 0.25:
                raise NumericalError(
                    f"column {name} of the model has the same value in all rows with an event: "
                    "there is no best fit",
                    remedy=f"leave it out, or {PENALTY}",
                )

    def bins(self, state: State) -> Bins:
        """Return the bins of time."""
        places, events, first, starts = [], [], [0], []
        counts = self._by_stratum(self.moments(state))
        for own, edges in zip(counts, state.edges, strict=True):
            begin = np.array(edges, dtype=np.int64)
            place = np.searchsorted(begin, np.arange(len(own)), side="right") - 1
            places.append(np.where(place < 0, -1, place + first[-1]))
            events.append(np.add.reduceat(own, begin) if len(begin) else np.zeros(0))
            starts.append(begin)
            first.append(first[-1] + len(begin))
        joined = np.concatenate
        return Bins(joined(places), joined(events), np.array(first), joined(starts))

    def _weights(
        self, columns: Floats, response: Floats, state: State
    ) -> tuple[Floats, Integers, Bins]:
        """Return the linear predictors of rows less their limit, and their bins."""
        bins = self.bins(state)
        times = self._time_places(response)
        places = np.where(times < 0, -1, bins.place[np.maximum(times, 0)])
        return self.predictor(columns, state) - self.limit(state), places, bins

    def limit(self, state: State) -> float:
        """Return the largest linear predictor that rows are expected to have."""
        intercept, *slopes = self.share_coefficients(state).tolist()
        most = intercept + math.fsum(max(slope, 0.0) for slope in slopes)
        return predictor_limit(state, self.scale(state), most)

    def time_edges(self, state: State, bins: int) -> tuple[float, ...]:
        events = self._by_stratum(self.moments(state)).sum(axis=0)
        least = max(float(events.sum()) / bins, self.min_cell)
        starts = joined_starts(events, events, lambda found, _: found >= least)
        return tuple(start + 0.5 for start in starts)

    def validation_score(self, predictors: Floats, state: State) -> Floats:
        return spread_evenly(predictors, state, self.scale(state))

    def validation_outcome(self, response: Floats) -> dict[str, Floats]:
        # 0 is before the first of the declared times.
        return {"time": response[:, 0] + 1.0, "event": response[:, 1]}

    def step_terms(self, columns: Floats, response: Floats, state: State) -> list[Term]:
        """Count rows beyond the limit, and sum hazards with products of columns in each bin.

        With Efron's treatment of ties, the same over rows with an event, where there are ties.
        """
        predictors, places, bins = self._weights(columns, response, state)
        is_beyond = (predictors > 0) & (places >= 0)
        hazards = np.where(places < 0, 0.0, np.minimum(exp(predictors), 1.0))
        inside = np.maximum(places, 0)
        terms = [
            Term(is_beyond.astype(np.float64), columns, 0),
            Term(hazards, columns, 2, inside, len(bins.events), places >= 0),
        ]
        if self.ties == "efron" and bins.has_ties.any():
            number = np.cumsum(bins.has_ties) - 1
            is_tied = (response[:, 1] == 1) & (places >= 0) & bins.has_ties[inside]
            own = np.where(is_tied, number[inside], 0)
            weights = np.where(is_tied, hazards, 0.0)
            terms.append(Term(weights, columns, 2, own, int(bins.has_ties.sum()), is_tied))
        return terms

    def at_risk(self, bins: Bins, parts: list[Floats]) -> AtRisk:
        """Return sums over the rows at risk, from those over rows that leave."""
        rows, tied = np.empty_like(parts[1]), np.zeros_like(parts[1])
        for begin, end in zip(bins.first[:-1], bins.first[1:], strict=True):
            rows[begin:end] = np.cumsum(parts[1][begin:end][::-1], axis=0)[::-1]
        is_efron = self.ties == "efron" and bool(bins.has_ties.any())
        if is_efron:
            tied[bins.has_ties] = parts[2]
        counts = np.rint(bins.events).astype(np.int64)
        of_event = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(of_event)) - np.repeat(np.cumsum(counts) - counts, counts)
        share = number / counts[of_event] if is_efron else np.zeros(len(of_event))
        weight = rows[of_event, 0] - share * tied[of_event, 0]
        if not weight.min() > 0:
            raise NumericalError(
                "the hazards of rows differ by more than sums can show",
                remedy=f"leave out columns with few large values, or {PENALTY}",
            )
        inverse = 1 / weight
        sums = [
            np.bincount(of_event, part, len(counts))
            for part in (
                inverse,
                share * inverse,
                inverse**2,
                share * inverse**2,
                share * share * inverse**2,
            )
        ]
        return AtRisk(
            rows,
            tied,
            np.array(sums[:2], dtype=np.float64)[:, :, None],
            np.array(sums[2:], dtype=np.float64)[:, :, None],
            math.fsum(log(weight).tolist()),
        )

    def derivatives(self, state: State, scale: Scale, parts: list[Floats]) -> Derivatives | State:
        if parts[0][0] > 0.5:
            return farther(state)
        width = len(self.design.names) + 1
        bins, sums = self.bins(state), self.moments(state)[1]
        risk = self.at_risk(bins, parts)
        first, second = upper(width)
        rows, tied = risk.rows[:, :width], risk.tied[:, :width]
        means = risk.once[0] * rows - risk.once[1] * tied  # summed over the events of a bin
        squares = (
            risk.twice[0] * rows[:, first] * rows[:, second]
            - risk.twice[1] * (rows[:, first] * tied[:, second] + tied[:, first] * rows[:, second])
            + risk.twice[2] * tied[:, first] * tied[:, second]
        )
        spread = risk.once[0] * risk.rows - risk.once[1] * risk.tied - squares
        gradient = np.cumsum(means, axis=0)[-1] - sums
        hessian = symmetric(np.cumsum(spread, axis=0)[-1], width)
        events, limit = float(bins.events.sum()), self.limit(state)
        loss = risk.log_sum + events * limit - dot(sums, self.share_coefficients(state))
        return Derivatives(
            loss,
            gradient[1:] / scale.deviation,
            hessian[1:, 1:] / np.multiply.outer(scale.deviation, scale.deviation),
            tuple(self._curve(bins, risk, means, limit).ravel().tolist()),
        )

    def _curve(self, bins: Bins, risk: AtRisk, means: Floats, limit: float) -> Floats:
        """Return what the rows' own derivatives depend on: bins × 3 × columns.

        First the cumulative hazard times the mean of each column over the rows at risk, until the
        end of a bin; then the same for rows with an event in it, which are at risk there in part
        only; last the mean of columns over the rows at risk at the events of a bin.
        """
        width = means.shape[1]
        rows, tied, unit = risk.rows[:, :width], risk.tied[:, :width], float(exp(-limit))
        steps = unit * (risk.twice[0] * rows - risk.twice[1] * tied)
        reached = np.empty_like(steps)
        for begin, end in zip(bins.first[:-1], bins.first[1:], strict=True):
            reached[begin:end] = np.cumsum(steps[begin:end], axis=0)
        own = reached - unit * (risk.twice[1] * rows - risk.twice[2] * tied)
        return np.stack([reached, own, means / bins.events[:, None]], axis=1)

    def scores(self, columns: Floats, response: Floats, state: State) -> Floats:
        width = columns.shape[1]
        predictors, places, _ = self._weights(columns, response, state)
        limit, curve = self.limit(state), np.array(state.curve).reshape(-1, 3, width)
        own, events = curve[np.maximum(places, 0)], response[:, 1:2]
        hazards = np.where(places < 0, 0.0, exp(predictors + limit))[:, None]
        past = np.where(events == 1, own[:, 1], own[:, 0])
        return np.asarray(events * (columns - own[:, 2]) - hazards * (columns * past[:, :1] - past))

    def fitted(self, found: Found) -> Fit:
        """Return the fit in units of the data."""
        return replace(
            self.without_intercept(found),
            baselines=self._baselines(found.state, found),
            warnings=self._warnings(found.state),
        )

    def event_count(self, moments: list[Floats]) -> int | None:
        return round(float(moments[1][0]))

    def _baselines(self, state: State, found: Found) -> tuple[Baseline, ...]:
        """Return the hazard at mean columns of each stratum with events."""
        bins, times = self.bins(state), np.array(self.times)
        cumulative = np.array(found.last.curve).reshape(len(bins.events), 3, -1)[:, 0, 0]
        return tuple(
            Baseline(
                name,
                times[bins.starts[begin:end]],
                bins.events[begin:end],
                np.diff(cumulative[begin:end], prepend=0.0),
            )
            for name, begin, end in zip(
                self.stratum_names, bins.first[:-1], bins.first[1:], strict=True
            )
            if end > begin
        )

    def _warnings(self, state: State) -> tuple[str, ...]:
        """Return what to say if times of events were joined."""
        times = int((self._by_stratum(self.moments(state)) > 0.5).sum())
        bins = sum(map(len, state.edges))
        if times == bins:
            return ()
        return (
            f"{times} times with events are joined in {bins} bins of at least {self.min_cell} "
            "events and as many rows as columns, within which their order does not count: "
            "coefficients are approximate.",
        )


def joined_starts(
    events: Floats, rows: Floats, are_enough: Callable[[float, float], bool]
) -> tuple[int, ...]:
    """Return the times at which bins begin that each have an event, and enough events and rows.

    >>> events, rows = np.array([0.0, 1, 0, 1, 2, 0, 1]), np.array([3.0, 1, 1, 1, 2, 0, 1])
    >>> joined_starts(events, rows, lambda events, rows: True)
    (1, 3, 4, 6)
    >>> joined_starts(events, rows, lambda events, rows: events >= 2)
    (1, 4)
    """
    starts: list[int] = []
    inside: list[Floats] = []  # events and rows of each bin
    for place, left in enumerate(np.column_stack([events, rows])):
        if left[0] > 0.5 and (not starts or are_enough(*inside[-1].tolist())):
            starts.append(place)
            inside.append(np.zeros(2))
        if starts:
            inside[-1] += left
    while len(starts) > 1 and not are_enough(*inside[-1].tolist()):
        starts.pop()
        last = inside.pop()
        inside[-1] += last
    return tuple(starts)


def _event_times(data: Data, time: str, event: str) -> Floats:
    """Return times, and 1 for an event then or 0; NaN where one of them is missing."""
    x = data.select(time=time, event=event).to_floats([time, event])
    if not set(np.unique(x[~np.isnan(x[:, 1]), 1])) <= {0.0, 1.0}:
        raise DataError(f"event {event!r} must hold 1 (event observed) and 0 (censored) only")
    return x
