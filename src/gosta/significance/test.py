"""``gosta.test``: a hypothesis test over data in one place."""

from __future__ import annotations

from typing import Any

from gosta import datasets
from gosta.datasets.data import Data
from gosta.errors import InputError
from gosta.significance.definition import TESTS, HypothesisTest, Settings, name_of_test
from gosta.statistics import STATISTICS, assumptions, find
from gosta.statistics.definition import Options
from gosta.statistics.exact import Columns

ALTERNATIVES = ("two-sided", "less", "greater")
USES_GROUPS = {"auc"}  # tests that compare groups of rows


def test(
    data: object,
    statistic: str,
    *,
    columns: Columns | None = None,
    label: object = None,
    score: object = None,
    time: object = None,
    event: object = None,
    by: object = None,
    level: float = 0.95,
    permutations: int = 999,
    seed: int = 0,
    alternative: str = "two-sided",
    drop_missing: bool = False,
    options: Options | None = None,
    **statistic_options: Any,
) -> HypothesisTest:
    """Compute a hypothesis test: a p-value, and the size of the effect.

    The effect has an interval where there is one.

    ``auc`` compares the AUCs of two score columns, or of one score in two groups of rows (DeLong).
    ``mann-whitney``, ``kendall-tau`` and ``log-rank`` test that statistic; ``energy-distance``,
    ``mmd`` and ``distance-correlation`` do by permutations. See docs/reference/tests.md.

    Parameters
    ----------
    data
        A data set's name, a file, or an object in memory: see `gosta.datasets.load`.
    statistic
        One of the names above.
    columns, label, score, time, event, drop_missing
        As in `gosta.exact`. For ``auc``, two scores (or `columns`) are those of which the AUCs are
        compared.
    by
        For ``auc``, the column of two groups of rows (or the groups themselves) of which the AUCs
        are compared.
    level
        Confidence level of the interval.
    permutations, seed
        How many shuffles a permutation test takes, and their seed.
    alternative
        "two-sided"; or "greater", that the first AUC is, that scores of positive rows are, that
        columns rise together, that events of positive rows come at a greater rate; or "less". The
        interval then has one end. Tests by permutations have no direction.
    options, **statistic_options
        The statistic's options, such as ``positive="ill"``.

    Returns
    -------
    HypothesisTest
        With ``p_value``, ``statistic``, the ``values`` that were compared and, where there is one,
        the ``effect``.

    Examples
    --------
    >>> import gosta
    >>> scores = {"old": [1, 4, 2, 3, 5, 6], "new": [1, 2, 3, 4, 5, 6], "ill": [0, 0, 0, 1, 1, 1]}
    >>> result = gosta.test(scores, "auc", columns=["new", "old"], label="ill")
    >>> f"{result.effect.value:.3f}, p = {result.p_value:.3f}"
    '0.111, p = 0.480'
    >>> gosta.test({"first": [1, 2, 3, 4, 5], "second": [1, 2, 3, 5, 4]}, "kendall-tau").p_value
    0.08333333333333333
    """
    statistic = name_of_test(statistic)  # an unknown name is the first error to report
    given = dict(options or {})
    for name in given.keys() & statistic_options.keys():
        raise InputError(
            f"{statistic}: option {name!r} is given twice, in options and as {name}=..."
        )
    table = datasets.load(data).select(columns, label, score, drop_missing, time, event)
    settings = Settings({**given, **statistic_options}, level, permutations, seed, alternative)
    return run_test(table, statistic, by, settings)


def run_test(data: Data, statistic: str, by: object, settings: Settings) -> HypothesisTest:
    """Compute the test of a statistic over data whose columns are selected."""
    if not 0 < settings.level < 1 - 1e-9:
        raise InputError(f"level = {settings.level!r} must lie between 0 and 1, such as 0.95")
    if settings.alternative not in ALTERNATIVES:
        raise InputError(
            f"alternative = {settings.alternative!r} must be one of: {', '.join(ALTERNATIVES)}"
        )
    if settings.alternative != "two-sided" and settings.level <= 0.5:
        raise InputError(
            f"level = {settings.level!r} must exceed 0.5 for a one-sided interval, such as 0.95"
        )
    if settings.permutations < 1:
        raise InputError(
            f"permutations = {settings.permutations!r} must be at least 1, such as 999"
        )
    if settings.seed < 0:
        raise InputError(f"seed = {settings.seed!r} must not be negative")
    if statistic in STATISTICS:
        # an unknown option is reported before the data are encoded
        find(statistic).options_by_part(settings.options)
    if by is not None and statistic not in USES_GROUPS:
        groups = ", ".join(sorted(USES_GROUPS))
        raise InputError(
            f"by = {by!r}: groups of rows are compared by {groups} only; name classes with label"
        )
    table, log = (data if by is None else data.with_sites(by, exclude=True)).logged()
    result = TESTS[statistic](table, settings, statistic)
    assumed = assumptions.collect(table, log, None, settings.options, result.n)
    has_direction = (
        statistic in assumptions.ORDERED_BY_POSITIVE or settings.alternative != "two-sided"
    )
    warnings = table.doubts
    if has_direction and assumptions.likely_positive(assumed) is not None:
        warnings = (*warnings, assumptions.opposite(assumed))
    return result._replace(assumed=assumed, warnings=warnings)
