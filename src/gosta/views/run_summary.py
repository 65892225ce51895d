"""Summary of simulated runs: the record that `gosta run --json` prints, and the text that a person reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NotRequired, TypedDict

from gosta.views import numbers, terminal


class IntervalRecord(TypedDict):
    """Confidence interval for the population value."""

    level: float
    low: float | None  # mean over nodes and runs; None: not finite
    high: float | None
    all_rows: tuple[float | None, float | None]  # both ends, computed from all rows in one place
    forces_pairs: bool  # the statistic could be computed from means, but the interval needs pairs of rows


class StoppingRecord(TypedDict):
    """How runs stopped whose nodes decided themselves when they were accurate enough."""

    target_error: float
    stopped: int  # runs
    within_target: int  # stopped runs whose median node was within the target error
    worst_error: float | None  # of the median node, over stopped runs


class RunRecord(TypedDict):
    """Numbers of one protocol, averaged over runs at the last checkpoint that each of them reached."""

    protocol: str
    statistic: str
    data: str
    graph: str
    n: int  # nodes
    rows: int
    edges: int
    iterations: int
    runs: int
    runs_reached: int  # runs that reached a checkpoint
    seed: int
    exact: float | list[float]
    estimate: float | list[float] | None
    error: float | None  # mean over nodes
    spread: float | None  # standard deviation over nodes of the error
    relative: bool  # whether the error is relative; absolute where the exact value is 0
    units: int  # numbers sent
    seconds: float
    complete: bool
    uses_means: bool  # the statistic is a function of means, and the protocol averaged those
    interval: NotRequired[IntervalRecord]
    rows_per_node: NotRequired[tuple[int, int]]  # smallest and largest number
    local_values: NotRequired[list[float | None]]  # by node, from its own rows alone; None: not defined
    until: NotRequired[StoppingRecord]


def text(records: Sequence[RunRecord]) -> str:
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


def _row(record: RunRecord) -> tuple[str, ...]:
    error, spread = (numbers.error(value, record["relative"]) for value in (record["error"], record["spread"]))
    estimate = numbers.number(record["estimate"])
    return record["protocol"], estimate, error, spread, f"{record['units']:,}", f"{record['seconds']:.2f}"


def _notes(records: Sequence[RunRecord]) -> Iterator[str]:
    first = records[0]
    for record in records:
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


def _stopping(record: RunRecord, until: StoppingRecord) -> str:
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
