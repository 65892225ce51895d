"""Results of statistics from totals: values, brackets, intervals; what few rows or noise hide.

A bracket is for totals without noise: it holds what is not known of rows in one bin. With noise,
further noise of the same kind shows how much the value moves, and in which direction. The value is
not held within the bracket then; both are corrected by the bias that further noise adds, and the
bracket is widened by the noise's standard error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gosta.measures.definition import MEASURES, NO_VALUE, definition_of
from gosta.runtime.arrays import Floats
from gosta.sketches.definition import Result, Sketch, in_order
from gosta.statistics.distributions import interval_p
from gosta.statistics.intervals import Spread, ends_by_errors, interval_ends
from gosta.views import numbers

# Totals are converted to floats and multiplied a few times: far less than this is lost.
FLOAT_ERROR = 1e-12
SEED = 2016  # of further noise, so that the same totals give the same result everywhere
PAIRS = 50  # of draws of noise and of its opposite, so that all but the bias cancels
# Standard errors by which the bracket is widened: 2, and a tenth since they are estimated.
REACH = 2.2
# Beyond these there is too much noise for a value.
MOST_UNDEFINED = 0.1  # share of the draws that give no value
MOST_BIAS = 4.0  # in standard errors: a correction by more is a guess
MOST_ERROR = 0.25  # share of the width of the statistic's bounds: the value can be anything
# Standard error, as a multiple of what the middle half of the draws shows: more is a quotient by
# almost nothing.
MOST_TAIL = 2.0
TOO_MUCH_NOISE = "too much noise"
FOLLOWS = "another group would follow from it"  # why a group has no result
if TYPE_CHECKING:
    Number = Any  # which of the values can be None is not a question of types
else:
    Number = float | None  # None: there is no value at this point of a curve
Values = tuple[Number, ...]


class StratumResult(NamedTuple):
    """A statistic's value over all rows, or over those of one stratum."""

    statistic: str  # as it was asked for, such as "auc" or "variance:age"
    stratum: str  # such as "sex = f, ward = a"; "" for all rows
    has_value: bool  # otherwise there are too few rows, or too much noise, and nothing below
    value: Values  # several for a curve, with labels
    low: Values  # the bracket: the value over the rows themselves is between these
    high: Values
    # whether that is certain; not with noise, nor where the sketch itself is random
    is_certified: bool
    labels: tuple[str, ...]
    rows: Number  # None: not told
    clipped: float  # rows with a value beyond the declared range, which counts as its end
    # for the population of which the rows are a sample, and of the noise
    standard_error: float | None
    interval: tuple[float, float] | None  # from it, at the level that was asked for
    at: tuple[float, ...] = ()  # of a curve: places of the values on the horizontal axis
    # Of several values, where they are known.
    intervals: tuple[tuple[Number, Number], ...] = ()
    standard_errors: Values = ()
    # Of differences and coefficients, by the intervals: see `Estimate.p_value`.
    p_values: Values = ()
    # Of a curve: points asked for that lie inside a bin, since small bins were merged.
    without_edge: tuple[float, ...] = ()
    why: str = ""  # there is no value
    is_fit: bool = False  # whether the values are the coefficients of a model
    counts: Values = ()  # of a curve: rows that each value rests on, where they are known


def no_result(statistic: str, stratum: str, why: str = "") -> StratumResult:
    """Return the result where there is no value, and why; it does not tell of how many rows."""
    none = StratumResult(statistic, stratum, False, (), (), (), False, (), None, 0.0, None, None)
    return none._replace(why=why)


def few(min_cell: int) -> str:
    """Return why a group has no result that has, or of which a class has, few rows."""
    return f"fewer than {min_cell} rows in all or in a class"


