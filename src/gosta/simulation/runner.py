"""The runs of one simulation: all of them on all cores, checkpoint by checkpoint."""

from __future__ import annotations

import threading
import time
import warnings
from collections import deque
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np

from gosta.errors import InputError
from gosta.estimation.problem import Setting
from gosta.estimation.stopping import READINGS, remaining
from gosta.protocols import Collecting
from gosta.runtime import machine, progress
from gosta.runtime.arrays import Floats
from gosta.schedule import BLOCK, Schedule
from gosta.simulation.engines.collecting import CollectingEngine
from gosta.simulation.engines.compiled import Compiled
from gosta.simulation.engines.reference import Arrays, Reference
from gosta.simulation.engines.sites import Sites
from gosta.simulation.engines.tables import Tables
from gosta.simulation.trace import Trace, errors

KEEP = 1 << 26  # estimates kept in memory, half a GiB; beyond that summaries only
RESUMABLE = 4 << 30  # bytes of nodes kept for going on later, over all runs
SHARE = 0.8  # of the nodes, which must say that they are done


@dataclass
class Results:
    """What the runs fill in."""

    mean: Floats
    spread: Floats
    median: Floats
    estimate: Floats
    estimates: Floats | None
    errors: Floats | None  # the standard errors that nodes estimate
    time: Floats | None
    clock: Floats | None  # the time at the end of each run's last whole block
    now: Any
    stopped: Any  # the iteration at which the nodes of a run said that they were done; 0: they did not
    arrays: list[Arrays | None]


