"""Results of totals with noise: more noise of the same kind shows how much the value moves, and in which direction.

A bracket is for totals without noise: it holds what is not known of rows in one bin. Here the value is not held within
it; both are corrected by the bias that further noise adds, and the bracket is widened by the noise's standard error.
"""

from __future__ import annotations

import numpy as np

from gosta.runtime.arrays import Floats
from gosta.sketches.bins import in_order
from gosta.sketches.definition import Result, Sketch

SEED = 2016  # so that the same totals give the same result everywhere
PAIRS = 50  # of draws of noise and of its opposite, so that all but the bias cancels
REACH = (
    2.2  # standard errors by which the bracket is widened: 2, and a tenth since they are estimated
)
# Beyond these there is too much noise for a value.
MOST_UNDEFINED = 0.1  # of the draws
MOST_BIAS = 4.0  # in standard errors: a correction by more is a guess
MOST_ERROR = 0.25  # of the width of the statistic's bounds: the value can be anything
MOST_TAIL = 2.0  # standard error over the one that the middle half of the draws has: a quotient by almost nothing


def noisy_result(sketch: Sketch, totals: Floats, rounding: float) -> tuple[Result, Floats] | None:
    """Return the result of a sketch with noise, and its values' standard errors by it; None: too much noise."""
    found = sketch.result(totals, rounding)
    middle = np.array(found[:3])
    if not middle.size or not np.isfinite(middle).all():
        return None
    rng, draws = np.random.default_rng(SEED), []
    for _ in range(PAIRS):
        step = rng.normal(size=len(totals)) * np.sqrt(sketch.noise)
        draws.append(
            [sketch.result(totals + step, rounding)[:3], sketch.result(totals - step, rounding)[:3]]
        )
    pairs = np.array(draws)  # pairs × 2 × (value, low, high) × values
    pairs = pairs[np.isfinite(pairs).all(axis=(1, 2, 3))]
    if len(pairs) < (1 - MOST_UNDEFINED) * PAIRS:
        return None
    values, bias = pairs[:, :, 0].reshape(-1, middle.shape[1]), pairs.mean(axis=(0, 1)) - middle
    errors = values.std(axis=0, ddof=1)
    is_too_much = (np.abs(bias[0]) > MOST_BIAS * errors + 1e-9 * np.abs(middle[0])).any()
    is_too_much |= errors.mean() > MOST_ERROR * (sketch.bounds[1] - sketch.bounds[0])
    if len(errors) == 1:
        quarters = np.quantile(values, [0.25, 0.75])
        is_too_much |= errors[0] * 1.35 > MOST_TAIL * (quarters[1] - quarters[0])
        gradient = sketch.gradient(totals)  # that of all directions is better than that of some
        if gradient is not None and np.isfinite(gradient).all():
            errors = np.maximum(errors, np.sqrt(sketch.noise) * np.linalg.norm(gradient))
    if is_too_much:
        return None
    value, low, high = middle - bias
    value = in_order(value, sketch.trend)
    low, high = np.minimum(low, value) - REACH * errors, np.maximum(high, value) + REACH * errors
    return sketch.finished(Result(value, low, high, False, found.labels), errors), errors
