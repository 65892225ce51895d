"""Summaries of traces: the record that `Trace.to_dict` returns, and a text that a person reads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from gosta.errors import GostaError, InputError
from gosta.statistics.joint import choose
from gosta.views import numbers, terminal

if TYPE_CHECKING:
    from gosta.simulation.trace import Trace

Record = dict[str, Any]
# Factor by which the error of gossip must widen the nodes' intervals for a line to say so.
NOTABLE_WIDENING = 1.1


def trace_record(trace: Trace) -> Record:
    """Return the numbers of a trace, averaged over its runs.

    Of each run, the numbers are those of the last checkpoint that it reached; of runs that do not
    stop by themselves, only those count that reached the checkpoint that any of them reached last.
    """
    info, data, until = trace.info, trace.data, trace.info.until
    protocol = trace.setting.protocol
    estimand = trace.setting.estimand
    placement = trace.setting.placement
    reached = np.isfinite(data["mean"].values)
    last = int(reached.any(axis=0).sum()) - 1
    kept = reached.any(axis=1) if until is not None or last < 0 else reached[:, last]
    runs = np.flatnonzero(kept)  # before the first checkpoint: none
    at = reached[runs].sum(axis=1) - 1  # the last checkpoint of each of these runs

    def mean(name: str) -> Any:
        return data[name].values[runs, at].mean(axis=0).tolist() if len(runs) else None

    exact = data["target"].mean("node") if "node" in data["target"].dims else data["target"]
    iterations = round(float(trace.iterations[at].mean())) if len(runs) else 0
    record: Record = {
        "protocol": protocol.name,
        "rule": protocol.rule,  # what nodes do, where the protocol runs another one's rule
        "statistic": estimand.statistic.name,
        "data": estimand.data,
        "graph": trace.setting.graph_name,
        "n": placement.nodes,
        "rows": estimand.n,
        "edges": trace.setting.graph.m,
        "iterations": iterations,
        "runs": info.runs,
        "runs_reached": len(runs),  # runs that reached a checkpoint
        "seed": info.seed,
        "exact": exact.values.tolist(),
        "estimate": mean("estimate"),
        "error": mean("mean"),  # mean over nodes
        "spread": mean("spread"),  # standard deviation over nodes of the error
        "relative": trace.is_relative,  # errors are absolute where the exact value is 0
        "units": round(float(trace.units[at].mean())) if len(runs) else 0,  # numbers sent
        "seconds": round(info.seconds, 3),
        "complete": trace.is_complete,
        "uses_means": protocol.averages_moments,  # nodes averaged means instead of kernel values
    }
    if "node" in data["target"].dims and (value := _value_besides_target(trace)) is not None:
        record["value"] = value  # of the statistic, where the protocol estimates row means instead
    if trace.setting.homophily is not None:
        record["homophily"] = trace.setting.homophily._asdict()
    if trace.setting.faults and len(runs):
        failed = dict(zip(data["fault"].values.tolist(), mean("failed"), strict=True))
        record["faults"] = {
            **asdict(trace.setting.faults),
            "drawn": iterations * protocol.draws,
            # Exchanges that did not take place.
            "failed": {name: round(count) for name, count in failed.items()},
        }
    if placement.has_several_rows:
        record["rows_per_node"] = int(placement.rows.min()), int(placement.rows.max())
    if trace.node_names:
        record["nodes"] = trace.node_names  # the sites, in the order of local_values
    parts = _value_records(trace, runs, at) if len(runs) else []
    if trace.value_names:
        record["statistics"] = parts
        record["no_intervals"] = [
            reason for reason in estimand.no_intervals if reason and estimand.level is not None
        ]
    elif len(parts) > 1 and "estimates" in data:
        record["errors"] = [part["error"] for part in parts]
    elif parts and "interval" in parts[0]:
        record["interval"] = parts[0]["interval"]
    if placement.has_several_rows and not trace.value_names:
        # By node, from its own rows alone; None: not defined.
        record["local_values"] = _local_values(trace)[0]
    if until is not None:
        stopped = data["stopped"].values > 0
        errors = data["median"].values[runs, at][stopped[runs]]  # of the median node
        record["until"] = {
            "target_error": until,
            "stopped": int(stopped.sum()),
            "within_target": int((errors <= until).sum()),
            "worst_error": float(errors.max()) if len(errors) else None,
        }
    return record


def _value_besides_target(trace: Trace) -> float | list[float] | None:
    """Return the value of the statistic where it is not the mean of what each node estimates.

    It is None where it is that mean, or undefined.
    """
    try:
        value = trace.setting.estimand.value
    except GostaError:
        return None
    target = trace.data["target"].values.reshape(trace.setting.estimand.n, -1).mean(axis=0)
    if len(value) == len(target) and np.allclose(value, target, rtol=1e-9, atol=0):
        return None
    return float(value[0]) if len(value) == 1 else [float(number) for number in value]


def _local_values(trace: Trace) -> list[list[float | None]]:
    """Return what each node computes from its own rows alone, for each value; None: undefined."""
    return [
        [None if math.isnan(value) else value for value in values]
        for values in trace.setting.local_values().T.tolist()
    ]


def _value_records(trace: Trace, runs: Any, at: Any) -> list[Record]:
    """Return a record for each value, averaged over runs and nodes.

    Errors are absolute where the exact value is 0.
    """
    data, setting, estimand = trace.data, trace.setting, trace.setting.estimand
    count = data.sizes.get("value", 1)
    target = data["target"].values.reshape(-1, count)
    names = trace.value_names or [estimand.statistic.name] * count
    size = np.abs(target).mean(axis=0)
    local_values = _local_values(trace) if setting.placement.has_tables else []
    pooled = [] if estimand.level is None else estimand.pooled_intervals()

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
        if estimand.level is not None:
            # The ends of the nodes' intervals are means over nodes and runs.
            low, high = (_finite(by_value(end)[k].mean()) for end in ("low", "high"))
            all_rows = tuple(map(_finite, pooled[k]))
            part["interval"] = {
                "level": estimand.level,
                "low": low,
                "high": high,
                "all_rows": all_rows,  # both ends, from all rows in one place
                "widening": _widening((low, high), all_rows),  # by the error of gossip
                # Whether nodes would average means if no interval were wanted.
                "forces_pairs": bool(_functions_of_means(estimand.statistic.name)),
            }
        if local_values:
            part["local_values"] = local_values[k]
        parts.append(part)
    return parts


def _functions_of_means(statistic: str) -> list[str]:
    """Return the names of those of one or several statistics that are functions of plain means."""
    try:
        members = choose(statistic)
    except InputError:  # a user's own, whose file was not imported
        return []
    return [member.title for member in members if member.statistic.moments is not None]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _widening(ends: Sequence[float | None], all_rows: Sequence[float | None]) -> float | None:
    """Return how many times wider the nodes' intervals are than the one of all rows.

    It is None where one of them has no width.
    """
    if None in ends or None in all_rows or ends[0] == ends[1] or all_rows[0] == all_rows[1]:
        return None
    return (ends[1] - ends[0]) / (all_rows[1] - all_rows[0])  # type: ignore[operator]


def summary_text(records: Sequence[Record]) -> str:
    """Return a text about runs of several protocols on one problem, from their records."""
    first = records[0]
    has_parts = "statistics" in first
    table = [_heading(has_parts)]
    for record in records:
        table += _rows_of_parts(record) if has_parts else [_row(record)]
    exact = (
        "" if has_parts else f"exact value {numbers.number(first.get('value', first['exact']))}; "
    )
    kind = "relative error" if first["relative"] else "absolute error (the exact value is 0)"
    return "\n".join(
        [
            f"{first['statistic']} of {first['data']} on {first['graph']}: {_network(first)}",
            f"{exact}{_duration(first)}:",
            terminal.columns(table, right=range(2 if has_parts else 1, len(table[0]))),
            f"error: {kind}, mean over nodes; spread: its standard deviation",
            *_notes(records),
        ]
    )


def _network(record: Record) -> str:
    network = f"{record['n']:,} nodes, {numbers.count(record['edges'], 'edge')}"
    if "rows_per_node" in record:
        smallest, largest = record["rows_per_node"]
        network += f", {record['rows']:,} rows ({smallest:,} to {largest:,} per node)"
    return network


def _duration(record: Record) -> str:
    """Return how long the runs of a record took, and how many they are."""
    runs = numbers.count(record["runs"], "run")
    if record["runs_reached"] < record["runs"]:
        runs = f"{record['runs_reached']} of {runs}"
    if "until" in record and record["until"]["stopped"]:
        return f"until the nodes stopped, {runs}"
    return f"after {numbers.count(record['iterations'], 'iteration')}, {runs}"


def _heading(has_parts: bool) -> tuple[str, ...]:
    names = ("statistic", "exact value") if has_parts else ()
    return ("protocol", *names, "estimate", "error", "spread", "numbers sent", "seconds")


def _label(record: Record) -> str:
    """Return the protocol's name, with the rule that ran where that is another one."""
    name, rule = record["protocol"], record["rule"]
    return name if rule == name else f"{name} ({rule})"


