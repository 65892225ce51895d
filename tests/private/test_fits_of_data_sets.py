"""Models of other libraries' data sets, fitted by private sums, against these libraries."""

from __future__ import annotations

import pytest
from fit_cases import CASES, Case

from gosta.private import fit


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_coefficients_are_those_of_other_libraries(case: Case) -> None:
    values = case.rows.groupby("site")[case.outcome].unique()
    assert case.model in ("linear", "poisson") or len(values["north"]) == 1
    found = fit(case.sites, case.model, columns=case.columns, seed=0, **case.declared)
    assert case.error(found) < 1e-6
    assert found.rounds <= 12
    assert found.n == len(case.rows)
