"""``gosta exact``: a statistic over data in one place."""

from __future__ import annotations

import json
import runpy
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gosta.errors import InputError

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
    data: Annotated[
        str,
        typer.Argument(help="A name from 'gosta datasets', or a .csv, .tsv, .csv.gz, .parquet or .npy file."),
    ] = "breast-cancer",
    statistic: Annotated[
        str | None,
        typer.Option(
            "--statistic",
            "-s",
            help="A name from 'gosta statistics', or FILE.py:NAME for your own; without it, all that fit the data.",
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", "-c", help="Columns to use: a,b or given several times."),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column of classes.")] = None,
    score: Annotated[
        str | None,
        typer.Option(help="Column of scores; otherwise rows are scored along the difference of the class means."),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="An option of the statistic, as name=value.")
    ] = None,
    normalisation: Annotated[
        str | None, typer.Option(help="U: pairs of different rows; V: all pairs. Default: the textbook's.")
    ] = None,
    interval: Annotated[str | None, typer.Option(help="Confidence level of an interval: 95% or 0.95.")] = None,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows with missing or infinite values.")
    ] = False,
    n: Annotated[
        int | None, typer.Option("--n", help="Rows: the first n, or how many to make of synthetic data.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of synthetic data.")] = None,
    path: Annotated[
        Path | None, typer.Option(help="Your copy of the file behind wine-quality-red or svmguide3.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a statistic.")] = False,
) -> None:
    """Compute the exact value of a pairwise statistic over all rows of a table."""
    from gosta import datasets
    from gosta.statistics import TABLE
    from gosta.statistics.exact import measure

    table = datasets.load(data, n=n, seed=seed, path=path)
    names = [name for text in columns or [] for name in ([text] if text in table.columns else text.split(","))]
    level = None if interval is None else _level(interval)
    options = dict(map(_option, option or []))

    def one(chosen: Statistic, options: dict[str, Any]) -> dict[str, Any]:
        start = time.perf_counter()
        rows = table.choose(names or None, label, score, drop_missing)
        result = measure(rows, chosen, normalisation, level, options)  # type: ignore[arg-type]
        return _record(result, data, options, time.perf_counter() - start)

    if statistic is not None:
        record = one(_own_or_named(statistic), options)
        print(json.dumps(record) if as_json else _text(record))
        return
    if not as_json:
        print(f"{data}, {len(table)} rows")
    for chosen in TABLE.values():
        try:
            record = one(chosen, {k: v for k, v in options.items() if k in chosen.options})
        except InputError as error:
            if not as_json:
                print(
                    f"  {chosen.name:<24} {'-':>12}   {str(error).removeprefix(chosen.name + ': ').partition(';')[0]}"
                )
            continue
        print(json.dumps(record) if as_json else _line(record))


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


def _own_or_named(text: str) -> Statistic:
    """A statistic by name; FILE.py:NAME runs the file first."""
    from gosta.statistics import find

    file, colon, name = text.rpartition(":")
    if not (colon and file.endswith(".py")):
        return find(text)
    if not Path(file).is_file():
        raise InputError(f"statistic = {text!r}: no such file: {file}")
    try:
        runpy.run_path(file)
    except Exception as error:  # whatever a user's file may do
        raise InputError(f"statistic = {text!r}: {file} fails with {type(error).__name__}: {error}") from error
    return find(name)


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"option {text!r} must be written name=value")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value


def _level(text: str) -> float:
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise InputError(f"interval = {text!r} must be a level such as 95% or 0.95") from None
