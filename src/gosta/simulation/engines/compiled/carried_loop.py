"""Template of the compiled exchange where visitors carry means.

`gosta.estimation.carried` is the definition; this is the same for all nodes at once. The engine appends the constants
and adapters declared here, and compiles the result.

A node is a row of `nodes`: its states; its number of exchanges; which visitor came last; the number of rows that it
remembers and where the oldest of them is; their homes; its visitors. A visitor is the node that it came from, its home,
the number of rows that it was compared with, its mean, its smoothed mean and its observation. The observations that
the node remembers follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.observation import Row, cut, load, row, store

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
OLDEST: int  # column of the place of the oldest of them
HOMES: int  # column of the first home that is remembered
REMEMBERED: int  # rows that are remembered at most; a power of two
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
new_means: Callable[[Row, Values, float, float], Values]  # visitor, sum and number of kernel values, weight
changes_of: Callable[[Row, Values, Row, float, float], Values]  # visitor, means, diagonal, share of own rows, rate
shares_of: Callable[[Values, float], Changes]  # changes of one of COPIES visitors, and whether it is counted now


def exchange(
    state: tuple[Floats], fixed: tuple[Floats, Integers], i: int, j: int, slot: int, tick: float, edge_share: float,
    options: Options,
) -> None:  # fmt: skip
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
    """Return which visitor leaves: the one held longer, unless only that one came from the neighbour."""
    latest = int(load(cells, LATEST))
    other = 1 - latest
    is_back = load(cells, VISITOR + other * VISITOR_SIZE) == neighbour
    is_back &= load(cells, VISITOR + latest * VISITOR_SIZE) != neighbour
    return other ^ int(is_back)


def receive(cells: Row, visitor: Row, diagonal: Row, own_share: float, options: Options) -> Changes:
    """Compare a visitor with rows that a node remembers, and return what each state changes by."""
    home, size, oldest = load(visitor, HOME), int(load(cells, SIZE)), int(load(cells, OLDEST))
    own = place_of(cells, home, size, oldest)
    guest = cut(visitor, GUEST, NUMBERS)
    total, count = ZEROS, size - 1.0 - own
    for k in range(size):
        if k != own:
            start = ROWS + ((oldest + k) & (REMEMBERED - 1)) * NUMBERS
            total = add_values(total, values(guest, cut(cells, start, NUMBERS), options))
    remember(cells, home, guest, own, size, oldest)
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


def place_of(cells: Row, home: float, size: int, oldest: int) -> int:
    """Return the place of a home among those remembered, from the oldest on; -1 if it is not among them."""
    for k in range(size):
        if load(cells, HOMES + k) == home:
            return (k - oldest) & (REMEMBERED - 1)
    return -1


def remember(cells: Row, home: float, guest: Row, own: int, size: int, oldest: int) -> None:
    """Make a row the newest that is remembered: those after its own place move up, or the oldest is replaced."""
    if own >= 0:
        for k in range(own + 1, size):
            copy_place(cells, (oldest + k) & (REMEMBERED - 1), (oldest + k - 1) & (REMEMBERED - 1))
        newest = (oldest + size - 1) & (REMEMBERED - 1)
    elif size < REMEMBERED:
        store(cells, SIZE, size + 1.0)
        newest = size
    else:
        store(cells, OLDEST, 1.0 * ((oldest + 1) & (REMEMBERED - 1)))
        newest = oldest
    store(cells, HOMES + newest, home)
    for c in range(NUMBERS):
        store(cells, ROWS + newest * NUMBERS + c, load(guest, c))


def copy_place(cells: Row, source: int, target: int) -> None:
    """Copy what is remembered at one place to another."""
    store(cells, HOMES + target, load(cells, HOMES + source))
    for c in range(NUMBERS):
        store(cells, ROWS + target * NUMBERS + c, load(cells, ROWS + source * NUMBERS + c))
