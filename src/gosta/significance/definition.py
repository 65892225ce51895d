"""Hypothesis tests: the result of one, its settings, and the table of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from gosta.datasets.data import Data
from gosta.errors import unknown
from gosta.statistics.definition import Options
from gosta.statistics.exact import Estimate
from gosta.views import html, numbers


class HypothesisTest(NamedTuple):
    """The result of a hypothesis test."""

    test: str  # its name: that of the statistic
    statistic: float  # what the p-value is computed from, as `method` says
    p_value: float  # two-sided
    n: int  # number of complete rows
    method: str  # in words
    values: Mapping[str, float]  # what was compared, such as the AUC of each score; empty if nothing was
    effect: Estimate | None = None  # how large it is, with an interval
    effect_name: str = ""  # what that is: the difference of two AUCs, a shift or a slope

    def _repr_html_(self) -> str:
        return html.table(describe(self).items(), caption=f"Test: {self.test}")


def describe(result: HypothesisTest) -> dict[str, str]:
    """Return the lines of a table that shows a result."""
    lines = {name: numbers.number(value) for name, value in result.values.items()}
    if result.effect is not None:
        found = result.effect
        lines[result.effect_name] = numbers.number(found.value)
        lines[f"{numbers.percent(found.level, 'g')} interval"] = numbers.interval(found.low, found.high)
    lines |= {"statistic": numbers.number(result.statistic), "p-value": numbers.number(result.p_value)}
    return lines | {"rows": numbers.count(result.n), "method": result.method}


class Settings(NamedTuple):
    """What a test depends on beside its data."""

    options: Options  # of the statistic
    level: float  # of the interval
    permutations: int
    seed: int  # of the permutations


Test = Callable[[Data, Settings, str], HypothesisTest]  # its last argument is the name of the statistic
TESTS: dict[str, Test] = {}


def hypothesis_test(*names: str) -> Callable[[Test], Test]:
    """Register a function as the test of the statistics with these names."""

    def register(function: Test) -> Test:
        TESTS.update(dict.fromkeys(names, function))
        return function

    return register


def find_test(name: str) -> Test:
    """Return the test of a statistic."""
    if name not in TESTS:
        raise unknown("test", name, TESTS)
    return TESTS[name]
