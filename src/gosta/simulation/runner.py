"""Runs a simulation: advances the engine from checkpoint to checkpoint and collects the results."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.estimation.exchange import MAX_SAMPLE_ROWS
from gosta.estimation.setting import Setting
from gosta.estimation.stopping import (
    INTERVAL_RULE,
    MAX_READINGS,
    RULE,
    Rule,
    expected_errors,
    gossip_errors,
    reading_grid,
)  # fmt: skip
from gosta.graphs.tree import tree_share
from gosta.protocols import CollectingProtocol
from gosta.runtime import machine, progress
from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.extras import require
from gosta.schedule import Schedule
from gosta.simulation import engines
from gosta.simulation.engines import Batch, Engine
from gosta.simulation.trace import SNAPSHOT, Trace, TraceInfo, node_errors

MAX_ESTIMATES = 1 << 26  # estimates kept in memory, half a GiB; beyond that only their summaries are kept
MAX_BATCH_BYTES = 4 << 30  # memory for runs that are advanced side by side
STOPPING_SHARE = 0.8  # share of nodes that must expect to be within the requested error
READINGS, READING_TIMES = "readings", "reading_times"  # names of arrays that a trace with intervals is continued from

# Dimensions of each result.
BY_RUN = ("run", "iteration")
INTERVAL = ("low", "high", "standard_error")
DIMENSIONS = {
    **dict.fromkeys(("mean", "spread", "median", "time", "counted"), BY_RUN),
    "estimate": (*BY_RUN, "value"),
    "estimates": (*BY_RUN, "node", "value"),
    **dict.fromkeys(INTERVAL, (*BY_RUN, "node", "value")),
}


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a simulation; `trace` holds the checkpoints that were reached."""

    def __init__(self, trace: Trace) -> None:
        super().__init__("the simulation was interrupted")
        self.trace = trace


