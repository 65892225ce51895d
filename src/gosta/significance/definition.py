"""Hypothesis tests: the result of one, its settings, and the table of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, isfinite
from types import MappingProxyType
from typing import Any, NamedTuple

from gosta.datasets.data import Data
from gosta.errors import InputError
from gosta.statistics import assumptions
from gosta.statistics.definition import Options
from gosta.statistics.estimate import Estimate
from gosta.statistics.names import TEST_ALIASES, resolve, unknown_statistic
from gosta.views import html, numbers, terminal


class HypothesisTest(NamedTuple):
    """The result of a hypothesis test.

    Examples
    --------
    >>> import gosta
    >>> result = gosta.test("breast-cancer", "kendall-tau", columns=["mean radius", "mean texture"])
    >>> result.n, result.p_value < 0.001
    (569, True)
    """

    test: str  # its name: that of the statistic
    statistic: float  # what the p-value is computed from, as `method` says
    p_value: float  # probability of a statistic at least as extreme, if there is no effect
    n: int  # number of complete rows
    method: str  # in words
    # what was compared, such as the AUC of each score; empty if nothing was
    values: Mapping[str, float]
    effect: Estimate | None = None  # how large it is, with an interval
    effect_name: str = ""  # what that is: the difference of two AUCs, a shift or a slope
    alternative: str = "two-sided"  # what the p-value is against: "two-sided", "less" or "greater"
    # what the user had not said: see `gosta.statistics.assumptions`
    assumed: Mapping[str, Any] = MappingProxyType({})
    warnings: tuple[str, ...] = ()  # what to have a look at, one sentence each

    def __repr__(self) -> str:
        return f"test of {self.test}\n{self.text(has_selected_columns=True)}"

    def _repr_html_(self) -> str:
        return html.table(self._lines().items(), caption=f"Test of {self.test}")

    def text(self, has_selected_columns: bool = False) -> str:
        """Return the values, the effect, the p-value and what was assumed, in lines.

        Columns that were left out are named unless the user selected those to take.
        """
        assumed = assumptions.text(self.assumed, has_selected_columns)
        lines = [f"  {line}" for line in assumed] + [f"warning: {line}" for line in self.warnings]
        return "\n".join(
            [terminal.definitions(self._lines().items()), *map(terminal.printable, lines)]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, as the command line prints it with ``--json``."""
        record = self._asdict() | {"assumed": dict(self.assumed)}
        if self.effect is not None:
            names = ("value", "low", "high", "standard_error", "level")
            numbers_of = {name: getattr(self.effect, name) for name in names}
            record["effect"] = {k: v if isfinite(v) else None for k, v in numbers_of.items()}
        return record

    def _lines(self) -> dict[str, str]:
        """Return the lines of a table that shows it."""
        lines = {name: numbers.number(value) for name, value in self.values.items()}
        effect = self.effect
        if effect is not None:
            lines[self.effect_name] = numbers.number(effect.value)
            title = f"{numbers.percent(effect.level, 'g')} interval"
            lines[title] = numbers.interval(effect.low, effect.high)
        lines["statistic"] = numbers.number(self.statistic)
        lines["p-value"] = numbers.p_value(self.p_value)
        if self.alternative != "two-sided":
            lines["alternative"] = self.alternative
        return lines | {"rows": numbers.count(self.n), "method": self.method}


class Settings(NamedTuple):
    """What a test depends on beside its data."""

    options: Options  # of the statistic
    level: float  # of the interval
    permutations: int
    seed: int  # of the permutations
    alternative: str = "two-sided"

    @property
    def two_sided_level(self) -> float:
        """Level of the two-sided interval of which one end is that of the interval asked for."""
        return self.level if self.alternative == "two-sided" else 2 * self.level - 1

    def p_value(self, lower: float, upper: float) -> float:
        """Return the p-value from the tail probabilities below and above a statistic."""
        return {"two-sided": min(1.0, 2 * min(lower, upper)), "less": lower, "greater": upper}[
            self.alternative
        ]

    def one_ended(self, effect: Estimate, bounds: tuple[float, float] = (-inf, inf)) -> Estimate:
        """Return an effect whose interval reaches a bound where the alternative is one-sided."""
        low = bounds[0] if self.alternative == "less" else effect.low
        return effect._replace(
            low=low, high=bounds[1] if self.alternative == "greater" else effect.high
        )

    def require_two_sided(self, name: str) -> None:
        """Raise an error for a one-sided alternative of a test that knows no direction."""
        if self.alternative != "two-sided":
            reason = f"{name} is the larger the more the rows differ, in whichever direction"
            raise InputError(f"alternative = {self.alternative!r}: {reason}; leave it out")


# its last argument is the name of the statistic
Test = Callable[[Data, Settings, str], HypothesisTest]
TESTS: dict[str, Test] = {}


def hypothesis_test(*names: str) -> Callable[[Test], Test]:
    """Register a function as the test of the statistics with these names."""

    def register(function: Test) -> Test:
        TESTS.update(dict.fromkeys(names, function))
        return function

    return register


def name_of_test(name: str) -> str:
    """Return the name of a test that is called by it or by another name, such as delong."""
    found = resolve(name, TESTS, TEST_ALIASES)
    if found not in TESTS:
        raise unknown_statistic(name, TESTS, "test")
    return found
