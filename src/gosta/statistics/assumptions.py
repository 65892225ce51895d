"""What was assumed where the user did not say it, and the doubts that follow.

Both are given as plain values for JSON, and as lines of text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from gosta.datasets.class_names import suggests_positive
from gosta.datasets.data import Data, ReadLog
from gosta.errors import shorten
from gosta.runtime.arrays import Floats
from gosta.statistics.definition import Encoded, Options, Statistic
from gosta.views import numbers

# Statistics that are turned round with the positive class.
ORDERED_BY_POSITIVE = (
    "auc",
    "auc-difference",
    "average-precision",
    "brier-difference",
    "f1-score",
    "hodges-lehmann-shift",
    "integrated-discrimination",
    "mann-whitney",
    "mann-whitney-z",
    "negative-predictive-value",
    "net-benefit",
    "net-benefit-of-all",
    "net-reclassification",
    "partial-auc",
    "positive-predictive-value",
    "precision-recall-curve",
    "roc-curve",
    "sensitivity",
    "specificity",
)
# Those that are 1/2 for a score that says nothing.
OF_CLASSES, OF_EVENTS = ("auc",), ("concordance-index",)


def collect(
    data: Data, read: Encoded | ReadLog, statistic: Statistic | None, options: Options, rows: int
) -> dict[str, Any]:
    """Return what was assumed to compute a statistic over `rows` complete rows of data.

    Without a statistic, as for a hypothesis test, nothing is said of its options.

    Keys: "positive", "negative" and "positive_was_given", the classes; "score", if it was made from
    the class means; options that have a default, such as "variant"; "columns_left_out";
    "rows_dropped"; "header", of a file.
    """
    assumed = dict(read.assumed)
    if statistic is not None:
        assumed |= {
            k: v for k, v in statistic.options.items() if k not in options and v is not None
        }
    return assumed | left_out(data, read.columns, rows, len(data))


def left_out(data: Data, columns: Iterable[str | None], rows: int, total: int) -> dict[str, Any]:
    """Return what of data was not used, apart from `columns` and `rows` of the total."""
    used = {*columns, data.by, *(data.by or "").split(", ")}
    assumed: dict[str, Any] = {
        "columns_left_out": [name for name in data.columns if name not in used],
        "rows_dropped": total - rows,
    }
    return assumed if data.has_header is None else {**assumed, "header": data.has_header}


def of_classes(
    data: Data, names: Iterable[str], options: Options
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return which class was taken for the positive one, and doubts about it.

    Only for statistics that depend on it, by their names.
    """
    if not set(names) & set(ORDERED_BY_POSITIVE):
        return {}, data.doubts
    assumed = data.select(drop_missing=True).assumed_classes(options.get("positive"))
    found = [opposite(assumed)] if likely_positive(assumed) is not None else []
    return assumed, (*data.doubts, *found)


def doubts(
    data: Data, statistic: Statistic, assumed: Mapping[str, Any], value: float | Floats
) -> tuple[str, ...]:
    """Return one line for each thing that looks wrong, with the way out."""
    return (*data.doubts, *_doubts(data, statistic, assumed, value))


def likely_positive(assumed: Mapping[str, Any]) -> str | None:
    """Return the class that by its name is the positive one, where the other was taken."""
    name, negative = str(assumed.get("positive", "")), assumed.get("negative", [])
    if len(negative) != 1 or assumed["positive_was_given"]:
        return None
    return str(negative[0]) if suggests_positive(name, str(negative[0])) else None


def opposite(assumed: Mapping[str, Any]) -> str:
    """Return the doubt about a positive class that the names of the two contradict."""
    name, likely = assumed["positive"], likely_positive(assumed)
    return (
        f"the positive class is {name!r}, the last of {likely}, {name} in order, though the names "
        f"suggest {likely!r}: "
        f"--positive {likely} (positive={likely!r}), or --positive {name} if it is right"
    )


def _doubts(
    data: Data, statistic: Statistic, assumed: Mapping[str, Any], value: float | Floats
) -> Iterator[str]:
    name, negative, likely = (
        assumed.get("positive"),
        assumed.get("negative", []),
        likely_positive(assumed),
    )
    if likely is not None and statistic.unweighted_name in ORDERED_BY_POSITIVE:
        yield opposite(assumed)
    is_low = float(np.ravel(value)[0]) < 0.5
    if is_low and statistic.unweighted_name in OF_CLASSES and likely is None:
        others = shorten([repr(one) for one in negative])
        way_out = (
            ""
            if assumed["positive_was_given"]
            else "; if these are the positive ones, name the class: --positive"
        )
        yield (
            f"{statistic.name} is below 0.5: rows of {name!r} score lower than those of "
            f"{others}{way_out}"
        )
    if is_low and statistic.unweighted_name in OF_EVENTS:
        yield (
            f"{statistic.name} is below 0.5: a higher score goes with a later event; the score is "
            "to be a risk"
        )
    left_out = assumed["columns_left_out"]
    if data.score is not None and data.score in left_out and not data.has_selected_columns:
        column = data.score
        yield (
            f"the column {column!r} is taken for scores and left out; to use it as a number: "
            f"--columns {column}"
        )


def text(assumed: Mapping[str, Any], has_selected_columns: bool = False) -> list[str]:
    """Return what was assumed in words, one line each; what the user said himself is left out."""
    lines = []
    if "positive" in assumed and not assumed["positive_was_given"]:
        others = shorten(assumed["negative"])
        lines.append(
            f"positive class: {assumed['positive']}, against {others} (--positive names another)"
        )
    if assumed.get("event"):
        lines.append(f"event: {assumed['event']}, as 1")
    if "score" in assumed:
        lines.append(
            "score: x · (mean of positive rows − mean of the others), from several columns"
        )
    known = (
        "positive",
        "negative",
        "positive_was_given",
        "event",
        "score",
        "columns_left_out",
        "rows_dropped",
        "header",
    )
    chosen = [f"{name} = {_shown(value)}" for name, value in assumed.items() if name not in known]
    if chosen:
        lines.append(f"options: {', '.join(chosen)}")
    if assumed.get("columns_left_out") and not has_selected_columns:
        lines.append(f"columns left out: {shorten(assumed['columns_left_out'])}")
    if assumed.get("rows_dropped"):
        lines.append(
            f"left out: {numbers.count(assumed['rows_dropped'], 'row')} with missing or infinite "
            "values"
        )
    return lines


def _shown(value: object) -> str:
    return numbers.number(value) if isinstance(value, float) else str(value)
