"""``gosta predict``: what a fitted model predicts for the rows of a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gosta.cli import options
from gosta.errors import InputError


def predict(
    data: Annotated[Path, typer.Argument(help="File of rows, or a node's folder.")],
    reading: options.Reading,
    model: Annotated[Path, "File that gosta fit --out wrote.", "-m"],
    out: Annotated[Path, "File to write, .csv."],
    name: Annotated[str, "Name of the column of predictions."] = "prediction",
    time: Annotated[
        float | None, "Of a Cox model: predict the probability of an event until this time."
    ] = None,
    out_of_fold: Annotated[
        bool,
        "Predict rows that were fitted by the fit without their fold, of a model with folds: so "
        "predictions can be validated on these rows.",
    ] = False,
) -> None:
    """Write the rows of a file, with what a fitted model predicts for each in a further column.

    Columns are written as they were read: with the names, values and units that options, or a
    node's settings, give them. A row that lacks a column of the model has no prediction.
    """
    from gosta.datasets.columns import to_csv
    from gosta.models import load
    from gosta.runtime.files import write_atomically

    options.check_writable("out", out)
    fitted = load(model)
    rows = options.load_site(data, reading)
    if name in rows.columns:
        raise InputError(
            f"name = {name!r}: {data} has a column of this name", remedy="choose another one"
        )
    found = fitted.predict(replace(rows, drop_missing=True, is_partial=True), time, out_of_fold)
    write_atomically(out, to_csv({**rows.columns, name: found}))
    missing = int((found != found).sum())
    print(f"{out}: {len(rows):,} rows" + f", {missing:,} without a prediction" * bool(missing))
