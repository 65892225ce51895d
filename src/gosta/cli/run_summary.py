"""Summary of simulated runs: the record that `gosta run --json` prints, and the text that a person reads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gosta.views import numbers, terminal

if TYPE_CHECKING:
    from gosta.simulation.trace import Trace

Record = dict[str, Any]
# of the nodes' intervals by the error of gossip: from here on a line says so
NOTABLE_WIDENING = 1.1


def record(trace: Trace) -> Record:
    """Return the numbers of a trace, averaged over runs at the last checkpoint that each of them reached."""
    import numpy as np

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
    if "node" in data["target"].dims and (value := _exact_value(trace)) is not None:
        found["value"] = value  # of the statistic, where the protocol estimates row means instead
    if info.homophily is not None:
        found["homophily"] = {"share": info.homophily, "assortativity": info.assortativity}
    if info.faults and len(runs):
        failed = dict(zip(data["fault"].values.tolist(), mean("failed"), strict=True))
        found["faults"] = {
            **asdict(info.faults),
            "drawn": round(float(trace.iterations[at].mean())) * info.draws,
            "failed": {
                name: round(count) for name, count in failed.items()
            },  # exchanges that did not take place
        }
    if info.has_tables:
        found["rows_per_node"] = info.min_rows, info.max_rows
    if trace.node_names:
        found["nodes"] = trace.node_names  # the sites, in the order of local_values
    parts = _parts(trace, runs, at) if len(runs) else []
    if trace.value_names:
        found["statistics"] = parts
        found["no_intervals"] = [
            reason for reason in info.no_intervals if reason and info.level is not None
        ]
    elif len(parts) > 1 and "estimates" in data:
        found["errors"] = [part["error"] for part in parts]
    elif parts and "interval" in parts[0]:
        found["interval"] = parts[0]["interval"]
    if info.has_tables and not trace.value_names:
        # by node, from its own rows alone; None: not defined
        found["local_values"] = list(info.local_values[0])
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


def _exact_value(trace: Trace) -> float | list[float] | None:
    """Return the exact value of the statistic; None where it is undefined or the trace lacks its rows."""
    import numpy as np

    from gosta.errors import GostaError
    from gosta.simulation.simulate import setting_of

    try:
        estimand = setting_of(trace).estimand
        value = estimand.value
    except GostaError:
        return None
    target = trace.data["target"].values.reshape(len(estimand.x), -1).mean(axis=0)
    if len(value) == len(target) and np.allclose(value, target, rtol=1e-9, atol=0):
        return None  # a mean over pairs is the mean of the row means
    return float(value[0]) if len(value) == 1 else [float(one) for one in value]


def _parts(trace: Trace, runs: Any, at: Any) -> list[Record]:
    """Return a record for each value, averaged over runs and nodes; errors are absolute where the exact value is 0."""
    import numpy as np

    info, data = trace.info, trace.data
    count = data.sizes.get("value", 1)
    target, names = (
        data["target"].values.reshape(-1, count),
        trace.value_names or [info.statistic] * count,
    )
    size = np.abs(target).mean(axis=0)

    def by_value(name: str) -> Any:
        return np.moveaxis(data[name].values[runs, at].reshape(len(runs), -1, count), -1, 0)

    parts: list[Record] = []
    for k, name in enumerate(names):
        part: Record = {"statistic": name, "exact": float(target[:, k].mean())}
        part["estimate"] = float(by_value("estimate")[k].mean())
        if "estimates" in data:
            errors = np.abs(by_value("estimates")[k] - target[:, k]) / (size[k] or 1.0)
            part |= {"error": float(errors.mean()), "spread": float(errors.std(axis=1).mean())}
            part["relative"] = bool(size[k] > 0)
        if info.level is not None:
            # means over nodes and runs
            low, high = (_finite(by_value(end)[k].mean()) for end in ("low", "high"))
            # both ends, from all rows in one place
            all_rows = tuple(map(_finite, info.pooled_intervals[k]))
            part["interval"] = {
                "level": info.level,
                "low": low,
                "high": high,
                "all_rows": all_rows,
                "widening": _widening(
                    (low, high), all_rows
                ),  # by the error of gossip that nodes expect
                "forces_pairs": bool(
                    _functions_of_means(info.statistic)
                ),  # without it, means would be enough
            }
        if info.local_values:
            part["local_values"] = list(info.local_values[k])
        parts.append(part)
    return parts


def _functions_of_means(statistic: str) -> list[str]:
    """Return those of one or several statistics that are functions of plain means."""
    from gosta.statistics.joint import choose

    return [one.title for one in choose(statistic) if one.statistic.moments is not None]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _widening(ends: Sequence[float | None], all_rows: Sequence[float | None]) -> float | None:
    """Return how many times wider the nodes' intervals are than that of all rows; None where one has no width."""
    if None in ends or None in all_rows or ends[0] == ends[1] or all_rows[0] == all_rows[1]:
        return None
    return (ends[1] - ends[0]) / (all_rows[1] - all_rows[0])  # type: ignore[operator]


