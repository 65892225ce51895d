"""Hypothesis tests by the name of their statistic.

Importing a family registers its tests in ``TESTS``.
"""

from gosta.significance import permutation, ranks, roc  # noqa: F401
from gosta.significance.definition import TESTS, HypothesisTest

__all__ = ["TESTS", "HypothesisTest"]
