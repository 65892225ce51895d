"""The engine on a GPU: the layouts of the compiled engine, in the memory of the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError, UnsupportedError
from gosta.estimation.setting import Setting
from gosta.protocols import CollectingProtocol
from gosta.runtime.arrays import Floats, Integers
from gosta.simulation.engines.compiled.layouts import (
    CarriedLayout,
    Layout,
    OneRowLayout,
    compiler_error,
    loop_text,
)
from gosta.simulation.engines.engine import (
    NO_STOPS,
    Batch,
    Engine,
    Readings,
    Snapshot,
    repeat_arrays,
)
from gosta.simulation.engines.gpu import device
from gosta.simulation.engines.gpu.edges import FUTURE, DrawnAhead, Edges

INTRINSICS = (
    "\nfrom gosta.simulation.engines.gpu.intrinsics import floats_at, integers_at, is_among, "
    "shorts_at, take\n"
)
KERNELS = ("advance_side_by_side", "advance_one", "read_runs")
# As in exchange_loop.py.
FREE = 2**31 - 1
TURNS = 4
# Threads of a block that reads states, and the most of these blocks.
READING_THREADS = 256
MAX_READING_BLOCKS = 4096
# Threads of a block that works on a run of its own.
MIN_THREADS = 256
MAX_THREADS = 512
# Threads of a block, where all blocks work on one run.
ONE_THREADS = 256
# Nodes for each pending exchange, with which either loop was fastest on an H200: with fewer,
# exchanges are in each other's way.
NODES_PER_THREAD = 4
NODES_PER_THREAD_OF_ONE = 4
# Numbers in an observation that is worth copying along with its visitor.
MAX_INLINE_NUMBERS = 4


def choose_layout(setting: Setting) -> Layout:
    """Return the layout for a setting.

    Nodes are inline where they do not fit into the cache, if observations are short.
    """
    if setting.gossip.carries_means:
        return CarriedLayout(setting)
    n, d = setting.estimand.x.shape
    is_large = 8 * n * (d + setting.state_count * setting.gossip.fields) > device.cache_bytes()
    has_blocks = 4 * n + 8 * MAX_THREADS <= device.max_shared_bytes()
    return OneRowLayout(setting, is_large and not has_blocks and d <= MAX_INLINE_NUMBERS)


class GpuEngine:
    """Carries out the exchanges of runs on a GPU; `batch.state` are arrays of the device.

    If the claims of all nodes fit into the shared memory of a block, each run has a block of
    threads, and what nodes hold is in shared memory as well if it fits. Otherwise all threads work
    on one run after the other.
    """

    has_blocks: bool  # whether each run has a block of threads
    shared_bytes: int  # shared memory of such a block

    def __init__(self, setting: Setting, seed: int, layout: Layout) -> None:
        self.setting, self.layout = setting, layout
        self._options = tuple(setting.estimand.kernel_options.values())
        graph, n = setting.graph, setting.placement.nodes
        size = (
            sum(array.nbytes for array in layout.fixed)
            + 8 * n
            + (0 if graph.edges is None else 32 * graph.m)
        )
        device.require_memory(size, f"a network of {n} nodes", "use a smaller one")
        self.edges = Edges(graph, seed, "edge_share" in setting.gossip.inputs)
        self._compile()
        cuda = device.cuda()
        self._fixed_arrays = tuple(cuda.to_device(array) for array in layout.fixed)
        self._stream, self._buffers = cuda.stream(), [_Buffer(), _Buffer()]
        self._is_limited = False
        if not self.has_blocks:
            self._threads = device.SIMULATED_THREADS if device.is_simulated() else ONE_THREADS
        self._blocks = (
            1 if device.is_simulated() else -(-n // NODES_PER_THREAD_OF_ONE // ONE_THREADS)
        )
        self._claims = (
            None if self.has_blocks else cuda.to_device(np.full((2, n), FREE, dtype=np.int32))
        )

    def _compile(self) -> None:
        """Compile the loops for the protocol, the kernel and the layout."""
        example = self.layout.example()
        text, functions = loop_text(self.layout, len(example))
        constants = {"NODES": self.setting.placement.nodes, "HAS_SHARES": self.edges.has_shares}
        loop = Path(__file__).with_name("exchange_loop.py").read_text(encoding="utf-8")
        text += loop.replace(FUTURE, "")
        text += "".join(f"{name} = {value!r}\n" for name, value in constants.items())
        text += self._shared_memory({name: array.shape[1] for name, array in example.items()})
        text += "" if device.is_simulated() else INTRINSICS
        device.check_functions(*(functions[name] for name in ("kernel", "meet", "tell", "read")))
        try:
            self._module = device.specialise(text, functions, KERNELS)
            self._prepare(tuple(array[None] for array in example.values()))
        except Exception as error:  # numba raises several kinds
            raise compiler_error(self.setting, error) from error

    def _shared_memory(self, widths: Mapping[str, int]) -> str:
        """Choose what is in shared memory; return the text of the functions that place it there.

        These are the claims and the queue; then, if they fit, what nodes hold; then arrays that
        never change.
        """
        # The limit, and all sizes below, are numbers of 8 bytes.
        n, limit = (self.setting.placement.nodes, device.max_shared_bytes() // 8)
        queue, places, at = -(-n // 2), [], 0
        for name, width in widths.items():
            if (
                name == "nodes"
            ):  # an odd number of columns, so that rows begin in different banks of memory
                places.append(f"floats_at(shared, STATE + {at}, {n}, {width | 1})")
                at += n * (width | 1)
            else:
                places.append(f"shorts_at(shared, STATE + {at}, {n}, {max(1, width)})")
                at += -(-n * max(1, width) // 4)
        self._threads = device.SIMULATED_THREADS if device.is_simulated() else _threads_of(n)
        fits = queue + MIN_THREADS + at <= limit
        while fits and queue + self._threads + at > limit:
            self._threads -= 32
        start = queue + self._threads
        self.has_blocks = start <= limit and n < 1 << 16
        in_shared = self.has_blocks and start + at <= limit
        fixed, copied = [f"device_fixed[{k}]" for k in range(len(self.layout.fixed))], []
        for k, array in enumerate(self.layout.fixed):
            size = array.size // array.shape[-1] * (array.shape[-1] | 1)
            if in_shared and array.ndim == 2 and start + at + size <= limit:
                fixed[k] = f"floats_at(shared, STATE + {at}, {len(array)}, {array.shape[1] | 1})"
                copied.append(f"copy(source[{k}], target[{k}])")
                at += size
        self.shared_bytes = 8 * (start + at * in_shared)
        copies = "\n    ".join(f"copy(source[{k}], target[{k}])" for k in range(len(widths)))
        return f"""QUEUE, STATE, IN_SHARED = {queue}, {start}, {in_shared}


