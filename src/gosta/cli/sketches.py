"""``gosta exact --bins``: a statistic from sums, with its bracket, beside the value over the rows themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gosta.errors import DataError
from gosta.views import numbers, terminal

if TYPE_CHECKING:
    from gosta.datasets import Data
    from gosta.sketches import Bins, StratumResult

Values = tuple[float, ...]


def show(
    data: Data,
    statistic: str,
    bins: Bins,
    level: float | None,
    options: dict[str, Any],
    as_json: bool,
) -> None:
    """Print values from sums, brackets, exact values and errors."""
    from gosta.sketches.exact import compare
    from gosta.statistics import assumptions

    found = compare(data, statistic, bins, level, options)
    names = {part.sketch.name for part in found.layout.parts if part.has_label}
    assumed, warnings = assumptions.of_classes(data, names, options)
    if not any(result.has_value for result in found.results):
        raise DataError(
            f"{statistic} of {data.name} is not defined: there are too few rows, or all are in one class"
        )
    if as_json:
        for result, exact in zip(found.results, found.exact, strict=True):
            print(
                json.dumps(
                    {**result._asdict(), "exact": exact, "assumed": assumed, "warnings": warnings}
                )
            )
        return
    print(f"{data.name}, {numbers.count(found.rows, 'row')}")
    heading = ["", "from sums", "bracket", "exact", "error"]
    if level is not None:
        heading.append(f"{numbers.percent(level, 'g')} interval")
    lines = [
        line for pair in zip(found.results, found.exact, strict=True) for line in _lines(*pair)
    ]
    print(
        terminal.columns(
            [tuple(heading), *(line[: len(heading)] for line in lines)],
            right=range(1, len(heading)),
        )
    )
    details = found.layout.describe()
    print(
        "\n".join(
            f"{name}: {details[name]}"
            for name in ("columns", "ranges", "bins", "numbers")
            if name in details
        )
    )
    clipped = max(result.clipped for result in found.results)
    if clipped:
        print(
            f"{numbers.count(round(clipped), 'row')} with a value beyond its range, which counts as the range's end"
        )
    if not all(result.is_certified for result in found.results if result.has_value):
        print("brackets by random projections hold with high probability, not for certain")
    for line in [*assumptions.text(assumed), *(f"warning: {warning}" for warning in warnings)]:
        print(terminal.printable(line))


def _name(result: StratumResult) -> str:
    return f"{result.statistic}, {result.stratum}" if result.stratum else result.statistic


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
        lines.append(
            (f"{_name(result)} {result.labels[k] if result.labels else ''}".strip(), *shown)
        )
    return lines