def stratum_result(
    statistic: str,
    stratum: str,
    sketch: Sketch,
    totals: Floats,
    *,
    min_cell: int,
    noise: float,
    level: float | None,
    rounding: float,
) -> StratumResult:
    """Return the result of a statistic for the totals over all rows, or over those of one stratum.

    `noise` is the variance of each total by noise, `rounding` the most by which a feature of a row
    was changed. See `Layout.results` for the others.
    """
    rows, clipped = sketch.count(totals), sketch.clipped(totals)
    found: tuple[Result, Floats] | None  # and the errors that noise gives its values
    if noise > 0:
        sketch = sketch.with_noise(totals, noise)
        found = _noisy_result(sketch, totals, rounding)
    elif has_small(sketch.groups_of(totals), min_cell):
        return no_result(statistic, stratum, few(min_cell))
    else:
        if sketch.shows_bins and min_cell > 1:
            sketch, totals = sketch.merged(totals, min_cell)
        found = sketch.result(totals, rounding), np.zeros(1)
    if found is None or not np.isfinite(found[0].value).any():
        why = TOO_MUCH_NOISE if noise > 0 else NO_VALUE
        return no_result(statistic, stratum, why)._replace(rows=max(rows, 0.0))
    result, errors = found
    low, high = (np.clip(end, *sketch.bounds) for end in _padded(result))
    values = np.clip(result.value, low, high)
    error, interval = None, None
    intervals: tuple[tuple[Number, Number], ...] = ()
    all_errors: Values = ()
    if len(values) == 1:
        error, interval = _interval(sketch, totals, values, float(errors[0]), level)
    elif level is not None:
        intervals, all_errors = _intervals(sketch, totals, values, errors, level)
    # The bracket is for clipped values.
    is_certified = result.is_certified and noise == 0 and clipped <= 0
    if noise == 0 and min_cell > 1 and (stratum or clipped < min_cell):
        clipped = min_cell * float(np.ceil(clipped / min_cell))  # few rows must not show
    return StratumResult(
        statistic,
        stratum,
        has_value=True,
        value=known(values),
        low=known(low),
        high=known(high),
        is_certified=is_certified,
        labels=result.labels,
        rows=rows,
        clipped=clipped,
        standard_error=error,
        interval=interval,
        at=() if result.at is None else tuple(result.at.tolist()),
        intervals=intervals,
        standard_errors=all_errors,
        p_values=_p_values(sketch, values, intervals or (interval,), level),
        without_edge=tuple(sketch.without_edge.tolist()) if noise == 0 else (),
        counts=() if result.counts is None or noise > 0 else known(result.counts),
    )


def p_text(result: StratumResult, place: int = 0) -> str:
    """Return the p-value of one of a result's values, to be shown after its interval."""
    p = result.p_values[place] if result.p_values else None
    return "" if p is None else f", p = {numbers.p_value(p)}"


def _p_values(
    sketch: Sketch,
    values: Floats,
    intervals: Sequence[tuple[Number, Number] | None],
    level: float | None,
) -> Values:
    """Return the p-values of differences; none where there is nothing to compare with."""
    null = definition_of(sketch.name).null_value
    if null is None or level is None or None in intervals:
        return ()
    ends = np.array(intervals, dtype=np.float64)
    each = np.column_stack([values, ends]).tolist()
    return known(np.array([interval_p(v, low, high, level, null) for v, low, high in each]))


def _intervals(
    sketch: Sketch, totals: Floats, values: Floats, noise_errors: Floats, level: float
) -> tuple[tuple[tuple[Number, Number], ...], Values]:
    """Return the intervals of several values and their errors; none where these are not known."""
    own = sketch.intervals(totals, level) if sketch.noise == 0 else None
    if own is not None:
        return tuple(zip(known(own[0]), known(own[1]), strict=True)), known(own[2])
    found = sketch.sampling_errors(totals, values)
    if found is None:
        return (), ()
    errors, trials = found
    errors = np.sqrt(errors**2 + noise_errors**2)
    scale = MEASURES[sketch.name].scale
    if scale == "share":
        if sketch.noise > 0:  # as of so many rows as would give this error
            least = np.clip(errors, 1e-150, 0.5)  # also a share of 0 or 1 has this error
            near = np.clip(values, least, 1 - least)
            trials = np.minimum(trials, near * (1 - near) / least**2)
        trials = np.maximum(trials, 1.0)
    elif sketch.noise > 0:
        scale = "plain"
    low, high = ends_by_errors(scale, sketch.bounds, values, errors, trials, level)
    return tuple(zip(known(low), known(high), strict=True)), known(errors)


