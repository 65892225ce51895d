"""Template of the compiled exchange where each node holds one row.

`gosta.estimation.exchange` is the definition; this is its specialisation for tables of one row. The
engine appends the constants and adapters declared here, and compiles the result.

A node is a row of `nodes`: its states; its number of exchanges; if the protocol needs `known`, its
mean over other nodes' rows, their number and the numbers of the last of them, two of these packed
into a column, and room for one more. If INLINE, its own observation and its visitors follow, each
visitor after the number of its row; otherwise `visitors` holds numbers of rows of `x`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.observation import Row, choose, is_among, load, part, row, store, store_short

Options = tuple[Any, ...]

# Constants.
VALUES: int  # numbers that the kernel returns
STATES: int  # states of a node
NUMBERS: int  # numbers in an observation
EXCHANGES: int  # column of the number of exchanges
OTHERS: int  # column of the mean over other nodes' rows
WEIGHT: int  # column of the number of these rows
# First column of the homes of the last RECENT_SIZE of these rows, integers of four bytes.
RECENT: int
RECENT_SIZE: int
IS_CHEAP: bool  # whether computing the kernel takes less time than a mispredicted branch
VISITOR: int  # column of the first visitor: the number of its row and, if INLINE, its observation
OWN: int  # first column of the own observation in `nodes` if INLINE, else in `x`
GUEST: int  # first column of the first visitor's observation, likewise
SECOND_GUEST: int  # of the second visitor's
INLINE: bool  # whether observations and visitors are columns of `nodes`
VISITORS: int  # visitors that a node holds
NEEDS_HELD: bool
NEEDS_FRESH: bool
NEEDS_KNOWN: bool
NEEDS_TREE: bool
HAS_DIAGONAL: bool  # whether the kernel of a row with itself is not always zero
NO_SAMPLE: tuple[float, ...]  # as many zeros as there are means

# Adapters, generated for the protocol and the kernel.
values: Callable[[Row, Row, Options], tuple[float, ...]]  # the kernel
load_state: Callable[[Row, int], Any]
store_state: Callable[[Row, int, Any], None]
rule: Callable[..., Any]  # `meet` and `tell` of the protocol
# Takes the own mean, a node and the share of own rows; returns the mean over all rows.
known_values: Callable[[Row, Row, float], tuple[float, ...]]
with_count: Callable[[tuple[float, ...]], tuple[float, ...]]  # adds 1 where rows are counted


def exchange(
    state: tuple[Floats, Any],
    fixed: tuple[Floats, Floats, Integers],
    i: int,
    j: int,
    slot: int,
    tick: float,
    edge_share: float,
    options: Options,
) -> None:
    """Carry out the exchange of two nodes."""
    (nodes, visitors), (x, diagonal, parents) = state, fixed
    rows = nodes if INLINE else x
    held_i, fresh_i, known_i = NO_SAMPLE, NO_SAMPLE, NO_SAMPLE
    held_j, fresh_j, known_j = NO_SAMPLE, NO_SAMPLE, NO_SAMPLE
    cells_i, cells_j = row(nodes, i), row(nodes, j)
    exchanges_i, exchanges_j = load(cells_i, EXCHANGES) + 1.0, load(cells_j, EXCHANGES) + 1.0
    store(cells_i, EXCHANGES, exchanges_i)
    store(cells_j, EXCHANGES, exchanges_j)
    if NEEDS_HELD:
        at_i, at_j = (i, j) if INLINE else (visitors[i, 0], visitors[j, 0])
        held_i = values(part(rows, i, OWN, NUMBERS), part(rows, at_i, GUEST, NUMBERS), options)
        held_j = values(part(rows, j, OWN, NUMBERS), part(rows, at_j, GUEST, NUMBERS), options)
    if VISITORS > 0:
        if INLINE:
            first = VISITOR + slot * (NUMBERS + 1)
            for c in range(first, first + NUMBERS + 1):
                kept = load(cells_i, c)
                store(cells_i, c, load(cells_j, c))
                store(cells_j, c, kept)
        else:
            at_j, at_i = visitors[i, slot], visitors[j, slot]
            visitors[i, slot], visitors[j, slot] = at_i, at_j
    if NEEDS_FRESH or NEEDS_KNOWN:
        if INLINE:
            at_i, at_j = i, j
        elif VISITORS == 2:
            at_i, at_j = visitors[i, 0], visitors[j, 0]
        own_i, own_j = part(rows, i, OWN, NUMBERS), part(rows, j, OWN, NUMBERS)
        guest_i, guest_j = part(rows, at_i, GUEST, NUMBERS), part(rows, at_j, GUEST, NUMBERS)
        if VISITORS == 2:
            at_i, at_j = (i, j) if INLINE else (visitors[i, 1], visitors[j, 1])
            own_i, guest_i = guest_i, part(rows, at_i, SECOND_GUEST, NUMBERS)
            own_j, guest_j = guest_j, part(rows, at_j, SECOND_GUEST, NUMBERS)
        if NEEDS_FRESH:
            fresh_i, fresh_j = values(own_i, guest_i, options), values(own_j, guest_j, options)
        if NEEDS_KNOWN:
            own_share = 1.0 / len(nodes)
            home_i = int(load(cells_i, VISITOR)) if INLINE else at_i
            home_j = int(load(cells_j, VISITOR)) if INLINE else at_j
            if home_i != i:
                fold(cells_i, own_i, guest_i, home_i, options)
            if home_j != j:
                fold(cells_j, own_j, guest_j, home_j, options)
            known_i = with_count(
                known_values(row(diagonal, i if HAS_DIAGONAL else 0), cells_i, own_share)
            )
            known_j = with_count(
                known_values(row(diagonal, j if HAS_DIAGONAL else 0), cells_j, own_share)
            )
    fewer, weight_i, weight_j = min(exchanges_i, exchanges_j), 1.0 / exchanges_i, 1.0 / exchanges_j
    tree = (1.0 if parents[i] == j else -1.0 if parents[j] == i else 0.0) if NEEDS_TREE else 0.0
    for c in range(STATES):
        a, b = load_state(cells_i, c), load_state(cells_j, c)
        sample_i = (held_i[c], fresh_i[c], known_i[c], 0.0)
        sample_j = (held_j[c], fresh_j[c], known_j[c], 0.0)
        new_i = rule(a, b, sample_i, exchanges_i, fewer, weight_i, edge_share, 0.5, 1.0, tree, tick)
        new_j = rule(
            b, a, sample_j, exchanges_j, fewer, weight_j, edge_share, 0.5, 1.0, -tree, tick
        )
        store_state(cells_i, c, new_i)
        store_state(cells_j, c, new_j)


def fold(cells: Row, own: Row, guest: Row, home: int, options: Options) -> None:
    """Fold a visitor into a node's mean over other nodes' rows, unless it visited lately.

    Four in ten visitors did, so a branch would often be mispredicted. A cheap kernel is computed
    for all, and what is not to be remembered is stored in the room behind the numbers that are.
    """
    is_recent, count = is_among(home, cells, RECENT, RECENT_SIZE), load(cells, WEIGHT)
    if is_recent and not IS_CHEAP:
        return
    store(cells, WEIGHT, choose(is_recent, count, count + 1.0))
    store_short(cells, RECENT, choose(is_recent, RECENT_SIZE, int(count) % RECENT_SIZE), home)
    fresh = values(own, guest, options)
    for c in range(VALUES):
        mean = load(cells, OTHERS + c)
        change = 1.0 / (count + 1.0) * (fresh[c] - mean)
        store(cells, OTHERS + c, mean + choose(is_recent, 0.0, change))
