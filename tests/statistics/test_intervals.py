"""Intervals: against others' formulas, at borders, for heavy tails and degenerate kernels, and
their coverage.
"""

from __future__ import annotations

import dcor
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import erf
from scipy.stats import binom, binomtest, t

import gosta
from gosta.runtime.arrays import Floats
from gosta.statistics import STATISTICS
from gosta.statistics.intervals import wilson_ends


def placements(score: Floats, label: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the share of the other class that each row of a class is ordered correctly against."""
    plus, minus = score[label == 1], score[label == 0]
    won = (plus[:, None] > minus) + 0.5 * (plus[:, None] == minus)
    return won.mean(axis=1), won.mean(axis=0)


@pytest.mark.parametrize("digits", [0, 1, 9])
def test_auc_is_delongs_on_the_scale_of_the_logit(digits: int) -> None:
    """The standard error of DeLong, DeLong and Clarke-Pearson (1988); the ends as pROC has them on
    the logit scale, but with Satterthwaite's degrees of freedom in place of infinitely many.
    """
    rng = np.random.default_rng(digits)
    label = rng.integers(0, 2, 60)
    score = np.round(rng.normal(size=60) + label, digits)
    estimate = gosta.exact(score, "auc", label=label, interval=0.95)
    parts = placements(score, label)
    terms = [part.var(ddof=1) / len(part) for part in parts]
    error = np.sqrt(sum(terms))
    assert estimate.standard_error == pytest.approx(error, rel=1e-10)
    degrees = error**4 / sum(
        term**2 / (len(part) - 1) for term, part in zip(terms, parts, strict=True)
    )
    value = estimate.value
    logit = np.log(value / (1 - value)) + np.array([-1, 1]) * t.ppf(0.975, degrees) * error / (
        value * (1 - value)
    )
    assert (estimate.low, estimate.high) == pytest.approx(
        tuple(1 / (1 + np.exp(-logit))), rel=1e-10
    )


def test_degree_two_is_hoeffdings_variance() -> None:
    """For a plain U-statistic the jackknife is 4·Var(h)/n but for a factor that tends to 1."""
    x = np.random.default_rng(0).normal(size=1000)
    h = np.abs(x[:, None] - x).mean(axis=1)
    estimate = gosta.exact(x, "gini-mean-difference", interval=0.95)
    assert estimate.standard_error == pytest.approx(np.sqrt(4 * h.var() / len(x)), rel=4e-3)


def test_kendall_is_on_fishers_scale() -> None:
    x = np.random.default_rng(1).multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=40)
    estimate = gosta.exact(x, "kendall-tau", interval=0.95)
    reach = t.ppf(0.975, 39) * estimate.standard_error / (1 - estimate.value**2)
    ends = np.tanh(np.arctanh(estimate.value) + np.array([-reach, reach]))
    assert (estimate.low, estimate.high) == pytest.approx(tuple(ends), rel=1e-10)


def test_perfect_separation_has_a_width() -> None:
    """Wilson's interval for as many successes as the smaller class has rows; the same from a
    network.
    """
    data = {"score": np.arange(30.0), "label": np.arange(30) >= 20}
    estimate = gosta.exact(data, "auc", interval=0.95)
    assert (estimate.value, estimate.high, estimate.standard_error) == (1.0, 1.0, 0.0)
    assert estimate.low == pytest.approx(10 / (10 + 1.959963984540054**2))
    trace = gosta.simulate(data, "auc", interval=0.95, runs=1, nodes=5, checkpoints=1)
    assert [end.values[0, -1] for end in trace.intervals()] == [
        pytest.approx([e] * 5) for e in (estimate.low, 1.0)
    ]
    opposite = gosta.exact(
        {"score": -np.arange(30.0), "label": data["label"]}, "auc", interval=0.95
    )
    assert (opposite.low, opposite.high) == pytest.approx((0.0, 1 - estimate.low))
    ties = gosta.exact({"score": np.ones(30), "label": data["label"]}, "auc", interval=0.95)
    assert ties.low < 0.3 < 0.7 < ties.high


@pytest.mark.parametrize("name", ["kendall-tau", "spearman-rho", "distance-correlation"])
def test_perfect_dependence_has_a_width(name: str) -> None:
    x = np.arange(20.0)
    estimate = gosta.exact(np.column_stack([x, x]), name, interval=0.95)
    assert estimate.low < 0.95
    assert estimate.high == pytest.approx(1.0)


def test_wilson_is_scipys() -> None:
    for successes in (0, 3, 10):
        wanted = binomtest(successes, 10).proportion_ci(0.9, "wilson")
        low, high = wilson_ends(np.array(successes / 10), np.array(10.0), 0.9)
        assert (float(low), float(high)) == pytest.approx((wanted.low, wanted.high))


@pytest.mark.parametrize("name", ["variance", "gini-mean-difference", "gini-index", "covariance"])
def test_equal_rows_have_no_interval(name: str) -> None:
    with pytest.raises(
        gosta.NumericalError, match=f"{name} has no interval here: every row contributes the same"
    ):
        gosta.exact(np.ones((9, 2)) if name == "covariance" else np.ones(9), name, interval=0.95)


def test_interval_of_distance_correlation_is_about_the_unbiased_square() -> None:
    x = np.random.default_rng(2).normal(size=(60, 2)) + np.random.default_rng(3).normal(
        size=(60, 1), scale=2.0
    )
    estimate = gosta.exact(x, "distance-correlation", interval=0.95)
    left_out = [np.delete(x, i, axis=0) for i in range(60)]
    centre, *others = (dcor.u_distance_correlation_sqr(*rows.T) for rows in (x, *left_out))
    error = np.sqrt(59 / 60 * ((np.array(others) - np.mean(others)) ** 2).sum()) / (1 - centre**2)
    z = np.arctanh(centre)
    ends = np.tanh([z - t.ppf(0.975, 59) * error, upper_end(z, error, t.ppf(0.975, 59))])
    assert (estimate.low, estimate.high) == pytest.approx(tuple(np.sqrt(ends)), rel=1e-8)
    assert estimate.value == pytest.approx(dcor.distance_correlation(*x.T), rel=1e-10)


def upper_end(value: float, error: float, quantile: float) -> float:
    """The value whose standard error, if its square is proportional to the value, reaches back to
    what was found.
    """
    variance = quantile**2 * error**2 / (max(value, 0.0) + error)
    return float(
        brentq(
            lambda end: (end - max(value, 0.0)) ** 2 - variance * end, max(value, 0.0) + 1e-12, 1e3
        )
    )


@pytest.mark.parametrize("shift", [0.0, 0.4, 2.0])
def test_upper_end_of_a_distance_counts_that_its_error_grows(shift: float) -> None:
    """Rows of the first sample, of the second; the standard error and its degrees of freedom come
    from all pairs.
    """
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=30), rng.normal(size=40) + shift
    data = {"x": np.append(x, y), "label": np.repeat([1.0, 0.0], [30, 40])}
    for name, kernel, sign in (("energy-distance", lambda a, b: abs(a - b), 1), ("mmd", gauss, -1)):
        options = {"bandwidth": 1.0} if name == "mmd" else {}
        estimate = gosta.exact(data, name, interval=0.95, **options)
        count = 0 if name == "energy-distance" else 1  # mmd leaves pairs of a row with itself out
        xx, yy, xy = (kernel(a[:, None], b) for a, b in ((x, x), (y, y), (x, y)))
        own = [(k.sum(axis=1) - count) / (len(k) - count) for k in (xx, yy)]
        assert estimate.value == pytest.approx(
            sign * (2 * xy.mean() - own[0].mean() - own[1].mean())
        )
        parts = [2 * xy.mean(axis=1) - 2 * own[0], 2 * xy.mean(axis=0) - 2 * own[1]]
        terms = [part.var(ddof=1) / len(part) for part in parts]
        assert estimate.standard_error == pytest.approx(np.sqrt(sum(terms)), rel=0.05)
        error = estimate.standard_error
        quantile = (estimate.value - estimate.low) / error if estimate.low > 0 else t.ppf(0.975, 60)
        assert estimate.high == pytest.approx(upper_end(estimate.value, error, quantile), rel=0.02)
        assert estimate.low >= 0


def gauss(a: Floats, b: Floats) -> Floats:
    return np.exp(-((a - b) ** 2) / 2)


def test_skewness_is_corrected_as_hall_has_it() -> None:
    """Of a variance, ψ is the square of the distance from the mean; the cubic transformation is
    inverted by search.
    """
    x = np.random.default_rng(6).lognormal(size=60)
    estimate = gosta.exact(x, "variance", interval=0.9)
    psi = (x - x.mean()) ** 2
    skewness = ((psi - psi.mean()) ** 3).mean() / psi.var() ** 1.5 / np.sqrt(60)
    quantile = t.ppf(0.95, 2 * 60 / (((psi - psi.mean()) ** 4).mean() / psi.var() ** 2 - 1))

    def hall(z: float) -> float:
        return float(z + skewness / 3 * z**2 + skewness**2 / 27 * z**3 + skewness / 6)

    ends = [brentq(lambda z, end=end: hall(z) - end, -40, 40) for end in (quantile, -quantile)]
    wanted = tuple(estimate.value - estimate.standard_error * np.array(ends))
    assert (estimate.low, estimate.high) == pytest.approx(wanted, rel=1e-3)


def test_two_positive_rows_tell_nothing_about_their_spread() -> None:
    """They may be close together by chance: the interval is Wilson's for two independent pairs."""
    score = np.append(np.random.default_rng(7).normal(size=98), [0.5, 0.5001])
    estimate = gosta.exact({"score": score, "label": np.arange(100) >= 98}, "auc", interval=0.95)
    low, high = wilson_ends(np.array(estimate.value), np.array(2.0), 0.95)
    assert (estimate.low, estimate.high) == pytest.approx((float(low), float(high)))
    assert estimate.high - estimate.low > 0.5


def test_heavy_tails_have_few_degrees_of_freedom() -> None:
    """One row of fifty is far away: the standard error rests on it, so that Student's quantile is
    large.
    """
    x = np.append(np.random.default_rng(4).normal(size=49), 40.0)
    estimate = gosta.exact(x, "variance", interval=0.95)
    assert estimate.high > estimate.value + 6 * estimate.standard_error
    assert 0 < estimate.low < 1


def test_nodes_agree_with_exact_on_a_heavy_tail() -> None:
    """A Gini index of 50 lognormal rows, whose interval from nodes used to have half the width."""
    x = np.exp(2 * np.random.default_rng(0).normal(size=50))
    estimate = gosta.exact(x, "gini-index", interval=0.95)
    trace = gosta.simulate(
        x, "gini-index", interval=0.95, runs=1, iterations=40_000, checkpoints=1, seed=1
    )
    assert trace.setting.estimand.pooled_intervals()[0] == pytest.approx(
        (estimate.low, estimate.high), rel=1e-9
    )
    low, high = (float(np.median(end.values[0, -1])) for end in trace.intervals())
    assert (low, high) == pytest.approx(
        (estimate.low, estimate.high), abs=0.1 * (estimate.high - estimate.low)
    )


def test_unknown_scale_is_one_line() -> None:
    made = gosta.statistic(name="unknown-scale", scale="cubic")(lambda x, y: abs(x[0] - y[0]))
    with pytest.raises(
        gosta.InputError, match="scale = 'cubic' must be one of: plain, log, reciprocal, logit, "
    ):
        gosta.exact([1.0, 2.0, 4.0], made, interval=0.95)


def test_own_statistic_of_two_samples_has_an_interval_at_nodes() -> None:
    """Its kernel gives one number and has an option; nodes add which rows are of the first
    sample.
    """

    @gosta.statistic(name="own-gap", encode=STATISTICS["energy-distance"].encode, sample_index=-1)
    def own_gap(x, y, power=1.0):  # type: ignore[no-untyped-def]
        return abs(x[0] - y[0]) ** power if x[1] != y[1] else 0.0

    data = {"x": np.random.default_rng(5).normal(size=30), "label": np.arange(30) % 3 == 0}
    estimate = gosta.exact(data, own_gap, interval=0.9, power=0.5)
    trace = gosta.simulate(data, own_gap, interval=0.9, power=0.5, runs=1, checkpoints=1)
    assert trace.setting.estimand.pooled_intervals()[0] == pytest.approx(
        (estimate.low, estimate.high), rel=1e-9
    )


TRIALS = 300
CASES = {
    "auc": ("auc", 10, (1 + erf(1.75 / np.sqrt(2))) / 2),  # 0.96, with 10 rows a class
    "kendall-tau": ("kendall-tau", 20, 2 / np.pi * np.arcsin(0.5)),
    "spearman-rho": ("spearman-rho", 30, 6 / np.pi * np.arcsin(0.25)),
    "gini-mean-difference": ("gini-mean-difference", 30, 2 / np.sqrt(np.pi)),
    "variance": ("variance", 50, 1.0),
    "independent": ("distance-correlation", 20, 0.0),
}


@pytest.mark.parametrize("case", CASES)
def test_intervals_cover_the_population_value(case: str) -> None:
    """Of 300 intervals at 95 % the number that cover is binomial; with the seed fixed the test is
    repeatable, and intervals that cover in 93 % would fail it for one seed in 1000.
    benchmarks/interval_coverage.py has more cases.
    """
    name, n, value = CASES[case]
    covered = 0
    for seed in range(TRIALS):
        rng = np.random.default_rng([7, seed])
        first, second = rng.normal(size=(2, n))
        if name == "auc":
            data = {
                "score": np.append(first + 1.75 * np.sqrt(2), second),
                "label": np.arange(2 * n) < n,
            }
        elif name in ("variance", "gini-mean-difference"):
            data = {"x": first}
        else:
            data = {
                "a": first,
                "b": second if case == "independent" else 0.5 * first + 0.75**0.5 * second,
            }
        estimate = gosta.exact(data, name, interval=0.95)
        covered += estimate.low <= value <= estimate.high
    assert covered >= binom.ppf(0.001, TRIALS, 0.93)
