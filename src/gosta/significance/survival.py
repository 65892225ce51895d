"""The log-rank test, from the statistic that sketches define."""

from __future__ import annotations

from math import erfc, isnan, sqrt

from gosta.datasets.data import Data
from gosta.errors import NumericalError
from gosta.significance.definition import HypothesisTest, Settings, hypothesis_test
from gosta.sketches.exact import compare
from gosta.sketches.making import Bins
from gosta.sketches.survival import log_rank_z

METHOD = "log-rank test of two classes"


@hypothesis_test("log-rank")
def log_rank(data: Data, settings: Settings, name: str) -> HypothesisTest:
    """Test whether events come at the same rate in two classes of rows with censored times."""
    layout = compare(data, name, Bins(), None, settings.options).layout
    x = layout.rows_of(layout.parts[0], layout.encode(data))
    labelled = data.select(drop_missing=True)
    labelled.class_signs(settings.options.get("positive"))
    data.used_columns.update(dict.fromkeys(layout.columns) | labelled.used_columns)
    data.assumed.update(labelled.assumed)
    z = log_rank_z(x)
    if isnan(z):
        raise NumericalError(
            "log-rank is not defined here: there are no events while both classes have rows"
        )
    p = settings.p_value(erfc(-z / sqrt(2)) / 2, erfc(z / sqrt(2)) / 2)
    if settings.alternative == "two-sided":
        return HypothesisTest(
            name, z * z, p, len(x), f"{METHOD}: chi-squared with 1 degree of freedom", {}
        )
    return HypothesisTest(name, z, p, len(x), f"{METHOD}: z", {}, alternative=settings.alternative)
