"""The sums of one round of a fit, as private sums take them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import GostaError, InputError
from gosta.models.definition import Model, State
from gosta.models.effective_rows import few_rows
from gosta.models.fit import Fit
from gosta.runtime.arrays import Booleans, Floats, Integers, Words
from gosta.sketches.definition import MOST_ROWS, Features
from gosta.sketches.layout_builder import MOST_NUMBERS
from gosta.sketches.results import StratumResult, Values, known, no_result

BITS = 40  # binary digits of a feature after the point, or fewer where there are many rows
# What a round shows, by how many columns are multiplied.
SHOWN = ("weights", "weighted columns", "weighted products of columns")
NUMBERS_PER_CHUNK = 1 << 18  # of features at a time, which fit into a processor's cache
LEVEL = 0.95  # of intervals where none is asked for
# Of a number of an encoded row, when rows are compared: far below what sums of rows show.
COMPARED_BITS = 40


@dataclass(frozen=True)
class FitLayout:
    """The sums of the round of a fit that a state is for; implements `Sums`."""

    model: Model
    state: State

    @classmethod
    def first(cls, model: Model) -> FitLayout:
        """Return the sums of the first round."""
        return cls(model, model.first())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FitLayout) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @cached_property
    def size(self) -> int:
        return int(self.model.size(self.state))

    @property
    def width(self) -> int:
        return self.model.row_width

    @property
    def bits(self) -> int:
        return BITS

    @cached_property
    def features_per_row(self) -> int:
        return int(self.features(np.zeros((0, self.width))).values.shape[1])

    @property
    def most_features(self) -> int:
        columns = self.width + 2  # with an intercept, products of these are taken three times
        return (1 + self.model.folds) * 3 * columns * (columns + 1) // 2

    @property
    def squared_change(self) -> float:
        return 2.0 * self.features_per_row

    @property
    def budget_share(self) -> float:
        return 1.0

    @property
    def least_feature(self) -> float:
        return 0.0

    @property
    def are_counts(self) -> bool:
        return False

    @property
    def bins(self) -> int:
        return 1

    @property
    def statistics(self) -> tuple[str, ...]:
        return (name_of(self.model),)

    @property
    def rows_per_column(self) -> float:
        return self.model.min_rows_per_column

    @property
    def columns(self) -> tuple[str, ...]:
        return self.model.columns

    @property
    def strata(self) -> tuple[str, ...]:
        return ()

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:
        return self.model.design.ranges

    @cached_property
    def _settings(self) -> str:
        """What the sums depend on but rows and the state."""
        # Other sites may ask for larger cells in one epoch than in the next.
        settings = asdict(replace(self.model, min_cell=0))
        return json.dumps([self.model.name, settings], default=str, sort_keys=True)

    @cached_property
    def fingerprint(self) -> str:
        return _digest([self._settings, asdict(self.state)])

    @cached_property
    def encoding(self) -> str:
        return _digest(["rows", self._settings])

    @cached_property
    def blocks(self) -> tuple[str, ...]:
        """One for each number of an encoded row, whose sums are others in every round."""
        return tuple(_digest([place, self._settings]) for place in range(self.width))

    @property
    def numbers(self) -> str:
        return f"{self.size:,} (in the first round)"

    @property
    def shown(self) -> str:
        """What the total of this round shows of the rows of all sites, in words."""
        rounds, parts = self.state.rounds, []
        alone = replace(self.model, folds=0)
        for term in alone.empty_terms(replace(self.state, others=())):
            of_bins = f" in each of {term.bin_count:,} bins" if term.bin_count > 1 else ""
            parts.append(f"{SHOWN[term.order]}{of_bins} ({term.bin_count * term.length:,})")
        if self.state.before is not None:
            what = "sums of predictions by the fits without each fold, and by that to all rows"
            return f"{what} ({self.size:,})"
        over = f"over {self.state.moments[0]:,.0f} rows" if rounds else "over all rows"
        where = f"at the coefficients after round {rounds}" if rounds else "moments"
        without = f"; the same without each of {self.model.folds} folds"
        sums = f"sums of {', '.join(parts)}{without * (self.model.folds > 0)}"
        return f"{where}, {over}: {sums}"

    @property
    def final(self) -> FitLayout:
        return self

    def describe(self) -> dict[str, str]:
        design = self.model.design
        return {
            "statistics": f"{self.model.name} ({self.model.title})",
            "rounds": f"at most {self.model.max_rounds}: the first one takes moments, and each "
            "other one the loss and its first and second derivatives at the coefficients so far",
            "outcome": ", ".join(self.model.response_columns),
            "terms": ", ".join(design.terms),
            "columns": ", ".join(self.columns),
            **{f"model column {name}": words for name, words in design.describe()},
            "penalty": f"{self.model.penalty:g}" if self.model.penalty else "",
            "numbers": f"{self.numbers}; a row adds to {self.features_per_row} of them",
            "layout": self.fingerprint,
        }

    def encode(self, data: Data) -> Floats:
        return self.model.rows(data).x

    def complete_rows(self, data: Data) -> Booleans:
        return self.model.rows(data).kept

    def features(self, rows: Floats) -> Features:
        """Return the features of encoded rows."""
        return self.model.features(rows, self.state)

    def sums(self, x: Floats, bits: int = BITS) -> Words:
        sums = np.zeros(self.size, dtype=np.int64)
        step = max(16, NUMBERS_PER_CHUNK // self.features_per_row)
        for start in range(0, len(x), step):
            places, values = self.features(x[start : start + step])
            rounded = np.floor(values * 2.0**bits + 0.5)
            sums += np.bincount(places.ravel(), rounded.ravel(), self.size).astype(np.int64)
        return sums.view(np.uint64)

    def block_features(self, x: Floats) -> Iterator[tuple[str, Integers]]:
        for name, column in zip(self.blocks, x.T, strict=True):
            yield name, np.floor(column * 2.0**COMPARED_BITS + 0.5).astype(np.int64)[:, None]

    def is_plausible(self, totals: Floats, tolerance: float, most_rows: float = MOST_ROWS) -> bool:
        n = totals[0] if self.state.rounds == 0 else self.state.moments[0]
        room = 0.5 + tolerance
        is_count = 0 <= round(n) <= most_rows and abs(n - round(n)) < room
        return bool(is_count and totals.min() > -room and totals.max() < n + room)

    def few_rows(self, x: Floats) -> str:
        return few_rows(self.model, x, self.state)

    def following(self, totals: Floats, min_cell: int = 0) -> FitLayout | None:
        state = self._after(totals, min_cell)
        following = FitLayout(self.model, state)
        return None if state.is_done else following

    def _with_cells(self, min_cell: int) -> Model:
        return replace(self.model, min_cell=max(min_cell, self.model.min_cell))

    def _after(self, totals: Floats, min_cell: int = 0) -> State:
        model = self._with_cells(min_cell)
        state = model.following(self.state, totals)
        if not state.is_done and model.size(state) > MOST_NUMBERS:
            what = f"the model takes {model.size(state):,} sums, at most {MOST_NUMBERS:,} are"
            return replace(state, is_done=True, failure=f"{what} possible; use fewer columns")
        return state

    def fit(
        self, totals: Floats, level: float = LEVEL, min_cell: int = 0, noise_variance: float = 0.0
    ) -> Fit:
        """Return the fit that the totals of the last round give; an error if there is none."""
        states = [self.state, self._after(totals, min_cell)]
        return self._with_cells(min_cell).fit_of(states, [totals], level)

    def results(
        self,
        totals: Floats,
        min_cell: int = 0,
        noise_variance: float = 0.0,
        level: float | None = None,
        bits: int = BITS,
    ) -> list[StratumResult]:
        try:
            fit = self.fit(totals, level or LEVEL, min_cell, noise_variance)
        except GostaError as error:
            return [no_result(name_of(self.model), "", str(error))]
        return [result_of(fit, level), *fit.validation]

    def exact_values(self, x: Floats) -> list[Values | None]:
        """Return the coefficients over encoded rows in one place, and None for other results."""
        try:
            fit = self.model.fit_rows(x)
            return [known(fit.coefficients), *(None for _ in fit.validation)]
        except GostaError:
            return [None]


def check_size(layout: FitLayout) -> None:
    """Raise `InputError` for a model of which a site would have to send too many numbers."""
    if layout.size > MOST_NUMBERS:
        columns = len(layout.model.design.names)
        raise InputError(
            f"the model has {columns:,} columns, and takes {layout.size:,} sums, at most "
            f"{MOST_NUMBERS:,} are possible",
            remedy="use fewer columns, or factors of fewer levels",
        )


def name_of(model: Model) -> str:
    """Return the name of a model as policies and results have it: "auc" is a statistic, too."""
    return f"fit-{model.name}"


def result_of(fit: Fit, level: float | None = None) -> StratumResult:
    """Return the coefficients of a fit as the result of a statistic with several values."""
    values = known(fit.coefficients)
    ends = zip(known(fit.low), known(fit.high), strict=True)
    return no_result(name_of(fit.model), "")._replace(
        has_value=True,
        is_fit=True,
        value=values,
        low=values,
        high=values,
        labels=fit.names,
        rows=float(fit.n),
        intervals=() if level is None else tuple(ends),
        standard_errors=known(fit.standard_errors),
        p_values=known(fit.p_values),
    )


def _digest(content: Any) -> str:
    text = json.dumps(content, default=str, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
