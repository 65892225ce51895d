"""How far off a single run is, and how long it takes: derived, not fitted.

An expectation says nothing about one run, whose error is mostly noise; but noise can be computed mode by mode. Split
the kernel as H(x, y) = V + u(x) + u(y) + r(x, y), with u the deviation of a row's mean from V and r what is left. A
node folds in u of its own row, always the same; u of its visitor, which stays about as long as visitors take to mix;
and r of the two, which comes again when the visitor does. Averaging wears each mode of the network off at its own rate.
The squares of all that add up, and the bias from early meetings, in which nodes see themselves, joins them. Unless the
expectation of each node is given, rows are taken to be dealt to the nodes at random.

What is neglected: numbers of meetings are taken for their means, edges for independent of what they join, errors for
normal, and ratios for their tangents. `docs/theory.md` says how far off that is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gosta import graphs
from gosta.errors import InputError
from gosta.estimation.problem import Setting, settle, size_of
from gosta.graphs.graph import Graph
from gosta.protocols import Collecting, Protocol, find
from gosta.runtime.arrays import Floats
from gosta.statistics import Statistic
from gosta.theory.arguments import choose, whole_times
from gosta.theory.spectrum import DENSE, density, slowest

LATE = math.exp(-np.euler_gamma)  # what a start from 0 still weighs in GoSta-async, in meetings a node
FARTHEST = 2.0**53
SHORT = 1e-5  # below this nothing has worn off or been forgotten yet, and differences would lose all digits


class Roughness(NamedTuple):
    """How much a statistic's kernel varies, each relative to the statistic's value."""

    rows: float = 0.1278
    """Variance of row means, u."""
    pairs: float = 0.3150
    """Variance of what is left of the kernel, r."""
    own: float = -1.0
    """How far a row with itself is off the mean kernel value, on average."""
    nothing: float = -1.0
    """How far an estimate is off before anything was folded in."""
    slowest: float = 1.0
    """The part of row means' variance along the network's slowest mode, as a multiple of any mode's share."""


class Prediction(NamedTuple):
    """What it takes to get a mean relative error."""

    exchanges: float
    """Pairs of nodes that talk to each other, in all; infinite beyond 2**53."""
    per_node: float
    """Exchanges that one node takes part in, on average."""
    numbers: float
    """Numbers sent, in all."""


class Network(NamedTuple):
    """What a prediction needs to know of a graph."""

    n: int
    rates: Floats
    counts: Floats
    rare: float
    """The mean over nodes of 1/(chance to be drawn), as a multiple of n/2: 1 where all are drawn equally often."""
    rarer: float
    """The same for its square."""


def predict(
    graph: Any,
    protocol: str | Protocol | Collecting = "gosta-async",
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
    **options: Any,
) -> Prediction:
    """Predict how many exchanges a network needs until the mean relative error of its nodes is small enough.

    Parameters
    ----------
    graph, n, seed
        As for `gosta.graphs.load`.
    protocol
        averaging, u1, u2, gosta-sync or gosta-async.
    accuracy
        The mean over nodes of the relative error in a single run, such as 0.01.
    data, statistic, columns, label, score, drop_missing, **options
        As for `gosta.simulate`. Without them, the numbers are those of a typical kernel: the Gini mean difference of
        normally distributed numbers.

    Examples
    --------
    >>> import gosta
    >>> wanted = gosta.theory.predict("torus", "gosta-async", accuracy=0.05, n=1024)
    >>> print(f"{wanted.exchanges:.2g} exchanges, {wanted.per_node:.0f} a node")
    4.4e+04 exchanges, 87 a node
    """
    if not isinstance(accuracy, int | float | np.floating) or not 0 < accuracy < 1:
        raise InputError(f"accuracy = {accuracy!r} must lie between 0 and 1, such as 0.01")
    if (data is None) != (statistic is None):
        raise InputError("data and statistic go together; without both, a typical kernel is meant")
    choice = {"columns": columns, "label": label, "score": score, "drop_missing": drop_missing}
    if data is None and (options or any(choice.values())):
        given = ", ".join([*options, *(name for name, value in choice.items() if value)])
        raise InputError(f"{given} without data; give data and statistic, too")
    rule = find(protocol)
    numbers, values = 1, 1
    if data is None or statistic is None:
        network, roughness = describe(graphs.load(graph, n, seed).check()), Roughness()
    else:
        setting = settle(rule, data, statistic, graph, seed, options, **choice)
        if n not in (None, setting.problem.n):
            raise InputError(f"n = {n}: the data have {setting.problem.n} rows; leave n out")
        network, roughness = describe(setting.graph), measure(setting)
        numbers, values = setting.problem.x.shape[1], setting.problem.width
    if network.n == 2 and rule.name == "u2":
        raise InputError("the visitors of two nodes swap back and forth for ever: u2 never gets there; take more nodes")
    iterations = first_below(lambda t: error_at(rule, network, roughness, t), accuracy)
    assert isinstance(rule, Protocol)
    exchanges = iterations * rule.draws
    return Prediction(exchanges, 2 * exchanges / network.n, iterations * rule.units(numbers, values))


