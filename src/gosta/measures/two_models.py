"""Measures of two models on the same rows: what the first gains over the second.

An encoded row is two predicted risks, and +1 for the positive class or −1. Differences of AUCs and
of concordance indices are means over pairs: `statistics/ranking.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gosta.measures.definition import Measured, measure, numbers_of
from gosta.runtime.arrays import Booleans, Floats, Integers
from gosta.statistics import encode

PARTS = ("sum", "events", "non-events")  # of the net reclassification
CAUTION = (
    "it can be above 0 for a model that is no better, where risks are not calibrated: read it "
    "beside auc-difference and brier-difference"
)


@measure(encode=encode.two_risks, bounds=(-1.0, 1.0), null_value=0.0)
def brier_difference(x: Floats, weights: Floats) -> Measured:
    """Brier score of a first predicted risk less that of a second, of the same rows: below 0 where
    the first is better.
    """
    gaps = squared_gaps(x)
    value = np.array([weights @ gaps / weights.sum()])
    return Measured(value, (gaps - value)[:, None])


@measure(encode=encode.two_risks, bounds=(-2.0, 2.0), null_value=0.0, caution=CAUTION)
def integrated_discrimination(x: Floats, weights: Floats) -> Measured:
    """Integrated discrimination improvement (IDI): by how much more the mean risk of positive rows
    exceeds that of negative ones by a first predicted risk than by a second.
    """
    gaps = x[:, 0] - x[:, 1]
    positive = x[:, 2] > 0
    value, influence = _mean_of(gaps, positive, weights)
    less, influence_less = _mean_of(gaps, ~positive, weights)
    fewest = class_rows(positive, weights).min(keepdims=True)
    influence = (influence - influence_less)[:, None]
    return Measured(np.array([value - less]), influence, trials=fewest)


@measure(encode=encode.two_risks, bounds=(-2.0, 2.0), null_value=0.0, caution=CAUTION)
def net_reclassification(x: Floats, weights: Floats, thresholds: Any = 0.5) -> Measured:
    """Net reclassification improvement (NRI) at `thresholds`: positive rows that a first predicted
    risk puts higher than a second does less those lower, and negative ones lower less higher.
    """
    first, second = risk_classes(x, numbers_of("thresholds", thresholds, (0.0, 1.0))).T
    moves = np.sign(first - second).astype(np.float64)
    positive = x[:, 2] > 0
    events, by_events = _mean_of(moves, positive, weights)
    others, by_others = _mean_of(-moves, ~positive, weights)
    rows = class_rows(positive, weights)
    return Measured(
        np.array([events + others, events, others]),
        np.column_stack([by_events + by_others, by_events, by_others]),
        labels=PARTS,
        trials=np.append(rows.min(), rows),
    )


def class_rows(positive: Booleans, weights: Floats) -> Floats:
    """Return the numbers of positive rows and of others that count."""
    counted = weights > 0
    return np.array([(counted & chosen).sum() for chosen in (positive, ~positive)], dtype=float)


def squared_gaps(x: Floats) -> Floats:
    """Return each row's squared error by the first risk less that by the second."""
    outcome = (x[:, 2] > 0).astype(np.float64)
    return np.asarray((x[:, 0] - outcome) ** 2 - (x[:, 1] - outcome) ** 2)


def risk_classes(x: Floats, thresholds: Floats) -> Integers:
    """Return for both risks of each row how many of the thresholds they reach."""
    return np.searchsorted(thresholds, x[:, :2], side="right")


def _mean_of(values: Floats, chosen: Booleans, weights: Floats) -> tuple[float, Floats]:
    """Return the mean over chosen rows, and its derivative by the share of each row."""
    counted = weights * chosen
    mean = float(counted @ values / counted.sum())
    return mean, np.where(chosen, values - mean, 0.0) * (weights.sum() / counted.sum())
