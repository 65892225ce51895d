"""The interface of engines: what carries out the exchanges of a simulation.

An engine is made for one setting and one seed. It advances all runs of a batch side by side; what it keeps of them is
its own affair. All engines draw the same edges (`gosta.schedule`) and give the same numbers.
"""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from gosta.estimation.setting import Setting
from gosta.runtime import machine
from gosta.runtime.arrays import Booleans, Floats
from gosta.schedule import BLOCK, Schedule

State = TypeVar("State")
Snapshot = dict[str, NDArray[Any]]


@dataclass
class Batch(Generic[State]):
    """Runs that are advanced side by side."""

    runs: tuple[int, ...]  # numbers of the runs; each has a schedule of its own
    iteration: int  # that all active runs have reached
    active: Booleans  # whether each run is still advanced
    state: State  # the engine's own data


class Engine(typing.Protocol[State]):
    """Carries out the exchanges of one setting, for batches of runs."""

    max_advance: int  # iterations that one call of `advance` should do at most, so that Ctrl-C is noticed in time

    def bytes_per_run(self) -> int:
        """Return the memory that a run takes."""

    def start(self, runs: Sequence[int]) -> Batch[State]:
        """Return a batch of runs at iteration 0, each node with its own rows as visitor."""

    def advance(self, batch: Batch[State], iteration: int) -> None:
        """Advance the active runs of a batch to an iteration.

        A KeyboardInterrupt is raised only after all of them have reached it.
        """

    def estimates(self, batch: Batch[State]) -> Floats:
        """Return the means that nodes estimate: runs × nodes × means."""

    def counts(self, batch: Batch[State]) -> Floats | None:
        """Return how many rows are in each node's estimates, runs × nodes; None where the protocol cannot tell."""

    def snapshot(self, batch: Batch[State]) -> Snapshot:
        """Return arrays with a leading run axis from which `restore` continues; empty: the engine cannot continue."""

    def restore(self, runs: Sequence[int], iteration: int, snapshot: Mapping[str, NDArray[Any]]) -> Batch[State]:
        """Return the batch that a snapshot was made of."""

    def close(self) -> None:
        """Free threads and memory."""


class ThreadedEngine(ABC, Generic[State]):
    """Common part of engines on the CPU: runs are distributed over threads, each run draws its own edges."""

    max_advance = 4 * BLOCK

    def __init__(self, setting: Setting, seed: int) -> None:
        self.setting, self.seed = setting, seed
        self._schedules: dict[int, Schedule] = {}
        self._pool = ThreadPoolExecutor(machine.available_cores())

    @abstractmethod
    def advance_run(self, batch: Batch[State], position: int, schedule: Schedule, first: int, last: int) -> None:
        """Advance the run at a position of a batch from iteration `first` to `last`, which are within one block."""

    def counts(self, batch: Batch[State]) -> Floats | None:  # noqa: ARG002
        return None

    def advance(self, batch: Batch[State], iteration: int) -> None:
        positions = np.flatnonzero(batch.active).tolist()
        threads = min(machine.available_cores(), len(positions))
        parts = [positions[k::threads] for k in range(threads)]
        futures = [self._pool.submit(self._advance_runs, batch, part, iteration) for part in parts]
        interrupted = False
        while not all(future.done() for future in futures):
            try:
                wait(futures)
            except KeyboardInterrupt:
                interrupted = True
        for future in futures:
            future.result()
        batch.iteration = iteration
        if interrupted:
            raise KeyboardInterrupt

    def _advance_runs(self, batch: Batch[State], positions: Sequence[int], iteration: int) -> None:
        draws = self.setting.protocol.draws
        for position in positions:
            run, first = batch.runs[position], batch.iteration
            schedule = self._schedules.setdefault(run, Schedule(self.setting.graph, self.seed, run))
            while first < iteration:
                last = min(iteration, (first * draws // BLOCK + 1) * BLOCK // draws)
                self.advance_run(batch, position, schedule, first, last)
                first = last

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._schedules.clear()


class ArrayEngine(ThreadedEngine[Snapshot]):
    """Common part of engines whose state is a set of arrays with a leading run axis."""

    @abstractmethod
    def first_arrays(self) -> Snapshot:
        """Return the arrays of one run at the start."""

    def bytes_per_run(self) -> int:
        return sum(array.nbytes for array in self.first_arrays().values())

    def start(self, runs: Sequence[int]) -> Batch[Snapshot]:
        first = self.first_arrays()
        return self.restore(runs, 0, {name: np.broadcast_to(a, (len(runs), *a.shape)) for name, a in first.items()})

    def snapshot(self, batch: Batch[Snapshot]) -> Snapshot:
        return batch.state

    def restore(self, runs: Sequence[int], iteration: int, snapshot: Mapping[str, NDArray[Any]]) -> Batch[Snapshot]:
        arrays = {name: _aligned_copy(array) for name, array in snapshot.items()}
        return Batch(tuple(runs), iteration, np.ones(len(runs), dtype=np.bool_), arrays)


def _aligned_copy(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that begins at a line of cache."""
    raw = np.empty(array.nbytes + 64, dtype=np.uint8)
    skip = -raw.ctypes.data % 64
    copy: NDArray[Any] = raw[skip : skip + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


EngineFactory = Callable[[Setting, int], Engine[Any]]
