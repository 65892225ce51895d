"""Measures of a score by two classes over all thresholds: curves, and areas below them.

An encoded row is a score, and +1 for the positive class or −1. All measures here are functions of
the rows of each class at, or from, each score. Counts in bins are such rows too, so the sketches of
the same names call the same functions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gosta.errors import InputError
from gosta.measures.definition import Measured, measure, numbers_of
from gosta.runtime.arrays import Booleans, Floats, Integers
from gosta.statistics import encode

ROUNDING = 1e-12  # relative, of sums of weights
RATES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
RECALLS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Groups(NamedTuple):
    """Rows with the same score, the highest first."""

    scores: Floats
    counts: Floats  # weights of positive and of negative rows: 2 × groups
    of_row: Integers  # the group of each row

    @property
    def reached(self) -> Floats:
        """Return the weights of rows with at least each score: 2 × groups."""
        return np.cumsum(self.counts, axis=1)


def grouped(x: Floats, weights: Floats) -> Groups:
    """Return the groups of encoded rows; rows of weight 0 have none, or that of others."""
    scores = np.unique(x[weights > 0, 0])[::-1]
    of_row = np.minimum(np.searchsorted(-scores, -x[:, 0]), len(scores) - 1)
    counts = [
        np.bincount(of_row[chosen], weights[chosen], len(scores))
        for chosen in (x[:, 1] > 0, x[:, 1] < 0)
    ]
    return Groups(scores, np.array(counts), of_row)


def equal_rows(weights: Floats, chosen: Booleans | None = None) -> float:
    """Return how many rows of equal weight tell as much as these (Kish's effective size)."""
    own = weights if chosen is None else weights[chosen]
    return float(own.sum() ** 2 / (own**2).sum())


@measure(
    encode=encode.scored,
    bounds=(0.0, 1.0),
    scale="share",
    axes=("false positive rate", "true positive rate"),
)
def roc_curve(x: Floats, weights: Floats, rates: Any = None) -> Measured:
    """Points of the ROC curve: at all scores, or the highest true positive rate with a false
    positive rate of at most each of `rates`.

    The interval at a score is that of a share of the positive rows; at a rate it holds that the
    score with this rate is not known for certain.
    """
    groups = grouped(x, weights)
    true, false = _from_none(groups.reached)
    true = np.where(np.isnan(false), np.nan, true)
    positives, negatives = (equal_rows(weights, chosen) for chosen in (x[:, 1] > 0, x[:, 1] < 0))
    if rates is None:
        labels = tuple(f"score >= {score:g}" for score in (np.inf, *groups.scores))
        return _shares(true, np.full(len(true), positives), labels, false)
    at, labels = roc_points(rates)
    values = true[np.searchsorted(false, at * (1 + ROUNDING), side="right") - 1]
    errors, trials = roc_errors((false, true), at, values, (positives, negatives))
    return Measured(values, labels=labels, at=at, errors=errors, trials=trials)


def roc_points(rates: Any) -> tuple[Floats, tuple[str, ...]]:
    """Return false positive rates in order, and what the values there are for."""
    at = numbers_of("rates", rates, (0.0, 1.0))
    return at, tuple(f"false positive rate {rate:g}" for rate in at)


def roc_errors(
    curve: tuple[Floats, Floats], at: Floats, values: Floats, rows: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Return the standard errors of true positive rates at false positive rates.

    With them comes of how many independent rows a share would have this error. One part is that of
    a share of the positive rows; the other is how far the curve rises while its false positive rate
    changes by its own standard error (Hsieh and Turnbull 1996, with a slope over this distance).
    `curve` has both rates, `rows` the positive and the negative rows.
    """
    positives, negatives = rows
    reach = np.sqrt(at * (1 - at) / negatives)
    moved = (_read(curve, at + reach) - _read(curve, at - reach)) / 2
    shrunk = (values * positives + 1) / (positives + 2)  # also all of a few rows have an error
    errors = np.sqrt(shrunk * (1 - shrunk) / positives + moved**2)
    return errors, shrunk * (1 - shrunk) / errors**2


def _read(curve: tuple[Floats, Floats], at: Floats) -> Floats:
    """Return the highest ordinates of a rising curve, between points by interpolation."""
    last = np.append(np.diff(curve[0]) > 0, True)
    return np.asarray(np.interp(at, curve[0][last], curve[1][last]))


def _from_none(reached: Floats) -> Floats:
    """Return rows of both classes as shares, with a first point that no row reaches."""
    shares = reached / reached[:, -1:]
    return np.column_stack([0 * shares[:, -1], shares])  # NaN for a class without rows


def _shares(
    values: Floats, trials: Floats, labels: tuple[str, ...], at: Floats | None = None
) -> Measured:
    """Return shares of independent rows."""
    errors = np.sqrt(values * (1 - values) / trials)
    return Measured(values, labels=labels, at=at, trials=trials, errors=errors)


@measure(encode=encode.scored, bounds=(0.0, 1.0), scale="share", axes=("recall", "precision"))
def precision_recall_curve(x: Floats, weights: Floats, recalls: Any = None) -> Measured:
    """Points of the precision-recall curve: at all scores, or the precision at the highest score
    from which on each of `recalls` is reached.

    Precision is the positive share of the rows from a score on, recall the share of the positive
    rows that are among them.
    """
    groups = grouped(x, weights)
    reached = groups.reached
    recall, precision = reached[0] / reached[0, -1], reached[0] / reached.sum(axis=0)
    precision = np.where(np.isnan(recall), np.nan, precision)
    if recalls is None:
        squares = grouped(x, weights**2).reached.sum(axis=0)
        labels = tuple(f"score >= {score:g}" for score in groups.scores)
        return _shares(precision, reached.sum(axis=0) ** 2 / squares, labels, recall)
    at, labels = recall_points(recalls)
    values = precision[np.searchsorted(recall, at * (1 - ROUNDING), side="left")]
    rows = equal_rows(weights, x[:, 1] > 0), equal_rows(weights, x[:, 1] < 0)
    errors, trials = recall_errors(_from_none(reached), at, rows)
    return Measured(values, labels=labels, at=at, errors=errors, trials=trials)


def recall_points(recalls: Any) -> tuple[Floats, tuple[str, ...]]:
    """Return recalls in order, and what the values there are for."""
    at = numbers_of("recalls", recalls, (0.0, 1.0))
    if not at[0] > 0:
        raise InputError(f"recalls = {recalls!r} must be more than 0: no row gives no precision")
    return at, tuple(f"recall {recall:g}" for recall in at)


def recall_errors(shares: Floats, at: Floats, rows: tuple[float, float]) -> tuple[Floats, Floats]:
    """Return the standard errors of precisions at recalls.

    With them comes of how many independent rows a share would have this error. The logarithm of
    the odds of a precision is that of the odds of the classes, plus that of the recall, less that
    of the false positive rate, which has the error of `roc_errors` with the classes exchanged.
    `shares` has the rates of both classes along the curve.
    """
    positives, negatives = rows
    recall, false = shares
    first = np.append(True, np.diff(recall) > 0)
    curve = (recall[first], false[first])
    reach = np.sqrt(at * (1 - at) / positives)
    moved = (_read(curve, at + reach) - _read(curve, at - reach)) / 2
    rate = (_read(curve, at) * negatives + 0.5) / (negatives + 1)  # also no row has an error
    variance = 1 / positives + 1 / negatives + (1 - rate) / (rate * negatives) + (moved / rate) ** 2
    precision = positives * at / (positives * at + negatives * rate)
    spread = precision * (1 - precision)
    return spread * np.sqrt(variance), 1 / (spread * variance)


class Area(NamedTuple):
    """An area, and its derivatives by the positive and by the negative rows of each group."""

    value: float
    by_positive: Floats
    by_negative: Floats

    def measured(self, groups: Groups, x: Floats, weights: Floats) -> Measured:
        """Return the area as a value of which every row has a part.

        Both classes add their variances, each estimated from its own rows.
        """
        variance, trials, slopes = 0.0, np.inf, np.zeros(len(x))
        for chosen, by_group in ((x[:, 1] > 0, self.by_positive), (x[:, 1] < 0, self.by_negative)):
            slopes[chosen] = by_group[groups.of_row[chosen]]
            rows = float((weights[chosen] > 0).sum())
            squares = (weights[chosen] * slopes[chosen]) ** 2
            variance += float(squares.sum()) * rows / max(rows - 1, 1.0)
            trials = min(trials, equal_rows(weights, chosen))
        return Measured(
            np.array([self.value]),
            (weights.sum() * slopes)[:, None],
            errors=np.array([np.sqrt(variance)]),
            trials=np.array([trials]),
        )


@measure(encode=encode.scored, bounds=(0.0, 1.0), scale="logit")
def average_precision(x: Floats, weights: Floats) -> Measured:
    """Mean precision over the positive rows: the area under the steps of the precision-recall
    curve.
    """
    groups = grouped(x, weights)
    return precision_area(groups.counts).measured(groups, x, weights)


def precision_area(
    counts: Floats, places: Floats | None = None, shares: Floats | None = None, offset: float = 0.0
) -> Area:
    """Return the mean precision over positive rows, of groups with the highest scores first.

    Rows of a group have one score; or, if `places` in it are given with their shares of its rows,
    are spread over it. Then `offset` is what the place of a row counts it itself.
    """
    positive, negative = counts
    steps = np.ones((1, 1)) if places is None else places[:, None]
    mixed = np.ones(1) if shares is None else shares
    before = np.cumsum(counts, axis=1) - counts
    true = before[0] + offset + steps * positive
    false = before[1] + steps * negative
    rows = np.maximum(true + false, ROUNDING)  # more than 0, also in groups without rows
    precision, total = mixed @ (true / rows), positive.sum()
    value = min(float(positive @ precision / total), 1.0)  # the sum is rounded
    by_true, by_false = positive * (false / rows**2), -positive * (true / rows**2)
    later = [_sums_after(mixed @ slope) for slope in (by_true, by_false)]
    own = [(mixed * steps[:, 0]) @ slope for slope in (by_true, by_false)]
    by_positive = (precision - value + own[0] + later[0]) / total
    return Area(value, by_positive, (own[1] + later[1]) / total)


def _sums_after(values: Floats) -> Floats:
    return np.asarray(values.sum() - np.cumsum(values))


@measure(encode=encode.scored, bounds=(0.0, 1.0), scale="logit")
def partial_auc(x: Floats, weights: Floats, max_fpr: float = 0.1) -> Measured:
    """Area under the ROC curve up to a false positive rate, `max_fpr`, standardised to 1/2 without
    information.
    """
    groups = grouped(x, weights)
    return partial_area(groups.counts, check_rate(max_fpr)).measured(groups, x, weights)


def check_rate(max_fpr: float) -> float:
    """Return a false positive rate up to which there is an area; an error if there is none."""
    if isinstance(max_fpr, bool) or not isinstance(max_fpr, int | float) or not 0 < max_fpr <= 1:
        raise InputError(f"max_fpr = {max_fpr!r} must lie between 0 and 1")
    return float(max_fpr)


def partial_area(counts: Floats, max_fpr: float) -> Area:
    """Return the standardised area under the ROC curve up to a false positive rate.

    Groups have the highest scores first; the curve is a line over each. A positive row adds the
    rates from its own up to `max_fpr`; a negative one moves this end too, by what the true positive
    rate is at its own place less that at the end.
    """
    positives, negatives = counts.sum(axis=1)
    rise, width = counts[0] / positives, counts[1] / negatives
    start_true, start_false = np.cumsum(rise) - rise, np.cumsum(width) - width
    reached = max_fpr - start_false
    inside = np.where(reached > 0, 1.0, 0.0)  # which part of each group is before the end
    inside = np.clip(np.divide(reached, width, out=inside, where=width > 0), 0.0, 1.0)
    middle = start_true + inside * rise / 2
    area, end = float((inside * width) @ middle), float(inside @ rise)
    beaten = np.maximum(reached - width, 0.0) + inside**2 * width / 2
    gain = inside * (middle - end)
    unit = standardised(1.0, max_fpr) - standardised(0.0, max_fpr)
    return Area(
        min(standardised(area, max_fpr), 1.0),  # the sum is rounded
        unit * (beaten - area) / positives,
        unit * (gain - (area - max_fpr * end)) / negatives,
    )


def standardised(area: float, max_fpr: float) -> float:
    """Return a partial area as McClish standardises it: 1/2 without information, 1 if perfect."""
    least = max_fpr * max_fpr / 2
    return 0.5 * (1 + (area - least) / (max_fpr - least))


@measure(encode=encode.scored, bounds=(0.0, 1.0))
def kolmogorov_smirnov(x: Floats, weights: Floats) -> Measured:
    """Largest difference of the distribution functions of two classes."""
    true, false = _from_none(grouped(x, weights).reached)
    return Measured(np.array([np.abs(true - false).max()]))
