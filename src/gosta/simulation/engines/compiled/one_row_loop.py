"""Template of the compiled loop over exchanges where each node holds one row.

`gosta.estimation.exchange` is the definition; this is its specialisation for tables of one row. The engine appends the
constants and adapters declared here, and compiles the result. Functions that take arrays count references, so all but
`advance` take rows of arrays.

A node is a row of `nodes`: its states; its number of exchanges; if the protocol needs `known`, its mean over other
nodes' rows, their number and the numbers of the last of them. If CARRIED, its own observation and its visitors follow,
each visitor after the number of its row; otherwise `visitors` holds numbers of rows of `x`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gosta.runtime.arrays import Floats
from gosta.runtime.observation import Row, load, part, prefetch, row, store

# Constants.
DRAWS: int  # edges in an iteration
VALUES: int  # numbers that the kernel returns
MEANS: int  # numbers that are estimated
NUMBERS: int  # numbers in an observation
NODE_SIZE: int  # numbers in a row of `nodes`
EXCHANGES: int  # column of the number of exchanges
OTHERS: int  # column of the mean over other nodes' rows
RECENT: int  # column of the number of these rows; after it, the last of them
RECENT_SIZE: int
OWN: int  # column of the own observation
VISITOR: int  # column of the first visitor
CARRIED: bool  # whether observations and visitors are columns of `nodes`
VISITORS: int  # visitors that a node holds
NEEDS_HELD: bool
NEEDS_FRESH: bool
NEEDS_KNOWN: bool
NEEDS_EDGE_SHARE: bool
HAS_DIAGONAL: bool  # whether the kernel of a row with itself is not always zero
AHEAD: int  # draws between prefetching a node and using it
CACHE_LINE: int  # numbers in a line of cache
NO_SAMPLE: tuple[float, ...]  # as many zeros as there are means

# Adapters, generated for the protocol and the kernel.
values: Callable[[Row, Row, tuple[Any, ...]], tuple[float, ...]]  # the kernel
load_state: Callable[[Row, int], Any]
store_state: Callable[[Row, int, Any], None]
rule: Callable[..., Any]  # `meet` and `tell` of the protocol
known_values: Callable[[Row, Row, float], tuple[float, ...]]  # own mean, node, share of own rows -> mean over all rows


def advance(
    nodes: Floats,
    x: Floats,
    visitors: Any,
    diagonal: Floats,
    edges: Any,
    edge_shares: Floats,
    start: int,
    options: tuple[Any, ...],
) -> None:
    """Carry out the exchanges of some edges, from tick start + 1 on."""
    own_share = 1.0 / len(nodes)
    for t in range(0, len(edges), DRAWS):
        tick = start + t // DRAWS + 1.0
        if CARRIED:
            soon = min(t + AHEAD, len(edges) - 1)
            for c in range(0, NODE_SIZE, CACHE_LINE):
                prefetch(nodes, edges[soon, 0], c)
                prefetch(nodes, edges[soon, 1], c)
        for slot in range(DRAWS):
            i, j = edges[t + slot, 0], edges[t + slot, 1]
            held_i, fresh_i, known_i = NO_SAMPLE, NO_SAMPLE, NO_SAMPLE
            held_j, fresh_j, known_j = NO_SAMPLE, NO_SAMPLE, NO_SAMPLE
            cells_i, cells_j = row(nodes, i), row(nodes, j)
            exchanges_i, exchanges_j = load(cells_i, EXCHANGES) + 1.0, load(cells_j, EXCHANGES) + 1.0
            store(cells_i, EXCHANGES, exchanges_i)
            store(cells_j, EXCHANGES, exchanges_j)
            edge_share = edge_shares[min(t + slot, len(edge_shares) - 1)] if NEEDS_EDGE_SHARE else 1.0
            if NEEDS_HELD:
                if CARRIED:
                    held_i = values(part(nodes, i, OWN, NUMBERS), part(nodes, i, VISITOR + 1, NUMBERS), options)
                    held_j = values(part(nodes, j, OWN, NUMBERS), part(nodes, j, VISITOR + 1, NUMBERS), options)
                else:
                    held_i = values(part(x, i, 0, NUMBERS), part(x, visitors[i, 0], 0, NUMBERS), options)
                    held_j = values(part(x, j, 0, NUMBERS), part(x, visitors[j, 0], 0, NUMBERS), options)
            if VISITORS > 0:
                if CARRIED:
                    first = VISITOR + slot * (NUMBERS + 1)
                    for c in range(first, first + NUMBERS + 1):
                        kept = load(cells_i, c)
                        store(cells_i, c, load(cells_j, c))
                        store(cells_j, c, kept)
                else:
                    visitors[i, slot], visitors[j, slot] = visitors[j, slot], visitors[i, slot]
            if NEEDS_FRESH:
                if CARRIED:
                    home_i, home_j = int(load(cells_i, VISITOR)), int(load(cells_j, VISITOR))
                    own_i, own_j = part(nodes, i, OWN, NUMBERS), part(nodes, j, OWN, NUMBERS)
                    guest_i, guest_j = part(nodes, i, VISITOR + 1, NUMBERS), part(nodes, j, VISITOR + 1, NUMBERS)
                    if VISITORS == 2:
                        second = VISITOR + NUMBERS + 2
                        own_i, own_j = part(nodes, i, second, NUMBERS), part(nodes, j, second, NUMBERS)
                else:
                    home_i, home_j = visitors[i, 0], visitors[j, 0]
                    own_i, own_j = part(x, i, 0, NUMBERS), part(x, j, 0, NUMBERS)
                    guest_i, guest_j = part(x, home_i, 0, NUMBERS), part(x, home_j, 0, NUMBERS)
                    if VISITORS == 2:
                        own_i, own_j = part(x, visitors[i, 1], 0, NUMBERS), part(x, visitors[j, 1], 0, NUMBERS)
                if VISITORS == 2:
                    fresh_i, fresh_j = values(guest_i, own_i, options), values(guest_j, own_j, options)
                elif NEEDS_KNOWN:
                    own_mean_i, own_mean_j = row(diagonal, 0), row(diagonal, 0)
                    if HAS_DIAGONAL:
                        own_mean_i, own_mean_j = row(diagonal, i), row(diagonal, j)
                    if home_i != i:
                        fold(cells_i, own_i, guest_i, home_i, options)
                    if home_j != j:
                        fold(cells_j, own_j, guest_j, home_j, options)
                    known_i = known_values(own_mean_i, cells_i, own_share)
                    known_j = known_values(own_mean_j, cells_j, own_share)
                else:
                    fresh_i, fresh_j = values(own_i, guest_i, options), values(own_j, guest_j, options)
            fewer, weight_i, weight_j = min(exchanges_i, exchanges_j), 1.0 / exchanges_i, 1.0 / exchanges_j
            for c in range(MEANS):
                a, b = load_state(cells_i, c), load_state(cells_j, c)
                sample_i, sample_j = (held_i[c], fresh_i[c], known_i[c]), (held_j[c], fresh_j[c], known_j[c])
                store_state(cells_i, c, rule(a, b, sample_i, exchanges_i, fewer, weight_i, edge_share, 0.5, tick))
                store_state(cells_j, c, rule(b, a, sample_j, exchanges_j, fewer, weight_j, edge_share, 0.5, tick))


def fold(cells: Row, own: Row, guest: Row, home: int, options: tuple[Any, ...]) -> None:
    """Fold a visitor into a node's mean over other nodes' rows, unless it visited lately."""
    for k in range(RECENT + 1, RECENT + 1 + RECENT_SIZE):
        if load(cells, k) == home:
            return
    count = load(cells, RECENT)
    store(cells, RECENT, count + 1.0)
    store(cells, RECENT + 1 + int(count) % RECENT_SIZE, 1.0 * home)
    fresh = values(own, guest, options)
    for c in range(VALUES):
        mean = load(cells, OTHERS + c)
        store(cells, OTHERS + c, mean + 1.0 / (count + 1.0) * (fresh[c] - mean))
