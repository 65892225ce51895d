"""The definition of a regression model: a sequence of sums over rows, and the fit of their totals.

In each round every row has features, which depend on the row and on the state, that is on the
coefficients so far. Only the totals over all rows are known, and the next state follows from them.
In one place totals are sums of floats. On a private network they are sums of numbers from 0 to 1
that are rounded and masked, and every node computes the next state by itself: `arithmetic` makes
all of them find the same.

The first round takes moments: the number of rows, and sums of the columns and of their products.
From these follow means and standard deviations of columns, errors such as for collinear columns,
and the first step. Then come Newton's steps: each round sums the loss and its first and second
derivatives. Where a step went too far, the next round tries a shorter one. Once a step is a
negligible part of a standard error, a last round adds the products of the rows' own derivatives,
for robust standard errors.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import DataError, GostaError, InputError, NumericalError, naming, shorten, unknown
from gosta.models.arithmetic import (
    SingularError,
    cholesky,
    dot,
    inverse,
    product,
    solve,
    solve_lower,
    symmetric,
)
from gosta.models.design import INTERCEPT, Design
from gosta.models.fit import Fit
from gosta.models.folds import MOST_FOLDS, folds_of
from gosta.models.folds import features as validation_features
from gosta.models.scale import Scale
from gosta.models.showing import PREDICTIONS
from gosta.models.terms import Term, cross_products, row_blocks
from gosta.runtime.arrays import Booleans, Floats, Integers, project
from gosta.sketches.definition import Features
from gosta.statistics.definition import Encoded
from gosta.views import numbers

if TYPE_CHECKING:
    from gosta.sketches.layout import Layout
    from gosta.sketches.results import StratumResult

# Of a step, in standard errors: the step after it is of the order of its square.
CONVERGED = 1e-5
# Of losses: more than is lost by rounding.
LOSS_ROUNDING = 1e-9
LEAST_PIVOT = 1e-11  # of second derivatives with 1 on the diagonal
MOST_COEFFICIENT = 30.0  # of a standardised column; a ratio of 10^13 between two rows near the mean
SHORTEST, LONGEST = 0.1, 0.5  # of a step that went too far, what is tried next
MORE_SPREAD = 8.0  # times as large, where rows' own derivatives are larger than expected
PENALTY = "use a penalty (--penalty 1)"


class Derivatives(NamedTuple):
    """A loss and its derivatives by the coefficients of standardised columns."""

    loss: float
    gradient: Floats
    hessian: Floats
    curve: tuple[float, ...] = ()  # of the next state, if it is for the last round


@dataclass(frozen=True)
class State:
    """What is known after some rounds: all that the features of the next one depend on."""

    rounds: int = 0  # whose totals are in
    moments: tuple[float, ...] = ()  # the totals of the first round
    # Of standardised columns, the intercept first: where the next round takes its sums.
    coefficients: tuple[float, ...] = ()
    base: tuple[float, ...] = ()  # those before the last step
    base_loss: float = math.inf
    slope: float = 0.0  # of the loss at the base along the last step
    # Standard deviations that a linear predictor is above its mean at most: where exp is bounded.
    reach: float = 6.0
    null_loss: float = math.inf  # of the model without columns
    # Of a Cox model: among the declared times, those at which bins begin, in each stratum; and what
    # the rows' own derivatives depend on.
    edges: tuple[tuple[int, ...], ...] = ()
    curve: tuple[float, ...] = ()
    # Of the last round: the triangle by which the rows' own derivatives are multiplied so that
    # their sums of squares are near 1, and the most that each is expected to be, times √n.
    root: tuple[float, ...] = ()
    spread: float = 32.0
    has_products: bool = True  # whether the last round sums products of the rows' own derivatives
    is_last: bool = False  # whether the next round is
    is_done: bool = False
    others: tuple[State, ...] = ()  # of the fits without each fold of the rows
    # Once all fits are found, for the round of validation: the state before the last round of the
    # fit to all rows, and its totals in that round.
    before: State | None = None
    last_totals: tuple[float, ...] = ()
    failure: str = ""  # why there is no fit; "": there is one, or will be


@dataclass(frozen=True, kw_only=True)
class Model(ABC):
    """A model of rows, for given columns and settings."""

    name: ClassVar[str]
    title: ClassVar[str]  # such as "logistic regression"
    ratio: ClassVar[str] = ""  # what exp of a coefficient is, such as "odds ratio"; "": nothing
    has_intercept: ClassVar[bool] = True
    response_width: ClassVar[int] = 1  # how many numbers of an encoded row are its outcome
    noisy_rounds: ClassVar[int] = 0  # with noise; 0: nothing bounds what a row changes
    # Statistics of predictions, by which fits are validated; "": there are none.
    validation: ClassVar[str] = ""

    design: Design  # the columns
    penalty: float = 0.0  # half of it times the squares of coefficients of standardised columns
    max_rounds: int = 12  # in which sums are taken, the moments included
    min_rows_per_column: float = 10.0
    min_cell: int = 0  # rows that each value of a column of 0 and 1 has at least
    folds: int = 0  # of the rows, for validation on rows that were not fitted; 0: no validation

    def __post_init__(self) -> None:
        for name in ("max_rounds", "min_cell", "folds"):
            if not isinstance(getattr(self, name), int):
                raise InputError(f"{name} = {getattr(self, name)!r} must be a whole number")
        for name in ("penalty", "min_rows_per_column"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and 0 <= value < math.inf):
                raise InputError(f"{name} = {value!r} must be a number of at least 0")
        if self.max_rounds < 3:
            raise InputError(f"max_rounds = {self.max_rounds} must be at least 3")
        if self.folds and not self.validation:
            raise InputError(f"folds = {self.folds}: {self.title} is not validated", remedy="use 0")
        if self.folds and not 2 <= self.folds <= MOST_FOLDS:
            raise InputError(f"folds = {self.folds} must be 2 to {MOST_FOLDS}, or 0")

    @classmethod
    def completed(cls, data: Data, options: dict[str, Any]) -> dict[str, Any]:
        """Return options with what the rows say where they are not given, such as ranges."""
        return options

    @property
    @abstractmethod
    def response_columns(self) -> tuple[str, ...]:
        """The columns of data that hold the outcome."""

    @abstractmethod
    def response(self, data: Data) -> Floats:
        """Return the outcome of each row, n × numbers; NaN where it is missing."""

    @abstractmethod
    def mean(self, predictor: Floats) -> Floats:
        """Return what is predicted for linear predictors."""

    @abstractmethod
    def moment_terms(self, columns: Floats, response: Floats) -> list[Term]:
        """Return the sums of the first round beside those of products of columns."""

    @abstractmethod
    def start(self, scale: Scale, moments: list[Floats]) -> State:
        """Return the state after the moments; an error if no model can be fitted."""

    @abstractmethod
    def step_terms(self, columns: Floats, response: Floats, state: State) -> list[Term]:
        """Return the sums from which a step follows."""

    @abstractmethod
    def derivatives(self, state: State, scale: Scale, parts: list[Floats]) -> Derivatives | State:
        """Return the loss and its derivatives, without the penalty, from a round's sums; or the
        state to take the sums again with, if they do not give them.
        """

    @abstractmethod
    def scores(self, columns: Floats, response: Floats, state: State) -> Floats:
        """Return derivatives of the rows' own log-likelihoods by coefficients of shares, that of
        the intercept first, which is 0 if there is none.
        """

    @abstractmethod
    def fitted(self, found: Found) -> Fit:
        """Return the fit."""

    def event_count(self, moments: list[Floats]) -> int | None:
        """Return the number of positive rows, or of those with an event; None: there are none."""
        return None

    def without_intercept(self, found: Found) -> Fit:
        """Return the fit in units of the data, of a model that has no intercept."""
        scale, design = found.scale, self.design
        widths = design.high - design.low
        units = scale.deviation * widths
        robust = None
        if found.products is not None:
            robust = found.sandwich(found.products) / np.multiply.outer(units, units)
        return Fit(
            self,
            self.coefficient_names,
            found.coefficients / units,
            found.inverse / np.multiply.outer(units, units),
            robust,
            round(scale.n),
            self.event_count(found.moments),
            found.state.rounds,
            design.low + scale.mean * widths,
            -found.last.loss,
            -found.state.null_loss,
            level=found.level,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of data that are read."""
        return tuple(dict.fromkeys([*self.design.columns, *self.response_columns]))

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        """The names of the coefficients."""
        return (INTERCEPT,) * self.has_intercept + self.design.names

    def rows(self, data: Data) -> Encoded:
        """Return the encoded rows of data that are complete: columns as shares, then response, and
        last, if there are folds, the row's.
        """
        for name in self.columns:
            if name not in data.columns:
                raise unknown(f"column of {data.name}", name, data.columns)
        logged, log = data.logged()
        with naming(self.title):
            x = self.encode(logged)
            kept: Booleans = np.asarray(np.isfinite(x).all(axis=1))
            data.check_row_count(int(kept.sum()))
        x = x if kept.all() else x[kept]
        if self.folds:
            x = np.column_stack([x, folds_of(x, self.folds)])
        return Encoded(x, kept, tuple(log.columns), log.assumed)

    def encode(self, data: Data) -> Floats:
        """Return the numbers of each row that its features depend on."""
        return np.column_stack([self.design.encode(data), self.response(data)])

    @staticmethod
    def first() -> State:
        """Return the state before any sums."""
        return State()

    def _states(self, state: State) -> list[State]:
        """Return the state of the fit to all rows, then of those without each fold."""
        others = state.others
        if state.rounds == 0:
            others = (replace(state, has_products=False),) * self.folds
        return [replace(state, others=()), *others]

    def terms(self, rows: Floats, state: State) -> list[Term]:
        """Return the sums of the round that a state is for."""
        columns, response = self._split(rows)
        if state.before is not None:
            return self._own_terms(columns, response, state)
        own, *others = self._states(state)
        terms = self._own_terms(columns, response, own)
        for fold, other in enumerate(others):
            is_kept = rows[:, -1] != fold
            terms += [
                term._replace(weights=term.weights * is_kept)
                for term in self._own_terms(columns, response, other)
            ]
        return terms

    def weighted_terms(self, rows: Floats, state: State) -> Iterator[Term]:
        """Yield the sums with columns from which a step follows, of each fit over its rows."""
        if state.rounds == 0 or state.before is not None:
            return
        for number, own in enumerate(self._states(state)):
            kept = rows[rows[:, -1] != number - 1] if number else rows
            yield from (term for term in self.step_terms(*self._split(kept), own) if term.order)

    def _own_terms(self, columns: Floats, response: Floats, state: State) -> list[Term]:
        if state.before is not None:  # of whose features there are no products
            size = self.validation_layout(state).size
            return [Term(columns[:, 0], columns, 0, np.zeros(len(columns), dtype=np.int64), size)]
        if state.rounds == 0:
            products = Term(columns[:, 0], columns, 2)
            return [products, *self.moment_terms(columns, response)]
        terms = self.step_terms(columns, response, state)
        if state.is_last and state.has_products:
            scores = self._scaled_scores(columns, response, state)
            is_beyond = np.any(np.abs(scores) > 1, axis=1).astype(np.float64)
            shares = np.column_stack([columns[:, 0], np.clip((1 + scores) / 2, 0.0, 1.0)])
            terms += [Term(is_beyond, columns, 0), Term(columns[:, 0], shares, 2)]
        return terms

    def share_coefficients(self, state: State) -> Floats:
        """Return the coefficients of shares; without an intercept, predictors are 0 at means."""
        none = [] if self.has_intercept else [0.0]
        return self.scale(state).to_shares(np.array([*none, *state.coefficients]))

    def predictor(self, columns: Floats, state: State) -> Floats:
        """Return the linear predictors of rows."""
        return project(columns, self.share_coefficients(state)[None])[:, 0]

    @property
    def outcome_unit(self) -> tuple[float, float]:
        """How linear predictors become those in units of the data: a factor and what is added."""
        return 1.0, 0.0

    def validation_layout(self, state: State) -> Layout:
        """Return the sums of the round of validation."""
        return VALIDATION[self.name](self, state)

    def time_edges(self, state: State, bins: int) -> tuple[float, ...]:
        """Return edges between about so many bins of places among the declared times, with about
        as many events in each; none if the model knows no times.
        """
        return ()

    def validation_score(self, predictors: Floats, state: State) -> Floats:
        """Return linear predictors as numbers from 0 to 1, of which a validation takes sums."""
        return self.mean(predictors)

    def validation_outcome(self, response: Floats) -> dict[str, Floats]:
        """Return the columns that predictions are compared with."""
        return {"outcome": response[:, 0]}

    def out_of_fold(self, rows: Floats, state: State) -> Floats:
        """Return the linear predictor of each row by the fit without its fold."""
        without = np.array([self.share_coefficients(one) for one in state.others])
        return self.predictors_of_folds(rows, without)

    def predictors_of_folds(self, rows: Floats, coefficients: Floats) -> Floats:
        """Return the linear predictor of each row by the coefficients of shares for its fold."""
        columns, _ = self._split(rows)
        each = project(columns, coefficients)
        return np.asarray(each[np.arange(len(rows)), rows[:, -1].astype(np.int64)])

    def _validation_features(self, rows: Floats, state: State) -> Features:
        columns, response = self._split(rows)
        predictors = self.out_of_fold(rows, state), self.predictor(columns, state)
        scores = [self.validation_score(one, state) for one in predictors]
        return validation_features(
            self.validation_layout(state),
            {**dict(zip(PREDICTIONS, scores, strict=True)), **self.validation_outcome(response)},
        )

    def _scaled_scores(self, columns: Floats, response: Floats, state: State) -> Floats:
        """Return the rows' own derivatives as shares of the most that they are expected to be."""
        scores = self._standard_scores(columns, response, state)
        return solve_lower(self._root(state), scores.T).T / self._most(state)

    def _standard_scores(self, columns: Floats, response: Floats, state: State) -> Floats:
        """Return the rows' own derivatives by coefficients of standardised columns."""
        scale = self.scale(state)
        scores = self.scores(columns, response, state)
        slopes = (scores[:, 1:] - scores[:, :1] * scale.mean) / scale.deviation
        return np.column_stack([scores[:, :1], slopes]) if self.has_intercept else slopes

    def _root(self, state: State) -> Floats:
        size = len(self.coefficient_names)
        return np.array(state.root).reshape(size, size)

    @staticmethod
    def _most(state: State) -> float:
        return state.spread / math.sqrt(state.moments[0])

    def _split(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return the columns of encoded rows, with 1 first, and the response."""
        size = len(self.design.names)
        response = rows[:, size : size + self.response_width]
        return np.column_stack([np.ones(len(rows)), rows[:, :size]]), response

    def empty_terms(self, state: State) -> list[Term]:
        """Return the terms of no rows, which say how many sums there are."""
        return self.terms(self._no_rows(), state)

    def _no_rows(self) -> Floats:
        return np.zeros((0, self.row_width))

    @property
    def row_width(self) -> int:
        """How many numbers an encoded row has."""
        return len(self.design.names) + self.response_width + bool(self.folds)

    def size(self, state: State) -> int:
        """Return how many sums the round has that a state is for."""
        return sum(term.size for term in self.empty_terms(state))

    def _own_empty_terms(self, state: State) -> list[Term]:
        return self._own_terms(*self._split(self._no_rows()), state)

    def features(self, rows: Floats, state: State) -> Features:
        """Return the features of encoded rows, each from 0 to 1, and their places in the sums."""
        if state.before is not None:
            return self._validation_features(rows, state)
        places, values, start = [], [], 0
        for term in self.terms(rows, state):
            first = np.zeros(len(rows), dtype=np.int64) if term.bins is None else term.bins
            places.append(start + first[:, None] * term.length + np.arange(term.length))
            values.append(term.products())
            start += term.size
        return Features(np.hstack(places), np.hstack(values))

    def totals(self, rows: Floats, state: State) -> Floats:
        """Return the sums of the features of encoded rows."""
        found = np.zeros(self.size(state))
        for block in row_blocks(len(rows)):
            if state.before is not None:
                places, values = self._validation_features(rows[block], state)
                found += np.bincount(places.ravel(), values.ravel(), len(found))
            else:
                parts = [term.sums().ravel() for term in self.terms(rows[block], state)]
                found += np.concatenate([np.zeros(0), *parts])
        return found

    def parts(self, state: State, totals: Floats) -> list[Floats]:
        """Return the totals of each term of one fit in a round: bins × length, or length if there
        are no bins.
        """
        parts, start = [], 0
        for term in self._own_empty_terms(state):
            part = totals[start : start + term.size]
            parts.append(part if term.bins is None else part.reshape(term.bin_count, -1))
            start += len(part)
        return parts

    def scale(self, state: State) -> Scale:
        """Return means and standard deviations of the columns."""
        return Scale.of(self.moments(state)[0], self.design.names)

    def moments(self, state: State) -> list[Floats]:
        """Return the totals of the terms of the first round."""
        return self.parts(State(), np.array(state.moments))

    def following(self, state: State, totals: Floats) -> State:
        """Return the state after a round, from its totals over all rows."""
        if state.before is not None:
            return replace(state, rounds=state.rounds + 1, is_done=True)
        before = self._states(state)
        sizes = [sum(term.size for term in self._own_empty_terms(one)) for one in before]
        parts = np.split(totals, np.cumsum(sizes)[:-1])
        after = [self._after(one, part) for one, part in zip(before, parts, strict=True)]
        failure = next((one.failure for one in after if one.failure), "")
        if state.rounds == 0 and not failure:
            failure = self._failure_of_folds(before, parts)
        is_done = bool(failure) or all(one.is_done for one in after)
        found = replace(
            after[0],
            # A fit that is found goes on until all are.
            others=tuple(replace(one, is_done=False) for one in after[1:]),
            is_done=is_done,
            failure=failure,
        )
        if not (self.folds and is_done) or failure or self.name in VALIDATED_BY_MOMENTS:
            return found
        return replace(found, is_done=False, before=before[0], last_totals=tuple(parts[0].tolist()))

    def _failure_of_folds(self, states: Sequence[State], totals: Sequence[Floats]) -> str:
        """Return why sums over one fold, which are differences of those that are shown, are of too
        few rows; "" if they are not.
        """
        everything, *without = (
            self.parts(state, part)[0] for state, part in zip(states, totals, strict=True)
        )
        try:
            for part in without:
                self._check_rows(everything - part)
        except GostaError as error:
            return f"in a fold of the rows, {error}"
        return ""

    def _after(self, state: State, totals: Floats) -> State:
        try:
            is_first = state.rounds == 0
            return (self._started if is_first else self._stepped)(state, totals)
        except GostaError as error:
            return replace(state, rounds=state.rounds + 1, is_done=True, failure=str(error))

    @property
    def _fit_rounds(self) -> int:
        """The rounds that are for fits: without that of validation."""
        return self.max_rounds - bool(self.folds)

    def _started(self, state: State, totals: Floats) -> State:
        moments, names = self.parts(state, totals), self.design.names
        self._check_rows(moments[0])
        scale = Scale.of(moments[0], names)
        if self.penalty == 0:
            scale.require_independent(names)
        found = self.start(scale, moments)
        return replace(
            found,
            rounds=1,
            moments=tuple(totals.tolist()),
            reach=state.reach,
            has_products=state.has_products,
        )

    def _check_rows(self, triangle: Floats) -> None:
        """Raise an error if sums are those of too few rows, or a column of 0 and 1 has one value in
        too few.
        """
        sums, columns = symmetric(triangle, len(self.design.names) + 1), len(self.design.names)
        n, rounding = float(sums[0, 0]), 0.25
        if n < 2:
            raise DataError(f"a model needs at least two complete rows, there are {n:.0f}")
        if n < self.min_rows_per_column * columns:
            raise DataError(
                f"{n:.0f} rows for {numbers.count(columns, 'column')} are fewer than "
                f"{self.min_rows_per_column:g} for each",
                remedy="use fewer columns (min_rows_per_column)",
            )
        for place, name in binary_columns(sums, self.design.names):
            ones = sums[0, place]
            if min(ones, n - ones) < self.min_cell - rounding:
                raise DataError(
                    f"column {name} of the model has fewer than {self.min_cell} rows with one of "
                    "its two values",
                    remedy="join it with another level, or leave it out",
                )

    def _stepped(self, state: State, totals: Floats) -> State:
        scale, rounds = self.scale(state), state.rounds + 1
        parts = self.parts(state, totals)
        found = self.penalised(self.derivatives(state, scale, parts), state)
        if isinstance(found, State):
            return self._checked(replace(found, rounds=rounds), "")
        if state.is_last and state.has_products and parts[-2][0] > 0.5:
            wider = replace(state, rounds=rounds, spread=MORE_SPREAD * state.spread)
            return self._checked(replace(wider, has_products=rounds + 1 < self._fit_rounds), "")
        now, base = np.array(state.coefficients), np.array(state.base)
        room = LOSS_ROUNDING * (abs(state.base_loss) + scale.n)
        if not found.loss <= state.base_loss + room:
            share = _shortened(state, found, dot(found.gradient, now - base))
            nearer = tuple((base + share * (now - base)).tolist())
            shorter = replace(state, coefficients=nearer, slope=share * state.slope, rounds=rounds)
            return self._checked(shorter, "")
        factor = self.factor(found.hessian)
        step = -solve(factor, found.gradient)
        slope = dot(found.gradient, step)
        self._check_size(now + step)
        has_converged = math.sqrt(max(-slope, 0.0)) < CONVERGED
        moved = replace(
            state,
            rounds=rounds,
            coefficients=tuple((now + step).tolist()),
            base=state.coefficients,
            base_loss=found.loss,
            slope=slope,
            null_loss=found.loss if state.null_loss == math.inf else state.null_loss,
            curve=found.curve if has_converged else (),
            root=tuple(factor.ravel().tolist()) if has_converged else (),
            is_last=has_converged,
            is_done=has_converged and (state.is_last or rounds == self._fit_rounds),
        )
        moving = [
            name for name, part in zip(self.coefficient_names, step, strict=True) if abs(part) > 0.1
        ]
        return self._checked(moved, shorten(moving))

    def penalised(self, found: Derivatives | State, state: State) -> Derivatives | State:
        """Return derivatives with those of the penalty."""
        if isinstance(found, State):
            return found
        coefficients = np.array(state.coefficients) * self.penalised_places
        return Derivatives(
            found.loss + self.penalty / 2 * dot(coefficients, coefficients),
            found.gradient + self.penalty * coefficients,
            found.hessian + np.diag(self.penalty * self.penalised_places),
            found.curve,
        )

    @property
    def penalised_places(self) -> Floats:
        """1 for each coefficient with a penalty, 0 for the intercept."""
        return np.array([float(name in self.design.names) for name in self.coefficient_names])

    @staticmethod
    def factor(hessian: Floats) -> Floats:
        """Return the lower triangle of `cholesky`; an error if there is no curvature somewhere."""
        diagonal = np.diagonal(hessian)
        try:
            if not diagonal.min() > 0:
                raise SingularError(int(np.argmin(diagonal)))
            root = np.sqrt(diagonal)
            unit = cholesky(hessian / np.multiply.outer(root, root), LEAST_PIVOT)
        except SingularError:
            raise NumericalError(
                "there is no best fit: the likelihood hardly depends on some coefficients",
                remedy=f"use fewer columns, or {PENALTY}",
            ) from None
        return np.asarray(root[:, None] * unit)

    def _check_size(self, coefficients: Floats) -> None:
        """Raise an error if coefficients grow without end."""
        places = self.penalised_places
        if self.penalty == 0 and np.abs(coefficients * places).max() > MOST_COEFFICIENT:
            names = zip(self.coefficient_names, np.abs(coefficients * places), strict=True)
            raise self.no_optimum(shorten([n for n, size in names if size > MOST_COEFFICIENT]))

    def no_optimum(self, names: str) -> NumericalError:
        """Return the error for coefficients that grow without end."""
        which = f" of {names}" if names else ""
        return NumericalError(
            f"there is no best fit: coefficients{which} grow without end", remedy=PENALTY
        )

    def not_found(self, names: str) -> NumericalError:
        """Return the error for coefficients that still change after as many rounds as may be."""
        which = f" of {names}" if names else ""
        return NumericalError(
            f"no best fit was found in {self.max_rounds} rounds: coefficients{which} still change",
            remedy=f"{PENALTY}, logarithms of columns with few large values, or more rounds "
            "(max_rounds)",
        )

    def _checked(self, state: State, moving: str) -> State:
        """Return a state, or raise an error if there were as many rounds as may be."""
        if state.is_done or state.rounds < self._fit_rounds:
            return state
        raise self.not_found(moving)

    def fit_of(
        self,
        states: Sequence[State],
        totals: Sequence[Floats],
        level: float = 0.95,
        products: Floats | None = None,
    ) -> Fit:
        """Return the fit, from the state before each round, the last one after all, and the totals
        of each round.

        `products` are those of derivatives for robust errors, if not those of the last round.
        """
        before, last = states[-2:]
        if last.failure:
            raise NumericalError(last.failure)
        if before.before is not None:
            alone = replace(last, others=(), before=None)
            own = [np.array(last.last_totals)]
            fit = self.fit_of([before.before, alone], own, level, products)
            results = self.validation_layout(last).results(totals[-1], self.min_cell, level=level)
            return self._validated(fit, results, last)
        scale = self.scale(last)
        parts = self.parts(before, totals[-1])
        derivatives = self.derivatives(before, scale, parts)
        assert not isinstance(derivatives, State)
        full = self.penalised(derivatives, before)
        assert not isinstance(full, State)
        if products is None and before.is_last and before.has_products:
            products = self._score_products(before, parts[-1])
        factor = self.factor(full.hessian)
        moments = self.moments(last)
        fit = self.fitted(Found(last, scale, moments, derivatives, factor, products, level))
        if not last.others:
            return fit
        return self._validated(fit, VALIDATED_BY_MOMENTS[self.name](self, last), last)

    def _validated(self, fit: Fit, results: Sequence[StratumResult], state: State) -> Fit:
        """Return a fit with its validation, and the coefficients without each fold."""
        without = np.array([self.share_coefficients(one) for one in state.others])
        return replace(fit, validation=tuple(results), without_fold=without)

    def _score_products(self, state: State, triangle: Floats) -> Floats:
        """Return the sums of products of the rows' own derivatives."""
        root = self._root(state)
        sums = symmetric(triangle, len(root) + 1)
        n, linear = sums[0, 0], sums[0, 1:]
        # Of shares (1 + score / most) / 2.
        centred = 4 * sums[1:, 1:] - 2 * (linear[:, None] + linear[None, :]) + n
        return product(product(root, centred * self._most(state) ** 2), root.T)

    def fit_rows(self, rows: Floats, level: float = 0.95, groups: Integers | None = None) -> Fit:
        """Return the fit to encoded rows in one place.

        With `groups`, the number of each row's group, robust errors allow rows of a group to depend
        on each other. They count g groups as g / (g − 1), as few groups vary too little.
        """
        # Floats need no bounds of what is summed.
        states, totals = [State(reach=math.inf, has_products=False)], []
        while not states[-1].is_done:
            totals.append(self.totals(rows, states[-1]))
            states.append(self.following(states[-1], totals[-1]))
        before = states[-2].before or states[-2]
        return self.fit_of(states, totals, level, self._products(rows, before, groups))

    def _products(self, rows: Floats, state: State, groups: Integers | None) -> Floats | None:
        """Return sums of products of derivatives of rows, or of sums over groups of rows."""
        if not state.is_last:
            return None
        size = len(self.coefficient_names)
        names, place = np.unique([0] if groups is None else groups, return_inverse=True)
        products, sums = np.zeros((size, size)), np.zeros((size, len(names)))
        for block in row_blocks(len(rows)):
            scores = self._standard_scores(*self._split(rows[block]), state)
            if groups is None:
                products += cross_products(scores, scores)
            else:
                sums += [np.bincount(place[block], one, len(names)) for one in scores.T]
        if groups is None:
            return products
        return product(sums, sums.T) * len(names) / max(len(names) - 1, 1)


class Found(NamedTuple):
    """What a fit is made of."""

    state: State
    scale: Scale
    moments: list[Floats]
    last: Derivatives  # without the penalty
    factor: Floats  # of second derivatives with the penalty: see `Model.factor`
    products: Floats | None  # of the rows' own derivatives, of standardised columns
    level: float

    @property
    def coefficients(self) -> Floats:
        """Return those of standardised columns."""
        return np.array(self.state.coefficients)

    @property
    def inverse(self) -> Floats:
        """Return the inverse of the second derivatives, with the penalty."""
        return inverse(self.factor)

    def sandwich(self, products: Floats) -> Floats:
        """Return the robust covariance for products of derivatives, of standardised columns."""
        return product(product(self.inverse, products), self.inverse)


AnyModel = TypeVar("AnyModel", bound=type[Model])
MODELS: dict[str, type[Model]] = {}
# For models that can be validated, what makes the sums of predictions: see `validation`.
VALIDATION: dict[str, Callable[[Model, State], Layout]] = {}
# For others, what follows from the moments of all folds.
VALIDATED_BY_MOMENTS: dict[str, Callable[[Model, State], list[StratumResult]]] = {}


def model(name: str, title: str, ratio: str = "") -> Callable[[AnyModel], AnyModel]:
    """Register a model by its name."""

    def register(made: AnyModel) -> AnyModel:
        made.name, made.title, made.ratio = name, title, ratio
        MODELS[name] = made
        return made

    return register


def find_model(name: str) -> type[Model]:
    """Return the model of a name; an error that lists the names if there is none."""
    if name not in MODELS:
        raise unknown("model", name, MODELS)
    return MODELS[name]


def make_model(name: str, design: Design, data: Data | None = None, **options: Any) -> Model:
    """Return a model; with rows in one place, what options do not say follows from these."""
    made = find_model(name)
    known = [one.name for one in fields(made) if one.name != "design"]
    for option in options:
        if option not in known:
            raise InputError(
                f"{name} has no option {option!r}", remedy=f"options are: {', '.join(known)}"
            )
    needed = [one.name for one in fields(made) if one.default is MISSING and one.name != "design"]
    if data is not None:
        options = made.completed(data, options)
    for option in needed:
        if option not in options:
            raise InputError(f"{name} needs {option}")
    return made(design=design, **options)


def binary_columns(sums: Floats, names: Sequence[str]) -> list[tuple[int, str]]:
    """Return places and names of columns of 0 and 1, for sums of products of columns, the first
    being 1.

    A column of small shares of its range has about the same sum as sum of squares, too.
    """
    n, ones, squares = sums[0, 0], sums[0], np.diagonal(sums)
    has_both = np.minimum(ones, n - ones) > 0.5
    places = np.flatnonzero(has_both & (np.abs(squares - ones) < 0.25)).tolist()
    return [(place, names[place - 1]) for place in places]


def _shortened(state: State, found: Derivatives, slope: float) -> float:
    """Return the share of a step at which a cubic with the known values and slopes is least."""
    if not math.isfinite(found.loss) or not math.isfinite(slope):
        return SHORTEST
    bend = 3 * (state.base_loss - found.loss) + state.slope + slope
    inside = bend * bend - state.slope * slope
    below = slope - state.slope + 2 * math.sqrt(max(inside, 0.0))
    share = 1 - (slope + math.sqrt(max(inside, 0.0)) - bend) / below if below > 0 else SHORTEST
    return min(max(share, SHORTEST), LONGEST)
