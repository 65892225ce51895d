"""Template of the compiled exchange where visitors carry means.

`gosta.estimation.carried` is the definition; this is the same for all nodes at once. The engine
appends the constants and adapters declared here, and compiles the result.

A node is a row of `nodes`: its states; its number of exchanges; which visitor came last; the number
of rows that it remembers and their order, a whole number with four bits for the place of each, from
the oldest on; their homes; its visitors. A visitor is the node that it came from, its home, the
number of rows that it was compared with, its mean, its smoothed mean and its observation. The
observations that the node remembers follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.observation import Row, cut, load, load_bits, row, store, store_bits

Options = tuple[Any, ...]
Values = tuple[float, ...]  # as many as the kernel returns
Changes = tuple[float, ...]  # of all states

# Constants.
VALUES: int  # numbers that the kernel returns
STATES: int  # states of a node
NUMBERS: int  # numbers in an observation
COPIES: int  # visitors that a node holds
EXCHANGES: int  # column of the number of exchanges
LATEST: int  # column of the visitor that came last
SIZE: int  # column of the number of rows that are remembered
ORDER: int  # column of their order
HOMES: int  # column of the first home that is remembered
REMEMBERED: int  # rows that are remembered at most; no more than four bits can number
VISITOR: int  # column of the first visitor
VISITOR_SIZE: int  # numbers in a visitor
ROWS: int  # column of the first observation that is remembered
NEEDS_TREE: bool
HAS_DIAGONAL: bool  # whether the kernel of a row with itself is not always zero
ZEROS: Values
NO_SAMPLE: Changes

# Columns of a visitor.
CAME_FROM = 0
HOME = 1
COMPARED = 2
MEAN = 3
SMOOTH: int
GUEST: int  # its observation

# Adapters, generated for the protocol and the kernel.
values: Callable[[Row, Row, Options], Values]  # the kernel
load_state: Callable[[Row, int], Any]
store_state: Callable[[Row, int, Any], None]
rule: Callable[..., Any]  # `meet` and `tell` of the protocol
weight_of: Callable[[float, float], float]
rate_of: Callable[[float, float], float]
add_values: Callable[[Values, Values], Values]
# Takes a visitor, the sum and number of kernel values, and a weight.
new_means: Callable[[Row, Values, float, float], Values]
# Takes a visitor, means, the diagonal, the share of own rows, and a rate.
changes_of: Callable[[Row, Values, Row, float, float], Values]
# Takes changes of one of COPIES visitors, and whether it is counted from now on.
shares_of: Callable[[Values, float], Changes]


def exchange(
    state: tuple[Floats],
    fixed: tuple[Floats, Integers],
    i: int,
    j: int,
    slot: int,
    tick: float,
    edge_share: float,
    options: Options,
) -> None:
    """Carry out the exchange of two nodes."""
    (nodes,), (diagonal, parents) = state, fixed
    own_share = 1.0 / len(nodes)
    cells_i, cells_j = row(nodes, i), row(nodes, j)
    exchanges_i, exchanges_j = load(cells_i, EXCHANGES) + 1.0, load(cells_j, EXCHANGES) + 1.0
    store(cells_i, EXCHANGES, exchanges_i)
    store(cells_j, EXCHANGES, exchanges_j)
    fewer, slot_i, slot_j = min(exchanges_i, exchanges_j), leaving(cells_i, j), leaving(cells_j, i)
    guest_i = cut(cells_i, VISITOR + slot_i * VISITOR_SIZE, VISITOR_SIZE)
    guest_j = cut(cells_j, VISITOR + slot_j * VISITOR_SIZE, VISITOR_SIZE)
    for c in range(HOME, VISITOR_SIZE):
        kept = load(guest_i, c)
        store(guest_i, c, load(guest_j, c))
        store(guest_j, c, kept)
    store(guest_i, CAME_FROM, 1.0 * j)
    store(guest_j, CAME_FROM, 1.0 * i)
    store(cells_i, LATEST, 1.0 * slot_i)
    store(cells_j, LATEST, 1.0 * slot_j)
    diagonal_i = row(diagonal, int(load(guest_i, HOME)) if HAS_DIAGONAL else 0)
    diagonal_j = row(diagonal, int(load(guest_j, HOME)) if HAS_DIAGONAL else 0)
    change_i = receive(cells_i, guest_i, diagonal_i, own_share, options)
    change_j = receive(cells_j, guest_j, diagonal_j, own_share, options)
    tree = (1.0 if parents[i] == j else -1.0 if parents[j] == i else 0.0) if NEEDS_TREE else 0.0
    for c in range(STATES):
        a, b = load_state(cells_i, c), load_state(cells_j, c)
        sample_i, sample_j = (0.0, 0.0, 0.0, change_i[c]), (0.0, 0.0, 0.0, change_j[c])
        new_i = rule(a, b, sample_i, exchanges_i, fewer, 0.0, edge_share, 0.5, 1.0, tree, tick)
        new_j = rule(b, a, sample_j, exchanges_j, fewer, 0.0, edge_share, 0.5, 1.0, -tree, tick)
        store_state(cells_i, c, new_i)
        store_state(cells_j, c, new_j)


def leaving(cells: Row, neighbour: int) -> int:
    """Return which visitor leaves.

    It is the one held longer, unless only that one came from the neighbour.
    """
    latest = int(load(cells, LATEST))
    other = 1 - latest
    is_back = load(cells, VISITOR + other * VISITOR_SIZE) == neighbour
    is_back &= load(cells, VISITOR + latest * VISITOR_SIZE) != neighbour
    return other ^ int(is_back)


def receive(cells: Row, visitor: Row, diagonal: Row, own_share: float, options: Options) -> Changes:
    """Compare a visitor with rows that a node remembers, and return what each state changes by."""
    home, size, order = load(visitor, HOME), int(load(cells, SIZE)), load_bits(cells, ORDER)
    guest, total, own = cut(visitor, GUEST, NUMBERS), ZEROS, -1
    for k in range(size):
        place = order >> 4 * k & 15
        if load(cells, HOMES + place) == home:
            own = k
        else:
            total = add_values(
                total, values(guest, cut(cells, ROWS + place * NUMBERS, NUMBERS), options)
            )
    remember(cells, home, guest, own, size, order)
    count = size - 1.0 - own
    if count == 0.0:
        return NO_SAMPLE
    divisor = size - 1.0 if own >= 0 else 1.0 * size
    before = load(visitor, COMPARED)
    compared = before + count
    store(visitor, COMPARED, compared)
    means = new_means(visitor, total, divisor, weight_of(count, compared))
    changes = changes_of(visitor, means, diagonal, own_share, rate_of(count, compared))
    for c in range(VALUES):
        store(visitor, MEAN + c, means[c])
        store(visitor, SMOOTH + c, load(visitor, SMOOTH + c) + changes[c])
    return shares_of(changes, 1.0 if before == 0.0 else 0.0)


def remember(cells: Row, home: float, guest: Row, own: int, size: int, order: int) -> None:
    """Make a row the newest that is remembered.

    It is there already (own >= 0), is added, or replaces the oldest.
    """
    if own >= 0:
        older, newer = order & (1 << 4 * own) - 1, order >> 4 * own >> 4 & (1 << 60 - 4 * own) - 1
        place = order >> 4 * own & 15
        store_bits(cells, ORDER, older | newer << 4 * own | place << 4 * (size - 1))
        return
    place = size
    if size < REMEMBERED:
        store(cells, SIZE, size + 1.0)
        store_bits(cells, ORDER, order | place << 4 * size)
    else:
        place = order & 15
        store_bits(cells, ORDER, order >> 4 & (1 << 60) - 1 | place << 4 * (REMEMBERED - 1))
    store(cells, HOMES + place, home)
    for c in range(NUMBERS):
        store(cells, ROWS + place * NUMBERS + c, load(guest, c))
