"""Measures of times to an event: curves, tests, discrimination and calibration of risks.

An encoded row is a time and 1 for an event then or 0 if it is censored, followed by a score or by
predicted risks, or for the test by +1 or −1 for its class.

Where censoring hides what happened to a row, those that were seen count for it: an event by 1/G at
its time, and a row that is still there at a time by 1/G at that time, with G the share that is not
censored until then, by Kaplan and Meier (inverse probability of censoring). G is taken just before
the time, since a row that is censored at the time of an event would have shown it. How each row
moves G is part of the standard errors.
"""

from __future__ import annotations

from math import erfc, nan, sqrt
from typing import Any

import numpy as np

from gosta.errors import InputError
from gosta.measures.calibration import bin_edges, bin_labels
from gosta.measures.definition import Measured, given_numbers, measure, numbers_of
from gosta.measures.product_limit import ProductLimit
from gosta.runtime.arrays import Booleans, Floats, Integers
from gosta.statistics import encode

QUARTILES = (0.25, 0.5, 0.75)  # of the times of events: where curves of a score are shown
RISK_TIMES = 6  # at which rows at risk are counted


@measure(
    encode=encode.event_times,
    bounds=(0.0, 1.0),
    scale="log-log",
    axes=("time", "share without an event"),
)
def kaplan_meier(x: Floats, weights: Floats, times: Any = None) -> Measured:
    """Kaplan-Meier curve, the share without an event: just before `times`, or from each time of an
    event on.

    With an interval by Greenwood's formula, on the scale log(−log).
    """
    curve = ProductLimit(x, weights)
    if times is None:
        has_event = curve.has_ended.any()
        shown = curve.ends[curve.has_ended] if has_event else curve.ends[-1:]
        after = np.nextafter(shown, np.inf)  # the curve has fallen there
        labels = tuple(f"from {time:g} on" for time in shown)
    else:
        shown = after = numbers_of("times", times)
        labels = tuple(f"just {label}" for label in before(shown))
    values = curve.before(after)
    errors = values * np.sqrt(curve.log_variances(after))
    at_risk = np.append(curve.at_risk, 0.0)[curve.steps(shown)]
    return Measured(values, None, labels, shown, np.maximum(at_risk, 1.0), errors)


@measure(
    encode=encode.event_times,
    bounds=(0.0, np.inf),
    axes=("time", "rows at risk"),
    no_interval="it counts rows",
)
def numbers_at_risk(x: Floats, weights: Floats, times: Any = None) -> Measured:
    """Rows at risk: those without an event, and not censored, before a time."""
    last = x[weights > 0, 0].max()
    evenly = np.linspace(0.0, last, RISK_TIMES) if times is None else times
    shown = numbers_of("times", evenly)
    values = np.array([weights[x[:, 0] >= time].sum() for time in shown])
    return Measured(values, labels=tuple(f"at {time:g}" for time in shown), at=shown)


@measure(encode=encode.survival, bounds=(0.0, 1.0), scale="logit")
def uno_concordance(x: Floats, weights: Floats, horizon: float = np.inf) -> Measured:
    """Concordance index that does not depend on censoring: pairs count by how rarely they are seen
    (Uno's C).

    A pair counts by 1/G² just before its earlier event. Events from the `horizon` on do not count.
    """
    until = horizon if horizon == np.inf else horizon_of(horizon)
    times, scores, order = x[:, 0], x[:, 2], ranks_of_ends(x)
    censoring = ProductLimit.of_censoring(x, weights)
    each = ((x[:, 1] > 0) & (times < until)) * censoring.inverse_before(times) ** 2
    won, after = wins_over_later(order, scores, weights)
    pairs = weights @ (each * after)
    value = weights @ (each * won) / pairs
    own = each * (won - value * after)
    # Of rows that an event precedes: the score is to be lower, so both are turned round.
    lost, earlier = wins_over_later(order.max() - order, -scores, weights * each)
    through = -2.0 * censoring.log_slopes(times, weights * own)
    influence = weights.sum() / pairs * (own + lost - value * earlier + through)
    trials = (weights > 0).sum() / 2 * np.clip(pairs / (weights @ each * weights.sum()), 0, 1)
    return Measured(np.array([value]), influence[:, None], trials=np.array([max(trials, 1.0)]))


