"""Template of the compiled loop over exchanges where nodes hold tables of rows, or means of each row.

`gosta.estimation.exchange` is the definition; this is the same for all nodes at once. The engine appends the constants
and adapters declared here, and compiles the result.

A node is a row of `nodes`: its states; its number of exchanges; its mean over other nodes' rows; two weights. Its own
rows are x[offsets[node]:offsets[node + 1]]. The visitor at a node has a home, whose `positions` and `corrections`
describe its sample. `recent` holds, for each node from `recent_offsets` on, home, visits and mean kernel values of the
homes that it keeps apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.observation import Row, load, row, store

# Constants.
VALUES: int  # numbers that the kernel returns
MEANS: int  # numbers that are estimated
EXCHANGES: int  # column of the number of exchanges
OTHERS: int  # column of the mean over other nodes' rows
WEIGHT: int  # column of the two weights
SWAPS: bool  # whether there are visitors
NEEDS_HELD: bool
NEEDS_KNOWN: bool
NEEDS_EDGE_SHARE: bool
HAS_LOCAL: bool
ZEROS: tuple[float, ...]  # as many as the kernel returns values
NO_SAMPLE: tuple[float, ...]  # as many zeros as there are means

# Adapters, generated for the protocol and the kernel. `Values` are as many floats as the kernel returns.
Values = tuple[float, ...]
values: Callable[[Row, Row, tuple[Any, ...]], Values]  # the kernel
load_state: Callable[[Row, int], Any]
store_state: Callable[[Row, int, Any], None]
rule: Callable[..., Any]  # `meet` and `tell` of the protocol
add_values: Callable[[Values, Values], Values]
divide_values: Callable[[Values, float], Values]
corrected: Callable[[Values, int, Row], Values]  # sum / rows + correction
known_values: Callable[[Row, Row, float], Values]  # own mean, node, share of own rows -> mean over all rows
add_means: Callable[[tuple[float, ...], tuple[float, ...]], tuple[float, ...]]
divide_means: Callable[[tuple[float, ...], float], tuple[float, ...]]
local_of_row: Callable[..., tuple[float, ...]]  # halves, own mean, shift, scale, own share, share of second half


def advance(
    nodes: Floats,
    visitors: Integers,
    positions: Integers,
    corrections: Floats,
    halves: Floats,
    recent: Floats,
    recent_counts: Integers,
    x: Floats,
    offsets: Integers,
    recent_offsets: Integers,
    sample_sizes: Integers,
    own_means: Floats,
    own_row_means: Floats,
    scale: float,
    shift: Floats,
    edges: Any,
    edge_shares: Floats,
    start: int,
    options: tuple[Any, ...],
) -> None:
    """Carry out the exchanges of some edges, from tick start + 1 on."""
    for t in range(len(edges)):
        tick = start + t + 1.0
        pair = (edges[t, 0], edges[t, 1])
        rows_i, rows_j = offsets[pair[0] + 1] - offsets[pair[0]], offsets[pair[1] + 1] - offsets[pair[1]]
        cells_i, cells_j = row(nodes, pair[0]), row(nodes, pair[1])
        store(cells_i, EXCHANGES, load(cells_i, EXCHANGES) + 1.0)
        store(cells_j, EXCHANGES, load(cells_j, EXCHANGES) + 1.0)
        exchanges_i, exchanges_j = load(cells_i, EXCHANGES), load(cells_j, EXCHANGES)
        fewer = min(exchanges_i, exchanges_j)
        edge_share = edge_shares[min(t, len(edge_shares) - 1)] if NEEDS_EDGE_SHARE else 1.0
        held_i, held_j, known_i, known_j = NO_SAMPLE, NO_SAMPLE, NO_SAMPLE, NO_SAMPLE
        weight_i, weight_j = 0.0, 0.0
        if SWAPS:
            for node in pair:
                if visitors[node] == node:
                    next_sample(node, positions, corrections, x, offsets, sample_sizes, own_means, options)
            if NEEDS_HELD:
                held_i = mean_with(
                    pair[0], visitors[pair[0]], positions, corrections, x, offsets, sample_sizes, options
                )
                held_j = mean_with(
                    pair[1], visitors[pair[1]], positions, corrections, x, offsets, sample_sizes, options
                )
                weight_i, weight_j = (
                    add_weight(cells_i, 0, visitors[pair[0]], offsets),
                    add_weight(cells_j, 0, visitors[pair[1]], offsets),
                )
            visitors[pair[0]], visitors[pair[1]] = visitors[pair[1]], visitors[pair[0]]
        if NEEDS_KNOWN:
            for node in pair:
                home = visitors[node]
                if home != node:
                    if HAS_LOCAL:
                        fold_rows(
                            node,
                            home,
                            row(nodes, node),
                            halves,
                            positions,
                            corrections,
                            x,
                            offsets,
                            sample_sizes,
                            options,
                        )
                    else:
                        found = mean_with(node, home, positions, corrections, x, offsets, sample_sizes, options)
                        fold(node, home, found, row(nodes, node), recent, recent_counts, recent_offsets, offsets)
            if HAS_LOCAL:
                known_i = local_mean(pair[0], cells_i, halves, offsets, own_row_means, scale, shift)
                known_j = local_mean(pair[1], cells_j, halves, offsets, own_row_means, scale, shift)
            else:
                known_i = known_values(row(own_means, pair[0]), cells_i, rows_i / len(x))
                known_j = known_values(row(own_means, pair[1]), cells_j, rows_j / len(x))
        for c in range(MEANS):
            a, b = load_state(cells_i, c), load_state(cells_j, c)
            sample_i, sample_j = (held_i[c], 0.0, known_i[c]), (held_j[c], 0.0, known_j[c])
            share_i, share_j = rows_j / (rows_i + rows_j), rows_i / (rows_i + rows_j)
            store_state(cells_i, c, rule(a, b, sample_i, exchanges_i, fewer, weight_i, edge_share, share_i, tick))
            store_state(cells_j, c, rule(b, a, sample_j, exchanges_j, fewer, weight_j, edge_share, share_j, tick))


def next_sample(
    node: int,
    positions: Integers,
    corrections: Floats,
    x: Floats,
    offsets: Integers,
    sample_sizes: Integers,
    own_means: Floats,
    options: tuple[Any, ...],
) -> None:
    """Replace the sample of a node's visitor, which is at home, by the next rows."""
    rows, sample = offsets[node + 1] - offsets[node], sample_sizes[node]
    positions[node] = (positions[node] + sample) % rows
    if sample < rows:
        corrections[node] = 0.0
        found = mean_with(node, node, positions, corrections, x, offsets, sample_sizes, options)
        for c in range(VALUES):
            corrections[node, c] = own_means[node, c] - found[c]


