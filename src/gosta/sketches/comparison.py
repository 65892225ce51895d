"""Values from sums over rows in one place, beside the values over the rows themselves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import GostaError, InputError
from gosta.measures.definition import MEASURES
from gosta.runtime.arrays import Floats
from gosta.sketches.layout import BITS, Layout, Part
from gosta.sketches.layout_builder import BinSettings, check_columns, make_layout
from gosta.sketches.results import Number, StratumResult, Values, known, p_text
from gosta.sketches.sums import run_rounds
from gosta.statistics.definition import STATISTICS, Options
from gosta.statistics.estimate import CURVE_DIGITS, points_shown
from gosta.statistics.exact import value_of_rows
from gosta.views import numbers, terminal


class Comparison(NamedTuple):
    """Results from sums beside the values over the rows themselves."""

    data: str  # the name of the data
    rows: int
    layout: Layout
    results: list[StratumResult]
    exact: list[Values | None]  # None where there is no value

    def records(self) -> list[dict[str, Any]]:
        """Return each result and its exact value as plain values."""
        pairs = zip(self.results, self.exact, strict=True)
        return [{**result._asdict(), "exact": exact} for result, exact in pairs]

    def text(self, level: float | None) -> str:
        """Return a table of values, brackets, exact values and errors, and what was summed."""
        heading = ["", "from sums", "bracket", "exact", "error"]
        if level is not None:
            heading.append(f"{numbers.percent(level, 'g')} interval")
        pairs = zip(self.results, self.exact, strict=True)
        cells = [line[: len(heading)] for pair in pairs for line in _lines(*pair)]
        details = self.layout.describe()
        lines = [
            f"{self.data}, {numbers.count(self.rows, 'row')}",
            terminal.columns([tuple(heading), *cells], right=range(1, len(heading))),
        ]
        shown = ("columns", "ranges", "bins", "numbers")
        lines += [f"{name}: {details[name]}" for name in shown if name in details]
        clipped = max(result.clipped for result in self.results)
        if clipped:
            rows = numbers.count(round(clipped), "row")
            lines.append(f"{rows} with a value beyond its range, which counts as the range's end")
        if not all(result.is_certified for result in self.results if result.has_value):
            lines.append(
                "brackets by random projections and of smooth curves are likely, not certain"
            )
        return "\n".join(lines)


def compare(
    data: Data,
    statistics: str,
    settings: BinSettings,
    level: float | None = None,
    options: Options | None = None,
) -> Comparison:
    """Compute statistics of selected data from sums, in two rounds if edges are to be found.

    Rows that have weights count by them in the values over rows, not in the sums.
    """
    weights = data.row_weights()
    if weights is not None:
        complete = ~np.isnan(weights)
        data, weights = data.take(complete), weights[complete]
    layout = make_layout(
        statistics,
        settings,
        columns=data.features if data.has_selected_columns else (),
        options=options,
        data=data,
    )
    check_columns(layout, settings)
    x = layout.encode(data)
    last, totals = run_rounds(layout, lambda current: current.sums(x) / 2.0**BITS)[-1]
    assert isinstance(last, Layout)
    layout = last
    if weights is not None:
        weights = weights[layout.complete_rows(data)]
        for part in layout.parts:
            measure = MEASURES.get(part.sketch.name)
            if measure is not None and measure.no_weights:
                raise InputError(
                    f"weights = {data.weights!r}: {measure.name} has none: {measure.no_weights}"
                )
    results = layout.results(totals, level=level)
    return Comparison(data.name, len(x), layout, results, exact_values(layout, x, weights))


def exact_values(
    layout: Layout, x: Floats, weights: Floats | None = None, min_cell: int = 0
) -> list[Values | None]:
    """Return the values over encoded rows, in the order of the layout's results.

    None stands where there is no value. Curves are read where results are that merge bins with
    fewer rows than `min_cell`.
    """
    strata = list(layout.rows_by_stratum(x))
    return [
        _exact_value(part, layout.rows_of(part, rows), weights, min_cell)
        for part in layout.parts
        for rows in strata
    ]


def _exact_value(part: Part, x: Floats, weights: Floats | None, min_cell: int) -> Values | None:
    sketch = part.sketch
    if not len(x):
        return None
    if sketch.shows_bins and min_cell > 1:
        positions, values = sketch.features(x)
        totals = np.bincount(positions.ravel(), values.ravel(), sketch.size).astype(np.float64)
        sketch, _ = sketch.merged(totals, min_cell)
    try:
        if sketch.name in MEASURES:
            options = {**sketch.options, **sketch.points}
            value = MEASURES[sketch.name].over(x, weights, options).value
        else:
            statistic = STATISTICS[sketch.name]
            options = {k: v for k, v in sketch.options.items() if k in statistic.options}
            value = np.atleast_1d(value_of_rows(statistic, x, options))
    except (GostaError, ValueError, ArithmeticError):
        return None
    return known(value) if np.isfinite(value).any() else None


def _interval(result: StratumResult, k: int) -> tuple[Number, Number]:
    return result.intervals[k] if result.intervals else result.interval or (None, None)


def _lines(result: StratumResult, exact: Values | None) -> list[tuple[str, ...]]:
    """Return for each value its name, the value, bracket, exact value, error and interval."""
    name = f"{result.statistic}, {result.stratum}" if result.stratum else result.statistic
    none = numbers.NONE
    if not result.has_value:
        return [(name, none, none, numbers.number(exact), none, none)]
    digits, shown, heads = 6, range(len(result.value)), result.labels or ("",)
    if result.at:
        digits, shown = CURVE_DIGITS, points_shown(result.value).tolist()
        heads = tuple(numbers.number(x, digits) for x in result.at)
    lines: list[tuple[str, ...]] = []
    for k in shown:
        value, true = result.value[k], None if exact is None else exact[k]
        lines.append(
            (
                f"{name} {heads[k]}".strip(),
                numbers.number(value, digits),
                numbers.interval(result.low[k], result.high[k], digits),
                numbers.number(true, digits),
                numbers.number(None if true is None or value is None else value - true, 2),
                numbers.interval(*_interval(result, k), digits) + p_text(result, k),
            )
        )
    return lines
