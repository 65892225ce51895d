"""Summary of a sweep: records, and a table of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gosta.experiments.study import AXES, NAMED, Job, describe, setting_text
from gosta.views import numbers, terminal

if TYPE_CHECKING:
    import pandas as pd

Record = dict[str, Any]
MAX_LINES = 30  # of the table; with more jobs, seeds are averaged


def records(jobs: Sequence[Job], frame: pd.DataFrame, failed: Mapping[str, str]) -> list[Record]:
    """Return a record for each job that finished or failed: its settings and the numbers at its last checkpoint."""
    by_job = dict(list(frame.groupby("job", sort=False)))
    out: list[Record] = []
    for job in jobs:
        settings: dict[str, Any] = {name: job[name] for name in AXES}
        if job.key in failed:
            out.append({**settings, "failed": failed[job.key]})
        elif job.key in by_job:
            rows = by_job[job.key]
            rows = rows[rows["iteration"] == rows["iteration"].iloc[-1]]
            first = rows.iloc[0]
            values = {name: rows[name].tolist() for name in ("exact", "estimate")}
            out.append(
                {
                    **settings,
                    "graph": first["graph"],
                    **{name: int(first[name]) for name in ("n", "nodes", "edges")},
                    "options": dict(job["options"]),
                    "runs": job["runs"],
                    "iterations": int(first["iteration"]),
                    **{
                        name: value[0] if len(value) == 1 else value
                        for name, value in values.items()
                    },
                    "error": float(first["error"]),
                    "spread": float(first["spread"]),
                    "relative": bool(first["relative"]),
                    "units": int(first["units"]),
                    "stopped": None if job["until"] is None else float(first["stopped"]),
                }
            )
    return out


def as_text(records: Sequence[Record], swept: Sequence[str]) -> str:
    """Return the last numbers of each job as a table, below the settings that all jobs share, and all failures.

    `swept` are the axes along which jobs differ.
    """
    failed = [record for record in records if "failed" in record]
    heading, rows = table(records, swept)
    lines = []
    if rows:
        right = [k for k, name in enumerate(rows[0]) if name not in NAMED]
        kinds = {True: "relative error", False: "absolute error where the exact value is 0"}
        found = {record["relative"] for record in records if "failed" not in record}
        kind = ", ".join(kinds[relative] for relative in sorted(found, reverse=True))
        explanation = f"error: {kind}, mean over nodes; spread: its standard deviation"
        lines = [heading, terminal.columns(rows, right), explanation]
    if failed:
        lines.append(f"{numbers.count(len(failed), 'job')} failed:")
    for reason in dict.fromkeys(record["failed"] for record in failed):
        alike = [record for record in failed if record["failed"] == reason]
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        lines += [f"  {describe(alike[0])}{more}:", f"    {reason}"]
    return "\n".join(lines)


def table(records: Sequence[Record], swept: Sequence[str]) -> tuple[str, list[list[str]]]:
    """Return the settings that all jobs share in words, and a table of the others with the last numbers of each job.

    Where there are many jobs, seeds are averaged. The table is empty if no job has finished.
    """
    finished = [record for record in records if "failed" not in record]
    if not finished:
        return "", []
    varied = list(swept)
    shared = [
        f"{name} {setting_text(name, finished[0][name])}" for name in _shared(finished, varied)
    ]
    if "seed" in varied and len(finished) > MAX_LINES:
        varied.remove("seed")
        shared.append(f"means over {len({record['seed'] for record in finished})} seeds")
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in finished:
        groups.setdefault(tuple(record[name] for name in varied), []).append(record)
    has_stopped = all(record["stopped"] is not None for record in finished)
    rows = [[*varied, "error", "spread", "numbers sent", *["stopped after"] * has_stopped]]
    for values, group in groups.items():
        relative = all(record["relative"] for record in group)
        errors = [numbers.error(_mean(group, name), relative) for name in ("error", "spread")]
        counts = [
            numbers.count(_mean(group, name)) for name in ("units", *["stopped"] * has_stopped)
        ]
        rows.append([*map(setting_text, varied, values), *errors, *counts])
    return ", ".join(shared), rows


def _mean(group: Sequence[Record], name: str) -> float:
    return float(np.mean([record[name] for record in group]))


def _shared(finished: Sequence[Record], varied: Sequence[str]) -> list[str]:
    """Return the names of the settings that all jobs share and that are worth a word."""
    names = [name for name in (*AXES, "runs", "iterations") if name not in varied]
    if all(record["nodes"] == record["n"] for record in finished) and "nodes" in names:
        names.remove("nodes")
    first = finished[0]
    return [
        name
        for name in names
        if first[name] is not None and all(one[name] == first[name] for one in finished)
    ]