def text(records: Sequence[Record]) -> str:
    """Summarise runs of several protocols on one problem."""
    first = records[0]
    runs = numbers.count(first["runs"], "run")
    if first["runs_reached"] < first["runs"]:
        runs = f"{first['runs_reached']} of {runs}"
    where = f"{first['n']:,} nodes, {numbers.count(first['edges'], 'edge')}"
    if "rows_per_node" in first:
        smallest, largest = first["rows_per_node"]
        where += f", {first['rows']:,} rows ({smallest:,} to {largest:,} per node)"
    stopped = "until" in first and first["until"]["stopped"]
    after = (
        "until the nodes stopped"
        if stopped
        else f"after {numbers.count(first['iterations'], 'iteration')}"
    )
    kind = "relative error" if first["relative"] else "absolute error (the exact value is 0)"
    if "statistics" in first:
        heading: tuple[str, ...] = (
            "protocol",
            "statistic",
            "exact value",
            "estimate",
            "error",
            "spread",
            "numbers sent",
        )
        rows = [
            (*heading, "seconds"),
            *(row for record in records for row in _rows_of_several(record)),
        ]
        exact = f"{after}, {runs}:"
    else:
        rows = [
            ("protocol", "estimate", "error", "spread", "numbers sent", "seconds"),
            *map(_row, records),
        ]
        exact = (
            f"exact value {numbers.number(first.get('value', first['exact']))}; {after}, {runs}:"
        )
    return "\n".join(
        [
            f"{first['statistic']} of {first['data']} on {first['graph']}: {where}",
            exact,
            terminal.columns(rows, right=range(2 if "statistics" in first else 1, len(rows[0]))),
            f"error: {kind}, mean over nodes; spread: its standard deviation",
            *_notes(records),
        ]
    )


def _row(record: Record) -> tuple[str, ...]:
    error, spread = (
        numbers.error(value, record["relative"]) for value in (record["error"], record["spread"])
    )
    estimate = numbers.number(record["estimate"])
    return (
        record["protocol"],
        estimate,
        error,
        spread,
        f"{record['units']:,}",
        f"{record['seconds']:.2f}",
    )


def _rows_of_several(record: Record) -> Iterator[tuple[str, ...]]:
    """Yield a row for each statistic; what all have in common is in the first one."""
    first, last = record["protocol"], (f"{record['units']:,}", f"{record['seconds']:.2f}")
    for part in record["statistics"]:
        values = numbers.number(part["exact"]), numbers.number(part["estimate"])
        errors = [
            numbers.error(part.get(name), part.get("relative", True))
            for name in ("error", "spread")
        ]
        yield (first, part["statistic"], *values, *errors, *last)
        first, last = "", ("", "")


