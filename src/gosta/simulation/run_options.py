"""How the runs of a simulation are carried out, and when estimates are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from gosta.errors import InputError, unknown
from gosta.estimation.stopping import reading_times
from gosta.runtime.arrays import Integers

Spacing = Literal["linear", "log"]

# Largest count: ticks are floats, which count exactly up to here.
MAX_COUNT = 1 << 53
# Iterations of a run, times the number of nodes, unless a user gives another number.
ITERATIONS_PER_NODE = 100
# The same with `until`: after so many, a run ends even if its nodes have not stopped.
MAX_ITERATIONS_PER_NODE = 10_000


def check_count(name: str, value: object) -> None:
    """Raise `InputError` unless a value is a positive whole number."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | np.integer)
        or not 1 <= value <= MAX_COUNT
    ):
        raise InputError(f"{name} = {value!r} must be a whole number from 1 to {MAX_COUNT}")


@dataclass(frozen=True)
class CheckpointOptions:
    """When the estimates of a run are read, as the arguments of `gosta.simulate` say it."""

    iterations: int | None
    iterations_per_node: int | None
    checkpoints: int
    spacing: Spacing
    until: float | None

    def __post_init__(self) -> None:
        check_count("checkpoints", self.checkpoints)
        if self.iterations is not None:
            check_count("iterations", self.iterations)
        if self.iterations_per_node is not None:
            check_count("iterations_per_node", self.iterations_per_node)
            if self.iterations is not None:
                raise InputError(
                    "iterations and iterations_per_node exclude each other; give one of them"
                )
        if self.until is not None and (
            not isinstance(self.until, float | np.floating) or not 0 < self.until < 1
        ):
            raise InputError(
                f"until = {self.until!r} must be a relative error between 0 and 1, such as 0.01"
            )
        if self.spacing not in get_args(Spacing):
            raise unknown("spacing", str(self.spacing), get_args(Spacing))

    def times(self, nodes: int) -> Integers:
        """Return the iterations at which estimates are read in a network of some nodes."""
        per_node = ITERATIONS_PER_NODE if self.until is None else MAX_ITERATIONS_PER_NODE
        last = int(self.iterations or (self.iterations_per_node or per_node) * nodes)
        if self.until is not None:
            return reading_times(min(last, nodes), last)
        count = min(self.checkpoints, last)
        is_even = self.spacing == "linear"
        times = np.linspace(0, last, count + 1)[1:] if is_even else np.geomspace(last, 1, count)
        return np.unique(np.maximum(1, np.round(times))).astype(np.int64)


@dataclass(frozen=True)
class RunInfo:
    """How the runs of a trace were carried out."""

    runs: int
    seed: int
    engine: str
    iterations: int
    """Iteration of the last checkpoint."""
    spacing: Spacing
    """Whether checkpoints are spaced evenly ("linear") or in equal ratios ("log")."""
    clocks: bool
    """Whether the times of checkpoints were recorded."""
    until: float | None
    """Relative error at which nodes were to stop; None: they did not stop by themselves."""
    seconds: float = 0.0
    """How long the runs took."""

    def __post_init__(self) -> None:
        check_count("runs", self.runs)
        if not isinstance(self.seed, int | np.integer) or self.seed < 0:
            raise InputError(f"seed = {self.seed!r} must be a whole number, not negative")
        # Files hold numbers of Python only.
        object.__setattr__(self, "runs", int(self.runs))
        object.__setattr__(self, "seed", int(self.seed))
        object.__setattr__(self, "until", None if self.until is None else float(self.until))