def known(values: Floats) -> Values:
    """Return plain numbers, with None for NaN, which JSON does not know."""
    return tuple(None if np.isnan(value) else value for value in values.tolist())


def _interval(
    sketch: Sketch, totals: Floats, value: Floats, noise_error: float, level: float | None
) -> tuple[float | None, tuple[float, float] | None]:
    """Return the standard error of a value, and its interval at a level; None if there is none."""
    spread = _spread(sketch, totals, noise_error)
    if spread is None:
        return _interval_of_point(sketch, totals, value, noise_error, level)
    error = float(spread.error[0])
    if level is None:
        return error, None
    # Noise is symmetric on the scale of the value.
    scale = definition_of(sketch.name).scale if sketch.noise == 0 else "plain"
    ends = interval_ends(scale, sketch.bounds, sketch.centre(totals, value), spread, level)
    return error, (float(ends[0][0]), float(ends[1][0])) if np.isfinite(ends).all() else None


def _interval_of_point(
    sketch: Sketch, totals: Floats, value: Floats, noise_error: float, level: float | None
) -> tuple[float | None, tuple[float, float] | None]:
    """Return the standard error and the interval of a curve of one point, as of several."""
    found = sketch.sampling_errors(totals, value)
    if found is None or not np.isfinite(found[0][0]):
        return None, None
    error = float(np.hypot(found[0][0], noise_error))
    if level is None:
        return error, None
    (((low, high),), _) = _intervals(sketch, totals, value, np.array([noise_error]), level)
    return error, None if low is None or high is None else (low, high)


def _noisy_result(sketch: Sketch, totals: Floats, rounding: float) -> tuple[Result, Floats] | None:
    """Return the result of a sketch with noise, and its values' errors; None: too much noise.

    Where there is too much for one point of a curve, its value is NaN.
    """
    plain = sketch.result(totals, rounding)
    middle = np.array(plain[:3])
    if not middle.size or not np.isfinite(middle).any():
        return None
    rng, draws = np.random.default_rng(SEED), []
    for _ in range(PAIRS):
        step = rng.normal(size=len(totals)) * np.sqrt(sketch.noise)
        pair = (sketch.result(noisy, rounding)[:3] for noisy in (totals + step, totals - step))
        draws.append(list(pair))
    pairs = np.array(draws)  # pairs × 2 × (value, low, high) × values
    is_drawn = np.isfinite(pairs).all(axis=(1, 2))  # pairs × values
    has_value = np.isfinite(middle).all(axis=0)
    has_value &= is_drawn.sum(axis=0) >= (1 - MOST_UNDEFINED) * PAIRS
    if not has_value.any():
        return None
    pairs = np.where(is_drawn[:, None, None], pairs, np.nan)[..., has_value]
    middle = middle[:, has_value]
    values = pairs[:, :, 0].reshape(-1, middle.shape[1])
    bias = np.nanmean(pairs, axis=(0, 1)) - middle
    errors = np.nanstd(values, axis=0, ddof=1)
    is_too_much = np.abs(bias[0]) > MOST_BIAS * errors + 1e-9 * np.abs(middle[0])
    is_too_much |= errors > MOST_ERROR * (sketch.bounds[1] - sketch.bounds[0])
    if len(errors) == 1:
        quarters = np.nanquantile(values, [0.25, 0.75])
        is_too_much |= errors[0] * 1.35 > MOST_TAIL * (quarters[1] - quarters[0])
        gradient = sketch.gradient(totals)  # of all directions, where draws have some
        if gradient is not None and np.isfinite(gradient).all():
            errors = np.maximum(errors, np.sqrt(sketch.noise) * np.linalg.norm(gradient))
    value, low, high = middle - bias
    value = in_order(value, sketch.trend)
    low, high = np.minimum(low, value) - REACH * errors, np.maximum(high, value) + REACH * errors
    ends = np.full((4, len(has_value)), np.nan)
    ends[:, has_value] = np.where(is_too_much, np.nan, [value, low, high, errors])
    made = Result(ends[0], ends[1], ends[2], False, plain.labels, plain.at)
    return sketch.finished(made, ends[3]), ends[3]