@measure(
    encode=encode.survival, bounds=(0.0, 1.0), scale="logit", axes=("time", "area under the curve")
)
def time_dependent_auc(x: Floats, weights: Floats, times: Any = None) -> Measured:
    """Probability that a row with an event before a time has a higher score than a row without:
    the AUC at `times`, or at the quartiles of the times of events.

    Cumulative cases and dynamic controls; an event counts by 1/G.
    """
    shown = shown_times(x, weights, times)
    censoring = ProductLimit.of_censoring(x, weights)
    found = [_auc_before(x, weights, time, censoring) for time in shown]
    values, influence, trials = (np.array(part) for part in zip(*found, strict=True))
    return Measured(values, influence.T, before(shown), shown, trials)


def _auc_before(
    x: Floats, weights: Floats, time: float, censoring: ProductLimit
) -> tuple[float, Floats, float]:
    """Return the AUC at a time, its influence, and the rows of the smaller class."""
    is_case, is_control = (x[:, 1] > 0) & (x[:, 0] < time), x[:, 0] >= time
    each = is_case * censoring.inverse_before(x[:, 0])
    cases, controls = weights * each, weights * is_control
    below = middle_sums(x[:, 2], controls) / controls.sum()
    above = 1 - middle_sums(x[:, 2], cases) / cases.sum()
    value = float(cases @ below / cases.sum())
    of_case, of_control = each * (below - value) / cases.sum(), is_control * (above - value)
    through = -censoring.log_slopes(x[:, 0], weights * of_case)
    influence = weights.sum() * (of_case + of_control / controls.sum() + through)
    counted = weights > 0
    fewest = float(min((is_case & counted).sum(), (is_control & counted).sum()))
    return value, influence, fewest


@measure(
    encode=encode.survival_risks, bounds=(0.0, np.inf), scale="log", axes=("time", "Brier score")
)
def survival_brier_score(
    x: Floats, weights: Floats, horizon: float | None = None, times: Any = None
) -> Measured:
    """Mean squared error of the predicted risk of an event before the `horizon`; of several columns
    of risks, before each of `times`.
    """
    shown = times_of_risks(x.shape[1] - 2, horizon, times)
    values, influence = _brier_scores(x, weights, shown)
    return Measured(values, influence, before(shown), shown)


@measure(encode=encode.survival_risks, bounds=(0.0, np.inf), scale="log")
def integrated_brier_score(x: Floats, weights: Floats, times: Any = None) -> Measured:
    """Mean of the Brier score over time, from columns of predicted risks of an event before each of
    `times`: their trapezoids, divided by the time from the first to the last.
    """
    shown = times_of_risks(x.shape[1] - 2, None, times)
    values, influence = _brier_scores(x, weights, shown)
    shares = trapezoid_shares(shown)
    return Measured(np.array([values @ shares]), (influence @ shares)[:, None])


def trapezoid_shares(times: Floats) -> Floats:
    """Return how much a value at each time counts for the mean over time."""
    if len(times) < 2:
        raise InputError(
            f"times = {times[0]:g}: needs two columns of risks or more",
            remedy="take survival-brier-score for one",
        )
    widths = np.diff(times)
    sums = np.append(widths, 0.0) + np.append(0.0, widths)
    return np.asarray(sums / (2 * (times[-1] - times[0])))


