"""Calibration and overall performance of predicted risks, beside scikit-learn, statsmodels and
definitions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import chi2
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

import gosta
from gosta.errors import DataError, InputError, NumericalError
from gosta.measures import MEASURES
from gosta.measures.intervals import standard_errors
from gosta.measures.logistic import spline
from gosta.runtime.arrays import Floats

ALL = (
    "brier-score", "scaled-brier-score", "brier-parts", "log-loss", "observed-expected-ratio",
    "calibration-in-the-large", "calibration-intercept", "calibration-slope", "calibration-curve",
    "smooth-calibration-curve", "calibration-error", "hosmer-lemeshow",
)  # fmt: skip


def table(seed: int, n: int | None = None) -> tuple[Floats, Floats]:
    """Return predicted risks, with ties or close to 0 and 1, and outcomes of two classes."""
    rng = np.random.default_rng([31, seed])
    n = n or int(rng.choice([20, 50, 130]))
    kind = rng.integers(4)
    risks = [rng.random(n), rng.beta(0.3, 0.6, n), rng.beta(1, 15, n), rng.integers(1, 10, n) / 10]
    chosen = np.clip(risks[kind], 1e-9, 1 - 1e-9)
    outcomes = (rng.random(n) < chosen**1.2).astype(float)
    order = np.argsort(chosen)
    outcomes[order[:4]], outcomes[order[-4:]] = [0, 1, 0, 1], [0, 1, 0, 1]  # overlap
    return chosen, outcomes


def exact(name: str, predicted: Floats, outcomes: Floats, **settings: Any) -> Any:
    data = {"risk": predicted, "died": outcomes}
    return gosta.exact(data, name, label="died", score="risk", **settings)


def rows_of(risks: Floats, outcomes: Floats) -> Floats:
    return np.column_stack([risks, np.where(outcomes > 0, 1.0, -1.0)])


@pytest.mark.parametrize("seed", range(200))
def test_values_are_those_of_others(seed: int) -> None:
    risks, outcomes = table(seed)
    weights = np.random.default_rng(seed).exponential(size=len(risks)) if seed % 2 else None
    counted = np.ones(len(risks)) if weights is None else weights
    found = {
        name: exact(name, risks, outcomes, weights=counted)
        for name in ALL
        if name != "hosmer-lemeshow"
    }
    score = brier_score_loss(outcomes, risks, sample_weight=weights)
    mean = np.average(outcomes, weights=weights)
    assert found["brier-score"] == pytest.approx(score, rel=1e-12)
    assert found["scaled-brier-score"] == pytest.approx(1 - score / (mean * (1 - mean)), abs=1e-12)
    reliability, resolution, uncertainty, within = found["brier-parts"]
    assert reliability - resolution + uncertainty + within == pytest.approx(score, rel=1e-12)
    assert uncertainty == pytest.approx(mean * (1 - mean), rel=1e-12)
    loss = log_loss(outcomes, risks, sample_weight=weights)
    assert found["log-loss"] == pytest.approx(loss, rel=1e-12)
    ratio = mean / np.average(risks, weights=weights)
    assert found["observed-expected-ratio"] == pytest.approx(ratio, rel=1e-12)
    z = np.log(risks / (1 - risks))
    family = sm.families.Binomial()
    large = sm.GLM(outcomes, np.ones_like(z), family=family, offset=z, freq_weights=counted)
    line = sm.GLM(outcomes, sm.add_constant(z), family=family, freq_weights=counted)
    wanted = line.fit(tol=1e-15, maxiter=200).params
    assert found["calibration-in-the-large"] == pytest.approx(
        large.fit(tol=1e-15, maxiter=200).params[0], abs=1e-10
    )
    assert found["calibration-intercept"] == pytest.approx(wanted[0], rel=1e-9, abs=1e-10)
    assert found["calibration-slope"] == pytest.approx(wanted[1], rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("seed", range(40))
def test_curves_are_those_of_others(seed: int) -> None:
    risks, outcomes = table(seed, 120)
    cuts = np.arange(1, 10) / 10
    away = risks[(np.abs(risks[:, None] - cuts) > 1e-9).all(axis=1)]
    kept = np.isin(risks, away)
    if kept.sum() > 20:
        observed, predicted = calibration_curve(outcomes[kept], risks[kept], n_bins=10)
        found = exact("calibration-curve", risks[kept], outcomes[kept], cuts=cuts, interval=0.95)
        np.testing.assert_allclose(found.value, observed, rtol=1e-12)
        np.testing.assert_allclose(found.at, predicted, rtol=1e-12)
        assert (found.low <= found.value).all()
        assert (found.value <= found.high).all()
    if len(np.unique(risks)) == 120:
        observed, predicted = calibration_curve(outcomes, risks, n_bins=10, strategy="quantile")
        np.testing.assert_allclose(
            exact("calibration-curve", risks, outcomes), observed, rtol=1e-12
        )
        chi, p_value = exact("hosmer-lemeshow", risks, outcomes)
        terms = 12 * (observed - predicted) ** 2 / (predicted * (1 - predicted))
        assert chi == pytest.approx(terms.sum(), rel=1e-10)
        assert p_value == pytest.approx(chi2.sf(chi, 10), rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_smooth_curve_and_its_errors_are_those_of_statsmodels(seed: int) -> None:
    risks, outcomes = table(seed, 300)
    z = np.log(risks / (1 - risks))
    knots = np.quantile(z, [0.1, 0.5, 0.9], method="inverted_cdf")
    fitted = sm.GLM(outcomes, spline(z, knots), family=sm.families.Binomial())
    fitted = fitted.fit(cov_type="HC0", tol=1e-14, maxiter=200)
    shown = [0.02, 0.2, 0.7]
    found = MEASURES["smooth-calibration-curve"].over(
        rows_of(risks, outcomes), None, {"risks": shown}
    )
    assert found.influence is not None
    columns = spline(np.log(np.array(shown) / (1 - np.array(shown))), knots)
    wanted = fitted.get_prediction(columns)
    np.testing.assert_allclose(found.value, wanted.predicted, rtol=1e-8)
    np.testing.assert_allclose(
        standard_errors(found.influence, np.ones(300)), wanted.se * np.sqrt(300 / 299), rtol=1e-6
    )
    distances = np.abs(fitted.fittedvalues - risks)
    errors = [distances.mean(), *np.quantile(distances, [0.5, 0.9], method="inverted_cdf")]
    np.testing.assert_allclose(
        exact("calibration-error", risks, outcomes), [*errors, distances.max()], rtol=1e-8
    )


def test_the_spline_is_cubic_between_knots_and_linear_beyond() -> None:
    knots = np.array([-1.0, 0.0, 2.0])
    z = np.linspace(-4, 6, 1001)
    term = spline(z, knots)[:, 2]
    second = np.diff(term, 2) / 0.01**2
    beyond = (z[1:-1] < -1.011) | (z[1:-1] > 2.011)
    assert np.abs(second[beyond]).max() < 1e-6
    assert np.abs(np.diff(second)).max() < 0.02
    assert np.abs(second).max() > 0.1


def test_standard_errors_of_intercept_and_slope_are_those_of_hc3() -> None:
    risks, outcomes = table(4, 300)
    design = sm.add_constant(np.log(risks / (1 - risks)))
    found = sm.GLM(outcomes, design, family=sm.families.Binomial()).fit(tol=1e-12)
    variances = found.mu * (1 - found.mu)
    inverse = np.linalg.inv((design.T * variances) @ design)
    leverage = variances * np.einsum("ij,jk,ik->i", design, inverse, design)
    scores = design * ((outcomes - found.mu) / (1 - leverage))[:, None]
    wanted = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse) * 300 / 299)
    for name, error in zip(("calibration-intercept", "calibration-slope"), wanted, strict=True):
        ours = exact(name, risks, outcomes, interval=0.95).standard_error
        assert ours == pytest.approx(error, rel=1e-9)


def test_influences_give_the_standard_errors_of_statsmodels() -> None:
    risks, outcomes = table(3, 400)
    x, z = rows_of(risks, outcomes), np.log(risks / (1 - risks))
    found = [
        standard_errors(influence, np.ones(400))[0]
        for name in ("intercept", "slope", "in-the-large")
        if (influence := MEASURES[f"calibration-{name}"].over(x).influence) is not None
    ]
    family = sm.families.Binomial()
    line = sm.GLM(outcomes, sm.add_constant(z), family=family).fit(cov_type="HC0")
    large = sm.GLM(outcomes, np.ones_like(z), family=family, offset=z).fit(cov_type="HC0")
    wanted = np.append(line.bse, large.bse) * np.sqrt(400 / 399)
    np.testing.assert_allclose(found, wanted, rtol=1e-7)


@pytest.mark.parametrize("name", ["calibration-slope", "smooth-calibration-curve"])
def test_standard_errors_are_those_of_the_jackknife(name: str) -> None:
    rng = np.random.default_rng(4)
    risks: Floats = 1 / (1 + np.exp(1 - rng.normal(size=130)))
    x = rows_of(risks, np.where(rng.random(130) < risks, 1.0, 0.0))
    options = {"risks": (0.3, 0.6)} if "smooth" in name else {}
    left_out = np.array(
        [MEASURES[name].over(x, 1.0 * (np.arange(130) != k), options).value for k in range(130)]
    )
    errors = MEASURES[name].over(x, None, options).errors
    assert errors == pytest.approx(np.sqrt(129 * left_out.var(axis=0)), rel=0.02)


@pytest.mark.parametrize("name", [name for name in ALL if MEASURES[name].no_interval == ""])
def test_influence_is_the_derivative_by_the_weight_of_a_row(name: str) -> None:
    risks, outcomes = table(8, 130)
    x, weights = rows_of(risks, outcomes), np.random.default_rng(1).uniform(0.5, 1.5, 130)
    options: dict[str, Any] = {"cuts": (0.1, 0.4)} if "cuts" in MEASURES[name].options else {}
    found = MEASURES[name].over(x, weights, options)
    if found.influence is None:
        assert name == "calibration-error"
        return
    if name == "smooth-calibration-curve":  # whose knots do not move by such a step
        options = {"risks": (0.1, 0.3)}
        found = MEASURES[name].over(x, weights, options)
    assert found.influence is not None
    assert np.abs(weights @ found.influence).max() < 1e-8 * np.abs(found.influence).max()
    assert (standard_errors(found.influence, weights) > 0).all()
    for row in (0, 7, 100):
        moved = []
        for step in (1e-5, -1e-5):
            changed = weights.copy()
            changed[row] += step
            moved.append(MEASURES[name].over(x, changed, options).value)
        slope = (moved[0] - moved[1]) / 2e-5 * weights.sum()
        np.testing.assert_allclose(found.influence[row], slope, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in ALL if MEASURES[name].no_weights == ""])
def test_whole_weights_are_rows_that_are_repeated(name: str) -> None:
    risks, outcomes = table(5, 130)
    counts = np.random.default_rng(2).integers(0, 4, 130)
    repeated = rows_of(np.repeat(risks, counts), np.repeat(outcomes, counts))
    weighted = MEASURES[name].over(rows_of(risks, outcomes), counts.astype(float)).value
    np.testing.assert_allclose(MEASURES[name].over(repeated).value, weighted, rtol=1e-8, atol=1e-12)


def test_rows_without_weight_do_not_matter() -> None:
    risks, outcomes = table(5, 130)
    x = np.vstack([rows_of(risks, outcomes), [[0.0, 1.0], [1.0, -1.0]]])
    weights = np.append(np.ones(130), [0.0, 0.0])
    for name in ALL:
        if not MEASURES[name].no_weights:
            wanted = MEASURES[name].over(x[:130]).value
            np.testing.assert_allclose(MEASURES[name].over(x, weights).value, wanted, rtol=1e-10)


def test_what_cannot_be_computed_says_why() -> None:
    risks, outcomes = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.0, 0.0, 1.0, 1.0])
    for name in ("calibration-slope", "calibration-intercept", "smooth-calibration-curve"):
        with pytest.raises(NumericalError, match="risks separate the classes"):
            exact(name, risks, outcomes)
        with pytest.raises(NumericalError, match="risks separate the classes"):
            exact(name, 1 - risks, outcomes)
    with pytest.raises(NumericalError, match="all predicted risks are the same"):
        exact("calibration-slope", np.full(4, 0.2), outcomes)
    with pytest.raises(NumericalError, match="all rows are of one class"):
        MEASURES["calibration-slope"].over(rows_of(risks, np.ones(4)))
    with pytest.raises(NumericalError, match=r"2 rows have one; .*floor=1e-6"):
        exact("calibration-slope", np.array([0.0, 0.4, 1.0, 0.3, 0.6]), np.array([0, 0, 1, 1, 0.0]))
    with pytest.raises(DataError, match=r"risk must lie .* row 2 has 37; .*--na-values risk:VALUE"):
        exact("brier-score", np.array([0.2, 37.0, 0.4, 0.3]), outcomes)
    with pytest.raises(DataError, match=r"risk must lie .* row 1 has 20; .*--scale risk=0\.01"):
        exact("brier-score", np.array([20.0, 37.0, 40.0, 0.3]), outcomes)
    with pytest.raises(InputError, match="groups = 0 must be"):
        exact("calibration-curve", risks, outcomes, groups=0)
    with pytest.raises(InputError, match=r"floor = 0\.7 must be"):
        exact("log-loss", risks, outcomes, floor=0.7)
    with pytest.raises(InputError, match=r"cuts = 1\.5 must lie between 0 and 1"):
        exact("calibration-curve", risks, outcomes, cuts=1.5)
    with pytest.raises(DataError, match="needs one column of predicted risks"):
        gosta.exact({"a": risks, "b": risks, "died": outcomes}, "brier-score", label="died")


def test_risks_of_0_and_1() -> None:
    risks, outcomes = np.array([0.0, 0.4, 1.0, 0.3, 0.6, 0.0]), np.array([0, 0, 1, 1, 0, 1.0])
    assert exact("brier-score", risks, outcomes) == brier_score_loss(outcomes, risks)
    assert exact("log-loss", risks, outcomes) == pytest.approx(log_loss(outcomes, risks), rel=1e-12)
    moved = exact("calibration-slope", np.clip(risks, 1e-6, 1 - 1e-6), outcomes)
    assert exact("calibration-slope", risks, outcomes, floor=1e-6) == moved
    chi, _ = exact("hosmer-lemeshow", np.array([0.0, 0.0, 0.5, 0.5]), np.array([0, 0, 0, 1.0]))
    assert chi == 0
    with pytest.raises(NumericalError, match="chi-squared is infinite: all risks of a bin are 0"):
        exact("hosmer-lemeshow", np.array([0.0, 0.5]), np.array([1.0, 0.0]), groups=2)


@pytest.mark.parametrize("name", ["calibration-slope", "calibration-in-the-large"])
@pytest.mark.parametrize("floor", ["little", "", True, "0.1,0.2"])
def test_a_floor_is_a_number_also_where_no_risk_needs_it(name: str, floor: Any) -> None:
    x = np.array([[0.2, -1.0], [0.4, 1.0], [0.6, -1.0], [0.8, 1.0]])
    with pytest.raises(InputError, match=r"floor = .* must be a number"):
        MEASURES[name].over(x, None, {"floor": floor})


def test_intervals_of_distances_begin_at_0_unless_perfect_calibration_is_rejected() -> None:
    rng = np.random.default_rng(4)
    z = rng.normal(size=800)
    for slope, is_calibrated in ((1.0, True), (0.5, False)):
        outcomes = rng.random(800) < 1 / (1 + np.exp(-slope * z))
        data = {"risk": 1 / (1 + np.exp(-z)), "ill": outcomes.astype(int)}
        roles: dict[str, Any] = {"score": "risk", "label": "ill", "interval": 0.95}
        rows = gosta.exact(data, "calibration-error", **roles)
        sums = gosta.exact(data, "calibration-error", **roles, bins=64, ranges={"risk": (0, 1)})
        for found in (rows, sums):
            assert (found.low == 0).all() == is_calibrated
            assert (found.low <= found.value).all()
            assert (found.value <= found.high).all()
        np.testing.assert_allclose(rows.low, sums.low, atol=2e-3)
        np.testing.assert_allclose(rows.high, sums.high, atol=2e-3)