class Runner:
    """All runs of one simulation, read at checkpoints; `previous` is a trace to continue."""

    def __init__(self, setting: Setting, info: TraceInfo, checkpoints: Integers, previous: Trace | None = None) -> None:
        self.setting, self.info, self.checkpoints, self.previous = setting, info, checkpoints, previous
        runs, count, n, p = info.runs, len(checkpoints), setting.placement.nodes, setting.target.shape[1]
        keep = runs * count * n * p <= MAX_ESTIMATES and (previous is None or "estimates" in previous.data)
        purpose, advice = (
            f"keeping the estimates of {runs} runs at {count} checkpoints",
            "use fewer runs or checkpoints",
        )
        if info.level is not None and not keep:
            raise InputError(f"interval: {runs} runs x {count} checkpoints x {n} nodes are too many to keep; {advice}")
        machine.require_memory(8 * runs * count * (n * p if keep else 3), purpose, advice)
        optional = {"estimates": keep, "time": info.clocks, "counted": setting.protocol.uses_tree}
        optional |= dict.fromkeys(INTERVAL, info.level is not None)
        names = [name for name in DIMENSIONS if optional.get(name, True)]
        sizes = {"run": runs, "iteration": count, "node": n, "value": p}
        shapes = {name: [sizes[dimension] for dimension in DIMENSIONS[name]] for name in names}
        self._tree_share = 1.0 if setting.graph.parents is None else tree_share(setting.graph)
        self._places = setting.estimand.value_places
        self.results: dict[str, Floats] = {name: np.full(shape, np.nan) for name, shape in shapes.items()}
        self.reached, self.stopped = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=np.int64)
        if previous is not None:
            done = len(previous.iterations)
            for name, array in self.results.items():
                array[:, :done] = previous.data[name].values.reshape(array[:, :done].shape)
            self.reached[:], self.stopped[:] = previous.resume_data["reached"], previous.data["stopped"]
        self._schedules = [Schedule(setting.graph, info.seed, run) for run in range(runs)] if info.clocks else []
        # Where nodes stop by themselves, checkpoints are the readings; for intervals alone they are taken in between.
        has_own_readings = info.level is not None and info.until is None
        self._reading_times = reading_grid(n, int(checkpoints[-1])) if has_own_readings else checkpoints[:0]
        self._readings = [self._kept_readings(run) for run in range(runs)]
        self._snapshot: dict[str, NDArray[Any]] | None = None  # of the engine; None: the runs take several batches

    def _kept_readings(self, run: int) -> deque[tuple[int, Floats]]:
        """Return the last readings of a run that is continued: iterations, and nodes × values."""
        kept, done = self.results.get("estimates"), np.isfinite(self.results["mean"][run])
        readings: list[tuple[int, Floats]] = []
        if kept is not None and self.info.until is not None:
            readings = list(zip(self.checkpoints[done].tolist(), kept[run, done], strict=True))
        elif self.previous is not None and READINGS in self.previous.resume_data:
            times = self.previous.resume_data[READING_TIMES].tolist()
            readings = list(zip(times, self.previous.resume_data[READINGS][run], strict=True))
        return deque(readings, maxlen=MAX_READINGS)

    def run(self, patience: float) -> Trace:
        """Advance all runs to the last checkpoint, or until their nodes stop; raise `Interrupted` on Ctrl-C."""
        info, start = self.info, time.perf_counter()
        left = info.runs * int(self.checkpoints[-1]) - int(self.reached.sum())
        title = f"{info.protocol}, {info.runs} run{'s' * (info.runs > 1)}"
        interrupted = False
        with (
            closing(engines.find(info.engine)(self.setting, info.seed)) as engine,
            progress.bar(title, left, patience, unit="iterations") as report,
        ):
            try:
                for batch in self._batches(engine):
                    try:
                        self._advance(engine, batch, report)
                    finally:
                        if len(batch.runs) == info.runs:
                            self._snapshot = {SNAPSHOT + name: a for name, a in engine.snapshot(batch).items()}
            except KeyboardInterrupt:
                interrupted = True
        self.info = replace(info, seconds=info.seconds + time.perf_counter() - start)
        trace = self._trace()
        if interrupted:
            raise Interrupted(trace)
        return trace

    def _batches(self, engine: Engine[Any]) -> Iterator[Batch[Any]]:
        """Yield batches of runs that fit into memory; where all runs fit into one, it can be resumed."""
        runs, size = self.info.runs, engine.bytes_per_run()
        count = min(runs, max(machine.available_cores(), MAX_BATCH_BYTES // max(1, size)))
        machine.require_memory(size * count, f"keeping the nodes of {count} runs", "use fewer runs")
        for first in range(0, runs, count):
            chosen = range(first, min(runs, first + count))
            if self.previous is None:
                batch = engine.start(chosen)
            else:
                part, saved = slice(first, first + count), self.previous.resume_data
                arrays = {n.removeprefix(SNAPSHOT): a[part] for n, a in saved.items() if n.startswith(SNAPSHOT)}
                batch = engine.restore(chosen, int(saved["reached"].max()), arrays)
                batch.active &= self.stopped[part] == 0
            yield batch

    def _advance(self, engine: Engine[Any], batch: Batch[Any], report: Callable[[float], None]) -> None:
        """Advance a batch to the last checkpoint, reading all estimates at each."""
        runs, readings = np.array(batch.runs), set(self._reading_times.tolist())
        numbers = {iteration: c for c, iteration in enumerate(self.checkpoints.tolist())}
        for stop in np.union1d(self.checkpoints, self._reading_times).tolist():
            while batch.iteration < stop:
                if not batch.active.any():
                    return
                before = batch.iteration
                try:
                    engine.advance(batch, min(stop, before + engine.max_advance))
                finally:
                    self.reached[runs[batch.active]] = batch.iteration
                report((batch.iteration - before) * int(batch.active.sum()))
            if stop in readings and batch.iteration == stop:
                self._take_readings(batch, self.setting.values(engine.estimates(batch)))
            if stop in numbers and np.isnan(self.results["mean"][runs[batch.active], numbers[stop]]).any():
                self._read(engine, batch, numbers[stop])

    def _take_readings(self, batch: Batch[Any], values: Floats) -> None:
        """Add values, runs × nodes × values, to the readings of the active runs of a batch."""
        for k in np.flatnonzero(batch.active).tolist():
            readings = self._readings[batch.runs[k]]
            if not readings or readings[-1][0] < batch.iteration:
                readings.append((batch.iteration, values[k]))

    def _expected_errors(self, run: int, iteration: int, rule: Rule = RULE) -> Floats:
        """Return the relative error that each node of a run expects, from its readings: nodes × statistics."""
        protocol, nodes, places = self.setting.protocol, self.setting.placement.nodes, self._places
        if not self._readings[run]:
            return np.full((nodes, len(places)), np.inf)
        times, readings = zip(*self._readings[run], strict=True)
        exchanges = 2 * protocol.draws * iteration / nodes  # of a node, on average
        sampled = None if protocol.averages_moments else nodes
        own = ([reading[:, place] for reading in readings] for place in places)
        return np.column_stack([expected_errors(one, times, sampled, exchanges, rule) for one in own])

    def _read(self, engine: Engine[Any], batch: Batch[Any], c: int) -> None:
        """Store estimates and errors of the active runs at a checkpoint, and stop runs whose nodes are content."""
        active = np.flatnonzero(batch.active)
        runs, results, setting = np.array(batch.runs)[active], self.results, self.setting
        means = engine.estimates(batch)[active]
        values = setting.values(means)
        results["estimate"][runs, c] = values.mean(axis=1)
        if "estimates" in results:
            results["estimates"][runs, c] = values
        if self.info.until is not None:
            for k, run in enumerate(runs):
                self._readings[run].append((batch.iteration, values[k]))
        if self.info.level is not None:
            for k, run in enumerate(runs):
                errors = self._expected_errors(run, batch.iteration, INTERVAL_RULE)
                own = [gossip_errors(values[k][:, one], errors[:, [c]]) for c, one in enumerate(self._places)]
                gossip = np.hstack(own)
                found = setting.estimand.value_function.intervals(means[k], self.info.level, gossip)
                for name, numbers in zip(INTERVAL, found, strict=True):
                    results[name][run, c] = numbers
        if "time" in results:
            draws = batch.iteration * setting.protocol.draws
            results["time"][runs, c] = [self._schedules[run].time(draws) for run in runs]
        mean, results["spread"][runs, c], results["median"][runs, c] = node_errors(values, setting.target, self._places)
        counts = engine.counts(batch)
        if counts is not None:
            results["counted"][runs, c] = counts[active].min(axis=1)
        if self.info.until is not None:
            for k, run in enumerate(runs):
                errors = self._expected_errors(run, batch.iteration).max(axis=1)
                if counts is not None:  # a node knows when rows are missing in its estimate
                    errors[counts[active[k]] < setting.estimand.n] = np.inf
                if (errors <= self.info.until).mean() >= STOPPING_SHARE:
                    self.stopped[run], batch.active[active[k]] = batch.iteration, False
        results["mean"][runs, c] = mean

    def _trace(self) -> Trace:
        xr = require("xarray", "sim", "simulations")
        target, by_node = self.setting.target, self.setting.protocol.estimates_row_means
        variables: dict[str, Any] = {
            "units": ("iteration", [self._units_sent(int(t)) for t in self.checkpoints]),
            "stopped": ("run", self.stopped),
            **{name: (DIMENSIONS[name], array) for name, array in self.results.items()},
            "target": (("node", "value"), target) if by_node else ("value", target[0]),
        }
        names = self.setting.estimand.value_names
        data = xr.Dataset(variables, coords={"iteration": self.checkpoints} | ({"value": names} if names else {}))
        return Trace(data if target.shape[1] > 1 else data.isel(value=0), self.info, self._resume_data())

    def _units_sent(self, iterations: int) -> int:
        protocol, estimand, placement = self.setting.protocol, self.setting.estimand, self.setting.placement
        (n, d), means = estimand.x.shape, self.setting.mean_count
        if isinstance(protocol, CollectingProtocol):
            return protocol.sent(iterations, n, d)
        sizes = means, len(self.setting.offset), self._tree_share
        if not placement.has_tables:
            return round(iterations * protocol.units(d, *sizes))
        # A visitor is a sample of rows, its correction, its home and their number; nodes tell how many rows they have.
        visitor_size = float(np.minimum(placement.rows, MAX_SAMPLE_ROWS).mean()) * d + estimand.width + 2
        return round(iterations * (protocol.units(visitor_size, *sizes) + 2))

    def _resume_data(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that `resume` needs, where they are small enough to keep."""
        if self._snapshot is None:
            return {}
        x, graph, placement = self.setting.estimand.x, self.setting.graph, self.setting.placement
        arrays = {"x": x, "edges": graph.edges, "weights": graph.weights, "parents": graph.parents}
        arrays["reached"] = self.reached
        if placement.has_tables:
            arrays["counts"] = placement.rows
        if len(self._reading_times) and self._readings[0]:
            arrays[READING_TIMES] = np.array([iteration for iteration, _ in self._readings[0]])
            arrays[READINGS] = np.array([[values for _, values in readings] for readings in self._readings])
        return {name: array for name, array in arrays.items() if array is not None} | self._snapshot
