"""The log-rank test, from the statistic that sketches define."""

from __future__ import annotations

from gosta.datasets.data import Data
from gosta.errors import NumericalError
from gosta.significance.definition import HypothesisTest, Settings, hypothesis_test
from gosta.sketches.exact import compare
from gosta.sketches.making import Bins


@hypothesis_test("log-rank")
def log_rank(data: Data, settings: Settings, name: str) -> HypothesisTest:
    """Test whether events come at the same rate in two classes of rows with censored times."""
    found = compare(data, name, Bins(), None, settings.options)
    (value,) = found.exact
    if value is None:
        raise NumericalError("log-rank is not defined here: there are no events while both classes have rows")
    method = "log-rank test of two classes: chi-squared with 1 degree of freedom"
    return HypothesisTest(name, value[0], value[1], found.rows, method, {})
