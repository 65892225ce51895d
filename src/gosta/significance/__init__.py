"""Hypothesis tests by the name of their statistic: importing a family registers them."""

from gosta.significance import permutation, ranks, roc  # noqa: F401
from gosta.significance.definition import TESTS, HypothesisTest

__all__ = ["TESTS", "HypothesisTest"]
