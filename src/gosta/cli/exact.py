"""``gosta exact``: statistics over data in one place, over all rows and over groups of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from gosta.cli import options
from gosta.errors import DataError, GostaError, InputError, unknown
from gosta.views import terminal

if TYPE_CHECKING:
    from gosta.datasets import Data
    from gosta.sketches import Bins
    from gosta.statistics.estimate import Estimate


def exact(
    rows: options.Rows,
    data: options.DataNames = None,
    statistic: Annotated[
        list[str] | None,
        "Names from 'gosta statistics', FILE.py:NAME for your own, or NAME:COLUMN+COLUMN; several "
        "by commas or given several times. By default all that fit the data.",
        "-s",
    ] = None,
    option: options.StatisticOptions = None,
    normalisation: Annotated[
        str | None, "U: pairs of different rows; V: all pairs. By default that of textbooks."
    ] = None,
    interval: options.Interval = None,
    by: Annotated[
        str | None, "A column: the statistics of each group of rows too, and how much they differ."
    ] = None,
    weights: Annotated[
        str | None, "Column of row weights: a pair of rows counts by the product of its weights."
    ] = None,
    *,
    binning: options.Binning,
    sample: Annotated[
        int | None, "Random triples of rows instead of all, for a kernel of three rows of your own."
    ] = None,
    seed: Annotated[int | None, "Seed of synthetic data; with --sample that of the sample."] = None,
    as_json: options.Json = False,
) -> None:
    """Compute the exact values of statistics over all rows of the data."""
    from gosta.analysis.computation import LEVEL, compute
    from gosta.analysis.exact import make_sampling
    from gosta.statistics.estimate import table_text
    from gosta.statistics.references import parse_references

    table = rows.load(data or ["breast-cancer"], seed if sample is None else None)
    level = options.fraction("interval", interval, options.LEVEL)
    given = rows.statistic_options(option)
    if normalisation not in (None, "U", "V"):
        raise InputError(f"normalisation = {normalisation!r} must be U or V")
    titles = [] if statistic is None else [named.title for named in parse_references(statistic)]
    bins = binning.settings()
    if bins is not None:
        if not titles:
            raise InputError(
                "bins are for one statistic or some; name them, such as --statistic auc"
            )
        if normalisation is not None:
            raise InputError(
                f"normalisation = {normalisation!r}: sums have that of textbooks; leave it out"
            )
        if by is not None:
            raise InputError(f"by = {by!r}: with bins, groups are strata (--strata {by})")
        if weights is not None:
            raise InputError(f"weights = {weights!r}: sums in bins have none; leave out bins")
        _show_sums(rows.select(table), ",".join(titles), bins, level, given, as_json)
        return
    selected = rows.select(table)
    if weights is not None:
        selected = selected.with_weights(weights)
    if by is not None and level is None:
        level = LEVEL
    settings: dict[str, Any] = {"by": by, "normalisation": normalisation, "interval": level}
    settings["sampling"] = make_sampling(sample, seed or 0)
    reasons: list[tuple[str, str]] = []
    if titles:
        estimates = compute(selected, titles, options=given, **settings)
    else:
        estimates, reasons = _all_that_fit(selected, given, settings)
    is_single = len(titles) == 1 and by is None
    if is_single and estimates[0].reason:
        raise InputError(estimates[0].reason, remedy=estimates[0].remedy)
    if as_json:
        print("\n".join(json.dumps(estimate.to_dict()) for estimate in estimates))
    elif is_single:
        print(estimates[0].text())
    else:
        print(table_text(estimates, reasons, level))


def _show_sums(
    data: Data,
    statistics: str,
    bins: Bins,
    level: float | None,
    given: dict[str, Any],
    as_json: bool,
) -> None:
    """Print values from sums, beside the values over the rows themselves."""
    from gosta.sketches.comparison import compare
    from gosta.statistics import assumptions

    compared = compare(data, statistics, bins, level, given)
    names = {part.sketch.name for part in compared.layout.parts if part.has_label}
    assumed, warnings = assumptions.of_classes(data, names, given)
    if not any(result.has_value for result in compared.results):
        why = "there are too few rows, or all are in one class"
        raise DataError(f"{statistics} of {data.name} is not defined: {why}")
    if as_json:
        for record in compared.records():
            print(json.dumps({**record, "assumed": assumed, "warnings": warnings}))
        return
    lines = [*assumptions.text(assumed), *(f"warning: {warning}" for warning in warnings)]
    print(compared.text(level), *map(terminal.printable, lines), sep="\n")


def _all_that_fit(
    data: Data, given: dict[str, Any], settings: dict[str, Any]
) -> tuple[list[Estimate], list[tuple[str, str]]]:
    """Compute all pairwise statistics that fit the data.

    Return the estimates, and the reasons why others do not fit.
    """
    from gosta.analysis.computation import compute
    from gosta.statistics import STATISTICS

    known = {name for chosen in STATISTICS.values() for name in chosen.options}
    for name in given:
        if name not in known:
            raise unknown("option", name, sorted(known))
    estimates: list[Estimate] = []
    reasons: list[tuple[str, str]] = []
    for chosen in STATISTICS.values():
        if chosen.is_per_row:
            reasons.append((chosen.name, f"has a value for each row: --statistic {chosen.name}"))
            continue
        own = chosen.own_options(given)
        try:
            estimates += compute(data, [chosen], options=own, **settings)
        except GostaError as error:
            reasons.append((chosen.name, error.reason))
    if not estimates:
        way_out = f"see which do with some of its columns: gosta statistics --for {data.name}"
        raise InputError(f"no statistic fits {data.name} with all its columns; {way_out}")
    return estimates, reasons
