"""``gosta statistics`` and ``gosta datasets``: what there is."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Mapping
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def statistics(as_json: Json = False) -> None:
    """List the statistics, with their options."""
    from gosta.statistics import STATISTICS

    if as_json:
        rows = [
            {"name": s.name, "summary": s.summary, "options": s.options, "normalisation": s.normalisation}
            for s in STATISTICS.values()
        ]
        print(json.dumps(rows, indent=2))
        return
    show({s.name: s.summary + (f" Options: {', '.join(s.options)}." if s.options else "") for s in STATISTICS.values()})


def protocols(as_json: Json = False) -> None:
    """List the protocols: what a node keeps and sends."""
    from gosta.protocols import PROTOCOLS

    rows = [{"name": p.name, "summary": p.summary, "keeps": p.keeps, "sends": p.sends} for p in PROTOCOLS.values()]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    show({row["name"]: f"{row['summary']} Keeps: {row['keeps']}. Sends an iteration: {row['sends']}." for row in rows})


def datasets(as_json: Json = False) -> None:
    """List the data sets that have a name."""
    from gosta.datasets import DATASETS

    if as_json:
        print(json.dumps([{"name": name, "summary": entry.summary} for name, entry in DATASETS.items()], indent=2))
        return
    show({name: entry.summary for name, entry in DATASETS.items()})


def show(rows: Mapping[str, str]) -> None:
    """Names and explanations in two columns, as wide as the terminal."""
    margin = max(map(len, rows)) + 2
    width = max(40, min(110, shutil.get_terminal_size().columns) - margin)
    for name, text in rows.items():
        first, *more = textwrap.wrap(text, width) or [""]
        print(name.ljust(margin) + first)
        for line in more:
            print(" " * margin + line)
