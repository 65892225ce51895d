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
from gosta.datasets.dictionary import Column
from gosta.errors import InputError
from gosta.measures.table_one import standardised_differences
from gosta.private.settings import PrivateSettings
from gosta.runtime.files import read_limited, write_atomically
from gosta.statistics.estimate import Estimate
from gosta.studies.definition import Asked, Item, Study
from gosta.studies.questions import TABLE_ONE

RESULTS_FILE = "results.json"
FORMAT = 1  # of the file
MAX_RESULTS_BYTES = 1 << 28


class _Values(msgspec.Struct):
    """What a record of an estimate, or of one of its groups, has."""

    statistic: str
    value: float | tuple[float | None, ...] | None
    n: float | None = None  # not told
    interval: dict[str, Any] | None = None
    labels: tuple[str, ...] = ()
    at: tuple[float | None, ...] | None = None
    axes: tuple[str, str] | None = None
    reason: str = ""
    group: str | None = None


class _Grouping(msgspec.Struct):
    """What a record of the groups by one of several columns has."""

    by: str
    groups: tuple[_Values, ...] = ()
    heterogeneity: dict[str, Any] | None = None


class _Record(_Values, kw_only=True):
    """What a record of an estimate has besides."""

    question: str
    name: str
    columns: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    warnings: tuple[str, ...] = ()
    by: str | None = None
    groups: tuple[_Values, ...] = ()
    heterogeneity: dict[str, Any] | None = None
    groupings: tuple[_Grouping, ...] = ()


class _How(msgspec.Struct):
    """What is said of the way of computation by every file."""

    mode: str


class _Results(msgspec.Struct):
    """What a results.json has, as far as a report relies on it."""

    study: Asked
    columns: dict[str, Column]
    privacy: PrivateSettings
    how: _How
    rows: int
    incomplete_rows: int | None
    estimates: tuple[_Record, ...]
    version: str
    date: str


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
        "study": {**plain["study"], "groups": list(study.known_groups)},
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
    if item.question != TABLE_ONE:
        return {}
    found = []
    for one in table.grouped:
        known = [group for group in one.groups if group.value is not None]
        for other in known[1:]:
            between = [known[0].group, other.group]
            differences = standardised_differences(table.labels, known[0].value, other.value)
            found.append({"by": one.by, "groups": between, "differences": differences})
    return {"standardised_differences": found} if found else {}


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
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is no JSON: {error}; {way_out}") from None
    if not isinstance(results, dict) or results.get("format") != FORMAT:
        raise InputError(f"{path} is no file of results of this version; {way_out}")
    try:
        msgspec.convert(results, _Results)
    except msgspec.ValidationError as error:
        raise InputError(f"{path} is damaged: {error}; {way_out}") from None
    return results
