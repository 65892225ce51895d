"""Measures of a score by two classes at thresholds: shares of rows, usefulness of decisions.

An encoded row is a score, and +1 for the positive class or −1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gosta.errors import InputError
from gosta.measures.definition import Measure, Measured, measure, numbers_of
from gosta.runtime.arrays import Floats
from gosta.statistics import encode

RISKS = tuple(k / 100 for k in range(1, 100))  # thresholds of a decision curve


class Ratio(NamedTuple):
    """A quotient of two sums of true positives, false positives, false and true negatives.

    It rises with the true positives and falls with the false ones.
    """

    top: tuple[int, int, int, int]  # how each of the four counts
    bottom: tuple[int, int, int, int]
    by_odds: bool = False  # whether negative rows count by the odds of the threshold, in the top

    def points(self, thresholds: Any) -> Floats:
        """Return thresholds in order."""
        bounds = (0.0, 1.0) if self.by_odds else (-np.inf, np.inf)
        found = numbers_of("thresholds", thresholds, bounds)
        if self.by_odds and found[-1] == 1:
            raise InputError(f"thresholds = {thresholds!r} must be less than 1, where odds end")
        return found

    def over(self, cells: Floats, at: Floats) -> tuple[Floats, Floats]:
        """Return the values of the four numbers at thresholds, 4 × n, and its derivatives."""
        top, bottom = (np.array(one, dtype=np.float64)[:, None] for one in (self.top, self.bottom))
        if self.by_odds:
            odds = at / (1 - at)
            top = top * np.array([np.ones_like(at), odds, np.ones_like(at), odds])
        number = (bottom * cells).sum(axis=0)
        values = np.where(number > 0, (top * cells).sum(axis=0) / number, np.nan)
        return values, (top - values * bottom) / number

    def rows(self, cells: Floats) -> Floats:
        """Return the rows that the values rest on."""
        return np.asarray((np.array(self.bottom) > 0) @ cells)


RATIOS = {
    "sensitivity": Ratio((1, 0, 0, 0), (1, 0, 1, 0)),
    "specificity": Ratio((0, 0, 0, 1), (0, 1, 0, 1)),
    "positive-predictive-value": Ratio((1, 0, 0, 0), (1, 1, 0, 0)),
    "negative-predictive-value": Ratio((0, 0, 0, 1), (0, 0, 1, 1)),
    "f1-score": Ratio((2, 0, 0, 0), (2, 1, 1, 0)),
    "net-benefit": Ratio((1, -1, 0, 0), (1, 1, 1, 1), by_odds=True),
    "net-benefit-of-all": Ratio((1, -1, 1, -1), (1, 1, 1, 1), by_odds=True),
}


def cells_at(x: Floats, weights: Floats, thresholds: Floats) -> Floats:
    """Return true positives, false positives, false negatives and true negatives: 4 × thresholds.

    A row is positive by its score if that is at least the threshold.
    """
    above, below = [], []
    for chosen in (x[:, 1] > 0, x[:, 1] < 0):
        order = np.argsort(x[chosen, 0])
        sums = np.append(0.0, np.cumsum(weights[chosen][order]))
        found = sums[np.searchsorted(x[chosen, 0][order], thresholds, side="left")]
        above.append(sums[-1] - found)
        below.append(found)
    return np.array([*above, *below])


def ratio_errors(slopes: Floats, squares: Floats, rows: float) -> Floats:
    """Return the standard errors of ratios with these derivatives by the four numbers.

    `squares` has the sums of squared weights in the four, `rows` how many rows there are.
    """
    return np.asarray(np.sqrt((slopes**2 * squares).sum(axis=0) * rows / (rows - 1)))


def threshold_labels(thresholds: Floats) -> tuple[str, ...]:
    """Return what values at thresholds are for."""
    return tuple(f"score >= {threshold:g}" for threshold in thresholds)


def _at_thresholds(name: str, x: Floats, weights: Floats, thresholds: Any) -> Measured:
    ratio = RATIOS[name]
    at = ratio.points(thresholds)
    cells, squares = cells_at(x, weights, at), cells_at(x, weights**2, at)
    values, slopes = ratio.over(cells, at)
    errors = ratio_errors(slopes, squares, float((weights > 0).sum()))
    trials = np.nan_to_num(ratio.rows(cells) ** 2 / ratio.rows(squares))
    return Measured(values, labels=threshold_labels(at), at=at, trials=trials, errors=errors)


def _share(what: str) -> Callable[[Callable[..., Measured]], Measure]:
    """Return the decorator of a share of rows at each of several thresholds."""
    return measure(encode=encode.scored, bounds=(0.0, 1.0), scale="share", axes=("threshold", what))


@_share("sensitivity")
def sensitivity(x: Floats, weights: Floats, thresholds: Any = 0.5) -> Measured:
    """Share of the positive rows whose score is at least a threshold: recall, true positive
    rate.
    """
    return _at_thresholds("sensitivity", x, weights, thresholds)


@_share("specificity")
def specificity(x: Floats, weights: Floats, thresholds: Any = 0.5) -> Measured:
    """Share of the negative rows whose score is below a threshold: 1 less the false positive
    rate.
    """
    return _at_thresholds("specificity", x, weights, thresholds)


@_share("positive predictive value")
def positive_predictive_value(x: Floats, weights: Floats, thresholds: Any = 0.5) -> Measured:
    """Share of positive rows among those whose score is at least a threshold: precision."""
    return _at_thresholds("positive-predictive-value", x, weights, thresholds)


@_share("negative predictive value")
def negative_predictive_value(x: Floats, weights: Floats, thresholds: Any = 0.5) -> Measured:
    """Share of negative rows among those whose score is below a threshold."""
    return _at_thresholds("negative-predictive-value", x, weights, thresholds)


@measure(encode=encode.scored, bounds=(0.0, 1.0), scale="logit", axes=("threshold", "F1 score"))
def f1_score(x: Floats, weights: Floats, thresholds: Any = 0.5) -> Measured:
    """Harmonic mean of precision and recall at a threshold."""
    return _at_thresholds("f1-score", x, weights, thresholds)


@measure(encode=encode.risk, bounds=(-np.inf, 1.0), axes=("threshold", "net benefit"))
def net_benefit(x: Floats, weights: Floats, thresholds: Any = RISKS) -> Measured:
    """Net benefit of treating rows whose predicted risk is at least a threshold t: true positives
    less t/(1 - t) false positives, by rows.
    """
    return _at_thresholds("net-benefit", x, weights, thresholds)


@measure(encode=encode.risk, bounds=(-np.inf, 1.0), axes=("threshold", "net benefit"))
def net_benefit_of_all(x: Floats, weights: Floats, thresholds: Any = RISKS) -> Measured:
    """Net benefit of treating all rows, by a threshold t that says what a false positive costs."""
    return _at_thresholds("net-benefit-of-all", x, weights, thresholds)