class Simulation:
    """All runs of one protocol on one graph."""

    def __init__(
        self,
        setting: Setting,
        at: Any,
        about: dict[str, Any],
        old: Trace | None = None,
    ) -> None:
        self.problem, self.protocol, self.graph = setting.problem, setting.protocol, setting.graph
        self.at, self.about = at, about
        self.target = self.problem.targets(self.protocol)
        plain = about["engine"] == "reference"
        self.engine: Any
        if isinstance(self.protocol, Collecting):
            self.engine = CollectingEngine(self.problem, self.protocol, plain)
        elif plain:
            several = self.problem.tables
            self.engine = (Sites if several else Reference)(self.problem, self.protocol)
        else:
            self.engine = (Tables if self.problem.tables else Compiled)(self.problem, self.protocol)
        self.results = self._room(old)
        self.stopping = threading.Event()

    def _room(self, old: Trace | None) -> Results:
        """Arrays for the results, with those of an earlier trace filled in."""
        runs, count, (n, p) = self.about["runs"], len(self.at), (self.problem.nodes, self.target.shape[1])
        keep = runs * count * n * p <= KEEP and (old is None or "estimates" in old.data)
        if self.problem.level is not None and not keep:
            raise InputError(
                f"interval: {runs} runs x {count} checkpoints x {n} nodes are too many to keep; "
                "take fewer runs or checkpoints"
            )
        size, what = 8 * runs * count * (n * p if keep else 3), f"the estimates of {runs} runs at {count} checkpoints"
        machine.require_memory(size, what, "take fewer runs or checkpoints")
        room = Results(
            np.full((runs, count), np.nan),
            np.full((runs, count), np.nan),
            np.full((runs, count), np.nan),
            np.full((runs, count, p), np.nan),
            np.full((runs, count, n, p), np.nan) if keep else None,
            np.full((runs, count, n), np.nan) if self.problem.level is not None else None,
            np.full((runs, count), np.nan) if self.about["clocks"] else None,
            np.zeros(runs) if self.about["clocks"] else None,
            np.zeros(runs, dtype=np.int64),
            np.zeros(runs, dtype=np.int64),
            [None] * runs,
        )
        if old is not None:
            done = len(old.iterations)
            for name in ("mean", "spread", "median"):
                getattr(room, name)[:, :done] = old.data[name].values
            room.estimate[:, :done] = old.data["estimate"].values.reshape(runs, done, p)
            if room.estimates is not None:
                room.estimates[:, :done] = old.data["estimates"].values.reshape(runs, done, n, p)
            if room.errors is not None:
                room.errors[:, :done] = old.data["standard_error"].values
            if room.time is not None and room.clock is not None:
                room.time[:, :done], room.clock[:] = old.data["time"].values, old.rest["clock"]
            room.now[:], room.stopped[:] = old.rest["now"], old.data["stopped"]
            for run in range(runs):
                names = [name for name in old.rest if name.endswith(f"@{run}")]
                room.arrays[run] = {name.rpartition("@")[0]: np.array(old.rest[name]) for name in names} or None
        return room

    def go(self, patience: float) -> Trace:
        """Do all that is left to do, on all cores."""
        runs = self.about["runs"]
        left = runs * int(self.at[-1]) - int(self.results.now.sum())
        start = time.perf_counter()
        cores = machine.available_cores()
        self.resumable = self._check_memory(cores)
        title = f"{self.about['protocol']}, {runs} run{'s' * (runs > 1)}"
        with (
            progress.bar(title, left, patience, unit="iterations") as advance,
            ThreadPoolExecutor(min(cores, runs)) as pool,
        ):
            interrupted = False
            futures: list[Future[None]] = []
            try:
                futures.extend(pool.submit(self._run, run, advance) for run in range(runs))
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                if any(future.exception() for future in done):
                    self.stopping.set()
            except KeyboardInterrupt:
                self.stopping.set()
                interrupted = True
        for future in futures:
            future.result()
        self.about["seconds"] += time.perf_counter() - start
        trace = self._trace()
        if interrupted:
            warnings.warn("interrupted: the trace holds what was computed up to now", stacklevel=3)
        return trace

    def _check_memory(self, cores: int) -> bool:
        """Ask for the nodes of all runs that will be there at a time, and say whether all may stay."""
        runs, arrays = self.about["runs"], self.results.arrays
        first = arrays[0] = self.engine.start() if arrays[0] is None else arrays[0]
        size = sum(a.nbytes for a in first.values() if isinstance(a, np.ndarray))
        all_stay = bool(size * runs <= RESUMABLE)
        at_a_time = runs if all_stay else min(cores, runs)
        machine.require_memory(size * (at_a_time - 1), f"keeping the nodes of {runs} runs", "take fewer runs")
        return all_stay

    def _run(self, run: int, advance: Any) -> None:
        """One run, from where it stands to the last checkpoint."""
        results, draws = self.results, self.protocol.draws
        schedule = Schedule(self.graph, self.about["seed"], run)
        arrays = results.arrays[run]
        if arrays is None:
            arrays = results.arrays[run] = self.engine.start()
        now, readings = int(results.now[run]), self._readings(run)
        for c, checkpoint in enumerate(self.at.tolist()):
            while now < checkpoint:
                if self.stopping.is_set() or results.stopped[run]:
                    return
                stop = min(checkpoint, (now * draws // BLOCK + 1) * BLOCK // draws)
                self._advance(arrays, schedule, now, stop)
                if results.clock is not None and stop * draws % BLOCK == 0:
                    results.clock[run] += schedule.gaps(stop * draws - BLOCK, stop * draws).sum()
                advance(stop - now)
                now = results.now[run] = stop
            if np.isnan(results.mean[run, c]):
                readings.append(self._read(run, c, arrays, now))
                if self.about["until"] is not None and self._done(readings, c):
                    results.stopped[run] = now
                if results.time is not None and results.clock is not None:
                    begun = now * draws // BLOCK * BLOCK
                    results.time[run, c] = results.clock[run] + schedule.gaps(begun, now * draws).sum()
        if not self.resumable:
            results.arrays[run] = None

    def _advance(self, arrays: Arrays, schedule: Schedule, now: int, stop: int) -> None:
        drawn = now * self.protocol.draws, stop * self.protocol.draws
        edges = schedule.edges(*drawn)
        if isinstance(self.protocol, Collecting):
            self.engine.advance(arrays, edges, now, chances=schedule.chances(now, stop), order=schedule.order)
        elif "pace" in self.protocol.samples:
            self.engine.advance(arrays, edges, now, schedule.paces(*drawn))
        else:
            self.engine.advance(arrays, edges, now)

    def _readings(self, run: int) -> deque[Floats]:
        """The last readings of the nodes, as far as they were kept."""
        kept, done = self.results.estimates, np.isfinite(self.results.mean[run])
        return deque([] if kept is None else kept[run, done][-READINGS:], maxlen=READINGS)

    def _done(self, readings: deque[Floats], checkpoint: int) -> bool:
        """Whether most nodes think that they are within the error that was asked for."""
        times = self.at[: checkpoint + 1].tolist()
        return bool((remaining(list(readings), times) <= self.about["until"]).mean() >= SHARE)

    def _read(self, run: int, c: int, arrays: Arrays, now: int) -> Floats:
        means = self.engine.means(arrays, now)
        values = self.problem.values(means, self.protocol)
        if self.results.errors is not None:
            self.results.errors[run, c] = self.problem.standard_errors(means)
        found = errors(values, self.target)
        self.results.mean[run, c], self.results.spread[run, c], self.results.median[run, c] = found
        self.results.estimate[run, c] = values.mean(axis=0)
        if self.results.estimates is not None:
            self.results.estimates[run, c] = values
        return values

    def _trace(self) -> Trace:
        import xarray as xr

        results, several = self.results, self.target.shape[1] > 1
        target = self.target if self.protocol.of_rows else self.target[0]
        dims = (("node",) if self.protocol.of_rows else ()) + (("value",) if several else ())
        units = [self._sent(int(t)) for t in self.at]
        variables: dict[str, Any] = {
            "mean": (("run", "iteration"), results.mean),
            "spread": (("run", "iteration"), results.spread),
            "median": (("run", "iteration"), results.median),
            "estimate": (("run", "iteration", "value"), results.estimate),
            "units": ("iteration", units),
            "stopped": ("run", results.stopped),
            "target": (dims, target if several else target[..., 0]),
        }
        if not several:
            variables["estimate"] = (("run", "iteration"), results.estimate[..., 0])
        if results.estimates is not None:
            names = ("run", "iteration", "node") + (("value",) if several else ())
            variables["estimates"] = (names, results.estimates if several else results.estimates[..., 0])
        if results.errors is not None:
            variables["standard_error"] = (("run", "iteration", "node"), results.errors)
        if results.time is not None:
            variables["time"] = (("run", "iteration"), results.time)
        about = {**self.about, "iterations": int(self.at[-1]), "relative": bool((self.target != 0).any())}
        return Trace(xr.Dataset(variables, coords={"iteration": self.at}), about, self._rest())

    def _sent(self, iterations: int) -> int:
        n, d = self.problem.x.shape
        if isinstance(self.protocol, Collecting):
            return int(self.protocol.sent(iterations, n, d))
        estimated = self.problem.estimated(self.protocol)
        rows = 2 * (self.problem.sizes is not None)  # how many rows each has, told to the other
        return round(iterations * (self.protocol.units(self.problem.visitor_numbers, estimated) + rows))

    def _rest(self) -> dict[str, Any]:
        """What a resumed run needs, where it is small enough to keep."""
        if not self.resumable:
            return {}
        rest: dict[str, Any] = {"x": self.problem.x}
        if self.about["engine"] != "reference":
            kept = [(run, arrays) for run, arrays in enumerate(self.results.arrays) if arrays is not None]
            rest |= {f"{name}@{run}": array for run, arrays in kept for name, array in arrays.items()}
            rest["now"] = self.results.now
        if self.results.clock is not None:
            rest["clock"] = self.results.clock
        if self.graph.edges is not None:
            rest["edges"] = self.graph.edges
        if self.problem.sizes is not None:
            rest["sizes"] = self.problem.sizes
        if self.graph.weights is not None:
            rest["weights"] = self.graph.weights
        return rest
