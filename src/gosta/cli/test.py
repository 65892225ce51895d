"""``gosta test``: a hypothesis test over data in one place."""

from __future__ import annotations

import json
from typing import Annotated

from gosta.cli import options


def test(
    rows: options.Rows,
    data: options.DataName,
    statistic: Annotated[
        str,
        "auc (DeLong: --score a,b, or --by), mann-whitney, kendall-tau, log-rank, energy-distance, "
        "mmd or distance-correlation.",
        "-s",
    ],
    option: options.StatisticOptions = None,
    by: Annotated[
        str | None, "Column of two groups of rows of which the AUCs are compared."
    ] = None,
    level: Annotated[str, "Confidence level of the interval."] = "95%",
    permutations: Annotated[int, "Shuffles of a permutation test."] = 999,
    seed: Annotated[int, "Seed of the shuffles."] = 0,
    alternative: Annotated[
        str,
        "two-sided, greater (the first AUC; scores of positive rows; a rising column; the rate of "
        "events) or less.",
    ] = "two-sided",
    *,
    as_json: options.Json = False,
) -> None:
    """Test a hypothesis: two AUCs (DeLong), ranks, survival, or distributions by permutations."""
    from gosta.significance.definition import Settings, name_of_test
    from gosta.significance.test import run_test

    statistic = name_of_test(statistic)  # before the data are read
    confidence = options.fraction("level", level, options.LEVEL)
    assert confidence is not None
    rows.refuse_weights("hypothesis tests")
    selected = rows.select(rows.load(data))
    settings = Settings(rows.statistic_options(option), confidence, permutations, seed, alternative)
    result = run_test(selected, statistic, by, settings)
    if as_json:
        print(json.dumps({"data": data, **result.to_dict()}))
        return
    print(f"test of {statistic} in {data}", result.text(selected.has_selected_columns), sep="\n")
