"""``gosta exact``: statistics over data in one place, over all rows and over groups of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import comb
from typing import TYPE_CHECKING, Annotated, Any

from gosta.cli import options, sketches
from gosta.errors import GostaError, InputError, unknown
from gosta.views import numbers, terminal

if TYPE_CHECKING:
    from gosta.datasets import Data
    from gosta.sketches.several import Finding, Group, Result
    from gosta.statistics.heterogeneity import Heterogeneity

MOST_SHOWN = 20  # values of one statistic in a line


def exact(
    rows: options.Rows,
    data: options.DataNames = None,
    statistic: Annotated[
        list[str] | None,
        "Names from 'gosta statistics', FILE.py:NAME for your own, or NAME:COLUMN+COLUMN; several by commas or given "
        "several times. By default all that fit the data.",
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
    from gosta.sketches import several
    from gosta.sketches.exact import make_sampling
    from gosta.statistics.references import parse_references

    table = rows.load(data or ["breast-cancer"], seed if sample is None else None)
    level = options.fraction("interval", interval, options.LEVEL)
    given = rows.statistic_options(option)
    if normalisation not in (None, "U", "V"):
        raise InputError(f"normalisation = {normalisation!r} must be U or V")
    wanted, bins = [] if statistic is None else parse_references(statistic), binning.settings()
    if bins is not None:
        if not wanted:
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
        titles = ",".join(one.title for one in wanted)
        sketches.show(rows.select(table), titles, bins, level, given, as_json)
        return
    selected = rows.select(table)
    if weights is not None:
        selected = selected.with_weights(weights)
    if by is not None and level is None:
        level = several.LEVEL
    settings: dict[str, Any] = {"by": by, "normalisation": normalisation, "interval": level}
    settings["sampling"] = make_sampling(sample, seed or 0)
    if wanted:
        results = several.compute(
            selected, [one.title for one in wanted], options=given, **settings
        )
        reasons: list[tuple[str, str]] = []
    else:
        results, reasons = _all_that_fit(selected, given, settings)
    if len(wanted) == 1 and by is None and results[0].pooled.reason:
        raise InputError(results[0].pooled.reason)
    if as_json:
        print(
            "\n".join(
                json.dumps({"data": table.name, **result.record(level)}) for result in results
            )
        )
    elif len(wanted) == 1 and by is None:
        print(_text(results[0], table.name, level))
    else:
        print(_table(selected, results, reasons, level))


def _all_that_fit(
    data: Data, given: dict[str, Any], settings: dict[str, Any]
) -> tuple[list[Result], list[tuple[str, str]]]:
    """Compute all pairwise statistics; return the results, and the reasons of those that do not fit the data."""
    from gosta.sketches import several
    from gosta.statistics import STATISTICS

    known = {name for chosen in STATISTICS.values() for name in chosen.options}
    for name in given:
        if name not in known:
            raise unknown("option", name, sorted(known))
    results, reasons = [], []
    for chosen in STATISTICS.values():
        if chosen.is_per_row:
            reasons.append((chosen.name, f"has a value for each row: --statistic {chosen.name}"))
            continue
        own = chosen.own_options(given)
        try:
            results += several.compute(data, [chosen], options=own, **settings)
        except GostaError as error:
            reasons.append(
                (chosen.name, str(error).removeprefix(chosen.name + ": ").partition(";")[0])
            )
    if not results:
        way_out = f"see which do with some of its columns: gosta statistics --for {data.name}"
        raise InputError(f"no statistic fits {data.name} with all its columns; {way_out}")
    return results, reasons


def _text(result: Result, data: str, level: float | None) -> str:
    """Return a value, its interval, and what it was computed from, in lines."""
    import numpy as np

    from gosta.statistics import assumptions

    found, n = result.pooled, result.pooled.n
    values = (
        found.value
        if isinstance(found.value, list) and len(found.value) == n > MOST_SHOWN
        else None
    )
    shown = "one value for each row, below" if values else "" if result.labels else found.value
    lines = [f"{found.statistic} of {data}: {shown}".rstrip()]
    if result.labels:
        cells = zip(
            result.labels,
            map(numbers.number, np.ravel(np.array(found.value)).tolist()),
            strict=True,
        )
        lines.append(terminal.columns(list(cells), right=[1]))
    if found.low is not None:
        what = (
            "95 % interval for all triples"
            if level is None
            else f"{numbers.percent(level, 'g')} interval"
        )
        ends = f"{numbers.interval(found.low, found.high)} ({what})"
        error = (
            ""
            if found.standard_error is None
            else f", standard error {numbers.number(found.standard_error, 3)}"
        )
        lines.append(f"  {ends}{error}")
    tuples = result.tuples or (numbers.count(comb(n, 2), "pair") if result.normalisation else "")
    lines.append(f"  {n:,} rows, {f'{tuples}, ' * bool(tuples)}{result.seconds:.2g} s")
    lines.append(
        f"  from {_columns(result.columns)}{f', weighted by {result.weights}' * bool(result.weights)}"
    )
    lines += [f"  {terminal.printable(line)}" for line in assumptions.text(result.assumed)]
    lines += [f"  row {k}: {numbers.number(value)}" for k, value in enumerate(values or [], 1)]
    return "\n".join([*lines, *_warnings([result])])


def _table(
    data: Data, results: Sequence[Result], reasons: Sequence[tuple[str, str]], level: float | None
) -> str:
    """Return a line for each statistic, or for each of its groups, and what was assumed below."""
    from gosta.statistics import assumptions

    by = results[0].by
    heading = ["statistic", *([by] if by else []), "rows", "value"]
    if level is not None:
        heading.append(f"{numbers.percent(level, 'g')} interval")
    cells = [[*heading, "" if by else "columns"]]
    for result in results:
        cells += (
            _grouped_cells(result)
            if result.grouped
            else [_cells(result.pooled, level, _columns(result.columns))]
        )
    width = len(heading)
    cells += [[title, *[numbers.NONE] * (width - 1), reason] for title, reason in reasons]
    right = [heading.index("rows"), heading.index("value")]
    by_weights = "" if data.weights is None else f", weighted by {data.weights}"
    lines = [
        terminal.printable(f"{data.name}, {numbers.count(len(data), 'row')}{by_weights}"),
        terminal.columns(cells, right=right),
    ]
    grouped = [
        (result.pooled.statistic, result.grouped)
        for result in results
        if result.grouped is not None
    ]
    lines += [f"{terminal.printable(title)}: {_differences(one)}" for title, one in grouped]
    said: dict[str, list[str]] = {}
    for result in results:
        for line in assumptions.text({**result.assumed, "columns_left_out": []}):
            said.setdefault(line, []).append(result.pooled.statistic)
    lines += [terminal.printable(f"{', '.join(titles)}: {line}") for line, titles in said.items()]
    return "\n".join([*lines, *_warnings(results)])


def _cells(finding: Finding, level: float | None, last: str) -> list[str]:
    ends = [] if level is None else [numbers.interval(finding.low, finding.high)]
    reason, value = finding.reason.partition(";")[0], numbers.number(finding.value)
    if isinstance(finding.value, list) and len(finding.value) > MOST_SHOWN:
        value = f"{len(finding.value):,} values (--json)"
    return [finding.statistic, f"{finding.n:,}", value, *ends, reason or last]


def _grouped_cells(result: Result) -> list[list[str]]:
    assert result.grouped is not None
    found, title, lines = result.grouped, result.pooled.statistic, []
    for one, group in [
        *((one, str(one.group)) for one in found.findings),
        (result.pooled, "all rows"),
    ]:
        cells = _cells(one, 0.0, "")
        lines.append([title, group, *cells[1:]])
        title = ""
    lines.append(
        [
            "",
            f"mean of {numbers.count(found.groups, 'group')}",
            "",
            numbers.number(found.mean),
            "",
            "",
        ]
    )
    if found.heterogeneity is not None:
        mean, ends = found.heterogeneity.mean, found.heterogeneity.mean_interval
        lines.append(
            ["", "random-effects mean", "", numbers.number(mean), numbers.interval(*ends), ""]
        )
    return lines


def _differences(found: Group) -> str:
    """Return in words how much the groups differ."""
    if found.heterogeneity is None:
        return f"how much the groups differ beyond chance is not known: {found.reason}"
    one: Heterogeneity = found.heterogeneity
    share = numbers.percent(one.i_squared)
    if one.i_squared_interval is not None:
        share += f" ({' to '.join(map(numbers.percent, one.i_squared_interval))})"
    spread = f"{numbers.number(one.spread, 3)} ({numbers.interval(*one.spread_interval, 3)})"
    test = f"Cochran's Q {numbers.number(one.q, 4)} of {numbers.count(one.groups, 'group')}"
    return (
        f"{test}, p = {numbers.number(one.p_value, 3)}; I² {share}; spread between groups {spread}"
    )


def _warnings(results: Sequence[Result]) -> list[str]:
    found = dict.fromkeys(warning for result in results for warning in result.warnings)
    return [f"warning: {terminal.printable(warning)}" for warning in found]


def _columns(names: Sequence[str]) -> str:
    return (
        ", ".join(names)
        if len(names) <= 3
        else f"{names[0]}, ..., {names[-1]} ({len(names)} columns)"
    )
