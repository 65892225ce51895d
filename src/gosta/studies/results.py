"""The results of a study: ``results.json``, the same for files in one place and private sums."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

import gosta
from gosta.errors import InputError
from gosta.measures.table_one import standardised_differences
from gosta.runtime.files import read_limited, write_atomically
from gosta.statistics.estimate import Estimate
from gosta.studies.definition import Item, Study
from gosta.studies.questions import TABLE_ONE

RESULTS_FILE = "results.json"
FORMAT = 1  # of the file
MAX_RESULTS_BYTES = 1 << 28


def record(
    study: Study,
    found: Sequence[tuple[Item, Estimate]],
    how: Mapping[str, Any],
    rows: int,
    incomplete_rows: int | None,
) -> dict[str, Any]:
    """Return the contents of a results.json: the study, how it was computed, and all estimates."""
    plain = msgspec.to_builtins(study)
    return {
        "format": FORMAT,
        "study": plain["study"],
        "columns": plain["columns"],
        "privacy": plain["privacy"],
        "how": dict(how),
        "rows": rows,
        "incomplete_rows": incomplete_rows,
        "estimates": [
            {
                "question": item.question,
                "name": item.statistic,
                **estimate.to_dict(),
                **_differences(item, estimate),
            }
            for item, estimate in found
        ],
        "version": gosta.__version__,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _differences(item: Item, table: Estimate) -> dict[str, Any]:
    """Return how much the other groups of Table 1 differ from the first, standardised."""
    if item.question != TABLE_ONE or not any(group.value is not None for group in table.groups):
        return {}
    found = []
    first, *others = (group for group in table.groups if group.value is not None)
    for other in others:
        differences = standardised_differences(table.labels, first.value, other.value)
        found.append({"groups": [first.group, other.group], "differences": differences})
    return {"standardised_differences": found}


def write(folder: Path, results: Mapping[str, Any]) -> Path:
    """Write the results.json of a folder, and return its path."""
    path = folder / RESULTS_FILE
    write_atomically(path, json.dumps(_plain(results), indent=1) + "\n")
    return path


def _plain(value: Any) -> Any:
    """Return values as JSON knows them: null for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def read(folder: Path) -> dict[str, Any]:
    """Return the contents of the results.json in a folder."""
    path = folder / RESULTS_FILE
    way_out = "'gosta study run' and 'gosta study collect' write it"
    try:
        results = json.loads(read_limited(path, MAX_RESULTS_BYTES, "results of a study"))
    except FileNotFoundError:
        raise InputError(f"no such file: {path}; {way_out}") from None
    except ValueError as error:
        raise InputError(f"{path} is no JSON: {error}; {way_out}") from None
    if not isinstance(results, dict) or results.get("format") != FORMAT:
        raise InputError(f"{path} is no file of results of this version; {way_out}")
    return results
