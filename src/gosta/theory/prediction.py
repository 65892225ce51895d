"""Predicted errors of a single run, and the number of exchanges it needs: derived, not fitted.

An expectation says nothing about one run, whose error is mostly noise; but noise can be computed
mode by mode. Split the kernel as H(x, y) = V + u(x) + u(y) + r(x, y), with u the deviation of a
row's mean from V and r the remainder. A node folds in u of its own row, always the same; u of its
visitor, which is correlated for about as long as visitors take to mix; and r of the two, which
recurs when the visitor returns. Averaging damps each mode of the network at its own rate. The
variances add up, together with the squared bias from early exchanges, in which a node's visitor is
its own row. Unless the expectation of each node is given, rows are assumed to be placed at nodes at
random.

Approximations: numbers of exchanges are replaced by their means, edges are independent of the rows
they join, errors are normal, and ratios are replaced by their tangents.
`docs/explanation/theory.md` reports the accuracy that results. The protocols that average with
momentum are in `gosta.theory.momentum`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gosta import graphs
from gosta.errors import InputError, NumericalError
from gosta.estimation.estimand import scale_of
from gosta.estimation.setting import Setting, make_setting
from gosta.graphs.graph import Graph
from gosta.protocols import DEFAULT, AnyProtocol, Protocol, find
from gosta.runtime.arrays import Floats, Integers
from gosta.statistics.definition import Options, Statistic
from gosta.theory.expectations import Rates, formula_for
from gosta.theory.momentum import CARRIED, TRACKING, MomentumErrors, Source
from gosta.theory.spectrum import MAX_FACTORED_NODES, scipy_module, slowest_modes
from gosta.theory.summaries import ErrorMoments, KernelMoments, NetworkSummary, summarise
from gosta.views import html
from gosta.views.numbers import count

# Weight of the estimate of 0 at the start of GoSta-async, in exchanges of a node.
START_WEIGHT = math.exp(-np.euler_gamma)
LATEST = 2.0**53
FAR_BELOW = 0.2  # of the accuracy: an error below that will not exceed the accuracy again
SHORT = 1e-5  # rate × time below which exponentials are 1: their differences would lose all digits

Formula = Callable[[NetworkSummary, KernelMoments, float], ErrorMoments]


class Prediction(NamedTuple):
    """Cost of reaching a mean relative error.

    Examples
    --------
    >>> import gosta
    >>> found = gosta.theory.predict("complete", "gosta-async", accuracy=0.05, n=100)
    >>> found.per_node == 2 * found.exchanges / 100
    True
    """

    exchanges: float  # exchanges of all nodes together; infinite beyond 2**53
    per_node: float  # exchanges that one node takes part in, on average
    numbers: float  # numbers sent by all nodes together

    def _repr_html_(self) -> str:
        rows = {
            "exchanges": self.exchanges,
            "exchanges a node": self.per_node,
            "numbers sent": self.numbers,
        }
        return html.table(
            [(name, count(value)) for name, value in rows.items()], caption="Prediction"
        )


def predict(
    graph: Any,
    protocol: str | AnyProtocol = DEFAULT,
    accuracy: float = 0.01,
    data: Any = None,
    statistic: str | Statistic | None = None,
    *,
    n: int | None = None,
    seed: int = 0,
    columns: str | int | Sequence[str | int] | None = None,
    label: Any = None,
    score: Any = None,
    drop_missing: bool = False,
    options: Options | None = None,
) -> Prediction:
    """Predict how many exchanges a network needs to reach a mean relative error over its nodes.

    Predictions are derived from the network and the kernel; nothing is fitted to simulations. Rows
    are assumed to be placed at nodes at random: where neighbours have similar rows, more exchanges
    are needed.

    Parameters
    ----------
    graph, n, seed
        As for `gosta.graphs.load`.
    protocol
        carried-means, tracking, averaging, u1, u2, gosta-sync or gosta-async.
    accuracy
        The mean over nodes of the relative error in a single run, such as 0.01.
    data, statistic, columns, label, score, drop_missing, options
        As for `gosta.simulate`. Without them, the prediction is for a typical kernel: the Gini mean
        difference of normally distributed numbers.

    Returns
    -------
    Prediction
        Exchanges of all nodes together and of one node, and the numbers that are sent; infinite
        where the error stays above `accuracy` for 2**53 iterations.

    Examples
    --------
    >>> import gosta
    >>> predicted = gosta.theory.predict("torus", accuracy=0.05, n=1024)
    >>> print(f"{predicted.exchanges:.2g} exchanges, {predicted.per_node:.0f} a node")
    1.5e+04 exchanges, 29 a node
    """
    if not isinstance(accuracy, int | float | np.floating) or not 0 < accuracy < 1:
        raise InputError(f"accuracy = {accuracy!r} must be between 0 and 1, such as 0.01")
    if (data is None) != (statistic is None):
        raise InputError(
            "data and statistic must be given together, or neither for a typical kernel"
        )
    choice = {"columns": columns, "label": label, "score": score, "drop_missing": drop_missing}
    if data is None and (options or any(choice.values())):
        unused = ", ".join([*(options or {}), *(name for name, value in choice.items() if value)])
        raise InputError(f"{unused} given without data; give data and statistic, too")
    rule, kernel = find(protocol), KernelMoments()
    if data is None or statistic is None:
        network, formula = summarise(graphs.load(graph, n, seed).check()), formula_of(rule)
        assert isinstance(rule, Protocol)
        numbers = rule.units(1, 1)
    else:
        setting = make_setting(rule, data, statistic, graph, seed, options or {}, **choice)
        if n not in (None, setting.estimand.n):
            raise InputError(f"n = {n}: the data have {setting.estimand.n} rows; leave n out")
        formula = formula_of_setting(setting)
        network, kernel = summarise(setting.graph), kernel_moments(setting)
        numbers = setting.gossip.units(
            setting.estimand.x.shape[1], setting.mean_count, len(setting.offset)
        )
    if network.n == 2 and rule.name == "u2":
        raise InputError(
            "the visitors of two nodes swap back and forth forever: u2 does not converge; take "
            "more nodes"
        )
    iterations = first_below(lambda t: error_at(formula, network, kernel, t), accuracy)
    exchanges = iterations * rule.draws
    return Prediction(exchanges, 2 * exchanges / network.n, iterations * numbers)


def formula_of(protocol: AnyProtocol) -> Formula:
    """Return the formula of a protocol, or of its variant for moments or for tables."""
    if protocol.averages_moments and protocol.name in MOMENTUM_NAMES:
        return averaged_moments
    if protocol.name in MOMENTUM_NAMES and protocol.needs_known:
        return tracking
    return formula_for(protocol, PREDICTIONS, "prediction")


def has_prediction(setting: Setting) -> bool:
    """Return whether there is a formula for a protocol, and for means that are not local."""
    return setting.protocol.name in PREDICTIONS and setting.estimand.tracked.local is None


def formula_of_setting(setting: Setting) -> Formula:
    """Return the formula of the protocol of a setting; raise `InputError` where there is none."""
    if setting.protocol.name in PREDICTIONS and not has_prediction(setting):
        name = setting.estimand.statistic.name
        raise InputError(
            f"there is no prediction for {name}, a function of each row's own mean, or for "
            "intervals"
        )
    return formula_of(setting.protocol)


def predicted_errors(setting: Setting, times: Integers, expected: Floats | None = None) -> Floats:
    """Return the mean over nodes of the relative error in a single run, at given iterations.

    `expected`, the relative errors of expected estimates (nodes × times), replaces the assumption
    that rows are placed at random.
    """
    network, kernel = summarise(setting.graph), kernel_moments(setting)
    formula = formula_of_setting(setting)
    if expected is None:
        return np.array([error_at(formula, network, kernel, float(t)) for t in times])
    noise = [formula(network, kernel, float(t)).noise for t in times]
    return np.array(
        [
            _mean_absolute(bias, variance).mean()
            for bias, variance in zip(expected.T, noise, strict=True)
        ]
    )


def kernel_moments(setting: Setting) -> KernelMoments:
    """Return the moments of a kernel, relative to the length of the vector of its values."""
    estimand, slopes, size = setting.estimand, setting.slopes, scale_of(setting.target)
    if size == 0:
        subject = f"{estimand.statistic.name} of {estimand.data}"
        raise NumericalError(f"{subject} is 0: there is no relative error to predict")
    row_means = estimand.row_means @ slopes.T
    mean, rows = row_means.mean(axis=0), row_means.var(axis=0).sum()
    total = sum(map(estimand.scatter, slopes))
    diagonal = estimand.diagonal.mean(axis=0) @ slopes.T - mean
    return KernelMoments(
        float(rows / size**2),
        float(max(0.0, total - 2 * rows) / size**2),
        float(np.linalg.norm(diagonal) * np.sign(diagonal.sum()) / size),
        float(-np.linalg.norm(mean) / size),
        _along_slowest_mode(setting.graph, row_means - mean)
        if estimand.n <= MAX_FACTORED_NODES
        else 1.0,
    )


def _along_slowest_mode(graph: Graph, deviations: Floats) -> float:
    """Return the variance along the slowest mode, relative to the average mode.

    That mode dominates where two halves hardly exchange, and then it matters which rows are in
    which half. Of several slowest modes it is the mean, which does not depend on the eigenvectors
    that linear algebra chooses.
    """
    size = (deviations**2).mean()
    if graph.edges is None or not size:  # all modes are alike
        return 1.0
    return float(((slowest_modes(graph)[1].T @ deviations) ** 2).mean() / size)


def neighbour_correlation(setting: Setting) -> float:
    """Return the correlation of row means between neighbours; about 0 for random places."""
    means, edges = setting.estimand.row_means @ setting.slopes.T, setting.graph.edges
    if edges is None:
        return 0.0
    first, second = (means - means.mean(axis=0))[edges.T]
    weights = setting.graph.rates
    size = weights @ ((first**2 + second**2).sum(axis=1) / 2)
    return float(weights @ (first * second).sum(axis=1) / size) if size else 0.0


def first_below(error: Callable[[float], float], accuracy: float) -> float:
    """Return the time from which on an error stays below an accuracy; infinite beyond 2**53."""
    times, above = np.geomspace(1.0, LATEST, 160), -1
    for k, t in enumerate(times):
        now = error(float(t))
        above = k if now > accuracy else above
        if now < FAR_BELOW * accuracy:
            break
    if above < 0:
        return 1.0
    if above == len(times) - 1:
        return math.inf
    low, high = float(times[above]), float(times[above + 1])
    while high > 1.0001 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if error(middle) > accuracy else (low, middle)
    return high


def error_at(formula: Formula, network: NetworkSummary, kernel: KernelMoments, t: float) -> float:
    """Return the mean absolute value of a normal number with the predicted bias and variance."""
    moments = formula(network, kernel, t)
    error = float(_mean_absolute(moments.bias, moments.placement + moments.noise))
    return moments.lacking + (1 - moments.lacking) * error


def _mean_absolute(bias: Rates, variance: float) -> Floats:
    """Return the mean absolute value of a normal number."""
    if variance <= 0:
        return np.asarray(np.abs(bias))
    ratio = bias / math.sqrt(2 * variance)
    erf: Floats = scipy_module("special").erf(ratio)
    return np.asarray(math.sqrt(2 * variance / math.pi) * np.exp(-ratio * ratio) + bias * erf)


def averaging(network: NetworkSummary, kernel: KernelMoments, t: float) -> ErrorMoments:
    """Predict averaging: each mode decays, and what two nodes lose is spread over all modes."""
    a, n = network.rates / 2, network.n
    root = np.sqrt(network.counts)
    decay, modes = np.linalg.eigh(np.outer(root * a, root * a) - 2 * np.diag(a))
    left = (modes.T @ root) ** 2 @ np.exp(decay * t)
    placement = float(network.counts @ np.exp(-2 * a * t))
    return ErrorMoments(
        0.0, kernel.rows * placement / n, kernel.rows * max(0.0, float(left - placement)) / n
    )


def u1(network: NetworkSummary, kernel: KernelMoments, t: float) -> ErrorMoments:
    """Predict U1: the average over time of a node's kernel values, less its own row's mean."""
    rates, share = network.rates, network.counts / network.n
    home = _integral(rates, t) / t
    seen = (share * _double_integral(rates, t)).sum() / t**2
    placement = float(kernel.rows * share @ home**2)
    return ErrorMoments(
        float(kernel.own * share @ home), placement, (kernel.rows + kernel.pairs) * seen - placement
    )


def u2(network: NetworkSummary, kernel: KernelMoments, t: float) -> ErrorMoments:
    """Predict U2: the average of visitor × visitor over time.

    A pair recurs only when both visitors return.
    """
    rates, share = network.rates, network.counts / network.n
    single = (share * _double_integral(rates, t)).sum() / t**2
    double = (np.outer(share, share) * _double_integral(np.add.outer(rates, rates), t)).sum() / t**2
    # Both visitors begin as the node's own row, so early means over runs vary with twice its
    # deviation.
    placement = float(2 * kernel.rows * share @ (_integral(rates, t) / t) ** 2)
    noise = 2 * kernel.rows * single + kernel.pairs * double - placement
    bias = float(kernel.own * share @ _integral(2 * rates, t) / t)
    return ErrorMoments(bias, placement, max(0.0, noise))


def gosta_sync(network: NetworkSummary, kernel: KernelMoments, t: float) -> ErrorMoments:
    """Predict GoSta-sync, whose noise has twice the variance of GoSta-async.

    A visitor is folded in at every tick of its random stay.
    """
    bias = float(kernel.own * network.counts @ _integral(network.rates, t) / (network.n * t))
    return ErrorMoments(bias, *_variances(network, kernel, t, stay=2.0, flat=20 / 3))


def gosta_async(network: NetworkSummary, kernel: KernelMoments, t: float) -> ErrorMoments:
    """Predict GoSta-async: a bias, and the noise of every exchange.

    The bias is from own observations and from estimates of 0 at the start.
    """
    exchanges = 2 * t / network.n
    bias = float(kernel.own * network.counts @ _integral(network.rates, t) / (network.n * t))
    start = network.rarity * START_WEIGHT / exchanges
    bias += kernel.start * start / (1 + start)
    return ErrorMoments(bias, *_variances(network, kernel, t, stay=1.0, flat=8 / 3))


def _variances(
    network: NetworkSummary, kernel: KernelMoments, t: float, stay: float, flat: float
) -> tuple[float, float]:
    """Return variances over nodes and over runs of estimates averaged in every exchange.

    `stay` is the mean square of how often a visitor is folded in during one stay. `flat` and `stay`
    weight the part that has not been averaged yet; on the complete graph they make the sum exact:
    2·stay for r and for u of visitors, 4 + 2·stay for u of one's own row, over exchanges².
    """
    n, rates, counts = network.n, network.rates, network.counts
    a, exchanges = rates / 2, 2 * t / n
    left = np.exp(-a * t)
    # A node's own row, and its visitors as far as they still come from nearby.
    nearby = left * (1 - left) / a
    placement = (2 / n) ** 2 * ((1 - left) / a + nearby) ** 2
    visitor = (2 / n) ** 2 * np.maximum(0, _damped_double_integral(a, 2 * a, t) - nearby**2)
    white = stay * 2 / n * -np.expm1(-2 * a * t) / (2 * a)
    again = (2 / n) ** 2 * (
        (_damped_double_integral(a[:, None], rates, t) * counts).sum(axis=1) / n
        - _damped_double_integral(a, 2 / n, t)
    )
    slow = (
        counts * (kernel.rows * visitor + kernel.pairs * np.maximum(0, white + again))
    ).sum() / n
    # The mean over all nodes varies too, as the pairs evaluated are a sample of all pairs.
    wander = (2 / n) ** 2 * (
        (counts * _double_integral(rates, t)).sum() / n - _double_integral(2 / n, t)
    )
    slow += kernel.pairs * (stay * exchanges + max(0.0, wander)) / n
    fresh = network.mean_squared_rarity * (flat * kernel.rows + stay * kernel.pairs)
    where = kernel.rows * (counts @ placement + (kernel.slowest - 1) * placement[0]) / n
    return where / exchanges**2, slow / exchanges**2 + fresh / (1 + exchanges) ** 2


def _integral(rate: Rates, t: float) -> Floats:
    """Return the integral of exp(−rate·s) up to t."""
    return -np.expm1(-rate * t) / rate


def _double_integral(rate: Rates, t: float) -> Floats:
    """Return the integral of exp(−rate·|s − s'|) over both s and s' up to t."""
    return np.where(rate * t < SHORT, t * t, 2 * (t - _integral(rate, t)) / rate)


def _damped_double_integral(damping: Rates, rate: Rates, t: float) -> Floats:
    """Return the integral of exp(−damping·(s + s') − rate·|s − s'|) over both s and s' up to t."""
    gap = rate - damping
    gap = np.where(np.abs(gap) < 1e-3 * damping, 1e-3 * damping, gap)
    integral = 2 / gap * (_integral(2 * damping, t) - _integral(2 * damping + gap, t))
    return np.where((damping + rate) * t < SHORT, t * t, integral)


def tracking(network: NetworkSummary, kernel: KernelMoments, t: float) -> ErrorMoments:
    """Predict errors of means that stay at their nodes, averaged with momentum."""
    return _momentum(TRACKING, network, kernel).at(t)


def carried_means(network: NetworkSummary, kernel: KernelMoments, t: float) -> ErrorMoments:
    """Predict errors of means that travel with visitors, averaged with momentum."""
    return _momentum(CARRIED, network, kernel).at(t)


def averaged_moments(network: NetworkSummary, kernel: KernelMoments, t: float) -> ErrorMoments:
    """Predict errors of averages of moments: the value is replaced by its tangent."""
    return _momentum(None, network, kernel).at(t)


@lru_cache(maxsize=8)
def _momentum(
    source: Source | None, network: NetworkSummary, kernel: KernelMoments
) -> MomentumErrors:
    """Return the integration of errors over time, which goes on where it ended."""
    return MomentumErrors(source, network, kernel)


MOMENTUM_NAMES = ("carried-means", "tracking")
PREDICTIONS: dict[str, Formula] = {
    "carried-means": carried_means,
    "tracking": tracking,
    "averaging": averaging,
    "u1": u1,
    "u2": u2,
    "gosta-sync": gosta_sync,
    "gosta-async": gosta_async,
}
