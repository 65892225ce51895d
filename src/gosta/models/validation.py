"""The sums by which fits are validated: those of statistics of predictions, in bins."""

from __future__ import annotations

from gosta.models.arithmetic import dot, product, symmetric
from gosta.models.definition import VALIDATED_BY_MOMENTS, VALIDATION, Model, State
from gosta.models.showing import PREDICTIONS
from gosta.runtime.arrays import Floats
from gosta.sketches.layout import Layout
from gosta.sketches.layout_builder import Bins, make_layout
from gosta.sketches.results import StratumResult, no_result

RISK_BINS = 128
SCORE_BINS = TIME_BINS = 48  # of a table of both


RANGES = dict.fromkeys(PREDICTIONS, (0.0, 1.0))


def class_layout(model: Model, state: State) -> Layout:  # noqa: ARG001
    """Return the sums for predictions from 0 to 1 of two classes."""
    settings = Bins(bins=RISK_BINS, ranges=RANGES)
    return make_layout(_statistics(model), settings, label="outcome", classes=(0.0, 1.0))


def time_layout(model: Model, state: State) -> Layout:
    """Return the sums for scores from 0 to 1, and times by their place among the declared ones."""
    edges = model.time_edges(state, TIME_BINS)
    ranges = {**RANGES, "time": (0.0, edges[-1] + 1.0)}
    settings = Bins(bins=SCORE_BINS, ranges=ranges, edges={"time": edges})
    return make_layout(_statistics(model), settings, time="time", event="event")


def _statistics(model: Model) -> str:
    """Return the statistics of a validation: each for rows that were not fitted, then for all."""
    names = model.validation.split(",")
    return ",".join(f"{name}:{column}" for name in names for column in PREDICTIONS)


def explained(model: Model, state: State) -> list[StratumResult]:
    """Return the share of the variance that predictions explain, of rows that were not fitted, and
    of all.
    """
    everything = model.moments(state)
    n, total = float(everything[0][0]), float(everything[1][0])
    variation = float(everything[2][0]) - total * total / n
    without = 0.0
    for other in state.others:
        fold = [a - b for a, b in zip(everything, model.moments(other), strict=True)]
        without += _squared_errors(fold, model.share_coefficients(other))
    found = []
    apparent = _squared_errors(everything, model.share_coefficients(state))
    for name, lost in zip(PREDICTIONS, (without, apparent), strict=True):
        value = (1 - lost / variation,)
        known = no_result(f"{model.validation}:{name}", "")._replace(has_value=True, rows=n)
        found.append(known._replace(value=value, low=value, high=value, is_certified=True))
    return found


def _squared_errors(moments: list[Floats], coefficients: Floats) -> float:
    """Return the sum of squared errors of predictions for rows with these moments: sums of products
    of columns, of their products with the outcome, and of its square.
    """
    products = symmetric(moments[0], len(coefficients))
    predicted = product(products, coefficients[:, None])[:, 0]
    return float(moments[2][0]) + dot(coefficients, predicted - 2 * moments[1])


VALIDATED_BY_MOMENTS.update(linear=explained)
VALIDATION.update(logistic=class_layout, auc=class_layout, cox=time_layout)