def _row(record: Record) -> tuple[str, ...]:
    return (
        _label(record),
        numbers.number(record["estimate"]),
        numbers.error(record["error"], record["relative"]),
        numbers.error(record["spread"], record["relative"]),
        f"{record['units']:,}",
        f"{record['seconds']:.2f}",
    )


def _rows_of_parts(record: Record) -> Iterator[tuple[str, ...]]:
    """Yield a row for each statistic; the first one has what all have in common."""
    label, units, seconds = _label(record), f"{record['units']:,}", f"{record['seconds']:.2f}"
    for part in record["statistics"]:
        is_relative = part.get("relative", True)
        yield (
            label,
            part["statistic"],
            numbers.number(part["exact"]),
            numbers.number(part["estimate"]),
            numbers.error(part.get("error"), is_relative),
            numbers.error(part.get("spread"), is_relative),
            units,
            seconds,
        )
        label = units = seconds = ""


def _notes(records: Sequence[Record]) -> Iterator[str]:
    """Yield lines about what the table does not show."""
    first = records[0]
    if "homophily" in first:
        share = numbers.percent(first["homophily"]["share"], "g")
        correlation = first["homophily"]["assortativity"]
        yield (
            f"homophily: {share} of the nodes are in order; correlation between neighbours "
            f"{correlation:.2f}"
        )
    yield from dict.fromkeys(_faults(record["faults"]) for record in records if "faults" in record)
    for record in records:
        yield from (f"{_label(record)}: {note}" for note in _notes_on_protocol(record))
        for part in record.get("statistics", [record]):
            if "interval" in part and part["interval"]["all_rows"] != (None, None):
                name = part["statistic"] if "statistics" in record else ""
                yield _interval(part["interval"], name)
    yield from first.get("no_intervals", [])
    for part in first.get("statistics", [first]):
        if "local_values" in part and isinstance(part["exact"], float):
            name = f"{part['statistic']}: " if "statistics" in first else ""
            yield name + _average_of_local_values(part["local_values"], part["exact"])
    statistic, means = first["statistic"], ", ".join(_functions_of_means(first["statistic"]))
    if means and "statistics" in first and not first["uses_means"]:
        yield (
            f"{means}: computed from pairs of rows here; without the others and an interval, from "
            "means, far faster"
        )
    elif "interval" in first and first["interval"]["forces_pairs"]:
        yield (
            f"with --interval, {statistic} is computed from pairs of rows; without, from means, "
            "far faster"
        )
    if any(record["uses_means"] for record in records):
        yield f"{statistic} is a function of plain means: nodes average those, and no rows travel"