def _brier_scores(x: Floats, weights: Floats, times: Floats) -> tuple[Floats, Floats]:
    """Return the Brier score of each column of risks, and the influence of rows.

    It is not known at a time that no row has reached, unless the last one had an event.
    """
    censoring = ProductLimit.of_censoring(x, weights)
    total, values, influence = weights.sum(), [], []
    for time, risk in zip(times, x[:, 2:].T, strict=True):
        until = np.minimum(x[:, 0], time)
        is_case, is_control = (x[:, 1] > 0) & (x[:, 0] < time), x[:, 0] >= time
        errors = is_case * (1 - risk) ** 2 + is_control * risk**2
        each = errors * censoring.inverse_before(until)
        is_known = censoring.before(np.array([time]))[0] > 0
        values.append(weights @ each / total if is_known else nan)
        influence.append(each - values[-1] - censoring.log_slopes(until, weights * each))
    return np.array(values), np.array(influence).T


@measure(
    encode=encode.survival_risk,
    bounds=(0.0, 1.0),
    scale="complementary log-log",
    axes=("mean predicted risk", "share with an event"),
)
def survival_calibration(
    x: Floats, weights: Floats, horizon: float | None = None, groups: int = 10, cuts: Any = None
) -> Measured:
    """Share with an event before the `horizon`, by Kaplan and Meier, of groups of rows by predicted
    risk: ten groups of equally many rows, or those between `cuts`.
    """
    time, risk = horizon_of(horizon), x[:, 2]
    inner = bin_edges(risk, weights, groups, cuts)
    group, count = np.searchsorted(inner, risk, side="right"), len(inner) + 1
    mass = np.bincount(group, weights, count)
    ends = np.concatenate([[0.0], inner, [1.0]])  # whose middle stands for a group without rows
    sums = np.bincount(group, weights * risk, count)
    at = np.divide(sums, mass, out=(ends[1:] + ends[:-1]) / 2, where=mass > 0)
    values, errors, trials = np.full((3, count), nan)
    for k in np.flatnonzero(mass > 0):
        own = ProductLimit(x[group == k], weights[group == k])
        share = own.before(np.array([time]))
        values[k] = 1 - share[0]
        errors[k] = share[0] * np.sqrt(own.log_variances(np.array([time]))[0])
        trials[k] = (weights[group == k] > 0).sum()
    labels = bin_labels(ends, np.arange(count))
    return Measured(values, None, labels, at, np.nan_to_num(trials, nan=1.0), errors)


@measure(encode=encode.survival_risk, bounds=(0.0, np.inf), scale="log")
def survival_observed_expected_ratio(
    x: Floats, weights: Floats, horizon: float | None = None
) -> Measured:
    """Share with an event before the `horizon`, by Kaplan and Meier, divided by the mean predicted
    risk.
    """
    curve, time = ProductLimit(x, weights), np.array([horizon_of(horizon)])
    share, expected = curve.before(time)[0], float(np.average(x[:, 2], weights=weights))
    value = (1 - share) / expected
    slopes = -share * curve.log_slopes(time, np.ones(1)) * weights.sum()
    influence = (slopes - value * (x[:, 2] - expected)) / expected
    return Measured(np.array([value]), influence[:, None])


@measure(
    encode=encode.grouped_event_times,
    bounds=(0.0, np.inf),
    no_interval="it is a test",
    no_weights="a test depends on the number of rows, which weights are not",
)
def log_rank(x: Floats, weights: Floats) -> Measured:
    """Log-rank test of two classes: the statistic, which is chi-squared with one degree of freedom,
    and its p-value.
    """
    counted = x[weights > 0]
    z = log_rank_z(counted)
    return Measured(np.array([z * z, erfc(abs(z) / sqrt(2))]), labels=("chi-squared", "p-value"))


def log_rank_z(x: Floats) -> float:
    """Return observed less expected events of the first class, in standard deviations."""
    times, place = np.unique(x[:, 0], return_inverse=True)
    place = place.reshape(-1)
    has_event, is_first = x[:, 1] > 0, x[:, 2] > 0

    def count(rows: Booleans) -> Floats:
        return np.bincount(place[rows], minlength=len(times)).astype(np.float64)

    def count_at_risk(rows: Booleans) -> Floats:
        return np.cumsum(count(rows)[::-1])[::-1]

    at_risk = count_at_risk(np.ones(len(x), dtype=np.bool_))
    share = count_at_risk(is_first) / at_risk
    events = count(has_event)
    gap = (count(has_event & is_first) - events * share).sum()
    ties = (at_risk - events) / np.maximum(at_risk - 1, 1.0)
    variance = (events * share * (1 - share) * ties).sum()
    return float(gap / sqrt(variance)) if variance > 0 else nan


