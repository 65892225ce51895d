"""Runs a simulation: advances the engine from checkpoint to checkpoint and collects the results."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError, NumericalError
from gosta.estimation.estimand import scale_of
from gosta.estimation.setting import Setting
from gosta.estimation.stopping import (
    INTERVAL_RULE,
    MAX_READINGS,
    RULE,
    Rule,
    expected_errors,
    gossip_errors,
    reading_grid,
)
from gosta.estimation.visitor import MAX_SAMPLE_ROWS
from gosta.graphs.tree import tree_share
from gosta.protocols import CollectingProtocol
from gosta.runtime import compiler, machine, progress
from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.extras import require
from gosta.runtime.interrupts import deferred_interrupt
from gosta.schedule import FAULT_NAMES, Schedule
from gosta.simulation import engines
from gosta.simulation.engines import Batch, Engine, Readings
from gosta.simulation.engines.engine import failures_of
from gosta.simulation.run_options import RunInfo
from gosta.simulation.trace import SNAPSHOT, Trace

# Estimates kept in memory, half a GiB; of more, only summaries are kept.
MAX_ESTIMATES = 1 << 26
MAX_BATCH_BYTES = 4 << 30  # memory for runs that are advanced side by side
MAX_READINGS_BYTES = 64 << 20  # memory for what is read between two evaluations
FIRST_PORTION = 1 << 8  # exchanges, over all runs, after which the time that they take is known
MAX_GROWTH = 32  # factor by which a portion can exceed the one before, in exchanges and readings
PORTION_SECONDS = 0.1  # time of a portion, after which Ctrl-C is noticed and progress reported
EVALUATED_AT_ONCE = 1 << 17  # numbers: a MiB, which stays in the cache of a core
STOPPING_SHARE = 0.8  # share of nodes that must expect to be within the requested error
# Names of arrays from which a trace with intervals is continued.
READINGS = "readings"
READING_TIMES = "reading_times"

# Dimensions of each result.
BY_RUN = ("run", "iteration")
INTERVAL = ("low", "high", "standard_error")
DIMENSIONS = {
    **dict.fromkeys(("mean", "spread", "median", "time", "counted"), BY_RUN),
    "estimate": (*BY_RUN, "value"),
    "estimates": (*BY_RUN, "node", "value"),
    "failed": (*BY_RUN, "fault"),
    **dict.fromkeys(INTERVAL, (*BY_RUN, "node", "value")),
}


RunnerFactory = Callable[[Setting, RunInfo, Integers], "Runner"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a simulation; `trace` holds the checkpoints that were reached.

    Examples
    --------
    >>> import gosta
    >>> try:
    ...     trace = gosta.simulate("iris", "variance", columns=0, iterations=1000, runs=1)
    ... except gosta.Interrupted as interrupted:
    ...     trace = interrupted.trace
    >>> trace.is_complete
    True
    """

    def __init__(self, trace: Trace) -> None:
        super().__init__("the simulation was interrupted")
        self.trace = trace

    def _render_traceback_(self) -> list[str]:
        """Return what IPython and notebooks show in place of a traceback."""
        is_empty = not np.isfinite(self.trace.data["mean"].values).any()
        kept = (
            " before the first checkpoint"
            if is_empty
            else "; sys.last_value.trace holds the checkpoints reached"
        )
        return [f"{type(self).__name__}: {self}{kept}"]