def _notes_on_protocol(record: Record) -> Iterator[str]:
    if "value" in record:
        yield _row_means(record["exact"], record["statistic"])
    if "errors" in record:
        yield f"error of each value, by itself: {_errors(record)}"
    if "until" in record:
        yield _stopping(record, record["until"])


def _row_means(exact: float | Sequence[float], statistic: str) -> str:
    """Say that nodes estimate row means, whose average is not the statistic."""
    what = "mean"
    if not isinstance(exact, float):
        what = f"means of the {len(exact)} numbers from which {statistic} is computed"
    return (
        f"estimates each row's {what}, not {statistic}; exact, averaged over rows: "
        f"{numbers.number(exact)}"
    )


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
    return (
        f"faults: of {drawn:,} exchanges drawn, {counts}; {drawn - sum(failed.values()):,} took "
        "place"
    )


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
        return (
            "; none at the nodes yet, as some cannot tell the error of gossip that is left: use "
            "more --iterations"
        )
    if (interval["widening"] or 0.0) < NOTABLE_WIDENING:
        return ""
    return (
        f"; nodes' are {interval['widening']:.1f} times as wide, as they count the error of gossip "
        "that is left"
    )


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
        f"{runs} after {record['iterations']:,} iterations on average; the median node was within "
        f"{target} in {until['within_target']} of {until['stopped']} runs "
        f"(worst {numbers.error(until['worst_error'])})"
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
