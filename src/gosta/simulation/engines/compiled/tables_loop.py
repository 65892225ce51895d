"""Template of the compiled exchange where nodes hold tables of rows, or means of each row.

`gosta.estimation.exchange` is the definition; this is the same for all nodes at once. The engine
appends the constants and adapters declared here, and compiles the result. A node is a row of
`nodes`: its states; its number of exchanges; its mean over other nodes' rows; two weights.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.observation import Row, load, row, store

# Arrays that belong together.
# The home of each node's visitor; position and correction of each home's sample.
Travel = tuple[Integers, Integers, Floats]
# Home, visits and means of the homes kept apart; the number that each node has met so far.
Memory = tuple[Floats, Integers]
# The rows; for each node its first row, its first home kept apart, and its sample size.
Table = tuple[Floats, Integers, Integers, Integers]
# Own means of nodes; own means of rows, with their scale and offset for `row_values`.
Own = tuple[Floats, Floats, Floats, Floats]
# The arrays of a run, in the order of the layout.
RunArrays = tuple[Floats, Integers, Integers, Floats, Floats, Floats, Integers]
Fixed = tuple[Table, Own, Integers]
Options = tuple[Any, ...]
Values = tuple[float, ...]  # as many as the kernel returns
Means = tuple[float, ...]  # as many as are estimated

# Constants.
VALUES: int  # numbers that the kernel returns
STATES: int  # states of a node
VISITORS: int  # visitors that a node holds: none or one
EXCHANGES: int  # column of the number of exchanges
OTHERS: int  # column of the mean over other nodes' rows
WEIGHT: int  # column of the two weights
NEEDS_HELD: bool
NEEDS_FRESH: bool
NEEDS_KNOWN: bool
NEEDS_TREE: bool
HAS_LOCAL: bool
ZEROS: Values
NO_SAMPLE: Means  # one for each state
NO_MEANS: Means

# Adapters, generated for the protocol and the kernel.
values: Callable[[Row, Row, Options], Values]  # the kernel
load_state: Callable[[Row, int], Any]
store_state: Callable[[Row, int, Any], None]
rule: Callable[..., Any]  # `meet` and `tell` of the protocol
add_values: Callable[[Values, Values], Values]
divide_values: Callable[[Values, float], Values]
corrected: Callable[[Values, int, Row], Values]  # sum / rows + correction
# Takes the own mean, a node and the share of own rows; returns the mean over all rows.
known_values: Callable[[Row, Row, float], Values]
with_count: Callable[[Means], Means]  # adds 1 where rows are counted
load_values: Callable[[Row, int], Values]
# Returns the mean of two means, given the share of the second.
pooled: Callable[[Values, Values, float], Values]
# Converts means over other nodes' rows to normalised means over all rows.
row_values: Callable[[Values, Row, Row, Row, float], Values]
local_values: Callable[[Values], Means]  # `local` of the statistic
add_means: Callable[[Means, Means], Means]
divide_means: Callable[[Means, float], Means]
unbiased: Callable[[Means, Means, Means], Means]  # from the halves and the whole


def exchange(
    state: RunArrays,
    fixed: Fixed,
    i: int,
    j: int,
    slot: int,
    tick: float,
    edge_share: float,
    options: Options,
) -> None:
    """Carry out the exchange of two nodes."""
    (nodes, visitors, positions, corrections, halves, recent, recent_counts) = state
    (table, own, parents) = fixed
    travel, memory = (visitors, positions, corrections), (recent, recent_counts)
    (x, offsets), own_means = table[:2], own[0]
    rows_i, rows_j = offsets[i + 1] - offsets[i], offsets[j + 1] - offsets[j]
    cells_i, cells_j = row(nodes, i), row(nodes, j)
    exchanges_i, exchanges_j = load(cells_i, EXCHANGES) + 1.0, load(cells_j, EXCHANGES) + 1.0
    store(cells_i, EXCHANGES, exchanges_i)
    store(cells_j, EXCHANGES, exchanges_j)
    fewer = min(exchanges_i, exchanges_j)
    held_i, fresh_i, known_i = NO_SAMPLE, NO_SAMPLE, NO_SAMPLE
    held_j, fresh_j, known_j = NO_SAMPLE, NO_SAMPLE, NO_SAMPLE
    weight_i, weight_j = 0.0, 0.0
    if VISITORS > 0:
        for node in (i, j):
            if visitors[node] == node:
                next_sample(node, travel, table, own_means, options)
        if NEEDS_HELD:
            held_i = mean_with(i, visitors[i], travel, table, options)
            held_j = mean_with(j, visitors[j], travel, table, options)
            weight_i = add_weight(cells_i, 0, visitors[i], offsets, 1.0)
            weight_j = add_weight(cells_j, 0, visitors[j], offsets, 1.0)
        visitors[i], visitors[j] = visitors[j], visitors[i]
    if NEEDS_FRESH:
        fresh_i = mean_with(i, visitors[i], travel, table, options)
        fresh_j = mean_with(j, visitors[j], travel, table, options)
    if NEEDS_KNOWN:
        for node in (i, j):
            if visitors[node] != node:
                if HAS_LOCAL:
                    fold_rows(
                        node, visitors[node], row(nodes, node), halves, travel, table, options
                    )
                else:
                    found = mean_with(node, visitors[node], travel, table, options)
                    fold(node, visitors[node], found, row(nodes, node), memory, table)
        if HAS_LOCAL:
            known_i = with_count(local_mean(i, cells_i, halves, offsets, own))
            known_j = with_count(local_mean(j, cells_j, halves, offsets, own))
        else:
            known_i = with_count(known_values(row(own_means, i), cells_i, rows_i / len(x)))
            known_j = with_count(known_values(row(own_means, j), cells_j, rows_j / len(x)))
    tree = (1.0 if parents[i] == j else -1.0 if parents[j] == i else 0.0) if NEEDS_TREE else 0.0
    share_i, share_j = rows_j / (rows_i + rows_j), rows_i / (rows_i + rows_j)
    for c in range(STATES):
        a, b = load_state(cells_i, c), load_state(cells_j, c)
        sample_i = (held_i[c], fresh_i[c], known_i[c], 0.0)
        sample_j = (held_j[c], fresh_j[c], known_j[c], 0.0)
        new_i = rule(
            a,
            b,
            sample_i,
            exchanges_i,
            fewer,
            weight_i,
            edge_share,
            share_i,
            1.0 * rows_i,
            tree,
            tick,
        )
        new_j = rule(
            b,
            a,
            sample_j,
            exchanges_j,
            fewer,
            weight_j,
            edge_share,
            share_j,
            1.0 * rows_j,
            -tree,
            tick,
        )
        store_state(cells_i, c, new_i)
        store_state(cells_j, c, new_j)


def next_sample(
    node: int, travel: Travel, table: Table, own_means: Floats, options: Options
) -> None:
    """Replace the sample of a node's visitor, which is at home, by the next rows."""
    _, positions, corrections = travel
    rows, sample = table[1][node + 1] - table[1][node], table[3][node]
    positions[node] = (positions[node] + sample) % rows
    if sample < rows:
        corrections[node] = 0.0
        found = mean_with(node, node, travel, table, options)
        for c in range(VALUES):
            corrections[node, c] = own_means[node, c] - found[c]


