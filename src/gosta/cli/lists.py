"""``gosta statistics``, ``gosta protocols`` and ``gosta datasets``: names that other commands take."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from gosta.views import terminal

Json = Annotated[bool, "Print JSON.", "--json"]


def statistics(as_json: Json = False) -> None:
    """List the statistics and their options."""
    from gosta.statistics import STATISTICS

    fields = ("name", "summary", "options", "normalisation")
    records = [{field: getattr(statistic, field) for field in fields} for statistic in STATISTICS.values()]
    _show(records, lambda r: r["summary"] + (f" Options: {', '.join(r['options'])}." if r["options"] else ""), as_json)


def protocols(as_json: Json = False) -> None:
    """List the protocols: what a node keeps and sends."""
    from gosta.protocols import PROTOCOLS

    fields = ("name", "summary", "keeps", "sends")
    records = [{field: getattr(protocol, field) for field in fields} for protocol in PROTOCOLS.values()]
    _show(records, lambda r: f"{r['summary']} Keeps: {r['keeps']}. Sends per iteration: {r['sends']}.", as_json)


def datasets(as_json: Json = False) -> None:
    """List the data sets that have a name."""
    from gosta.datasets import DATASETS

    records = [{"name": name, "summary": entry.summary} for name, entry in DATASETS.items()]
    _show(records, lambda r: r["summary"], as_json)


def _show(records: Sequence[Mapping[str, Any]], explain: Callable[[Mapping[str, Any]], str], as_json: bool) -> None:
    if as_json:
        print(json.dumps(records, indent=2))
    else:
        entries = [(record["name"], explain(record)) for record in records]
        print(terminal.definitions(entries, indent=0, wrap=True))
