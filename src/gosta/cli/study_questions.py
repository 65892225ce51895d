"""What ``gosta study init`` asks at a terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gosta.errors import InputError, shorten

if TYPE_CHECKING:
    from gosta.cli.study import Questions
    from gosta.datasets import Data

TEXTS = {
    "title": "Title of the study",
    "label": "Column of the outcome (empty: none)",
    "score": "Column of the score, or two to compare: a,b",
    "threshold": "Thresholds of risk that decide, such as 0.1,0.2 (empty: proposed)",
    "time": "Column of times to an event (empty: none)",
    "event": "Column of events, 1 or 0",
    "times": "Times at which survival is told, such as 180,365 (empty: from the data, if any)",
    "horizon": "Time before which the scores predict an event (empty: the last of these)",
    "group": "Columns of groups, such as sex,ward; combined: sex+ward (empty: none)",
}
LISTS = ("score", "group", "threshold", "times")
OF_TIMES = ("event", "times", "horizon")


def ask(given: Questions, table: Data | None, answers: dict[str, str]) -> Questions:
    """Return the questions with what no option says from the terminal.

    `answers` has what was answered before, which Enter keeps, and gets what is answered now.
    """
    if table is not None:
        print(f"columns: {shorten(list(table.columns), 40)}")
    found: dict[str, Any] = {}
    for name, text in TEXTS.items():
        has_time = given.time or answers.get("time")
        is_open = getattr(given, name) is None and (has_time or name not in OF_TIMES)
        if is_open and (answer := _answer(name, text, answers)):
            found[name] = [answer] if name in LISTS else answer
    columns: dict[str, Any] = (
        {} if table is not None else _ask_of_columns(replace(given, **found), answers)
    )
    if "horizon" in found:
        found["horizon"] = _float("horizon", found["horizon"])
    return replace(given, **found, **columns)


def _answer(key: str, text: str, answers: dict[str, str]) -> str:
    earlier = answers.get(key, "")
    answer = input(f"{text}{f' [{earlier}]' if earlier else ''}: ").strip()
    answers[key] = "" if answer == "-" else answer or earlier
    return answers[key]


def _ask_of_columns(asked: Questions, answers: dict[str, str]) -> dict[str, Any]:
    """Return the classes and the ranges of columns, which no file shows."""
    classes, ranges = list(asked.classes or []), list(asked.range_ or [])
    said = {text.rpartition("=")[0] for text in (*classes, *ranges)}
    from gosta.studies.definition import columns_of

    wanted = [(asked.label, "Classes", "the positive one last (empty: no,yes)", classes)]
    wanted += [
        (one, "Classes", "all of them, such as a,b", classes)
        for one in columns_of(_listed(asked.group))
    ]
    wanted += [(one, "Range", "LOW:HIGH (empty: 0:1)", ranges) for one in _listed(asked.score)]
    wanted += [(asked.time, "Range", "LOW:HIGH, such as 0:730", ranges)]
    for name, what, hint, found in wanted:
        key = f"{what} of {name}"
        if name and name not in said and (answer := _answer(key, f"{key}, {hint}", answers)):
            found.append(f"{name}={answer}")
    return {"classes": classes or None, "range_": ranges or None}


def _listed(texts: list[str] | None) -> list[str]:
    return [name.strip() for text in texts or [] for name in text.split(",")]


def _float(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{name} = {text!r} must be a number, such as 365") from None
