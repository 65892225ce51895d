"""What was assumed where the user did not say it, and the doubts that follow: in JSON, and as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import shorten
from gosta.runtime.arrays import Floats
from gosta.statistics.definition import Options, Statistic
from gosta.views import numbers

# Names of classes that say which of two is the positive one.
POSITIVE = (
    "1 + abnormal affected bad case cases cancer dead death deceased died disease diseased event fail failed failure "
    "ill malignant pos positive present responder sick t treated treatment true y yes"
)
NEGATIVE = (
    "-1 0 - absent alive benign control controls f false good healthy neg negative no none non-case noncase "
    "non-responder nonresponder normal ok placebo survived unaffected untreated"
)
ORDERED_BY_POSITIVE = ("auc", "mann-whitney")  # whose value is turned round with the positive class
PROBABILITIES = ("auc", "concordance-index")  # that are 1/2 for a score that says nothing


def collect(data: Data, statistic: Statistic, options: Options, rows: int) -> dict[str, Any]:
    """Return what was assumed to compute a statistic over data that have just been encoded, for `rows` complete rows.

    Keys: "positive", "negative" and "positive_was_given", the classes; "score", if it was made from the class means;
    options that have a default, such as "variant"; "columns_left_out"; "rows_dropped"; "header", of a file.
    """
    assumed = dict(data.assumed)
    assumed |= {k: v for k, v in statistic.options.items() if k not in options and v is not None}
    assumed["columns_left_out"] = [name for name in data.columns if name not in data.used_columns and name != data.by]
    assumed["rows_dropped"] = len(data) - rows
    if data.has_header is not None:
        assumed["header"] = data.has_header
    return assumed


def doubts(data: Data, statistic: Statistic, assumed: Mapping[str, Any], value: float | Floats) -> tuple[str, ...]:
    """Return one line for each thing that looks wrong, with the way out."""
    return (*data.doubts, *_doubts(data, statistic, assumed, value))


def _doubts(data: Data, statistic: Statistic, assumed: Mapping[str, Any], value: float | Floats) -> Iterator[str]:
    name, negative = str(assumed.get("positive", "")), assumed.get("negative", [])
    is_guessed = len(negative) == 1 and not assumed["positive_was_given"]
    is_opposite = is_guessed and (name.lower() in NEGATIVE.split() or negative[0].lower() in POSITIVE.split())
    if is_opposite and statistic.name in ORDERED_BY_POSITIVE:
        yield (
            f"the positive class is {name!r}, the last of {negative[0]}, {name} in order, though the names suggest "
            f"{negative[0]!r}: --positive {negative[0]} (positive={negative[0]!r}), or --positive {name} if it is right"
        )
    low = statistic.name in PROBABILITIES and float(np.ravel(value)[0]) < 0.5
    if low and negative and not is_opposite:
        yield (
            f"{statistic.name} is below 0.5: rows of {name!r} score lower than those of {shorten(negative)}; "
            f"if these are the positive ones, name the class: --positive"
        )
    elif low and not negative:
        yield f"{statistic.name} is below 0.5: a higher score goes with a later event; the score is to be a risk"
    left_out = assumed["columns_left_out"]
    if data.score is not None and data.score in left_out and not data.has_selected_columns:
        column = data.score
        yield f"the column {column!r} is taken for scores and left out; to use it as a number: --columns {column}"


def text(assumed: Mapping[str, Any], has_selected_columns: bool = False) -> list[str]:
    """Return what was assumed in words, one line each; what the user said himself is left out."""
    lines = []
    if "positive" in assumed and not assumed["positive_was_given"]:
        others = shorten(assumed["negative"])
        lines.append(f"positive class: {assumed['positive']}, against {others} (--positive names another)")
    if "score" in assumed:
        lines.append("score: x · (mean of the positive rows − mean of the others), from several columns")
    known = ("positive", "negative", "positive_was_given", "score", "columns_left_out", "rows_dropped", "header")
    chosen = [f"{name} = {_shown(value)}" for name, value in assumed.items() if name not in known]
    if chosen:
        lines.append(f"options: {', '.join(chosen)}")
    if assumed.get("columns_left_out") and not has_selected_columns:
        lines.append(f"columns left out: {shorten(assumed['columns_left_out'])}")
    if assumed.get("rows_dropped"):
        lines.append(f"left out: {numbers.count(assumed['rows_dropped'], 'row')} with missing or infinite values")
    return lines


def _shown(value: object) -> str:
    return numbers.number(value) if isinstance(value, float) else str(value)
