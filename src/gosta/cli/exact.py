"""``gosta exact``: a statistic over data in one place."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gosta.cli import options
from gosta.errors import InputError, unknown

if TYPE_CHECKING:
    from gosta.statistics.definition import Statistic
    from gosta.statistics.exact import Measurement

EXAMPLES = """
[bold]Examples[/bold]

gosta exact breast-cancer --statistic auc --interval 95%

gosta exact patients.csv --statistic auc --score risk --label died

gosta exact incomes.parquet --statistic gini-index --columns income --json

gosta exact table.csv --statistic kendall-tau --columns a,b --option variant=b

gosta exact points.npy --statistic mine.py:huber-scatter
"""


def exact(
    data: options.DataName = "breast-cancer",
    statistic: Annotated[
        str | None,
        typer.Option(
            "--statistic",
            "-s",
            help="A name from 'gosta statistics', or FILE.py:NAME for your own; without it, all that fit the data.",
        ),
    ] = None,
    columns: options.Columns = None,
    label: options.Label = None,
    score: options.Score = None,
    option: options.Option = None,
    normalisation: Annotated[
        str | None, typer.Option(help="U: pairs of different rows; V: all pairs. Default: the textbook's.")
    ] = None,
    interval: options.Interval = None,
    drop_missing: options.DropMissing = False,
    n: options.Rows = None,
    seed: Annotated[int | None, typer.Option(help="Seed of synthetic data.")] = None,
    path: options.OwnFile = None,
    as_json: options.Json = False,
) -> None:
    """Compute the exact value of a pairwise statistic over all rows of a table."""
    from gosta import datasets
    from gosta.statistics import STATISTICS
    from gosta.statistics.exact import measure

    table = datasets.load(data, n=n, seed=seed, path=path)
    names = options.column_names(columns, table)
    level = None if interval is None else options.fraction("interval", interval, "a level such as 95% or 0.95")
    given = options.values(option)
    if normalisation not in (None, "U", "V"):
        raise InputError(f"normalisation = {normalisation!r} must be U or V")

    def one(chosen: Statistic, given: dict[str, Any]) -> dict[str, Any]:
        start = time.perf_counter()
        rows = table.select(names, label, score, drop_missing)
        result = measure(rows, chosen, normalisation, level, given)  # type: ignore[arg-type]
        return _record(result, data, given, time.perf_counter() - start)

    if statistic is not None:
        record = one(options.statistic(statistic), given)
        print(json.dumps(record) if as_json else _text(record))
        return
    table.select(names, label, score, drop_missing)
    known = {name for chosen in STATISTICS.values() for name in chosen.options}
    for name in given:
        if name not in known:
            raise unknown("option", name, sorted(known))
    rows: list[tuple[dict[str, Any] | None, str]] = []
    for chosen in STATISTICS.values():
        try:
            record = one(chosen, {k: v for k, v in given.items() if k in chosen.options})
        except InputError as error:
            why = str(error).removeprefix(chosen.name + ": ").partition(";")[0]
            rows.append((None, f"  {chosen.name:<24} {'-':>12}   {why}"))
            continue
        rows.append((record, json.dumps(record) if as_json else _line(record)))
    if not any(record for record, _ in rows):
        raise InputError(f"no statistic fits {data}; ask for one to see why: --statistic auc")
    if not as_json:
        print(f"{data}, {len(table)} rows")
    print("\n".join(line for record, line in rows if record or not as_json))


def _record(result: Measurement, data: str, options: dict[str, Any], seconds: float) -> dict[str, Any]:
    """What is printed of a measurement, as JSON has it."""
    from gosta.statistics.exact import Estimate

    value = result.value.value if isinstance(result.value, Estimate) else result.value
    record = {
        "statistic": result.statistic.name,
        "data": data,
        "n": result.n,
        "columns": result.columns,
        "options": options,
        "normalisation": result.normalisation,
        "value": value if isinstance(value, float) else value.tolist(),
        "seconds": round(seconds, 6),
    }
    if isinstance(result.value, Estimate):
        record["interval"] = {k: v for k, v in result.value._asdict().items() if k != "value"}
    return record


def _text(record: dict[str, Any]) -> str:
    """A measurement for a person: the value first, then what it rests on."""
    n = record["n"]
    lines = [f"{record['statistic']} of {record['data']}: {record['value']}"]
    if "interval" in record:
        lines.append(f"  {_interval(record)}, standard error {record['interval']['standard_error']:.3g}")
    lines.append(f"  {n:,} rows, {n * (n - 1) // 2:,} pairs, {record['seconds']:.2g} s")
    lines.append(f"  from {_columns(record)}")
    return "\n".join(lines)


def _line(record: dict[str, Any]) -> str:
    interval = f"   {_interval(record)}" if "interval" in record else ""
    return f"  {record['statistic']:<24} {record['value']:>12.6g}{interval}   {_columns(record)}"


def _interval(record: dict[str, Any]) -> str:
    interval = record["interval"]
    return f"{interval['low']:.6g} to {interval['high']:.6g} ({100 * interval['level']:g} % interval)"


def _columns(record: dict[str, Any]) -> str:
    names = record["columns"]
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}, ..., {names[-1]} ({len(names)} columns)"