def mean_with(node: int, home: int, travel: Travel, table: Table, options: Options) -> Values:
    """Return the corrected mean kernel values of a node's rows with the visitor of a home."""
    x, offsets, _, sample_sizes = table
    start, rows, sample = offsets[home], offsets[home + 1] - offsets[home], sample_sizes[home]
    position, correction, total = travel[1][home], row(travel[2], home), ZEROS
    for own in range(offsets[node], offsets[node + 1]):
        found = ZEROS
        for k in range(sample):
            found = add_values(
                found, values(row(x, own), row(x, start + (position + k) % rows), options)
            )
        total = add_values(total, corrected(found, sample, correction))
    return divide_values(total, offsets[node + 1] - offsets[node])


def add_weight(cells: Row, half: int, home: int, offsets: Integers, factor: float) -> float:
    """Add the rows of a home, times a factor, to a weight, and return their share of it."""
    added = (offsets[home + 1] - offsets[home]) * factor
    store(cells, WEIGHT + half, load(cells, WEIGHT + half) + added)
    return float(added / load(cells, WEIGHT + half))


def fold(node: int, home: int, found: Values, cells: Row, memory: Memory, table: Table) -> None:
    """Fold the mean kernel values of a visitor into a node's mean over other nodes' rows."""
    (recent, counts), (_, offsets, recent_offsets, _) = memory, table
    first, capacity = recent_offsets[node], recent_offsets[node + 1] - recent_offsets[node]
    k = first + home  # if there is room for all homes
    if capacity < len(counts):
        k = first + counts[node] % capacity
        for other in range(first, first + min(counts[node], capacity)):
            if recent[other, 0] == home:
                k = other
                break
    if recent[k, 0] == home and recent[k, 1] > 0.0:
        recent[k, 1] += 1.0
        weight = (offsets[home + 1] - offsets[home]) / load(cells, WEIGHT)
        for c in range(VALUES):
            change = (found[c] - recent[k, 2 + c]) / recent[k, 1]
            recent[k, 2 + c] += change
            store(cells, OTHERS + c, load(cells, OTHERS + c) + weight * change)
        return
    recent[k, 0], recent[k, 1] = home, 1.0
    counts[node] += 1
    weight = add_weight(cells, 0, home, offsets, 1.0)
    for c in range(VALUES):
        recent[k, 2 + c] = found[c]
        mean = load(cells, OTHERS + c)
        store(cells, OTHERS + c, mean + weight * (found[c] - mean))