def mean_with(
    node: int,
    home: int,
    positions: Integers,
    corrections: Floats,
    x: Floats,
    offsets: Integers,
    sample_sizes: Integers,
    options: tuple[Any, ...],
) -> Values:
    """Return the corrected mean kernel values of a node's rows with the visitor of a home."""
    first, last, start = offsets[node], offsets[node + 1], offsets[home]
    total, correction = ZEROS, row(corrections, home)
    for own in range(first, last):
        found = visit(x, own, start, offsets[home + 1] - start, positions[home], sample_sizes[home], options)
        total = add_values(total, corrected(found, sample_sizes[home], correction))
    return divide_values(total, last - first)


def visit(x: Floats, own: int, start: int, rows: int, position: int, sample: int, options: tuple[Any, ...]) -> Values:
    """Return the sums of the kernel of a row with the rows of a sample."""
    total = ZEROS
    for k in range(sample):
        total = add_values(total, values(row(x, own), row(x, start + (position + k) % rows), options))
    return total


def add_weight(cells: Row, half: int, home: int, offsets: Integers) -> float:
    """Add the rows of a home to a weight, and return their share of it."""
    rows = offsets[home + 1] - offsets[home]
    store(cells, WEIGHT + half, load(cells, WEIGHT + half) + rows)
    share: float = rows / load(cells, WEIGHT + half)
    return share


def fold(
    node: int,
    home: int,
    found: Values,
    cells: Row,
    recent: Floats,
    recent_counts: Integers,
    recent_offsets: Integers,
    offsets: Integers,
) -> None:
    """Fold the mean kernel values of a visitor into a node's mean over other nodes' rows."""
    first, count = recent_offsets[node], recent_counts[node]
    capacity = recent_offsets[node + 1] - first
    for k in range(first, first + min(count, capacity)):
        if recent[k, 0] == home:
            recent[k, 1] += 1.0
            weight = (offsets[home + 1] - offsets[home]) / load(cells, WEIGHT)
            for c in range(VALUES):
                change = (found[c] - recent[k, 2 + c]) / recent[k, 1]
                recent[k, 2 + c] += change
                store(cells, OTHERS + c, load(cells, OTHERS + c) + weight * change)
            return
    k = first + count % capacity
    recent[k, 0], recent[k, 1] = home, 1.0
    recent_counts[node] = count + 1
    weight = add_weight(cells, 0, home, offsets)
    for c in range(VALUES):
        recent[k, 2 + c] = found[c]
        mean = load(cells, OTHERS + c)
        store(cells, OTHERS + c, mean + weight * (found[c] - mean))


def fold_rows(
    node: int,
    home: int,
    cells: Row,
    halves: Floats,
    positions: Integers,
    corrections: Floats,
    x: Floats,
    offsets: Integers,
    sample_sizes: Integers,
    options: tuple[Any, ...],
) -> None:
    """Fold a visitor into the means of each row of a node, in one of the two halves."""
    half = int(load(cells, EXCHANGES)) // 2 % 2
    weight, start, correction = add_weight(cells, half, home, offsets), offsets[home], row(corrections, home)
    for own in range(offsets[node], offsets[node + 1]):
        found = visit(x, own, start, offsets[home + 1] - start, positions[home], sample_sizes[home], options)
        found = corrected(found, sample_sizes[home], correction)
        for c in range(VALUES):
            halves[own, half * VALUES + c] += weight * (found[c] - halves[own, half * VALUES + c])


def local_mean(
    node: int, cells: Row, halves: Floats, offsets: Integers, own_row_means: Floats, scale: float, shift: Floats
) -> tuple[float, ...]:
    """Return the mean over a node's rows of `local` of their means, without the bias of curved functions."""
    first, last, total = offsets[node], offsets[node + 1], NO_SAMPLE
    second = load(cells, WEIGHT + 1) / (load(cells, WEIGHT) + load(cells, WEIGHT + 1))
    own_share = (last - first) / len(halves)
    for own in range(first, last):
        found = local_of_row(row(halves, own), row(own_row_means, own), row(shift, own), scale, own_share, second)
        total = add_means(total, found)
    return divide_means(total, last - first)
