"""Exact values against scikit-learn, scipy, numpy, dcor and lifelines: agreement to 1e-10
relative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dcor
import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lifelines.utils import concordance_index
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel

import gosta
from gosta.runtime.arrays import Floats
from gosta.statistics.definition import Normalisation

TIGHT = 1e-10
sizes = st.integers(2, 60) | st.sampled_from([1000, 20_000])
seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from(
    ["smooth", "ties", "few values", "duplicates", "far from zero", "heavy tail"]
)


def column(rng: np.random.Generator, n: int, kind: str) -> Floats:
    x = rng.normal(size=n)
    made: dict[str, Callable[[], Any]] = {
        "smooth": lambda: x,
        "ties": lambda: np.round(x, 1),
        "few values": lambda: rng.integers(0, 3, n),
        "duplicates": lambda: x[rng.integers(0, n, n)],
        "far from zero": lambda: 1e6 + x,
        "heavy tail": lambda: np.exp(3 * x),
    }
    return np.asarray(made[kind](), dtype=float)


def two_columns(n: int, seed: int, kind: str) -> Floats:
    rng = np.random.default_rng(seed)
    first = column(rng, n, kind)
    return np.column_stack([first, np.where(rng.random(n) < 0.3, first, column(rng, n, kind))])


def two_samples(n: int, seed: int, kind: str) -> tuple[Floats, Any]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    assume(0 < label.sum() < n)
    return column(rng, n, kind) + label * rng.integers(0, 2), label


@given(sizes, seeds, kinds)
def test_auc_and_mann_whitney(n: int, seed: int, kind: str) -> None:
    score, label = two_samples(n, seed, kind)
    assert gosta.exact(score, "auc", label=label) == pytest.approx(
        roc_auc_score(label, score), rel=TIGHT
    )
    theirs = scipy.stats.mannwhitneyu(score[label == 1], score[label == 0]).statistic
    assert gosta.exact(score, "mann-whitney", label=label) == pytest.approx(theirs, rel=TIGHT)


@given(sizes, seeds, kinds)
def test_kendall_and_spearman(n: int, seed: int, kind: str) -> None:
    x = two_columns(n, seed, kind)
    assume(np.ptp(x[:, 0]) > 0 and np.ptp(x[:, 1]) > 0)
    tau = scipy.stats.kendalltau(x[:, 0], x[:, 1]).statistic
    assert gosta.exact(x, "kendall-tau", variant="b") == pytest.approx(tau, rel=TIGHT, abs=1e-14)
    if (
        len(np.unique(x[:, 0])) == len(np.unique(x[:, 1])) == n
    ):  # without ties, a and b are the same
        assert gosta.exact(x, "kendall-tau") == pytest.approx(tau, rel=TIGHT, abs=1e-14)
    rho = scipy.stats.spearmanr(x[:, 0], x[:, 1]).statistic
    assert gosta.exact(x, "spearman-rho") == pytest.approx(rho, rel=TIGHT, abs=1e-13)


@settings(max_examples=25)
@given(st.integers(3, 60), seeds, kinds)
def test_tests_of_ranks(n: int, seed: int, kind: str) -> None:
    x = two_columns(n, seed, kind)
    assume(np.ptp(x[:, 0]) > 0 and np.ptp(x[:, 1]) > 0)
    p = scipy.stats.kendalltau(x[:, 0], x[:, 1], method="asymptotic").pvalue
    assert 2 * scipy.stats.norm.sf(abs(gosta.exact(x, "kendall-z"))) == pytest.approx(p, rel=1e-8)
    score, label = x[:, 0], np.arange(n) % 2
    p = scipy.stats.mannwhitneyu(score[label == 1], score[label == 0], method="asymptotic").pvalue
    z = gosta.exact(score, "mann-whitney-z", label=label)
    assert 2 * scipy.stats.norm.sf(abs(z)) == pytest.approx(p, rel=1e-8)
    assert z * (gosta.exact(score, "auc", label=label) - 0.5) >= 0.0


@settings(max_examples=25)
@given(st.integers(2, 60), seeds, kinds)
def test_somers_and_gamma(n: int, seed: int, kind: str) -> None:
    x = two_columns(n, seed, kind)
    assume(np.ptp(x[:, 0]) > 0 and np.ptp(x[:, 1]) > 0)
    table = scipy.stats.contingency.crosstab(x[:, 0], x[:, 1]).count
    with np.errstate(all="ignore"):
        theirs = scipy.stats.somersd(table).statistic
    assert gosta.exact(x, "somers-d") == pytest.approx(theirs, rel=TIGHT, abs=1e-14)
    signs = [np.sign(column[:, None] - column) for column in x.T]
    both = (signs[0] * signs[1]).ravel()
    assume(both.any())
    wanted = (sum(both > 0) - sum(both < 0)) / (sum(both > 0) + sum(both < 0))
    assert gosta.exact(x, "goodman-kruskal-gamma") == pytest.approx(wanted, rel=TIGHT, abs=1e-14)


@settings(max_examples=15)
@given(st.integers(6, 60), seeds, st.sampled_from([1, 8]))
def test_multiclass_auc(n: int, seed: int, digits: int) -> None:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 3, n)
    assume(len(set(label)) == 3)
    scores = np.round(rng.dirichlet([1, 1, 1], n) + 0.3 * np.eye(3)[label], digits) + 1e-9
    shares = scores / scores.sum(axis=1, keepdims=True)
    for average, (scheme, kind) in {
        "pairs": ("ovo", "macro"), "macro": ("ovr", "macro"), "weighted": ("ovr", "weighted"),
    }.items():  # fmt: skip
        theirs = roc_auc_score(label, shares, multi_class=scheme, average=kind)
        ours = gosta.exact(
            shares, "multiclass-auc", label=label, columns=[0, 1, 2], average=average
        )
        assert ours == pytest.approx(theirs, rel=TIGHT)


@given(st.integers(2, 60), seeds, kinds, st.sampled_from([0.05, 0.1, 0.5, 0.99]))
def test_partial_auc(n: int, seed: int, kind: str, max_fpr: float) -> None:
    score, label = two_samples(n, seed, kind)
    theirs = roc_auc_score(label, score, max_fpr=max_fpr)
    assert gosta.exact(score, "partial-auc", label=label, max_fpr=max_fpr) == pytest.approx(
        theirs, rel=TIGHT
    )


@given(st.integers(4, 60), seeds, kinds, st.sampled_from([0.05, 0.1, 0.3]))
def test_trimmed_and_winsorised_mean(n: int, seed: int, kind: str, share: float) -> None:
    x = column(np.random.default_rng(seed), n, kind)
    slack = 1e-12 * np.abs(x).max()
    theirs = scipy.stats.trim_mean(x, share)
    assert gosta.exact(x, "trimmed-mean", share=share) == pytest.approx(
        theirs, rel=TIGHT, abs=slack
    )
    theirs = scipy.stats.mstats.winsorize(x, (share, share)).mean()
    assert gosta.exact(x, "winsorised-mean", share=share) == pytest.approx(
        theirs, rel=TIGHT, abs=slack
    )


@given(sizes, seeds, kinds)
def test_variance_and_covariance(n: int, seed: int, kind: str) -> None:
    x = two_columns(n, seed, kind)
    assert gosta.exact(x[:, 0], "variance") == pytest.approx(np.var(x[:, 0], ddof=1), rel=TIGHT)
    assert gosta.exact(x[:, 0], "variance", normalisation="V") == pytest.approx(
        np.var(x[:, 0]), rel=TIGHT
    )
    wanted = np.cov(x.T)
    slack = 1e-12 * np.sqrt(wanted[0, 0] * wanted[1, 1])
    assert gosta.exact(x, "covariance") == pytest.approx(wanted[0, 1], rel=TIGHT, abs=slack)


@given(st.integers(2, 60), seeds, kinds)
def test_gini(n: int, seed: int, kind: str) -> None:
    x = np.abs(column(np.random.default_rng(seed), n, kind))
    assume(x.max() > 0)
    difference = np.abs(x[:, None] - x).sum()
    assert gosta.exact(x, "gini-mean-difference") == pytest.approx(
        difference / (n * (n - 1)), rel=TIGHT
    )
    assert gosta.exact(x, "gini-index") == pytest.approx(
        difference / (2 * n * n * x.mean()), rel=TIGHT
    )


@given(sizes, seeds, st.sampled_from(["smooth", "ties", "duplicates", "heavy tail"]))
def test_energy_distance_is_the_square_of_scipys(n: int, seed: int, kind: str) -> None:
    x, label = two_samples(n, seed, kind)
    root = scipy.stats.energy_distance(x[label == 1], x[label == 0])
    ours = gosta.exact(x, "energy-distance", label=label)
    # What is subtracted is a million times what is left where two large samples are alike.
    assert ours == pytest.approx(root**2, rel=TIGHT, abs=1e-13 * float(np.mean(np.abs(x))))


def test_energy_distance_in_space_is_dcors() -> None:
    rng = np.random.default_rng(0)
    x, label = rng.normal(size=(150, 3)), rng.integers(0, 2, 150)
    x[label == 1] += 0.5
    theirs = dcor.energy_distance(x[label == 1], x[label == 0])
    assert gosta.exact(x, "energy-distance", label=label) == pytest.approx(theirs, rel=TIGHT)
    unbiased = dcor.energy_distance(x[label == 1], x[label == 0], estimation_stat="u")
    assert gosta.exact(x, "energy-distance", label=label, normalisation="U") == pytest.approx(
        unbiased, rel=TIGHT
    )


@given(st.integers(2, 60) | st.sampled_from([1000]), seeds, kinds)
def test_distance_correlation(n: int, seed: int, kind: str) -> None:
    x = two_columns(n, seed, kind)
    theirs = dcor.distance_correlation(x[:, 0], x[:, 1], method="naive")
    assert gosta.exact(x, "distance-correlation") == pytest.approx(theirs, rel=TIGHT, abs=1e-7)


def test_distance_correlation_of_blocks() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 5))
    x[:, 4] += x[:, 0] ** 2
    theirs = dcor.distance_correlation(x[:, :2], x[:, 2:])
    ours = gosta.exact(x, "distance-correlation", columns=range(5), split=2)
    assert ours == pytest.approx(theirs, rel=TIGHT)


@given(st.integers(2, 60), seeds, kinds)
def test_concordance_index(n: int, seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    time, event, risk = np.abs(column(rng, n, kind)), rng.integers(0, 2, n), column(rng, n, "ties")
    try:
        theirs = concordance_index(time, -risk, event)
    except ZeroDivisionError:
        assume(False)
    ours = gosta.exact({"time": time, "event": event, "score": risk}, "concordance-index")
    assert ours == pytest.approx(theirs, rel=TIGHT)


def test_distances() -> None:
    rng = np.random.default_rng(2)
    x, cell = rng.normal(size=(300, 7)), rng.integers(0, 4, 300)
    distances = scipy.spatial.distance.squareform(scipy.spatial.distance.pdist(x))
    pairs = 300 * 299
    assert gosta.exact(x, "mean-pairwise-distance") == pytest.approx(
        distances.sum() / pairs, rel=TIGHT
    )
    within = distances * (cell[:, None] == cell)
    assert gosta.exact(x, "within-cluster-scatter", label=cell) == pytest.approx(
        within.sum() / pairs, rel=TIGHT
    )
    squared = distances**2 * (cell[:, None] == cell)
    assert gosta.exact(x, "squared-scatter", label=cell) == pytest.approx(
        squared.sum() / pairs, rel=TIGHT
    )


@pytest.mark.parametrize("normalisation", ["U", "V"])
def test_mmd_from_scikit_learns_kernel(normalisation: Normalisation) -> None:
    rng = np.random.default_rng(5)
    x, label = rng.normal(size=(80, 3)), np.arange(80) % 2 == 0
    x[label] += 0.4
    gram = rbf_kernel(x, gamma=1 / (2 * 1.7**2))
    if normalisation == "U":
        np.fill_diagonal(gram, np.nan)
    across = gram[np.ix_(label, ~label)].mean()
    within = np.nanmean(gram[np.ix_(label, label)]) + np.nanmean(gram[np.ix_(~label, ~label)])
    ours = gosta.exact(x, "mmd", label=label, bandwidth=1.7, normalisation=normalisation)
    assert ours == pytest.approx(within - 2 * across, rel=TIGHT)


def test_large_n() -> None:
    rng = np.random.default_rng(6)
    n = 200_000
    label, x = rng.integers(0, 2, n), np.round(rng.normal(size=(n, 2)), 3)
    x[:, 1] += 0.1 * x[:, 0]
    assert gosta.exact(x[:, 0], "auc", label=label) == pytest.approx(
        roc_auc_score(label, x[:, 0]), rel=TIGHT
    )
    tau = scipy.stats.kendalltau(x[:, 0], x[:, 1]).statistic
    assert gosta.exact(x, "kendall-tau", variant="b") == pytest.approx(tau, rel=TIGHT)
    rho = scipy.stats.spearmanr(x[:, 0], x[:, 1]).statistic
    assert gosta.exact(x, "spearman-rho") == pytest.approx(rho, rel=TIGHT)
    theirs = dcor.distance_correlation(x[:, 0], x[:, 1])
    assert gosta.exact(x, "distance-correlation") == pytest.approx(theirs, rel=1e-9)
