"""Two models on the same rows: values, standard errors and p-values are those of others."""

from __future__ import annotations

import numpy as np
import pytest
from lifelines.utils import concordance_index
from scipy.stats import norm, t
from sklearn.metrics import brier_score_loss
from statsmodels.stats.weightstats import ztest

import gosta
from gosta.errors import DataError
from gosta.measures import MEASURES
from gosta.runtime.arrays import Floats

TABLES = 200


def make_rows(seed: int) -> Floats:
    """Return two risks and a sign of rows, with ties in every second table."""
    rng = np.random.default_rng([31, seed])
    n = int(rng.integers(6, 80))
    outcome = rng.integers(0, 2, n)
    outcome[:4] = 0, 1, 0, 1
    first = np.clip(rng.normal(0.4, 0.2, n) + 0.2 * outcome, 0.0, 1.0)
    second = np.clip(first + rng.normal(0, 0.1, n), 0.0, 1.0)
    risks = np.column_stack([first, second])
    return np.column_stack([np.round(risks, 1) if seed % 2 else risks, 2.0 * outcome - 1])


def as_table(x: Floats) -> dict[str, Floats]:
    return {"new": x[:, 0], "old": x[:, 1], "died": (x[:, 2] > 0).astype(float)}


def found_of(x: Floats, name: str, **options: object) -> gosta.Estimate:
    found = gosta.exact(
        as_table(x), name, columns=["new", "old"], label="died", interval=0.95, options=options
    )
    assert isinstance(found, gosta.Estimate)
    return found


def test_difference_of_brier_scores_is_that_of_scikit_learn_and_its_test_that_of_statsmodels() -> (
    None
):
    for seed in range(TABLES):
        x = make_rows(seed)
        outcome = x[:, 2] > 0
        found = found_of(x, "brier-difference")
        first, second = (brier_score_loss(outcome, x[:, k]) for k in (0, 1))
        assert found.value == pytest.approx(first - second, abs=1e-12)
        gaps = (x[:, 0] - outcome) ** 2 - (x[:, 1] - outcome) ** 2
        quantiles = norm.ppf(0.975) / t.ppf(0.975, len(x) - 1)  # of the interval, by Student's
        wanted = 2 * norm.sf(abs(ztest(gaps)[0]) * quantiles)
        assert found.p_value == pytest.approx(wanted, abs=1e-12)


def test_integrated_discrimination_is_its_definition() -> None:
    """The standard error is that of two independent means, of Pencina and others (2008), with
    another correction for the mean.
    """
    for seed in range(TABLES):
        x = make_rows(seed)
        found = found_of(x, "integrated-discrimination")
        gaps = [(x[:, 0] - x[:, 1])[chosen] for chosen in (x[:, 2] > 0, x[:, 2] < 0)]
        assert found.value == pytest.approx(gaps[0].mean() - gaps[1].mean(), abs=1e-12)
        variance = sum(part.var() / len(part) for part in gaps) * len(x) / (len(x) - 1)
        assert found.standard_error == pytest.approx(np.sqrt(variance), rel=1e-9)


def test_net_reclassification_counts_rows_that_change_their_class() -> None:
    for seed in range(TABLES):
        x = make_rows(seed)
        thresholds = (0.2, 0.45)
        found = found_of(x, "net-reclassification", thresholds=thresholds)
        moves = [
            sum(new >= t for t in thresholds) - sum(old >= t for t in thresholds)
            for new, old, _ in x.tolist()
        ]
        events = [np.sign(m) for m, sign in zip(moves, x[:, 2], strict=True) if sign > 0]
        others = [-np.sign(m) for m, sign in zip(moves, x[:, 2], strict=True) if sign < 0]
        wanted = [np.mean(events) + np.mean(others), np.mean(events), np.mean(others)]
        np.testing.assert_allclose(found.value, wanted, atol=1e-12)
        variances = [np.var(part) / len(part) * len(x) / (len(x) - 1) for part in (events, others)]
        errors = np.sqrt([sum(variances), *variances])
        np.testing.assert_allclose(found.standard_error, errors, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "name", ["brier-difference", "integrated-discrimination", "net-reclassification"]
)
def test_weights_are_numbers_of_rows(name: str) -> None:
    x = make_rows(3)
    weights = np.random.default_rng(0).integers(1, 4, len(x))
    weighted = MEASURES[name].over(x, weights.astype(float)).value
    np.testing.assert_allclose(weighted, MEASURES[name].over(np.repeat(x, weights, axis=0)).value)


def delong(x: Floats) -> tuple[float, float]:
    """Return the difference of two AUCs and its standard error, over all pairs of rows."""
    positive = x[x[:, 2] > 0]
    negative = x[x[:, 2] < 0]
    gaps = [positive[:, None, k] - negative[None, :, k] for k in (0, 1)]
    wins = [(gap > 0) + 0.5 * (gap == 0) for gap in gaps]
    difference = wins[0] - wins[1]
    parts = [difference.mean(axis=1), difference.mean(axis=0)]
    variance = sum(part.var(ddof=1) / len(part) for part in parts)
    return float(difference.mean()), float(np.sqrt(variance))


def test_difference_of_aucs_has_the_standard_error_of_delongs_test() -> None:
    for seed in range(TABLES):
        x = make_rows(seed)
        value, error = delong(x)
        if error < 1e-9:
            continue
        found = found_of(x, "auc-difference")
        assert found.value == pytest.approx(value, abs=1e-12)
        assert found.standard_error == pytest.approx(error, abs=1e-12)
        test = gosta.test(as_table(x), "auc", columns=["new", "old"], label="died")
        by_error = 2 * norm.sf(abs(found.value) / found.standard_error)
        assert by_error == pytest.approx(test.p_value, abs=1e-12)
        assert found.p_value >= test.p_value  # as the interval is by Student's quantile


def test_difference_of_concordance_indices_is_that_of_lifelines() -> None:
    for seed in range(TABLES):
        rng = np.random.default_rng([32, seed])
        n = int(rng.integers(10, 60))
        time = np.round(rng.exponential(size=n), 1 + seed % 2)
        event = (rng.random(n) < 0.7).astype(float)
        event[:2] = 1.0
        first, second = np.round(rng.normal(size=(2, n)) - time, seed % 3)
        table = {"time": time, "event": event, "new": first, "old": second}
        found = gosta.exact(table, "concordance-difference", columns=list(table))
        wanted = concordance_index(time, -first, event) - concordance_index(time, -second, event)
        assert found == pytest.approx(wanted, abs=1e-12)


def test_only_differences_have_a_p_value() -> None:
    x = make_rows(0)
    auc = gosta.exact(as_table(x), "auc", score="new", label="died", interval=0.95)
    assert auc.p_value is None
    assert "p_value" not in auc.to_dict()
    found = found_of(x, "brier-difference")
    assert found.to_dict()["p_value"] == found.p_value
    assert ", p = " in found.text()


def test_measures_that_can_mislead_say_so() -> None:
    for name in ("integrated-discrimination", "net-reclassification"):
        (warning,) = found_of(make_rows(0), name).warnings
        assert "not calibrated" in warning


def test_risks_are_from_0_to_1() -> None:
    x = make_rows(0)
    x[4, 1] = 34.0
    with pytest.raises(
        DataError, match="the predicted risk old must lie from 0 to 1, row 5 has 34"
    ):
        found_of(x, "brier-difference")
