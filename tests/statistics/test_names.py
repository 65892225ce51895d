"""Other names of statistics, and what an unknown name is answered with."""

from __future__ import annotations

import numpy as np
import pytest

import gosta
from gosta.measures import MEASURES
from gosta.significance import TESTS
from gosta.significance.definition import name_of_test
from gosta.statistics import STATISTICS
from gosta.statistics.names import ALIASES, OTHER_NAMES, SUMMARIES, resolve, suggest
from gosta.statistics.references import parse_references

MEANT = {
    "cindex": "concordance-index",
    "C-Index": "concordance-index",
    "harrell": "concordance-index",
    "harrell's c": "concordance-index",
    "delong": "auc-difference",
    "roc": "roc-curve",
    "roc_auc": "auc",
    "AUROC": "auc",
    "km": "kaplan-meier",
    "Kaplan Meier": "kaplan-meier",
    "ks": "kolmogorov-smirnov",
    "mwu": "mann-whitney",
    "wilcoxon": "mann-whitney",
    "kendall": "kendall-tau",
    "tau": "kendall-tau",
    "spearman": "spearman-rho",
    "logrank": "log-rank",
    "uno": "uno-concordance",
    "pauc": "partial-auc",
}
SUGGESTED = {  # slips of the keyboard, and words of what is meant
    "giny-index": "gini-index",
    "c-indx": "concordance-index",
    "kaplan-mayer": "kaplan-meier",
    "aucs": "auc",
    "rocc-curve": "roc-curve",
    "spearmann": "spearman-rho",
    "man-whitney": "mann-whitney",
    "harrel": "concordance-index",
    "lograk": "log-rank",
    "discrimination": "auc",
    "survival": "concordance-index",
    "survival-analysis": "kaplan-meier",
    "inequality": "gini-index",
    "median": "quantiles",
    "sd": "variance",
    "standard-deviation": "variance",
    "correlation": "spearman-rho",
    "pearson": "kendall-tau",
    "t-test": "mann-whitney",
    "hazard": "log-rank",
    "calibration": "calibration-slope",
    "gini": "gini-mean-difference",
    "compare-models": "auc-difference",
}


@pytest.mark.parametrize(("typed", "name"), MEANT.items())
def test_other_names_are_resolved(typed: str, name: str) -> None:
    assert resolve(typed) == name
    (reference,) = parse_references(f"{typed}:a+b")
    assert reference == (f"{name}:a+b", name, ("a", "b"))


@pytest.mark.parametrize(("typed", "name"), SUGGESTED.items())
def test_an_unknown_name_is_answered_by_meaning(typed: str, name: str) -> None:
    found = suggest(typed)
    assert name in found
    assert len(found) <= 3


def test_a_name_with_two_meanings_is_answered_with_both() -> None:
    with pytest.raises(gosta.InputError, match="'gini-mean-difference' or 'gini-index'"):
        gosta.exact([1.0, 2.0], "gini")
    assert "gini-index" not in suggest("cindx")


def test_names_of_statistics_are_known_and_mean_themselves() -> None:
    assert SUMMARIES.keys() >= STATISTICS.keys() | MEASURES.keys()
    assert len(ALIASES) == sum(len(text.partition("(")[0].split()) for text in OTHER_NAMES.values())
    for name in STATISTICS.keys() | MEASURES.keys():
        assert name not in ALIASES
        assert resolve(name) == name


def test_tests_have_other_names_too() -> None:
    assert name_of_test("delong") == "auc"
    assert name_of_test("logrank") == "log-rank"
    assert name_of_test("wilcoxon") == "mann-whitney"
    with pytest.raises(gosta.InputError, match="unknown test 'mantel'; did you mean 'log-rank'"):
        name_of_test("mantel")
    with pytest.raises(gosta.InputError, match="unknown test 'roc-curve'"):
        name_of_test("roc-curve")
    assert all(name_of_test(name) == name for name in TESTS if name != "auc-difference")


def test_other_names_work_wherever_a_statistic_is_named() -> None:
    rng = np.random.default_rng(5)
    data = {"risk": rng.random(60).tolist(), "died": [0, 1] * 30}
    expected = gosta.exact(data, "auc", columns="risk", label="died")
    assert gosta.exact(data, "roc-auc", columns="risk", label="died") == expected
    curve = gosta.exact(data, "ROC", columns="risk", label="died")
    assert isinstance(curve, gosta.Estimate)
    assert curve.statistic == "roc-curve"
    released = gosta.private.release(
        [data, data], "auroc", ranges={"risk": (0, 1)}, score="risk", label="died", classes=[0, 1]
    )
    assert released.results[0].statistic == "auc"
    with pytest.raises(gosta.InputError, match="no mean over pairs of rows"):
        gosta.statistics.find("km")