def predicted_errors(setting: Setting, times: Any, expected: Floats | None = None) -> Floats:
    """The mean over nodes of the relative error in a single run, at given iterations.

    With `expected`, the relative errors of expected estimates, nodes × times, it does not matter how rows were dealt to
    nodes.
    """
    network, roughness, ticks = describe(setting.graph), measure(setting), whole_times(times)
    if expected is None:
        return np.array([error_at(setting.protocol, network, roughness, float(t)) for t in ticks])
    rule = choose(TABLE, "prediction", setting.protocol)
    noise = [rule(network, roughness, float(t)).noise for t in ticks]
    return np.array([_mean_size(bias, one).mean() for bias, one in zip(expected.T, noise, strict=True)])


def describe(graph: Graph) -> Network:
    """What a prediction needs to know of a graph."""
    rates, counts = density(graph)
    if graph.edges is None:
        return Network(graph.n, rates, counts, 1.0, 1.0)
    weights = graph.rates
    drawn = sum(np.bincount(ends, weights, minlength=graph.n) for ends in graph.edges.T) / weights.sum()
    rare = 2 / (graph.n * drawn)
    return Network(graph.n, rates, counts, float(rare.mean()), float((rare**2).mean()))


def measure(setting: Setting) -> Roughness:
    """How much the kernel of a setting varies; of several numbers, relative to the length of their vector."""
    problem, slopes = setting.problem, setting.slopes
    target = problem.targets(setting.protocol)
    size = size_of(target)
    if size == 0:
        raise InputError(f"{problem.statistic.name} is 0 here: there is no relative error to predict")
    row_means = problem.row_means @ slopes.T
    mean = row_means.mean(axis=0)
    total = sum(map(problem.scatter, slopes))
    rows = row_means.var(axis=0).sum()
    own = problem.diagonal.mean(axis=0) @ slopes.T - mean
    return Roughness(
        float(rows / size**2),
        float(max(0.0, total - 2 * rows) / size**2),
        float(np.linalg.norm(own) * np.sign(own.sum()) / size),
        float(-np.linalg.norm(mean) / size),
        _along(setting.graph, row_means - mean) if problem.n <= DENSE else 1.0,
    )


def _along(graph: Graph, deviations: Floats) -> float:
    """A single mode matters where two halves hardly meet; then it counts which rows happen to lie where."""
    vector = slowest(graph)[1]
    size = (deviations**2).mean()
    return float(((vector @ deviations) ** 2).mean() / size) if size else 1.0


def first_below(error: Callable[[float], float], accuracy: float) -> float:
    """The time from which on an error that falls in the long run stays below what is wanted; infinite if too late."""
    times = np.geomspace(1.0, FARTHEST, 160)
    above = [k for k, t in enumerate(times) if error(float(t)) > accuracy]
    if not above:
        return 1.0
    if above[-1] == len(times) - 1:
        return math.inf
    low, high = float(times[above[-1]]), float(times[above[-1] + 1])
    while high > 1.0001 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if error(middle) > accuracy else (low, middle)
    return high


def error_at(protocol: Protocol | Collecting, network: Network, roughness: Roughness, t: float) -> float:
    """The mean over nodes of the absolute value of a normal number with the predicted bias and variance."""
    moments = choose(TABLE, "prediction", protocol)(network, roughness, t)
    return float(_mean_size(np.float64(moments.bias), moments.dealt + moments.noise))


def _mean_size(bias: Any, variance: float) -> Any:
    """The mean absolute value of a normal number."""
    from scipy.special import erf

    if variance <= 0:
        return np.abs(bias)
    ratio = bias / math.sqrt(2 * variance)
    return math.sqrt(2 * variance / math.pi) * np.exp(-ratio * ratio) + bias * erf(ratio)


class Moments(NamedTuple):
    """What is predicted of a node's relative error."""

    bias: float
    """Its mean over nodes and runs."""
    dealt: float
    """Variance over nodes of its mean over runs: which rows happen to lie where."""
    noise: float
    """Variance over runs."""


def averaging(network: Network, roughness: Roughness, t: float) -> Moments:
    """Energy of each mode: it decays, and what an average of two takes from all modes is scattered over them."""
    a, n = network.rates / 2, network.n
    root = np.sqrt(network.counts)
    decay, modes = np.linalg.eigh(np.outer(root * a, root * a) - 2 * np.diag(a))
    left = (modes.T @ root) ** 2 @ np.exp(decay * t)
    dealt = float(network.counts @ np.exp(-2 * a * t))
    return Moments(0.0, roughness.rows * dealt / n, roughness.rows * max(0.0, float(left - dealt)) / n)


