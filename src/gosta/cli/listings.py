"""``gosta statistics``, ``gosta protocols`` and ``gosta datasets``: what there is by name."""

from __future__ import annotations

import json
import shlex
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from gosta.cli import options
from gosta.errors import DataError, InputError, shorten
from gosta.views import terminal

if TYPE_CHECKING:
    from gosta.datasets.roles import Roles

Json = Annotated[bool, "Print JSON.", "--json"]


FIRST = ("auc", "concordance-index")  # of what fits
NAMES_IN_A_LINE = 70  # characters of names


def statistics(
    rows: options.Rows,
    for_: Annotated[
        str | None,
        "A file (or whatever 'gosta exact' takes): which statistics fit it, with the command to "
        "type.",
        "--for",
    ] = None,
    as_json: Json = False,
) -> None:
    """List the statistics, their options, and which private networks compute, from sums.

    Or those that fit a file.
    """
    from gosta.measures import MEASURES
    from gosta.sketches import SKETCHES
    from gosta.statistics import STATISTICS
    from gosta.statistics.names import aliases_of

    if for_ is not None:
        _show_fitting(for_, rows, as_json)
        return
    if rows != options.Rows():
        raise InputError("rows, columns and formats are those of a file; name it with --for")
    records = []
    for name, made in (STATISTICS | MEASURES).items():
        record = {
            "name": name,
            "summary": made.summary,
            "aliases": aliases_of(name),
            "options": made.options,
            "normalisation": getattr(made, "normalisation", None),
            "is_pairwise": name in STATISTICS,
            "has_sums": name in SKETCHES,
        }
        if name in SKETCHES:
            record["options"] = made.options | SKETCHES[name].defaults
        records.append(record)
    _show(records, _explain_statistic, as_json)


def _explain_statistic(record: Mapping[str, Any]) -> str:
    text = str(record["summary"]) + (
        f" Options: {', '.join(record['options'])}." if record["options"] else ""
    )
    if record["aliases"]:
        text += f" Also: {', '.join(record['aliases'])}."
    return text if record["has_sums"] else f"{text} Not from sums."


def _show_fitting(source: str, rows: options.Rows, as_json: bool) -> None:
    """Print what the columns of a file could be, and commands that compute all that fits them."""
    from gosta.analysis.fitting import fitting, roles_of
    from gosta.datasets.doubts import comma_column, far_values

    data = rows.select(rows.load(source))
    if rows.weights is not None:
        data = data.with_weights(rows.weights)
    found, reading = fitting(data), rows.reading_words()
    if as_json:
        records = [
            {
                "name": one.name,
                "summary": one.summary,
                "group": one.group or None,
                "command": None
                if one.reason
                else shlex.join(
                    ["gosta", "exact", source, "-s", one.name, *one.arguments, *reading]
                ),
                "reason": one.reason,
            }
            for one in found
        ]
        print(json.dumps(records, indent=2))
        return
    fits = sorted((one for one in found if not one.reason), key=lambda one: one.name not in FIRST)
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for one in fits:
        if one.is_of_roles or not any(other.is_of_roles for other in fits):
            groups.setdefault((one.group, one.arguments), []).append(one.name)
    print(terminal.definitions(_proposed(roles_of(data)), indent=0, wrap=True))
    doubts = [*data.doubts, *far_values(data)]
    if column := comma_column(data):
        doubts.append(f"{column} has decimal commas, so that it is read as text: --decimal ,")
    for doubt in doubts:
        print(terminal.printable(f"warning: {doubt}"), file=sys.stderr)
    for (group, arguments), names in groups.items():
        command = shlex.join(["gosta", "exact", source, *arguments, *reading])
        lines = [terminal.printable(f"  {command}"), *_listed(names, "-s ", ",")]
        print(f"{group}:", " \\\n".join(lines), sep="\n")
    shown = [name for names in groups.values() for name in names]
    others = [one.name for one in fits if one.name not in shown]
    if others:
        print(f"other columns: {shorten(others, 3)}")
    count = len(found) - len(fits)
    if not fits:
        raise DataError(f"{data.name} fits no statistic: {found[0].reason}")
    print(f"{count} do not fit; --json gives the reasons, and a command for each that does.")


def _listed(names: Sequence[str], before: str, between: str) -> list[str]:
    """Return names in lines."""
    lines = textwrap.wrap(" ".join(names), NAMES_IN_A_LINE, break_on_hyphens=False)
    return [f"    {before}{line.replace(' ', between)}" for line in lines]


def _proposed(roles: Roles) -> list[tuple[str, str]]:
    """Return what columns could be, in words."""
    groups = [name for name in roles.classes if name not in (*roles.binary[:1], *roles.events[:1])]
    has_outcome = roles.binary or (roles.times and roles.events)
    entries = {
        "score": shorten(roles.models or roles.scores[:1], 4) if has_outcome else "",
        "outcome": shorten(roles.binary[:1]),
        "time": shorten(roles.times[:1]),
        "event": shorten(roles.events[:1] if roles.times else []),
        "groups": shorten(groups, 8),
        "not used": shorten([f"{name} (identifies rows)" for name in roles.identifiers], 4),
        "dates": shorten(roles.dates, 4),
    }
    return [(name, text) for name, text in entries.items() if text]


def protocols(as_json: Json = False) -> None:
    """List the protocols: what a node keeps and sends."""
    from gosta.protocols import PROTOCOLS

    fields = ("name", "summary", "keeps", "sends", "rules")
    records = [
        {field: getattr(protocol, field) for field in fields} for protocol in PROTOCOLS.values()
    ]

    def explain(record: Mapping[str, Any]) -> str:
        others = {data: rule for data, rule in record["rules"].items() if rule != record["name"]}
        rules = "".join(f" For {data}, the rule is {rule}." for data, rule in others.items())
        sends = f"Sends per iteration: {record['sends']}."
        return f"{record['summary']} Keeps: {record['keeps']}. {sends}{rules}"

    _show(records, explain, as_json)


def datasets(as_json: Json = False) -> None:
    """List the data sets that have a name."""
    from gosta.datasets import DATASETS

    records = [{"name": name, "summary": entry.summary} for name, entry in DATASETS.items()]
    _show(records, lambda r: r["summary"], as_json)


def _show(
    records: Sequence[Mapping[str, Any]], explain: Callable[[Mapping[str, Any]], str], as_json: bool
) -> None:
    if as_json:
        print(json.dumps(records, indent=2))
    else:
        entries = [(record["name"], explain(record)) for record in records]
        print(terminal.definitions(entries, indent=0, wrap=True))
