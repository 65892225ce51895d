"""``gosta statistics``, ``gosta protocols`` and ``gosta datasets``: what there is by name."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from gosta.cli import options
from gosta.errors import InputError
from gosta.views import terminal

Json = Annotated[bool, "Print JSON.", "--json"]


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
    """Print which statistics fit a file, and the command that computes each."""
    from gosta.analysis.fitting import fitting

    found = fitting(rows.select(rows.load(source)))
    reading = [word for name, value in rows.reading().items() for word in (f"--{name}", value)]
    reading += ["--n", str(rows.n)] if rows.n is not None else []
    reading += ["--path", str(rows.path)] if rows.path is not None else []
    commands = [
        shlex.join(["gosta", "exact", source, "-s", one.name, *one.arguments, *reading])
        for one in found
    ]
    if as_json:
        records = [
            {
                "name": one.name,
                "summary": one.summary,
                "command": None if one.reason else command,
                "reason": one.reason,
            }
            for one, command in zip(found, commands, strict=True)
        ]
        print(json.dumps(records, indent=2))
        return
    entries = [
        (one.name, f"{one.summary}\n  {command}")
        for one, command in zip(found, commands, strict=True)
        if not one.reason
    ]
    for name, text in entries:
        print(*(terminal.printable(line) for line in f"{name}: {text}".split("\n")), sep="\n")
    others = [(one.name, one.reason) for one in found if one.reason]
    if others:
        print("Others do not fit:", terminal.definitions(others, wrap=True), sep="\n")


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