def before(times: Floats) -> tuple[str, ...]:
    """Return the labels of values for what happens before times."""
    return tuple(f"before {time:g}" for time in times)


def shown_times(x: Floats, weights: Floats, times: Any) -> Floats:
    """Return the times that were asked for; by default the quartiles of the times of events."""
    if times is not None:
        return numbers_of("times", times)
    events = x[(x[:, 1] > 0) & (weights > 0), 0]
    if not len(events):
        return np.array([x[:, 0].max()])
    return np.unique(np.quantile(events, QUARTILES, method="inverted_cdf"))


def horizon_of(horizon: float | None) -> float:
    """Return the time for which risks are predicted; an error if it was not said."""
    if horizon is None:
        raise InputError(
            "horizon is missing: name the time for which the risk is predicted",
            remedy="horizon=365 (--option horizon=365)",
        )
    found = numbers_of("horizon", horizon)
    if len(found) > 1:
        raise InputError(f"horizon = {horizon!r} must be one number, such as horizon=365")
    if not found[0] > 0:
        raise InputError(f"horizon = {horizon!r} must be above 0, such as horizon=365")
    return float(found[0])


def times_of_risks(columns: int, horizon: float | None, times: Any) -> Floats:
    """Return the time for which each column of risks is: the horizon of one, or as many times."""
    if times is None or (columns == 1 and horizon is not None):
        found = np.array([horizon_of(horizon)])
    else:
        found = given_numbers("times", times)
    if len(found) != columns or (np.diff(found) <= 0).any():
        raise InputError(
            f"times = {times!r} must be increasing numbers, one for each of {columns} columns of "
            "risks, in their order"
        )
    return found


def ranks_of_ends(x: Floats) -> Integers:
    """Return the order in which rows end; at one time events first, all of them together."""
    place = np.unique(x[:, 0], return_inverse=True)[1].reshape(-1)
    return np.unique(2 * place + (x[:, 1] == 0), return_inverse=True)[1].reshape(-1)


def middle_sums(scores: Floats, weights: Floats) -> Floats:
    """Return for each row the weights of rows with a lower score, and half of those with its."""
    values, place = np.unique(scores, return_inverse=True)
    at = np.bincount(place.reshape(-1), weights, len(values))
    return np.asarray((np.cumsum(at) - at / 2)[place.reshape(-1)])


def wins_over_later(ranks: Integers, scores: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return for each row the weights of rows of higher rank with a lower score, ties half; and of
    all rows of higher rank.

    Two ranks differ first at one of their binary digits. For each digit, rows are grouped by the
    digits before it: those with a 0 win against those with a 1 in their group.
    """
    by_score = np.argsort(scores, kind="stable")
    won = np.zeros(len(ranks))
    for digit in range(int(ranks.max()).bit_length()):
        order = by_score[np.argsort(ranks[by_score] >> (digit + 1), kind="stable")]
        group, has_one = ranks[order] >> (digit + 1), (ranks[order] >> digit) & 1
        is_new_group = np.append(True, group[1:] != group[:-1])
        is_new = is_new_group | np.append(True, scores[order][1:] != scores[order][:-1])
        starts = np.flatnonzero(is_new)
        run = np.cumsum(is_new) - 1
        sums = np.append(0.0, np.cumsum(weights[order] * has_one))
        at_start = sums[starts]
        at_end = np.append(at_start[1:], sums[-1])
        at_group = at_start[run[np.flatnonzero(is_new_group)]][np.cumsum(is_new_group) - 1]
        middle = (at_start + at_end)[run] / 2 - at_group
        won[order] += np.where(has_one == 0, middle, 0.0)
    mass = np.bincount(ranks, weights)
    return won, (mass.sum() - np.cumsum(mass))[ranks]
