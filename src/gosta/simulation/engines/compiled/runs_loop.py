"""Template of the loop over runs, readings and exchanges, which all layouts have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.observation import Row, prefetch, row

Arrays = tuple[Any, ...]
Options = tuple[Any, ...]

# Constants.
DRAWS: int  # edges in an iteration
STATES: int  # states of a node
# Whether some exchanges do not take place; asking costs a tenth of the fastest exchange.
HAS_FAULTS: bool
NODE_SIZE: int  # numbers in a row of the array of nodes, the first array of a run
PREFETCHES: bool  # whether nodes do not fit into the cache
AHEAD: int  # draws between prefetching a node and using it
CACHE_LINE: int  # numbers in a line of cache

# Adapters, and functions of the engine's own template.
of_run: Callable[[Arrays, int], Arrays]  # the arrays of one run
exchange: Callable[..., None]
load_state: Callable[[Row, int], Any]
read: Callable[[Any, float], float]  # of the protocol


def advance_runs(
    arrays: Arrays,
    fixed: Arrays,
    positions: Integers,
    edges: Any,
    shares: Floats,
    start: int,
    stops: Integers,
    options: Options,
    out: Floats,
    place: int,
) -> None:
    """Carry out the exchanges of edges, runs × draws × 2, and read the states at `stops`.

    What is read goes to `out`, runs × readings × nodes × states, from a place on.
    """
    for k in range(len(positions)):
        state, first = of_run(arrays, positions[k]), start
        for s in range(len(stops) + 1):
            last = stops[s] if s < len(stops) else start + edges.shape[1] // DRAWS
            part = slice((first - start) * DRAWS, (last - start) * DRAWS)
            own_shares = shares[k, part] if shares.shape[1] > 1 else shares[k]
            advance(state, fixed, edges[k, part], own_shares, first, options)
            first = last
            if s < len(stops):
                read_nodes(state[0], float(last), out[k, place + s])


def advance(
    state: Arrays, fixed: Arrays, edges: Any, shares: Floats, start: int, options: Options
) -> None:
    """Carry out the exchanges of some edges, from tick start + 1 on."""
    if (
        state[0].shape[1] != NODE_SIZE
    ):  # never; the compiler now knows by what to multiply the number of a node
        return
    for t in range(len(edges)):
        if PREFETCHES:
            soon = min(t + AHEAD, len(edges) - 1)
            for c in range(0, NODE_SIZE, CACHE_LINE):
                prefetch(state[0], edges[soon, 0], c)
                prefetch(state[0], edges[soon, 1], c)
        if HAS_FAULTS and edges[t, 0] < 0:  # an exchange that does not take place
            continue
        tick, share = start + t // DRAWS + 1.0, shares[min(t, len(shares) - 1)]
        # Unsigned, because numba checks at every use whether a signed index counts from the end.
        i, j = np.uint32(edges[t, 0]), np.uint32(edges[t, 1])
        exchange(state, fixed, i, j, t % DRAWS, tick, share, options)


def read_nodes(nodes: Floats, tick: float, out: Floats) -> None:
    """Read all states of all nodes."""
    for i in range(len(nodes)):
        for c in range(STATES):
            out[i, c] = read(load_state(row(nodes, i), c), tick)
