"""The content of a report: which section says what of the results of a study."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gosta.errors import InputError, shorten
from gosta.reports.blocks import List, Report, Section, Table, Text
from gosta.reports.methods import methods, privacy, tripod
from gosta.reports.questions import (
    RECLASSIFICATION,
    curves_at_times,
    question_section,
    readable_at_risk,
)
from gosta.reports.reading import found_in, unit_of
from gosta.reports.subgroups import subgroups
from gosta.reports.table_one import table_one
from gosta.reports.tables import Found, values_table
from gosta.views import numbers

MAIN = (
    "auc",
    "concordance-index",
    "calibration-slope",
    "observed-expected-ratio",
    "survival-observed-expected-ratio",
    "brier-score",
    "auc-difference",
    "concordance-difference",
)
# The questions of a study, each a section.
SECTIONS = {
    "discrimination": "Discrimination",
    "calibration": "Calibration",
    "usefulness": "Usefulness",
    "survival": "Survival",
    "comparison": "Comparison of two models",
}


def build(results: Mapping[str, Any]) -> Report:
    """Return the report of the contents of a results.json."""
    if not results.get("estimates"):
        raise InputError(
            "the results have no estimates: there is nothing to report",
            remedy="compute the study again: gosta study run, or gosta study collect",
        )
    found = [found_in(record, results) for record in results["estimates"]]
    times = results["study"].get("times") or ()
    known = [readable_at_risk(one, times) for one in found if one.estimate.value is not None]
    at_times = list(curves_at_times(known, times))
    sections = [
        _study(results),
        table_one(known),
        _main_results(known),
        _warnings(known),
        *(
            question_section(question, title, [*known, *at_times])
            for question, title in SECTIONS.items()
        ),
        subgroups(known),
        _without_value(found),
        methods(results, known),
        privacy(results),
    ]
    shown = [section for section in sections if section.blocks]
    shown.append(tripod({section.title for section in shown}))
    return Report(results["study"].get("title") or "Validation study", _subtitle(results), shown)


def _subtitle(results: Mapping[str, Any]) -> str:
    how = results["how"]
    rows = "about " * bool(how.get("epsilon")) + numbers.count(results["rows"], "row")
    where = "in one place" if how["mode"] == "one place" else "by private sums"
    sites = numbers.count(how.get("sites", 1), "file" if where == "in one place" else "site")
    return f"{rows} of {sites}, computed {where} on {results['date'][:10]}"


def _study(results: Mapping[str, Any]) -> Section:
    asked, how = results["study"], results["how"]
    questions = ", ".join(question.replace("-", " ") for question in asked["questions"])
    sentences = [f"The study asks about {questions}."]
    scores = asked.get("scores", [])
    if asked.get("label"):
        classes = results["columns"].get(asked["label"], {}).get("classes", [])
        others = ", ".join(map(str, classes[:-1]))
        positive = f" ({classes[-1]}, against {others})" if classes else ""
        sentences.append(f"The outcome is {asked['label']}{positive}.")
    if scores:
        one = "The score is" if len(scores) == 1 else "The scores are"
        sentences.append(f"{one} {' and '.join(scores)}.")
    if asked.get("time"):
        sentences.append(f"Times to an event are in {asked['time']}, events in {asked['event']}.")
    if asked.get("horizon") is not None:
        sentences.append(
            f"Scores predict an event before {asked['horizon']:g} {unit_of(results)}".rstrip() + "."
        )
    if asked.get("groups"):
        sentences.append(f"Results are also given by {' and '.join(asked['groups'])}.")
    files = [re.split(r"[\\/]", str(path))[-1] for path in how.get("data") or []]
    places = files or how.get("participants") or []
    rows = f"{results['rows']:,} complete rows"
    if places:
        rows += f" of {', '.join(map(str, places))}"
    sentences.append(f"{rows[0].upper()}{rows[1:]}.")
    if results.get("incomplete_rows"):
        sentences.append(f"{results['incomplete_rows']:,} rows lack a value and are left out.")
    return Section("Study", [Text(" ".join(sentences)), _dictionary(results)])


def _dictionary(results: Mapping[str, Any]) -> Table:
    asked = results["study"]
    roles = {asked.get("label"): "outcome", asked.get("time"): "time", asked.get("event"): "event"}
    roles |= dict.fromkeys(asked.get("scores", []), "score")
    roles |= dict.fromkeys(asked.get("groups", []), "group")
    rows = []
    for name, column in results["columns"].items():
        values = ", ".join(map(str, column.get("classes", [])))
        if column.get("range"):
            values = numbers.interval(*column["range"])
        unit = column.get("unit", "")
        about = [name, roles.get(name, ""), f"{values} {unit}".strip()]
        rows.append([*about, column.get("description", "")])
    return _without_empty(Table("Columns", ["column", "role", "values", "description"], rows))


def _without_empty(table: Table) -> Table:
    """Leave out columns that have no content."""
    kept = [k for k in range(len(table.heading)) if any(row[k] for row in table.rows)]
    rows = [[row[k] for k in kept] for row in table.rows]
    return Table(table.caption, [table.heading[k] for k in kept], rows)


def _main_results(found: Sequence[Found]) -> Section:
    chosen = [one for one in found if one.name in MAIN]
    differences = [one for one in chosen if one.question == "comparison"]
    values = [one for one in chosen if one.question != "comparison"]
    return Section("Main results", [values_table(part) for part in (values, differences) if part])


def _warnings(found: Sequence[Found]) -> Section:
    """Return what to have a look at, each once; that of NRI and IDI stands beside them."""
    by_text: dict[str, list[str]] = {}
    for one in (one for one in found if one.name not in RECLASSIFICATION):
        for warning in one.estimate.warnings:
            text = warning.removeprefix(f"{one.estimate.statistic}: ")
            by_text.setdefault(text, []).append(one.estimate.statistic)
    items = [f"{shorten(titles)}: {text}" for text, titles in by_text.items()]
    return Section("Warnings", [List(items)] if items else [])


def _without_value(found: Sequence[Found]) -> Section:
    items = [
        f"{one.estimate.statistic}: {one.estimate.reason}"
        for one in found
        if one.estimate.value is None
    ]
    return Section("Statistics without a value", [List(items)] if items else [])