class Runner:
    """All runs of one simulation, read at checkpoints; `previous` is a trace to continue."""

    def __init__(
        self, setting: Setting, info: RunInfo, checkpoints: Integers, previous: Trace | None = None
    ) -> None:
        self.setting = setting
        self.info = info
        self.checkpoints = checkpoints
        self.previous = previous
        runs = info.runs
        count = len(checkpoints)
        n = setting.placement.nodes
        p = setting.target.shape[1]
        keep = runs * count * n * p <= MAX_ESTIMATES and (
            previous is None or "estimates" in previous.data
        )
        purpose = f"keeping the estimates of {runs} runs at {count} checkpoints"
        advice = "use fewer runs or checkpoints"
        if setting.estimand.level is not None and not keep:
            raise InputError(
                f"interval: {runs} runs x {count} checkpoints x {n} nodes are too many to keep; "
                f"{advice}"
            )
        machine.require_memory(8 * runs * count * (n * p if keep else 3), purpose, advice)
        optional = {"estimates": keep, "time": info.clocks, "counted": setting.protocol.uses_tree}
        optional |= dict.fromkeys(INTERVAL, setting.estimand.level is not None) | {
            "failed": bool(setting.faults)
        }
        names = [name for name in DIMENSIONS if optional.get(name, True)]
        sizes = {"run": runs, "iteration": count, "node": n, "value": p, "fault": len(FAULT_NAMES)}
        shapes = {name: [sizes[dimension] for dimension in DIMENSIONS[name]] for name in names}
        self._tree_share = 1.0 if setting.graph.parents is None else tree_share(setting.graph)
        self._places = setting.estimand.value_places
        self._summary = ErrorSummary(setting.target, self._places)
        self.results: dict[str, Floats] = {
            name: np.full(shape, np.nan) for name, shape in shapes.items()
        }
        self.reached, self.stopped = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=np.int64)
        if previous is not None:
            done = len(previous.iterations)
            for name, array in self.results.items():
                array[:, :done] = previous.data[name].values.reshape(array[:, :done].shape)
            self.reached[:] = previous.resume_data["reached"]
            self.stopped[:] = previous.data["stopped"]
        # The engine has failures of its own, for other threads.
        failures = failures_of(setting, info.seed)
        self._schedules = [Schedule(setting.drawn, info.seed, run, failures) for run in range(runs)]
        # Where nodes stop by themselves, checkpoints are the readings; for intervals alone they are
        # taken in between.
        has_own_readings = setting.estimand.level is not None and info.until is None
        self._reading_times = (
            reading_grid(n, int(checkpoints[-1])) if has_own_readings else checkpoints[:0]
        )
        self._readings = [self._kept_readings(run) for run in range(runs)]
        # Snapshot of the engine; None where the runs take several batches.
        self._snapshot: dict[str, NDArray[Any]] | None = None

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
        """Advance all runs to the last checkpoint, or until their nodes stop.

        On Ctrl-C, raise `Interrupted`.
        """
        info, start = self.info, time.perf_counter()
        left = info.runs * int(self.checkpoints[-1]) - int(self.reached.sum())
        title = f"{self.setting.protocol.label}, {info.runs} run{'s' * (info.runs > 1)}"
        with (
            closing(engines.find(info.engine)(self.setting, info.seed)) as engine,
            ThreadPoolExecutor(machine.available_cores()) as self._pool,
            progress.bar(title, left, patience, unit="iterations") as self._report,
            deferred_interrupt() as self._is_interrupted,
        ):
            for batch in self._batches(engine):
                self._advance(engine, batch)
                if len(batch.runs) == info.runs:
                    self._snapshot = {
                        SNAPSHOT + name: a for name, a in engine.snapshot(batch).items()
                    }
                if self._is_interrupted():
                    break
            self.info = replace(info, seconds=info.seconds + time.perf_counter() - start)
            trace = self._trace()
            if self._is_interrupted():
                raise Interrupted(trace)
        return trace

    def _batches(self, engine: Engine[Any]) -> Iterator[Batch[Any]]:
        """Yield batches of runs that fit into memory.

        Where all runs fit into one, it can be resumed.
        """
        runs, size = self.info.runs, engine.bytes_per_run()
        count = min(runs, max(machine.available_cores(), MAX_BATCH_BYTES // max(1, size)))
        machine.require_memory(size * count, f"keeping the nodes of {count} runs", "use fewer runs")
        for first in range(0, runs, count):
            chosen = range(first, min(runs, first + count))
            if self.previous is None:
                batch = engine.start(chosen)
            else:
                part, saved = slice(first, first + count), self.previous.resume_data
                arrays = {
                    n.removeprefix(SNAPSHOT): a[part]
                    for n, a in saved.items()
                    if n.startswith(SNAPSHOT)
                }
                batch = engine.restore(chosen, int(saved["reached"].max()), arrays)
                batch.active &= self.stopped[part] == 0
            yield batch

    def _advance(self, engine: Engine[Any], batch: Batch[Any]) -> None:
        """Advance a batch to the last checkpoint, reading all estimates at each.

        It is advanced in portions of some time each. What was read in one is evaluated when the
        engine has begun with the next, unless it decides which runs go on.
        """
        runs = np.array(batch.runs)
        decides = self.info.until is not None
        exchanges = FIRST_PORTION
        most_stops = 1
        unread = np.isnan(self.results["mean"][runs[batch.active]]).any(axis=0)
        stops = np.union1d(self.checkpoints[unread], self._reading_times)
        stops, unevaluated = stops[stops >= batch.iteration], None
        while len(stops) and batch.active.any() and not self._is_interrupted():
            start = time.perf_counter()
            before = batch.iteration
            active = np.flatnonzero(batch.active)
            iteration, count = self._next_portion(batch, stops[:most_stops], exchanges)
            readings = engine.advance(batch, iteration, stops[:count])
            if unevaluated is not None:
                self._evaluate(*unevaluated)
            unevaluated = runs[active], stops[:count], readings
            if decides:
                self._evaluate(*unevaluated)
                unevaluated = None
                batch.active &= self.stopped[runs] == 0
            self.reached[runs[active]] = iteration
            self._report((iteration - before) * len(active))
            stops = stops[count:]
            done = (iteration - before) * len(active) * self.setting.protocol.draws
            growth = min(MAX_GROWTH, PORTION_SECONDS / max(time.perf_counter() - start, 1e-9))
            exchanges = max(1, int(growth * (done or exchanges)))
            most_stops = max(most_stops, MAX_GROWTH * count)
        if unevaluated is not None:
            self._evaluate(*unevaluated)

    def _next_portion(self, batch: Batch[Any], stops: Integers, exchanges: int) -> tuple[int, int]:
        """Return the iteration to advance to next, and the number of stops to read on the way."""
        setting, runs = self.setting, int(batch.active.sum())
        furthest = batch.iteration + max(1, exchanges // (runs * setting.protocol.draws))
        size = 8 * runs * setting.placement.nodes * setting.state_count
        limit = 1 if self.info.until is not None else max(1, MAX_READINGS_BYTES // size)
        count = min(limit, int(np.searchsorted(stops, furthest, side="right")))
        return (int(stops[count - 1]), count) if count else (min(furthest, int(stops[0])), 0)

    def _evaluate(self, runs: Integers, stops: Integers, readings: Readings) -> None:
        """Store estimates and errors of runs at some iterations; note which runs have stopped."""
        if not len(stops):
            return
        read = readings()
        size = max(1, EVALUATED_AT_ONCE // read[0].size)

        def evaluate(first: int) -> None:
            part = slice(first, first + size)
            self._evaluate_runs(runs[part], stops, read[part])

        list(self._pool.map(evaluate, range(0, len(runs), size)))

    def _expected_errors(self, run: int, iteration: int, rule: Rule = RULE) -> Floats:
        """Return the relative error that each node of a run expects: nodes × statistics."""
        protocol, nodes, places = self.setting.protocol, self.setting.placement.nodes, self._places
        if not self._readings[run]:
            return np.full((nodes, len(places)), np.inf)
        times, readings = zip(*self._readings[run], strict=True)
        # Exchanges that a node took part in, on average.
        exchanges = 2 * (protocol.draws * iteration - self._failed(run, iteration).sum()) / nodes
        sampled = None if protocol.averages_moments else nodes
        by_statistic = ([reading[:, place] for reading in readings] for place in places)
        return np.column_stack(
            [expected_errors(values, times, sampled, exchanges, rule) for values in by_statistic]
        )

    def _failed(self, run: int, iteration: int) -> Integers:
        """Return how many exchanges of a run did not take place, for each fault."""
        draws = iteration * self.setting.protocol.draws
        return (
            self._schedules[run].failed(draws)
            if self.setting.faults
            else np.zeros(1, dtype=np.int64)
        )

    def _evaluate_runs(self, runs: Integers, stops: Integers, readings: Floats) -> None:
        """Evaluate readings of runs at some iterations: runs × iterations × nodes × states."""
        results, setting = self.results, self.setting
        self._check_finite(runs, stops, readings)
        means = setting.means(readings)
        values = setting.values(means)
        places = np.searchsorted(self.checkpoints, stops)
        is_checkpoint = self.checkpoints[np.minimum(places, len(self.checkpoints) - 1)] == stops
        if self.setting.estimand.level is not None or self.info.until is not None:
            for s, (stop, c) in enumerate(zip(stops.tolist(), places.tolist(), strict=True)):
                for k, run in enumerate(runs.tolist()):
                    self._take_reading(run, stop, values[k, s])
                    if is_checkpoint[s] and self.setting.estimand.level is not None:
                        self._store_intervals(run, c, stop, means[k, s], values[k, s])
                    if is_checkpoint[s] and self.info.until is not None:
                        self._stop_if_good_enough(run, stop, readings[k, s])
        if not is_checkpoint.all():
            places = places[is_checkpoint]
            values = values[:, is_checkpoint]
            readings = readings[:, is_checkpoint]
        chosen = np.ix_(runs, places)
        results["estimate"][chosen] = values.mean(axis=2)
        if "estimates" in results:
            results["estimates"][chosen] = values
        if "time" in results:
            draws = (self.checkpoints[places] * setting.protocol.draws).tolist()
            results["time"][chosen] = [
                [self._schedules[run].time(draw) for draw in draws] for run in runs
            ]
        if "failed" in results:
            at = self.checkpoints[places].tolist()
            failed = np.array(
                [[self._failed(run, iteration) for iteration in at] for run in runs.tolist()]
            )
            results["failed"][chosen] = failed.reshape(len(runs), len(at), len(FAULT_NAMES))
        if "counted" in results:
            results["counted"][chosen] = readings[..., -1].min(axis=2)
        errors = self._summary.of(values)
        results["spread"][chosen], results["median"][chosen] = errors[..., 1], errors[..., 2]
        results["mean"][chosen] = errors[..., 0]

    def _check_finite(self, runs: Integers, stops: Integers, readings: Floats) -> None:
        """Raise `NumericalError` if what a node reads from its state is not finite."""
        if isinstance(self.setting.protocol, CollectingProtocol) or np.isfinite(readings).all():
            return
        run, stop, node, state = (int(place[0]) for place in np.nonzero(~np.isfinite(readings)))
        where = (
            f"node {node} of run {runs[run]} reads {readings[run, stop, node, state]} at iteration "
            f"{stops[stop]}"
        )
        hint = (
            "meet and read must return finite numbers: look for roots of negative numbers, "
            "overflow, inf - inf"
        )
        raise NumericalError(f"protocol {self.setting.protocol.name}: {where}; {hint}")

    def _take_reading(self, run: int, iteration: int, values: Floats) -> None:
        """Keep the values of a run, nodes × values, if expected errors are computed from them."""
        readings = self._readings[run]
        is_due = self.info.until is not None or iteration in self._reading_times
        if is_due and (not readings or readings[-1][0] < iteration):
            readings.append((iteration, values.copy()))

    def _store_intervals(
        self, run: int, c: int, iteration: int, means: Floats, values: Floats
    ) -> None:
        errors = self._expected_errors(run, iteration, INTERVAL_RULE)
        gossip = np.hstack(
            [
                gossip_errors(values[:, place], errors[:, [k]])
                for k, place in enumerate(self._places)
            ]
        )
        estimand = self.setting.estimand
        assert estimand.level is not None
        intervals = estimand.value_function.intervals(means, estimand.level, gossip)
        for name, numbers in zip(INTERVAL, intervals, strict=True):
            self.results[name][run, c] = numbers

    def _stop_if_good_enough(self, run: int, iteration: int, readings: Floats) -> None:
        """Note that a run has stopped if enough nodes expect to be within the requested error."""
        errors = self._expected_errors(run, iteration).max(axis=1)
        if self.setting.protocol.uses_tree:  # a node knows when rows are missing in its estimate
            errors[readings[:, -1] < self.setting.estimand.n] = np.inf
        if (errors <= self.info.until).mean() >= STOPPING_SHARE:
            self.stopped[run] = iteration

    def _trace(self) -> Trace:
        xr = require("xarray", "sim", "simulations")
        target, by_node = self.setting.target, self.setting.protocol.estimates_row_means
        variables: dict[str, Any] = {
            "units": ("iteration", self._units()),
            "stopped": ("run", self.stopped),
            **{name: (DIMENSIONS[name], array) for name, array in self.results.items()},
            "target": (("node", "value"), target) if by_node else ("value", target[0]),
        }
        names = self.setting.estimand.value_names
        coordinates = {"iteration": self.checkpoints} | ({"value": names} if names else {})
        if self.setting.placement.names:
            coordinates["node"] = list(self.setting.placement.names)
        if "failed" in variables:
            coordinates["fault"] = list(FAULT_NAMES)
        data, info = xr.Dataset(variables, coords=coordinates), self.info
        if self.stopped.all():  # no run will ever reach the checkpoints that are left
            data = data.sel(iteration=slice(None, self.stopped.max()))
            info = replace(info, iterations=int(self.stopped.max()))
        data = data if target.shape[1] > 1 else data.isel(value=0)
        return Trace(data, self.setting, info, self._resume_data())

    def _units(self) -> list[int]:
        """Return the numbers sent up to each checkpoint.

        Nothing is sent to a node that is away or separated.
        """
        sent = [self._units_sent(int(t)) for t in self.checkpoints]
        if "failed" not in self.results:
            return sent
        reached = np.isfinite(self.results["mean"])
        unsent = np.where(reached, self.results["failed"][..., 1:].sum(axis=2), 0).sum(axis=0)
        shares = (
            unsent
            / np.maximum(1, reached.sum(axis=0))
            / (self.checkpoints * self.setting.protocol.draws)
        )
        return [
            round(units * (1 - share)) for units, share in zip(sent, shares.tolist(), strict=True)
        ]

    def _units_sent(self, iterations: int) -> int:
        protocol = self.setting.protocol
        estimand = self.setting.estimand
        placement = self.setting.placement
        (n, d), means = estimand.x.shape, self.setting.mean_count
        if isinstance(protocol, CollectingProtocol):
            return protocol.sent(iterations, n, d)
        sizes = means, len(self.setting.offset), self._tree_share
        if not placement.has_tables:
            return round(iterations * protocol.units(d, *sizes))
        # A visitor is a sample of rows, its correction, its home and their number; nodes tell how
        # many rows they have.
        visitor_size = (
            float(np.minimum(placement.rows, MAX_SAMPLE_ROWS).mean()) * d + estimand.width + 2
        )
        return round(iterations * (protocol.units(visitor_size, *sizes) + 2))

    def _resume_data(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that `resume` needs, where they are small enough to keep."""
        if self._snapshot is None:
            return {}
        arrays: dict[str, NDArray[Any]] = {"reached": self.reached}
        if len(self._reading_times) and self._readings[0]:
            arrays[READING_TIMES] = np.array([iteration for iteration, _ in self._readings[0]])
            arrays[READINGS] = np.array(
                [[values for _, values in readings] for readings in self._readings]
            )
        return arrays | self._snapshot


class ErrorSummary:
    """Summarises the errors of values against a target, 1 × values, or nodes × values.

    `places` are those of the values of each statistic; of several, the largest error of a node
    counts.
    """

    def __init__(self, target: Floats, places: Sequence[slice]) -> None:
        self._target = np.ascontiguousarray(target)
        self._starts = np.array([place.start or 0 for place in places])
        self._scales = np.array([scale_of(target[:, place]) or 1.0 for place in places])
        text = Path(__file__).with_name("error_loop.py").read_text(encoding="utf-8")
        compiler.specialise(text, {}, self._trial)

    def _trial(self, module: ModuleType) -> None:
        self._module = module
        self.of(np.zeros((0, *self._target.shape)))

    def of(self, values: Floats) -> Floats:
        """Return mean, standard deviation and median over nodes of the errors of values.

        `values` are ... × nodes × values.
        """
        out = np.empty((*values.shape[:-2], 3))
        flat = np.ascontiguousarray(values).reshape(-1, *values.shape[-2:])
        self._module.summarise(flat, self._target, self._starts, self._scales, out.reshape(-1, 3))
        return out