def _notes(records: Sequence[Record]) -> Iterator[str]:
    first = records[0]
    if "homophily" in first:
        share, found = (
            numbers.percent(first["homophily"]["share"], "g"),
            first["homophily"]["assortativity"],
        )
        yield f"homophily: {share} of the nodes are in order; correlation between neighbours {found:.2f}"
    yield from dict.fromkeys(_faults(record["faults"]) for record in records if "faults" in record)
    for record in records:
        if "value" in record:
            yield f"{record['protocol']}: {_row_means(record['exact'], record['statistic'])}"
        if "errors" in record:
            yield f"{record['protocol']}: error of each value, by itself: {_errors(record)}"
        if "until" in record:
            yield f"{record['protocol']}: {_stopping(record, record['until'])}"
        for part in record.get("statistics", [record]):
            if "interval" in part and part["interval"]["all_rows"] != (None, None):
                yield _interval(
                    part["interval"], part["statistic"] if "statistics" in record else ""
                )
    yield from first.get("no_intervals", [])
    for part in first.get("statistics", [first]):
        if "local_values" in part and isinstance(part["exact"], float):
            of = f"{part['statistic']}: " if "statistics" in first else ""
            yield of + _average_of_local_values(part["local_values"], part["exact"])
    means = ", ".join(_functions_of_means(first["statistic"]))
    if means and "statistics" in first and not first["uses_means"]:
        yield f"{means}: computed from pairs of rows here; without the others and an interval, from means, far faster"
    elif "interval" in first and first["interval"]["forces_pairs"]:
        yield f"with --interval, {first['statistic']} is computed from pairs of rows; without, from means, far faster"
    if any(record["uses_means"] for record in records):
        yield f"{first['statistic']} is a function of plain means: nodes average those, and no rows travel"


def _row_means(exact: float | Sequence[float], statistic: str) -> str:
    """Return what a protocol estimates that estimates row means, where their mean is not the statistic."""
    what = "mean"
    if not isinstance(exact, float):
        what = f"means of the {len(exact)} numbers from which {statistic} is computed"
    return f"estimates each row's {what}, not {statistic}; exact, averaged over rows: {numbers.number(exact)}"


def _faults(faults: Record) -> str:
    """Return how many exchanges did not take place, and why."""
    drawn, failed = faults["drawn"], faults["failed"]
    reasons = {
        "loss": "were lost",
        "away": "had a node that was away",
        "partition": "had separated nodes",
    }
    shares = {
        name: f"{failed[name]:,} ({numbers.percent(failed[name] / drawn, '.1f')})"
        for name in failed
    }
    counts = ", ".join(f"{shares[name]} {words}" for name, words in reasons.items() if faults[name])
    return f"faults: of {drawn:,} exchanges drawn, {counts}; {drawn - sum(failed.values()):,} took place"


def _interval(interval: Record, statistic: str) -> str:
    level = f"{numbers.percent(interval['level'], 'g')} interval for the population"
    return (
        f"{statistic}{': ' if statistic else ''}{level}: "
        f"{numbers.interval(interval['low'], interval['high'])} at the nodes, on average; "
        f"{numbers.interval(*interval['all_rows'])} from all rows in one place{_gossip(interval)}"
    )


def _gossip(interval: Record) -> str:
    """Return what the error of gossip does to the nodes' interval, where that is notable."""
    if interval["low"] is None:
        return "; nodes have none before all can tell the error of gossip: use more --iterations"
    if (interval["widening"] or 0.0) < NOTABLE_WIDENING:
        return ""
    return f"; nodes' are {interval['widening']:.1f} times as wide, as they count the error of gossip that is left"


def _errors(record: Record) -> str:
    pairs = zip(record["errors"], record["exact"], strict=True)
    return ", ".join(numbers.error(error, relative=exact != 0) for error, exact in pairs)


def _stopping(record: Record, until: Record) -> str:
    target = numbers.error(until["target_error"])
    if not until["stopped"]:
        return (
            f"no run stopped at {target} within {numbers.count(record['iterations'], 'iteration')}"
        )
    runs = (
        f"{until['stopped']} of {record['runs']} runs stopped"
        if until["stopped"] < record["runs"]
        else "stopped"
    )
    return (
        f"{runs} after {record['iterations']:,} iterations on average; the median node was within {target} in "
        f"{until['within_target']} of {until['stopped']} runs (worst {numbers.error(until['worst_error'])})"
    )


def _average_of_local_values(local_values: Sequence[float | None], exact: float) -> str:
    values = [value for value in local_values if value is not None]
    lacking = len(local_values) - len(values)
    verb = "have" if lacking > 1 else "has"
    why = (
        f" ({numbers.count(lacking, 'node')} {verb} none: too few rows, or of one class only)"
        if lacking
        else ""
    )
    if not values:
        return f"averaging the nodes' own values is not possible{why}"
    mean = sum(values) / len(values)
    off = f", off by {numbers.error(abs(mean - exact) / abs(exact))}" if exact else ""
    return f"averaging the nodes' own values would give {numbers.number(mean)}{off}{why}"
