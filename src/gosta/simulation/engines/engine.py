"""The interface of engines: what carries out the exchanges of a simulation.

An engine is made for one setting and one seed. It advances all runs of a batch side by side; what
it keeps of them is its own affair. All engines draw the same edges (`gosta.schedule`) and give the
same numbers.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from gosta.errors import GostaError, InputError
from gosta.estimation.setting import Setting
from gosta.runtime import machine
from gosta.runtime.arrays import Booleans, Floats, Integers
from gosta.schedule import BLOCK, Failures, Schedule

# Parts of a batch for each core: so many that no core waits long for another.
PARTS_PER_CORE = 4

State = TypeVar("State")
Snapshot = dict[str, NDArray[Any]]
# What nodes read from their states, active runs × stops × nodes × states; the call may wait for it.
Readings = Callable[[], Floats]
NO_STOPS: Integers = np.zeros(0, dtype=np.int64)


@dataclass
class Batch(Generic[State]):
    """Runs that are advanced side by side.

    Examples
    --------
    >>> import gosta
    >>> from gosta.estimation.setting import make_setting
    >>> rule = gosta.protocols.find("gosta-async")
    >>> setting = make_setting(rule, [1.0, 2.0, 4.0], "gini-mean-difference", "complete", 0, {})
    >>> engine = gosta.engines.find("reference")(setting, 0)
    >>> batch = engine.start([0, 1])
    >>> batch.runs, batch.iteration
    ((0, 1), 0)
    """

    runs: tuple[int, ...]  # numbers of the runs; each has a schedule of its own
    iteration: int  # that all active runs have reached
    active: Booleans  # whether each run is still advanced
    state: State  # the engine's own data
    # Where each run is in its stream of edges, if the engine draws them itself.
    streams: NDArray[np.uint64] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint64))


class Engine(typing.Protocol[State]):
    """Carries out the exchanges of one setting, for batches of runs.

    Examples
    --------
    >>> import gosta
    >>> from gosta.estimation.setting import make_setting
    >>> rule = gosta.protocols.find("gosta-async")
    >>> setting = make_setting(rule, [1.0, 2.0, 4.0], "gini-mean-difference", "complete", 0, {})
    >>> engine = gosta.engines.find("reference")(setting, 0)
    >>> batch = engine.start([0, 1])
    >>> readings = engine.advance(batch, 100)
    >>> batch.iteration
    100
    """

    def bytes_per_run(self) -> int:
        """Return the memory that a run takes."""

    def start(self, runs: Sequence[int]) -> Batch[State]:
        """Return a batch of runs at iteration 0, each node with its own rows as visitor."""

    def advance(self, batch: Batch[State], iteration: int, stops: Integers = NO_STOPS) -> Readings:
        """Advance the active runs of a batch to an iteration; read states at `stops` on the way."""

    def snapshot(self, batch: Batch[State]) -> Snapshot:
        """Return arrays with a leading run axis from which `restore` continues.

        There are none if the engine cannot continue.
        """

    def restore(
        self, runs: Sequence[int], iteration: int, snapshot: Mapping[str, NDArray[Any]]
    ) -> Batch[State]:
        """Return the batch that a snapshot was made of."""

    def visitors(self, batch: Batch[State]) -> Integers:
        """Return the home of each visitor that nodes hold now: runs × nodes × visitors."""

    def close(self) -> None:
        """Free threads and memory."""


def read(engine: Engine[State], batch: Batch[State]) -> Floats:
    """Return what nodes read from their states now: active runs × nodes × states.

    Parameters
    ----------
    engine
        The engine that made the batch.
    batch
        Runs of a simulation.

    Returns
    -------
    Floats
        Active runs × nodes × states.

    Examples
    --------
    >>> import gosta
    >>> from gosta.estimation.setting import make_setting
    >>> rule = gosta.protocols.find("gosta-async")
    >>> setting = make_setting(rule, [1.0, 2.0, 4.0], "gini-mean-difference", "complete", 0, {})
    >>> engine = gosta.engines.find("reference")(setting, 0)
    >>> batch = engine.start([0, 1])
    >>> read(engine, batch).shape
    (2, 3, 1)
    """
    return engine.advance(batch, batch.iteration, np.array([batch.iteration]))()[:, 0]


# Advances the active runs at some positions of a batch to an iteration, and writes what nodes read
# at stops on the way to a place: runs × stops × nodes × states.
AdvanceRuns = Callable[[Batch[State], Integers, int, Integers, Floats], None]


class RunThreads(Generic[State]):
    """Threads that the runs of a batch are distributed over, on the CPU."""

    def __init__(self, setting: Setting, advance_runs: AdvanceRuns[State]) -> None:
        self._setting = setting
        self._advance_runs = advance_runs
        self._cores = machine.available_cores()
        self._pool = ThreadPoolExecutor(self._cores)

    def advance(self, batch: Batch[State], iteration: int, stops: Integers) -> Readings:
        """Advance the active runs of a batch, as `Engine.advance` does."""
        setting, active = self._setting, np.flatnonzero(batch.active)
        out = np.empty((len(active), len(stops), setting.placement.nodes, setting.state_count))
        count = min(len(active), PARTS_PER_CORE * self._cores) if self._cores > 1 else 1
        parts = [
            slice(len(active) * k // count, len(active) * (k + 1) // count) for k in range(count)
        ]

        def advance(part: slice) -> None:
            try:
                self._advance_runs(batch, active[part], iteration, stops, out[part])
            except GostaError:
                raise
            except Exception as error:  # a user's function can raise anything
                what = f"protocol {setting.protocol.name}, {setting.estimand.statistic.name}"
                hint = (
                    "meet, tell and read must return numbers for every state that a node can have"
                )
                raise InputError(
                    f"{what}: an exchange fails with {type(error).__name__}: {error}; {hint}"
                ) from error

        list((self._pool.map if count > 1 else map)(advance, parts))
        batch.iteration = iteration
        return lambda: out

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)


class ScheduledRuns(Generic[State]):
    """Advances runs one by one along the edges of `gosta.schedule`, distributed over threads.

    `advance_run` carries out the exchanges of the run at a position of a batch from one iteration
    to another, which are within one block of its schedule. `read_run` returns what its nodes read
    at an iteration: nodes × states.
    """

    def __init__(
        self,
        setting: Setting,
        seed: int,
        advance_run: Callable[[Batch[State], int, Schedule, int, int], None],
        read_run: Callable[[Batch[State], int, int], Floats],
    ) -> None:
        self._setting, self._seed = setting, seed
        self._advance_run, self._read_run = advance_run, read_run
        self._schedules: dict[int, Schedule] = {}
        self._failures = failures_of(setting, seed)
        self._threads = RunThreads(setting, self._advance_runs)

    def advance(self, batch: Batch[State], iteration: int, stops: Integers) -> Readings:
        """Advance the active runs of a batch, as `Engine.advance` does."""
        return self._threads.advance(batch, iteration, stops)

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    def _advance_runs(
        self, batch: Batch[State], positions: Integers, iteration: int, stops: Integers, out: Floats
    ) -> None:
        draws = self._setting.protocol.draws
        for k, position in enumerate(positions.tolist()):
            run, first = batch.runs[position], batch.iteration
            schedule = self._schedules.setdefault(
                run, Schedule(self._setting.drawn, self._seed, run, self._failures)
            )
            for s, stop in enumerate([*stops.tolist(), iteration]):
                while first < stop:
                    last = min(stop, (first * draws // BLOCK + 1) * BLOCK // draws)
                    self._advance_run(batch, position, schedule, first, last)
                    first = last
                if s < len(stops):
                    out[k, s] = self._read_run(batch, position, stop)


def repeat_arrays(arrays: Snapshot, runs: int) -> Snapshot:
    """Return the arrays of one run for each of several runs, with a leading run axis."""
    return {name: np.broadcast_to(array, (runs, *array.shape)) for name, array in arrays.items()}


def batch_of_arrays(
    runs: Sequence[int], iteration: int, snapshot: Mapping[str, NDArray[Any]]
) -> Batch[Snapshot]:
    """Return a batch whose state is a copy of arrays with a leading run axis."""
    arrays = {name: _aligned_copy(array) for name, array in snapshot.items()}
    return Batch(tuple(runs), iteration, np.ones(len(runs), dtype=np.bool_), arrays)


def failures_of(setting: Setting, seed: int) -> Failures | None:
    """Return which exchanges of a setting do not take place; None where all do."""
    if not setting.faults:
        return None
    return Failures(setting.faults, setting.placement.nodes, seed, setting.protocol.draws)


def _aligned_copy(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that begins at a line of cache."""
    raw = np.empty(array.nbytes + 64, dtype=np.uint8)
    skip = -raw.ctypes.data % 64
    copy: NDArray[Any] = raw[skip : skip + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


EngineFactory = Callable[[Setting, int], Engine[Any]]
