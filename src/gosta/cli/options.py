"""Options that several commands share, and how their texts become values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gosta.errors import InputError

if TYPE_CHECKING:
    from gosta.datasets import Data
    from gosta.statistics import Statistic

DataName = Annotated[
    str, typer.Argument(help="A name from 'gosta datasets', or a .csv, .tsv, .csv.gz, .parquet or .npy file.")
]
StatisticName = Annotated[
    str, typer.Option("--statistic", "-s", help="A name from 'gosta statistics', or FILE.py:NAME for your own.")
]
GraphName = Annotated[
    str, typer.Option("--graph", "-g", help="A family of graphs ('gosta graph --help'), or an edge-list file.")
]
Iterations = Annotated[int | None, typer.Option(help="Edges drawn in a run; by default 100 a node.")]
Runs = Annotated[int, typer.Option(help="Independent runs.")]
Seed = Annotated[int, typer.Option(help="Seed of graph and runs.")]
Columns = Annotated[
    list[str] | None, typer.Option("--columns", "-c", help="Columns to use: a,b or given several times.")
]
Label = Annotated[str | None, typer.Option(help="Column of classes.")]
Score = Annotated[
    str | None,
    typer.Option(help="Column of scores; otherwise rows are scored along the difference of the class means."),
]
Option = Annotated[list[str] | None, typer.Option("--option", "-o", help="An option of the statistic, as name=value.")]
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with missing or infinite values.")]
Rows = Annotated[int | None, typer.Option("--n", help="Rows: the first n, or how many to make of synthetic data.")]
OwnFile = Annotated[Path | None, typer.Option(help="Your copy of the file behind wine-quality-red or svmguide3.")]
Backend = Annotated[str, typer.Option(help="Where to compute: local (processes of this machine), dask or ray.")]
Scheduler = Annotated[
    str | None, typer.Option(help="The cluster's address, such as tcp://head:8786 (Dask) or auto (Ray).")
]
Workers = Annotated[int | None, typer.Option(help="Processes on this machine; by default one a core.")]
Deal = Annotated[str | None, typer.Option(help="zipf (the default): a few nodes get many rows; even: all get as many.")]
By = Annotated[
    str | None,
    typer.Option(help="A column: rows with the same value are at one node; with --nodes, those with close values."),
]
Interval = Annotated[str | None, typer.Option(help="Confidence level of an interval: 95% or 0.95.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]

# Tracking, the default of simulations, has no theory yet; GoSta-async sends the same messages.
THEORY_PROTOCOL = "gosta-async"


def table(
    data: str,
    n: int | None,
    path: Path | None,
    columns: Sequence[str] | None,
    label: str | None,
    score: str | None,
    drop_missing: bool,
) -> Data:
    """Data by name or file, with the columns chosen."""
    from gosta.datasets import load

    whole = load(data, n=n, path=path)
    return whole.select(column_names(columns, whole), label, score, drop_missing)


def check_writable(name: str, file: Path) -> None:
    """Refuse a place where nothing can be written before the work begins."""
    if not file.parent.is_dir():
        raise InputError(f"{name} = {str(file)!r}: there is no folder {file.parent}")
    if file.is_dir() or not os.access(file.parent, os.W_OK):
        raise InputError(f"{name} = {str(file)!r} cannot be written; name a file in a folder of yours")


def check_picture(name: str, file: Path) -> None:
    """The same for a picture, whose name says its format."""
    if file.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"{name} = {str(file)!r} must end in .png, .svg or .pdf")
    check_writable(name, file)


def share(value: float) -> str:
    """A relative number as a person reads it; large ones are factors."""
    return f"{100 * value:.3g} %" if abs(value) < 10 else f"{value:.3g} x"


def fraction(name: str, text: str, wanted: str) -> float:
    """A number between 0 and 1, or a percentage."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise InputError(f"{name} = {text!r} must be {wanted}")
    return value


def count(value: float) -> str:
    """How many, as a person reads it."""
    return f"{value:,.0f}" if value < 1e12 else f"{value:.2e}" if value < 2**53 else "more than 9e15"


def column_names(columns: Sequence[str] | None, table: Data) -> list[str] | None:
    """Names from texts such as "a,b"; a text that is a column's name as a whole is that column."""
    names = [name for text in columns or [] for name in ([text] if text in table.columns else text.split(","))]
    return names or None


def statistic(text: str) -> Statistic:
    """A statistic by name; FILE.py:NAME runs the file first."""
    from gosta.statistics.user_file import load_statistic

    return load_statistic(text)


def values(texts: Sequence[str] | None) -> dict[str, Any]:
    """Options from texts such as "variant=b": numbers where they look like numbers."""
    return dict(map(_value, texts or []))


def _value(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"option {text!r} must be written name=value")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value
