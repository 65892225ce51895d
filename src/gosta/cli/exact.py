"""``gosta exact``: statistics over data in one place, over all rows and over groups of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
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
        str | None,
        "A column, or several separated by commas: the statistics of each group of rows too, and "
        "how much they differ.",
    ] = None,
    *,
    binning: options.Binning,
    sample: Annotated[
        int | None, "Random triples of rows instead of all, for a kernel of three rows of your own."
    ] = None,
    seed: Annotated[int | None, "Seed of synthetic data; with --sample that of the sample."] = None,
    plot: Annotated[
        Path | None,
        "File of a plot, .png, .svg or .pdf, of curves and of the values of groups, with 95 % "
        "intervals unless --interval says otherwise.",
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Compute the exact values of statistics over all rows of the data."""
    from gosta.analysis.computation import LEVEL, compute
    from gosta.analysis.exact import make_sampling
    from gosta.statistics.estimate_tables import table_text
    from gosta.statistics.references import parse_references

    table = rows.load(data or ["breast-cancer"], seed if sample is None else None)
    level = options.fraction("interval", interval, options.LEVEL)
    options.check_picture("plot", plot)
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
        rows.refuse_weights("sums in bins")
        _show_sums(rows.select(table), ",".join(titles), bins, level, given, as_json, plot)
        return
    selected = rows.select(table)
    if rows.weights is not None:
        selected = selected.with_weights(rows.weights)
    if level is None and (by is not None or plot is not None):
        level = LEVEL
    settings: dict[str, Any] = {"by": by, "normalisation": normalisation, "interval": level}
    settings["sampling"] = make_sampling(sample, seed or 0)
    reasons: list[tuple[str, str]] = []
    if titles:
        estimates = compute(selected, titles, options=given, **settings)
    else:
        estimates, reasons = _all_that_fit(selected, given, settings)
    is_single = len(titles) == len(estimates) == 1 and by is None
    if is_single and estimates[0].reason and (interval is not None or estimates[0].value is None):
        raise InputError(estimates[0].reason, remedy=estimates[0].remedy)
    if as_json:
        print("\n".join(json.dumps(estimate.to_dict()) for estimate in estimates))
    elif is_single:
        print(estimates[0].text())
    else:
        print(table_text(estimates, reasons, level))
    if plot is not None:
        _draw([*estimates, *_companions(selected, estimates, given, settings)], plot, as_json)


def _companions(
    data: Data, estimates: Sequence[Estimate], given: dict[str, Any], settings: dict[str, Any]
) -> Iterator[Estimate]:
    """Yield what pictures of estimates show besides, such as the net benefit of treating all."""
    from gosta.analysis.computation import compute
    from gosta.measures import MEASURES
    from gosta.statistics.pictures import COMPANIONS

    known = {estimate.statistic for estimate in estimates}
    for title in sorted(known):
        name, colon, columns = title.partition(":")
        wanted = COMPANIONS.get(name)
        if wanted is not None and f"{wanted}{colon}{columns}" not in known:
            own = {key: given[key] for key in given if key in MEASURES[wanted].options}
            yield from compute(data, [f"{wanted}{colon}{columns}"], options=own, **settings)


def _draw(estimates: Sequence[Estimate], file: Path, as_json: bool) -> None:
    from gosta.statistics.pictures import draw_all
    from gosta.views import plots

    plots.save(draw_all(estimates, plots.new_figure), file)
    if not as_json:
        print(f"plot: {file}")


def _show_sums(
    data: Data,
    statistics: str,
    bins: Bins,
    level: float | None,
    given: dict[str, Any],
    as_json: bool,
    plot: Path | None,
) -> None:
    """Print values from sums, beside the values over the rows themselves."""
    from gosta.analysis.computation import LEVEL
    from gosta.measures.definition import NO_VALUE
    from gosta.sketches.comparison import compare
    from gosta.sketches.estimates import estimates_of
    from gosta.statistics import assumptions

    level = LEVEL if level is None and plot is not None else level
    compared = compare(data, statistics, bins, level, given)
    names = {part.sketch.name for part in compared.layout.parts if part.has_label}
    assumed, warnings = assumptions.of_classes(data, names, given)
    if not any(result.has_value for result in compared.results):
        raise DataError(f"{statistics} of {data.name} is not defined: {NO_VALUE}")
    if as_json:
        for record in compared.records():
            print(json.dumps({**record, "assumed": assumed, "warnings": warnings}))
    else:
        lines = [*assumptions.text(assumed), *(f"warning: {warning}" for warning in warnings)]
        print(compared.text(level), *map(terminal.printable, lines), sep="\n")
    if plot is not None:
        _draw(list(estimates_of(compared.results, level)), plot, as_json)


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
