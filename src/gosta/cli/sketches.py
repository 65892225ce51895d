"""``gosta exact --bins``: a statistic from sums, with its bracket, beside the value over the rows themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gosta.errors import DataError
from gosta.views import numbers, terminal

if TYPE_CHECKING:
    from gosta.datasets import Data
    from gosta.sketches import Bins, StratumResult
    from gosta.sketches.exact import Comparison

Values = tuple[float, ...]


def show(
    data: Data, statistic: str, bins: Bins | None, level: float | None, options: dict[str, Any], as_json: bool
) -> None:
    """Print values from sums, brackets, exact values and errors; without bins, exact values alone."""
    from gosta.sketches import Bins
    from gosta.sketches.exact import compare

    found = compare(data, statistic, bins or Bins(), level, options)
    assumed = _assumed(data, found, options)
    if not any(result.has_value for result in found.results):
        raise DataError(f"{statistic} of {data.name} is not defined: there are too few rows, or all are in one class")
    if as_json:
        for result, exact in zip(found.results, found.exact, strict=True):
            print(json.dumps({**_record(result, exact, bins is not None), **assumed}))
        return
    by_weights = "" if data.weights is None else f", weighted by {data.weights}"
    print(f"{data.name}, {numbers.count(found.rows, 'row')}{by_weights}")
    if bins is None:
        print(terminal.columns(_exact_lines(found), right=[1]))
        if said := _assumed_lines(assumed):
            print("\n".join(said))
        return
    heading = ["", "from sums", "bracket", "exact", "error"]
    if level is not None:
        heading.append(f"{numbers.percent(level, 'g')} interval")
    lines = [line for pair in zip(found.results, found.exact, strict=True) for line in _lines(*pair)]
    print(terminal.columns([tuple(heading), *(line[: len(heading)] for line in lines)], right=range(1, len(heading))))
    details = found.layout.describe()
    print("\n".join(f"{name}: {details[name]}" for name in ("columns", "ranges", "bins", "numbers") if name in details))
    clipped = max(result.clipped for result in found.results)
    if clipped:
        print(f"{numbers.count(round(clipped), 'row')} with a value beyond its range, which counts as the range's end")
    if not all(result.is_certified for result in found.results if result.has_value):
        print("brackets by random projections hold with high probability, not for certain")
    if said := _assumed_lines(assumed):
        print("\n".join(said))


def _assumed(data: Data, found: Comparison, options: dict[str, Any]) -> dict[str, Any]:
    """Return the classes that were taken for positive and negative, if the statistic depends on it, and doubts."""
    from gosta.statistics import assumptions

    names = {part.sketch.name for part in found.layout.parts if part.has_label}
    if not names & set(assumptions.ORDERED_BY_POSITIVE):
        return {"assumed": {}, "warnings": list(data.doubts)}
    data = data.select(drop_missing=True)
    data.class_signs(options.get("positive"))
    is_opposite = assumptions.likely_positive(data.assumed) is not None
    return {"assumed": data.assumed, "warnings": [*data.doubts, *[assumptions.opposite(data.assumed)] * is_opposite]}


def _assumed_lines(assumed: dict[str, Any]) -> list[str]:
    from gosta.statistics import assumptions

    warnings = [f"warning: {warning}" for warning in assumed["warnings"]]
    return [terminal.printable(line) for line in [*assumptions.text(assumed["assumed"]), *warnings]]


def _record(result: StratumResult, exact: Values | None, has_bins: bool) -> dict[str, Any]:
    if not has_bins:
        return {"statistic": result.statistic, "labels": result.labels, "exact": exact}
    return {**result._asdict(), "exact": exact}


def _name(result: StratumResult) -> str:
    return f"{result.statistic}, {result.stratum}" if result.stratum else result.statistic


def _exact_lines(found: Comparison) -> list[tuple[str, ...]]:
    return [(line[0], line[3]) for pair in zip(found.results, found.exact, strict=True) for line in _lines(*pair)]


def _lines(result: StratumResult, exact: Values | None) -> list[tuple[str, ...]]:
    """Return a line for each value: name, value, bracket, exact value, error, interval."""
    if not result.has_value:
        return [(_name(result), *[numbers.NONE] * 2, numbers.number(exact), *[numbers.NONE] * 2)]
    lines: list[tuple[str, ...]] = []
    for k, value in enumerate(result.value):
        true = None if exact is None else exact[k]
        shown = (
            numbers.number(value),
            numbers.interval(result.low[k], result.high[k]),
            numbers.number(true),
            numbers.number(None if true is None else value - true, 2),
            numbers.interval(*result.interval or (None, None)),
        )
        lines.append((f"{_name(result)} {result.labels[k] if result.labels else ''}".strip(), *shown))
    return lines
