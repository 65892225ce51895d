"""The edges of `gosta.schedule`, drawn in a GPU's memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta.graphs.graph import Graph
from gosta.runtime.arrays import Integers
from gosta.schedule import BLOCK
from gosta.simulation.edges import NARROW, STREAM_SIZE, entropy_of, loop_text, network_of
from gosta.simulation.engines.gpu import device

THREADS = 128
MASK = (1 << 64) - 1
MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645  # of PCG64
FUTURE = "from __future__ import annotations\n"


MAX_DRAWN = 1 << 26  # edges drawn at a time, over all runs: half a GiB
FREE_SHARE = 8  # edges take at most this part of the free memory


class Edges:
    """Draws the edges of some runs, as many blocks at a time as fit into memory."""

    def __init__(self, graph: Graph, seed: int, has_shares: bool) -> None:
        cuda = device.cuda()
        self.network = network_of(graph, has_shares)
        self.has_shares, network = len(self.network.shares) > 1, self.network
        threads = device.SIMULATED_THREADS if device.is_simulated() else THREADS
        constants = {"KIND": network.kind, "THREADS": threads, "IS_COMPLETE": graph.edges is None}
        per_step = 2 if network.kind == NARROW else 1
        constants |= {
            "HAS_SHARES": self.has_shares,
            "PER_STEP": per_step,
            "TILE": per_step * threads,
        }
        constants["STREAM_SIZE"] = STREAM_SIZE
        text = loop_text()
        text += (
            Path(__file__).with_name("edge_loop.py").read_text(encoding="utf-8").replace(FUTURE, "")
        )
        text += "".join(f"{name} = {value!r}\n" for name, value in constants.items())
        self._kernel = device.specialise(text, {}, ("draw_blocks",)).draw_blocks
        self._threads = threads
        self._entropy = cuda.to_device(entropy_of(seed))
        self._jumps = cuda.to_device(_jumps(threads))
        ends = (
            network.ends.reshape(-1).view(np.int64)
            if len(network.ends)
            else np.zeros(1, dtype=np.int64)
        )
        parents = network.parents if len(network.parents) else np.zeros(1, dtype=np.int64)
        arrays = ends, network.cumulated, network.guide, network.shares, parents
        self._share = cuda.to_device(network.shares[:1].reshape(1, 1))
        self._network = (
            network.bound,
            network.threshold,
            graph.n,
            *(cuda.to_device(array) for array in arrays),
        )

        self._prepare()

    @property
    def bytes_per_block(self) -> int:
        """Memory for a block of edges of a run, twice: one is drawn while the other is used."""
        return 2 * (16 if self.has_shares else 8) * BLOCK

    def _prepare(self) -> None:
        """Compile the loop, or load it from disk."""
        buffer = (np.zeros((1, 1), dtype=np.int64), np.zeros((1, 1)))
        runs = np.zeros(1, dtype=np.int64)
        self._kernel.prepare((self._entropy, runs, 0, self._jumps, *self._network, *buffer))

    def allocate(self, blocks: int) -> tuple[Any, Any]:
        """Return arrays for some blocks of edges, and for their shares, or the share of all."""
        cuda = device.cuda()
        edges = cuda.device_array((blocks, BLOCK), dtype=np.int64)
        return edges, cuda.device_array((blocks, BLOCK)) if self.has_shares else self._share

    def draw(
        self, runs: Any, first: int, count: int, buffer: tuple[Any, Any], stream: Any
    ) -> tuple[Any, Any]:
        """Draw some blocks of edges of each run, from block `first` on.

        Edges and shares are returned as runs × draws.
        """
        edges, shares = buffer[0][: len(runs) * count], buffer[1][: len(runs) * count]
        arguments = self._entropy, runs, first, self._jumps, *self._network, edges, shares
        self._kernel.launch(len(runs) * count, self._threads, stream, 0, *arguments)
        return edges.reshape(len(runs), -1), shares.reshape(
            len(runs), -1
        ) if self.has_shares else shares


class Drawn(NamedTuple):
    """Edges that are drawn, or soon will be."""

    edges: Any  # runs × draws: both ends in one number
    shares: Any  # of these edges, or the share of all
    first: int  # number of the first draw
    last: int  # number of the draw after the last
    buffer: int  # which of the two buffers they are in
    event: Any  # when they are there


class DrawnAhead:
    """The edges of some runs, some blocks at a time.

    The next are drawn while exchanges of the last take place.
    """

    def __init__(self, edges: Edges, stream: Any) -> None:
        cuda = device.cuda()
        self._edges, self._stream, self._drawing_stream = edges, stream, cuda.stream()
        self._runs: tuple[int, ...] = ()
        self._buffers: list[tuple[Any, Any]] = []
        # Events after which the exchanges of the edges in each buffer have taken place.
        self._used = [cuda.event(), cuda.event()]
        self._now: Drawn | None = None
        self._next: Drawn | None = None

    def covering(self, runs: Integers, draw: int, last: int) -> Drawn:
        """Return edges of some runs with a given draw among them.

        The draws up to `last` will be needed soon.
        """
        if self._runs != tuple(runs.tolist()):
            self._choose(runs)
        if self._now is None or not self._now.first <= draw < self._now.last:
            if self._now is not None:
                self._used[self._now.buffer].record(self._stream)
            is_next = self._next is not None and self._next.first <= draw < self._next.last
            self._now = self._next if is_next else self._draw(draw // BLOCK, last, 0)
            assert self._now is not None
            self._now.event.wait(self._stream)
            self._next = None
        if self._next is None and self._now.last < last:
            self._next = self._draw(self._now.last // BLOCK, last, 1 - self._now.buffer)
        return self._now

    def _choose(self, runs: Integers) -> None:
        """Allocate buffers for the edges of other runs."""
        self._stream.synchronize()
        self._drawing_stream.synchronize()
        self._now, self._next, self._buffers = None, None, []
        most = min(
            MAX_DRAWN // BLOCK, device.free_memory() // FREE_SHARE // self._edges.bytes_per_block
        )
        self._blocks = max(1, most // len(runs))
        self._runs, self._device_runs = tuple(runs.tolist()), device.cuda().to_device(runs)
        self._buffers = [self._edges.allocate(self._blocks * len(runs)) for _ in range(2)]

    def _draw(self, block: int, last: int, buffer: int) -> Drawn:
        """Start to draw from a block on."""
        count, event = min(self._blocks, -(-last // BLOCK) - block), device.cuda().event()
        self._used[buffer].wait(self._drawing_stream)
        drawn = self._edges.draw(
            self._device_runs, block, count, self._buffers[buffer], self._drawing_stream
        )
        event.record(self._drawing_stream)
        return Drawn(*drawn, block * BLOCK, (block + count) * BLOCK, buffer, event)


def _jumps(threads: int) -> NDArray[np.uint64]:
    """Return A^k and (A^k - 1) / (A - 1) for k = 1 ... threads, two words of 64 bits each."""
    rows, power, total = [], 1, 0
    for _ in range(threads):
        power, total = power * MULTIPLIER % 2**128, (total * MULTIPLIER + 1) % 2**128
        rows.append([power >> 64, power & MASK, total >> 64, total & MASK])
    return np.array(rows, dtype=np.uint64)