def hidden_strata(
    groups: Mapping[str, Floats],
    rows: Mapping[str, float],
    lines: Sequence[tuple[str, Sequence[str]]],
    min_cell: int,
) -> dict[str, str]:
    """Return the strata to hide, and why: small ones, and more of them, the smallest first.

    `groups` has the rows of each stratum's groups, such as classes, `lines` strata that together
    are the rows of another one or all rows (""). What is hidden follows by subtraction from what
    is shown: so in a line it is never one stratum, nor few rows.
    """
    hidden = {name: few(min_cell) for name, group in groups.items() if has_small(group, min_cell)}
    while True:
        more = {_next_to_hide(groups, rows, hidden, line, min_cell) for line in lines} - {None}
        if not more:
            return hidden
        hidden |= {name: FOLLOWS for name in more if name is not None}


def _next_to_hide(
    groups: Mapping[str, Floats],
    rows: Mapping[str, float],
    hidden: Mapping[str, str],
    line: tuple[str, Sequence[str]],
    min_cell: int,
) -> str | None:
    """Return the stratum to hide next so that nothing hidden follows from a line; None: none."""
    whole, members = line
    parts = [name for name in members if rows[name] > 0]
    own = [name for name in parts if name in hidden]
    if whole in hidden:
        is_safe = bool(own)
    else:
        together = np.sum([groups[name] for name in own], axis=0) if own else np.zeros(1)
        is_safe = len(own) != 1 and not has_small(together, min_cell)
    shown = sorted((name for name in parts if name not in hidden), key=rows.__getitem__)
    if is_safe or not (shown or whole):
        return None
    return shown[0] if shown else whole if whole not in hidden else None


def has_small(groups: Floats, min_cell: int) -> bool:
    """Return whether a group has some rows, but fewer than `min_cell`."""
    return bool(((groups > 0) & (groups < min_cell)).any())


def _padded(result: Result) -> tuple[Floats, Floats]:
    """Return the bracket with room for the rounding of floats."""
    room = FLOAT_ERROR * np.maximum(np.abs(result.low), np.abs(result.high))
    most = np.finfo(np.float64).max  # in place of infinity, which JSON does not know
    return np.maximum(result.low - room, -most), np.minimum(result.high + room, most)


def _spread(sketch: Sketch, totals: Floats, noise_error: float) -> Spread | None:
    """Return how the value varies with the sample of rows and with noise of a known error."""
    gradient = sketch.gradient(totals)
    if gradient is None or not np.isfinite(gradient).all():
        return None
    sampling = max(sketch.sampling_variance(totals, gradient), 0.0)
    variance = sampling + noise_error**2
    if not np.isfinite(variance):
        return None
    more_by_noise = (variance / sampling) ** 2 if sampling > 0 else np.inf
    degrees = sketch.degrees(totals, gradient) * more_by_noise
    trials = sketch.groups_of(totals).min() if sketch.has_classes else sketch.count(totals) / 2
    error = np.array([np.sqrt(variance)])
    return Spread(error, np.array([degrees]), np.array([max(float(trials), 1.0)]))