def fold_rows(
    node: int, home: int, cells: Row, halves: Floats, travel: Travel, table: Table, options: Options
) -> None:
    """Fold a visitor into the means of each row of a node, in one of the two halves."""
    (x, offsets, _, sample_sizes), half = table, int(load(cells, EXCHANGES)) // 2 % 2
    start, rows, sample = offsets[home], offsets[home + 1] - offsets[home], sample_sizes[home]
    position, correction = travel[1][home], row(travel[2], home)
    weight = add_weight(cells, half, home, offsets, sqrt(load(cells, EXCHANGES)))
    for own in range(offsets[node], offsets[node + 1]):
        found = ZEROS
        for k in range(sample):
            found = add_values(
                found, values(row(x, own), row(x, start + (position + k) % rows), options)
            )
        found = corrected(found, sample, correction)
        for c in range(VALUES):
            halves[own, half * VALUES + c] += weight * (found[c] - halves[own, half * VALUES + c])


def local_of_row(
    halves: Row, own_mean: Row, shift: Row, scale: Row, own_share: float, second_share: float
) -> Means:
    """Return `local` of a row's mean over all rows, without the bias of curved functions."""
    first, second = load_values(halves, 0), load_values(halves, VALUES)
    a = local_values(row_values(first, own_mean, shift, scale, own_share))
    if second_share == 0.0:
        return a
    b = local_values(row_values(second, own_mean, shift, scale, own_share))
    both = local_values(
        row_values(pooled(first, second, second_share), own_mean, shift, scale, own_share)
    )
    return unbiased(a, b, both)


def local_mean(node: int, cells: Row, halves: Floats, offsets: Integers, own: Own) -> Means:
    """Return the mean of `local` over a node's rows."""
    _, own_row_means, scale, shift = own
    first, last, total = offsets[node], offsets[node + 1], NO_MEANS
    second = load(cells, WEIGHT + 1) / (load(cells, WEIGHT) + load(cells, WEIGHT + 1))
    own_share = (last - first) / len(halves)
    for k in range(first, last):
        found = local_of_row(
            row(halves, k), row(own_row_means, k), row(shift, k), row(scale, 0), own_share, second
        )
        total = add_means(total, found)
    return divide_means(total, last - first)
