"""Summary of simulated runs: the record that `gosta run --json` prints, and the text that a person reads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gosta.views import numbers, terminal

if TYPE_CHECKING:
    from gosta.simulation.trace import Trace

Record = dict[str, Any]


def record(trace: Trace) -> Record:
    """Return the numbers of a trace, averaged over runs at the last checkpoint that each of them reached."""
    import numpy as np

    from gosta.statistics import find

    info, data, until = trace.info, trace.data, trace.info.until
    reached = np.isfinite(data["mean"].values)
    last = int(reached.any(axis=0).sum()) - 1
    kept = reached.any(axis=1) if until is not None or last < 0 else reached[:, last]
    runs = np.flatnonzero(kept)  # before the first checkpoint: none
    at = reached[runs].sum(axis=1) - 1  # the last checkpoint of each of these runs

    def mean(name: str) -> Any:
        return data[name].values[runs, at].mean(axis=0).tolist() if len(runs) else None

    exact = data["target"].mean("node") if "node" in data["target"].dims else data["target"]
    found: Record = {
        **{name: getattr(info, name) for name in ("protocol", "statistic", "data", "graph")},
        "n": info.nodes,
        "rows": info.rows,
        "edges": info.edges,
        "iterations": round(float(trace.iterations[at].mean())) if len(runs) else 0,
        "runs": info.runs,
        "runs_reached": len(runs),  # runs that reached a checkpoint
        "seed": info.seed,
        "exact": exact.values.tolist(),
        "estimate": mean("estimate"),
        "error": mean("mean"),  # mean over nodes
        "spread": mean("spread"),  # standard deviation over nodes of the error
        "relative": info.is_relative,  # whether the error is relative; absolute where the exact value is 0
        "units": round(float(trace.units[at].mean())) if len(runs) else 0,  # numbers sent
        "seconds": round(info.seconds, 3),
        "complete": trace.is_complete,
        "uses_means": info.averages_moments,  # the statistic is a function of means, and the protocol averaged those
    }
    if found["exact"] and isinstance(found["exact"], list) and "estimates" in data and len(runs):
        found["errors"] = _errors_of_values(data["estimates"].values[runs, at], data["target"].values)
    if info.level is not None and info.pooled_interval is not None and len(runs):
        low, high = (_finite(end.values[runs, at].mean()) for end in trace.intervals())  # means over nodes and runs
        found["interval"] = {
            "level": info.level,
            "low": low,
            "high": high,
            "all_rows": tuple(map(_finite, info.pooled_interval)),  # both ends, from all rows in one place
            "forces_pairs": find(info.statistic).moments is not None,  # without an interval, means would be enough
        }
    if info.has_tables:
        found["rows_per_node"] = info.min_rows, info.max_rows
        found["local_values"] = list(info.local_values)  # by node, from its own rows alone; None: not defined
    if until is not None:
        stopped = data["stopped"].values > 0
        errors = data["median"].values[runs, at][stopped[runs]]  # of the median node
        found["until"] = {
            "target_error": until,
            "stopped": int(stopped.sum()),
            "within_target": int((errors <= until).sum()),
            "worst_error": float(errors.max()) if len(errors) else None,
        }
    return found


def _errors_of_values(estimates: Any, target: Any) -> list[float]:
    """Return the error of each value, averaged over runs and nodes: relative, or absolute where the target is 0."""
    import numpy as np

    errors, size = np.abs(estimates - target), np.abs(target).reshape(-1, target.shape[-1]).mean(axis=0)
    means: list[float] = (errors.mean(axis=(0, 1)) / np.where(size > 0, size, 1.0)).tolist()
    return means


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def text(records: Sequence[Record]) -> str:
    """Summarise runs of several protocols on one problem."""
    first = records[0]
    runs = numbers.count(first["runs"], "run")
    if first["runs_reached"] < first["runs"]:
        runs = f"{first['runs_reached']} of {runs}"
    where = f"{first['n']:,} nodes, {first['edges']:,} edges"
    if "rows_per_node" in first:
        smallest, largest = first["rows_per_node"]
        where += f", {first['rows']:,} rows ({smallest:,} to {largest:,} per node)"
    stopped = "until" in first and first["until"]["stopped"]
    after = "until the nodes stopped" if stopped else f"after {first['iterations']:,} iterations"
    rows = [("protocol", "estimate", "error", "spread", "numbers sent", "seconds"), *map(_row, records)]
    kind = "relative error" if first["relative"] else "absolute error (the exact value is 0)"
    return "\n".join(
        [
            f"{first['statistic']} of {first['data']} on {first['graph']}: {where}",
            f"exact value {numbers.number(first['exact'])}; {after}, {runs}:",
            terminal.columns(rows, right=range(1, 6)),
            f"error: {kind}, mean over nodes; spread: its standard deviation over nodes",
            *_notes(records),
        ]
    )


def _row(record: Record) -> tuple[str, ...]:
    error, spread = (numbers.error(value, record["relative"]) for value in (record["error"], record["spread"]))
    estimate = numbers.number(record["estimate"])
    return record["protocol"], estimate, error, spread, f"{record['units']:,}", f"{record['seconds']:.2f}"


def _notes(records: Sequence[Record]) -> Iterator[str]:
    first = records[0]
    for record in records:
        if "errors" in record:
            yield f"{record['protocol']}: error of each value, by itself: {_errors(record)}"
        if "until" in record:
            yield f"{record['protocol']}: {_stopping(record, record['until'])}"
        if "interval" in record:
            interval = record["interval"]
            yield (
                f"{numbers.percent(interval['level'], 'g')} interval for the population: "
                f"{numbers.interval(interval['low'], interval['high'])} at the nodes, on average; "
                f"{numbers.interval(*interval['all_rows'])} from all rows in one place"
            )
    if "local_values" in first and isinstance(first["exact"], float):
        yield _average_of_local_values(first["local_values"], first["exact"])
    if "interval" in first and first["interval"]["forces_pairs"]:
        yield f"with --interval, {first['statistic']} is computed from pairs of rows; without, from means, far faster"
    if any(record["uses_means"] for record in records):
        yield f"{first['statistic']} is a function of plain means: tracking averages those, and no rows travel"


def _errors(record: Record) -> str:
    pairs = zip(record["errors"], record["exact"], strict=True)
    return ", ".join(numbers.error(error, relative=exact != 0) for error, exact in pairs)


def _stopping(record: Record, until: Record) -> str:
    target = numbers.error(until["target_error"])
    if not until["stopped"]:
        return f"no run stopped at {target} within {record['iterations']:,} iterations"
    runs = f"{until['stopped']} of {record['runs']} runs stopped" if until["stopped"] < record["runs"] else "stopped"
    return (
        f"{runs} after {record['iterations']:,} iterations on average; the median node was within {target} in "
        f"{until['within_target']} of {until['stopped']} runs (worst {numbers.error(until['worst_error'])})"
    )


def _average_of_local_values(local_values: Sequence[float | None], exact: float) -> str:
    values = [value for value in local_values if value is not None]
    lacking = len(local_values) - len(values)
    verb = "have" if lacking > 1 else "has"
    why = f" ({numbers.count(lacking, 'node')} {verb} none: too few rows, or of one class only)" if lacking else ""
    if not values:
        return f"averaging the nodes' own values is not possible{why}"
    mean = sum(values) / len(values)
    off = f", off by {numbers.error(abs(mean - exact) / abs(exact))}" if exact else ""
    return f"averaging the nodes' own values would give {numbers.number(mean)}{off}{why}"