def u1(network: Network, roughness: Roughness, t: float) -> Moments:
    """The mean over time of what a node sees, minus its own row's mean."""
    rates, n = network.rates, network.n
    share = network.counts / n
    home = _stay(rates, t) / t
    seen = (share * _twice(rates, t)).sum() / t**2
    dealt = roughness.rows * share @ home**2
    return Moments(roughness.own * share @ home, dealt, (roughness.rows + roughness.pairs) * seen - dealt)


def u2(network: Network, roughness: Roughness, t: float) -> Moments:
    """The mean over time of visitor × visitor at a node; both must be back for the same pair to come again."""
    rates, share = network.rates, network.counts / network.n
    single = (share * _twice(rates, t)).sum() / t**2
    double = (np.outer(share, share) * _twice(np.add.outer(rates, rates), t)).sum() / t**2
    # Both visitors begin as the node's own row, so early means over runs vary with twice its deviation.
    dealt = 2 * roughness.rows * share @ (_stay(rates, t) / t) ** 2
    noise = 2 * roughness.rows * single + roughness.pairs * double - dealt
    return Moments(roughness.own * share @ _stay(2 * rates, t) / t, dealt, max(0.0, noise))


def gosta_sync(network: Network, roughness: Roughness, t: float) -> Moments:
    """As for GoSta-async, but a visitor is folded in as often as its random stay lasts: twice the variance."""
    bias = roughness.own * network.counts @ _stay(network.rates, t) / (network.n * t)
    return Moments(bias, *_variances(network, roughness, t, stay=2.0, flat=20 / 3))


def gosta_async(network: Network, roughness: Roughness, t: float) -> Moments:
    """Bias from own observations and from estimates of 0 at the start; noise of every meeting."""
    meetings = 2 * t / network.n
    bias = roughness.own * network.counts @ _stay(network.rates, t) / (network.n * t)
    late = network.rare * LATE / meetings
    bias += roughness.nothing * late / (1 + late)
    return Moments(bias, *_variances(network, roughness, t, stay=1.0, flat=8 / 3))


def _variances(network: Network, roughness: Roughness, t: float, stay: float, flat: float) -> tuple[float, float]:
    """Variances over nodes and over runs of estimates that are averaged as they come in.

    `stay` is the mean square of how often a visitor is folded in during one stay. `flat` and it weigh what has not been
    averaged yet; on the complete graph they make the sum exact: 2·stay for r and for u of visitors, 4 + 2·stay for u of
    one's own row, over meetings².
    """
    n, rates, counts = network.n, network.rates, network.counts
    a, meetings = rates / 2, 2 * t / n
    left = np.exp(-a * t)
    # A node's own row, and its visitors as far as they are still those from nearby.
    nearby = left * (1 - left) / a
    dealt = (2 / n) ** 2 * ((1 - left) / a + nearby) ** 2
    visitor = (2 / n) ** 2 * np.maximum(0, _memory(a, 2 * a, t) - nearby**2)
    white = stay * 2 / n * -np.expm1(-2 * a * t) / (2 * a)
    again = (2 / n) ** 2 * ((_memory(a[:, None], rates, t) * counts).sum(axis=1) / n - _memory(a, 2 / n, t))
    slow = (counts * (roughness.rows * visitor + roughness.pairs * np.maximum(0, white + again))).sum() / n
    # The mean over all nodes wanders too, as the pairs that met are a sample of all pairs.
    wander = (2 / n) ** 2 * ((counts * _twice(rates, t)).sum() / n - _twice(2 / n, t))
    slow += roughness.pairs * (stay * meetings + max(0.0, wander)) / n
    fresh = network.rarer * (flat * roughness.rows + stay * roughness.pairs)
    where = roughness.rows * (counts @ dealt + (roughness.slowest - 1) * dealt[0]) / n
    return where / meetings**2, slow / meetings**2 + fresh / (1 + meetings) ** 2


def _stay(rate: Any, t: float) -> Any:
    """The integral of exp(−rate·s) up to t."""
    return -np.expm1(-rate * t) / rate


def _twice(rate: Any, t: float) -> Any:
    """The integral of exp(−rate·|s − s'|) over both up to t."""
    return np.where(rate * t < SHORT, t * t, 2 * (t - _stay(rate, t)) / rate)


def _memory(wear: Any, forget: Any, t: float) -> Any:
    """The integral of exp(−wear·(s + s') − forget·|s − s'|) over both up to t: noise with a memory, worn off."""
    gap = forget - wear
    gap = np.where(np.abs(gap) < 1e-3 * wear, 1e-3 * wear, gap)
    return np.where((wear + forget) * t < SHORT, t * t, 2 / gap * (_stay(2 * wear, t) - _stay(2 * wear + gap, t)))


TABLE = {"averaging": averaging, "u1": u1, "u2": u2, "gosta-sync": gosta_sync, "gosta-async": gosta_async}