def state_of(shared, device_state):
    return {f"({', '.join(places)},)" if in_shared else "device_state"}


def fixed_of(shared, device_fixed):
    return ({", ".join(fixed)},)


def copy_all(source, target):
    {copies}


def copy_fixed(source, target):
    {"; ".join(copied) or "pass"}
"""

    def _prepare(self, arrays: tuple[NDArray[Any], ...]) -> None:
        """Compile the loops that will be needed, for arrays of the same types."""
        integers, table = np.zeros(1, dtype=np.int64), np.zeros((1, 1), dtype=np.int64)
        end = 0, np.int32(0), 0, self._options, integers
        if self.has_blocks:
            self._module.advance_side_by_side.prepare(
                (arrays, self.layout.fixed, integers, table, 0.0 * table, *end)
            )
        else:
            control = np.zeros(1 + TURNS, dtype=np.int32)
            claims = table.astype(np.int32)
            self._module.advance_one.prepare(
                (arrays, self.layout.fixed, 0, table, 0.0 * table, 0, *end, claims, control)
            )
        self._module.read_runs.prepare((arrays, integers, 0, 0.0, np.zeros((1, 1, 1, 1))))

    def bytes_per_run(self) -> int:
        return 8 * self.setting.placement.nodes * (self.layout.size + 1)

    def start(self, runs: Sequence[int]) -> Batch[Snapshot]:
        return self.restore(runs, 0, repeat_arrays(self.layout.first_arrays(), len(runs)))

    def restore(
        self, runs: Sequence[int], iteration: int, snapshot: Mapping[str, NDArray[Any]]
    ) -> Batch[Snapshot]:
        purpose = f"keeping the nodes of {len(runs)} runs"
        needed = self.bytes_per_run() + self.edges.bytes_per_block
        device.require_memory(len(runs) * needed, purpose, "use fewer runs")
        cuda = device.cuda()
        state = {name: cuda.to_device(_for_device(array)) for name, array in snapshot.items()}
        self._widths = {name: array.shape[-1] for name, array in snapshot.items()}
        self._finished = cuda.to_device(np.zeros(len(runs), dtype=np.int64))
        self._started = np.zeros(len(runs), dtype=np.int64)  # exchanges of each run
        self._drawn = DrawnAhead(self.edges, self._stream)
        return Batch(tuple(runs), iteration, np.ones(len(runs), dtype=np.bool_), state)

    def snapshot(self, batch: Batch[Snapshot]) -> Snapshot:
        arrays: dict[str, Any] = dict(batch.state)
        return {
            name: array.copy_to_host()[..., : self._widths[name]] for name, array in arrays.items()
        }

    def advance(
        self, batch: Batch[Snapshot], iteration: int, stops: Integers = NO_STOPS
    ) -> Readings:
        draws = self.setting.protocol.draws
        active = np.flatnonzero(batch.active)
        arrays = tuple(batch.state.values())
        positions = device.cuda().to_device(active, stream=self._stream)
        runs, now = np.array(batch.runs)[active], batch.iteration
        self._buffers.reverse()
        buffer = self._buffers[0]
        shape = (len(active), len(stops), self.setting.placement.nodes, self.setting.state_count)
        out = buffer.reserve(shape)
        for s, stop in enumerate([*stops.tolist(), iteration]):
            while now < stop:
                drawn = self._drawn.covering(runs, now * draws, iteration * draws)
                count = min(stop * draws, drawn.last) - now * draws
                end = now * draws - drawn.first, np.int32(count), now, self._options, self._finished
                self._carry_out(arrays, active, positions, drawn.edges, drawn.shares, *end)
                now += count // draws
            if s < len(stops):
                blocks = min(
                    -(-len(active) * self.setting.placement.nodes // READING_THREADS),
                    MAX_READING_BLOCKS,
                )
                size = (1, self._threads) if device.is_simulated() else (blocks, READING_THREADS)
                self._module.read_runs.launch(
                    *size, self._stream, 0, arrays, positions, s, float(stop), out
                )
        self._started[active] += (iteration - batch.iteration) * draws
        batch.iteration = iteration
        return buffer.readings(
            shape, self._finished, self._stream, self._started.copy(), self._check
        )

    def _carry_out(
        self,
        arrays: tuple[Any, ...],
        active: Integers,
        positions: Any,
        edges: Any,
        shares: Any,
        *end: Any,
    ) -> None:
        """Start the next exchanges of each run.

        `end` is the number of the first edge, the number of exchanges, the iteration, and the
        options and counts that the loops take.
        """
        if self.has_blocks:
            all_runs = self._module.advance_side_by_side
            arguments_of_all = (arrays, self._fixed_arrays, positions, edges, shares, *end)
            if not self._is_limited:
                self._threads = min(self._threads, all_runs.max_threads(arguments_of_all))
                self._is_limited = True
            all_runs.launch(
                len(active), self._threads, self._stream, self.shared_bytes, *arguments_of_all
            )
            return
        cuda, kernel, count = device.cuda(), self._module.advance_one, int(end[1])
        for k, position in enumerate(active.tolist()):
            arguments = arrays, self._fixed_arrays, position, edges, shares, k, *end, self._claims
            nothing = np.zeros(1 + TURNS, dtype=np.int32)
            if not self._is_limited:
                self._blocks = min(
                    self._blocks, kernel.max_blocks(self._threads, (*arguments, nothing))
                )
                self._is_limited = True
            nothing[0] = min(count, self._blocks * (self._threads - 1))
            control = cuda.to_device(nothing, stream=self._stream)
            kernel.launch(self._blocks, self._threads, self._stream, 0, *arguments, control)

    def _check(self, missing: int) -> None:
        if missing:
            name = self.setting.estimand.tracked.name
            what = f"{missing} exchanges were not finished on the GPU"
            raise InputError(f"{name}: {what}, since a function failed there; {device.OTHERWISE}")

    def visitors(self, batch: Batch[Snapshot]) -> Integers:
        return self.layout.visitor_homes(self.snapshot(batch)).astype(np.int64)

    def close(self) -> None:
        self._buffers.clear()


class _Buffer:
    """Memory for what is read, on the device and on the CPU.

    It is used again for every second call.
    """

    def __init__(self) -> None:
        self.on_device: Any = None
        self.on_host: Any = None

    def reserve(self, shape: tuple[int, ...]) -> Any:
        """Return an array of the device."""
        size = max(1, int(np.prod(shape)))
        if self.on_host is None or len(self.on_host) < size:
            cuda = device.cuda()
            self.on_device, self.on_host = cuda.device_array(size), cuda.pinned_array(size)
        return self.on_device[: int(np.prod(shape))].reshape(shape)

    def readings(
        self, shape: tuple[int, ...], finished: Any, stream: Any, started: Integers, check: Any
    ) -> Readings:
        """Copy what was read to the CPU, once it is there."""
        cuda, size = device.cuda(), int(np.prod(shape))
        counts, event = cuda.pinned_array(len(started), dtype=np.int64), cuda.event()
        if size:
            self.on_device[:size].copy_to_host(self.on_host[:size], stream=stream)
        finished.copy_to_host(counts, stream=stream)
        event.record(stream)

        def wait() -> Floats:
            event.synchronize()
            check(int((started - counts).sum()))
            readings: Floats = self.on_host[:size].reshape(shape)
            return readings

        return wait


def _threads_of(n: int) -> int:
    return min(MAX_THREADS, max(1, n // NODES_PER_THREAD // 32) * 32)


def _for_device(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of an array that is not empty, since a device cannot hold nothing.

    It has strides of its own: those of a broadcast array would make the one on the device slow.
    """
    return (
        np.array(array, order="C")
        if array.shape[-1]
        else np.zeros((*array.shape[:-1], 1), dtype=array.dtype)
    )


def make(setting: Setting, seed: int) -> Engine[Any]:
    """Return the engine for a setting."""
    device.require_gpu()
    estimand, placement, protocol = setting.estimand, setting.placement, setting.protocol
    for is_asked, what in (
        (isinstance(protocol, CollectingProtocol), f"protocol {protocol.name}"),
        (protocol.minimises, "objectives: a step takes a loop over all rows that a node knows,"),
        (placement.has_tables, "nodes with several rows"),
        (estimand.level is not None, "intervals"),
        (bool(setting.faults), "faults"),
        (setting.changing is not None, "graphs that change"),
        (
            estimand.tracked.local is not None,
            f"{estimand.statistic.name}, which needs the mean of each row",
        ),
    ):
        if is_asked:
            raise UnsupportedError(f"engine 'gpu' does not support {what}; {device.OTHERWISE}")
    return GpuEngine(setting, seed, choose_layout(setting))
