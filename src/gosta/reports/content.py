"""The content of a report: which section says what of the results of a study."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gosta.errors import InputError
from gosta.reports import texts
from gosta.reports.blocks import Block, List, Report, Section, Table, Text
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
from gosta.reports.tables import BRACKET, Found, capital, values_table
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
        table_one(known, _units(results)),
        _main_results(known),
        _warnings(known),
        *(
            question_section(question, title, [*known, *at_times])
            for question, title in SECTIONS.items()
        ),
        subgroups(known, results["how"].get("missing", {})),
        _without_value(found),
        methods(results, known),
        privacy(results),
    ]
    shown = [_with_brackets_explained(section) for section in sections if section.blocks]
    titles = {section.title for section in shown}
    by_site = {texts.BY_SITE} if "site" in results["study"].get("groups", ()) else set()
    shown.append(tripod(titles | by_site))
    return Report(results["study"].get("title") or "Validation study", _subtitle(results), shown)


def _with_brackets_explained(section: Section) -> Section:
    """Say below the first table with brackets of a section what they are beside intervals."""
    for k, block in enumerate(section.blocks):
        cells = [cell for row in block.rows for cell in row] if isinstance(block, Table) else []
        if any(f"\n{BRACKET}" in cell for cell in cells):
            below = [Text(texts.BRACKETS_BELOW), *section.blocks[k + 1 :]]
            return section._replace(blocks=[*section.blocks[: k + 1], *below])
    return section


def _subtitle(results: Mapping[str, Any]) -> str:
    how = results["how"]
    rows = "about " * bool(how.get("epsilon")) + numbers.count(results["rows"], "row")
    where = "in one place" if how["mode"] == "one place" else "by private sums"
    sites = numbers.count(how.get("sites", 1), "file" if where == "in one place" else "site")
    return f"{rows} of {sites}, computed {where} on {results['date'][:10]}"


def _study(results: Mapping[str, Any]) -> Section:
    asked, how = results["study"], results["how"]
    scores, outcome = asked.get("scores", []), _outcome(results)
    what = "the rows"
    if scores:
        what = f"the {'score' if len(scores) == 1 else 'scores'} {' and '.join(scores)}"
        what += f" as predictions of {outcome}" * bool(outcome)
    places = _files(how) or list(map(str, how.get("participants") or []))
    rows = "about " * bool(how.get("rows_error")) + f"{results['rows']:,} complete rows"
    rows += f" of {_joined(places)}" * bool(places)
    sentences = [f"This study evaluates {what}, in {rows}."]
    if asked.get("time"):
        unit = "".join(f" ({unit})" for unit in [_units(results).get(asked["time"])] if unit)
        sentences.append(
            f"The time to the event, or to the end of follow-up, is {asked['time']}{unit}; "
            f"{asked['event']} tells which of the two it is."
        )
    if asked.get("horizon") is not None:
        sentences.append(
            f"Scores predict an event before {asked['horizon']:g} {unit_of(results)}".rstrip() + "."
        )
    if asked.get("groups"):
        groups = _joined([f"by {one.replace('+', ' with ')}" for one in asked["groups"]])
        sentences.append(f"Results are given for all rows and {groups}.")
    return Section("Study", [Text(" ".join(sentences)), _dictionary(results), *_flow(results)])


def _outcome(results: Mapping[str, Any]) -> str:
    """Return the outcome with its classes, such as "died (yes, against no)"."""
    label = results["study"].get("label")
    classes = list(map(str, results["columns"].get(label, {}).get("classes", [])))
    return f"{label} ({classes[-1]}, against {_joined(classes[:-1])})" if classes else label or ""


def _files(how: Mapping[str, Any]) -> list[str]:
    """Return the names of files without their folders."""
    return [re.split(r"[\\/]", str(path))[-1] for path in how.get("data") or []]


def _units(results: Mapping[str, Any]) -> dict[str, str]:
    """Return the units of the columns that have one, other than their name."""
    units = {name: column.get("unit", "") for name, column in results["columns"].items()}
    return {name: unit for name, unit in units.items() if unit and unit != name}


def _joined(names: Sequence[str]) -> str:
    """Return names as in a sentence.

    >>> _joined(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _flow(results: Mapping[str, Any]) -> list[Block]:
    """Return how many rows were read, left out and used; of sums, what is known of that."""
    how, used = results["how"], results["rows"]
    if "rows_read" not in how:
        return [Text(texts.ROWS_OF_SITES)] if how["mode"] != "one place" else []
    read = how["rows_read"]
    files = [f"{rows:,} in {name}" for name, rows in zip(_files(how), read, strict=True)]
    missing = [f"{rows:,} lack {name}" for name, rows in how["missing"].items() if rows]
    lines = {
        "Read": (sum(read), files if len(files) > 1 else []),
        "Left out, as a value is missing": (sum(read) - used, missing),
        "Used": (used, []),
    }
    rows = [
        [name, "\n".join([numbers.count(count), ", ".join(parts)]).strip()]
        for name, (count, parts) in lines.items()
    ]
    table = Table("Rows", ["", "rows"], rows)
    return [table, Text(texts.SEVERAL_MISSING)] if len(missing) > 1 else [table]


def _roles(results: Mapping[str, Any]) -> dict[str | None, str]:
    """Return the role of each column that has one."""
    asked = results["study"]
    roles = {asked.get("label"): "outcome", asked.get("time"): "time", asked.get("event"): "event"}
    roles |= dict.fromkeys(asked.get("scores", []), "score")
    return roles | {name: "group" for one in asked.get("groups", []) for name in one.split("+")}


def _dictionary(results: Mapping[str, Any]) -> Table:
    roles, rows = _roles(results), []
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
    said = [
        (warning.removeprefix(f"{one.estimate.statistic}: "), one)
        for one in found
        if one.name not in RECLASSIFICATION
        for warning in one.estimate.warnings
    ]
    return Section("Warnings", _remarks(said))


def _without_value(found: Sequence[Found]) -> Section:
    said = [(one.estimate.reason, one) for one in found if one.estimate.value is None]
    return Section("Statistics without a value", _remarks(said))


def _remarks(said: Iterable[tuple[str, Found]]) -> list[Block]:
    """Return texts, each once, after the statistics and scores that they are about."""
    by_text: dict[str, dict[str, list[str]]] = {}
    for text, one in said:
        scores = by_text.setdefault(text, {}).setdefault(one.title, [])
        scores += [one.score] * bool(one.score)
    items = []
    for text, by_title in by_text.items():
        about = [
            f"{title} ({', '.join(scores)})" if scores else title
            for title, scores in by_title.items()
        ]
        items.append(f"{capital('; '.join(about))}: {text}")
    return [List(items)] if items else []
