"""Template of the compiled exchange where nodes minimise an objective.

`gosta.estimation.exchange` is the definition. The engine appends the constants and adapters
declared here, and compiles the result.

A node is a row of `nodes`: its states, one for each parameter; its number of exchanges; then a
gradient, which is computed anew in each exchange. Rows of nodes are meant by their numbers:
`visitors` holds that of the row which came last; `known` those at which gradients are taken, that
of the visitor or all rows that the node knows in order of arrival, and `counts` how many these are.
Where rows are passed on, `came_from` holds the neighbours from which they came, and `sent` for each
neighbour the place of the first row that was not considered for it yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.observation import Row, load, part, row, store

Options = tuple[Any, ...]
Arrays = tuple[Floats, Integers, Integers, Integers, Integers, Integers]

# Constants.
STATES: int  # parameters
NUMBERS: int  # numbers in an observation
EXCHANGES: int  # column of the number of exchanges
GRADIENT: int  # first column of the gradient
FIELDS: int  # numbers in a state
POINT: int  # of these, the parameter at which gradients are taken
PASSES_ROWS: bool  # whether rows are passed on; else visitors are swapped
EVERY_NODE: bool  # whether nodes that are not drawn take a step, too
PENALTY: float
PACE: float

# Adapters.
feature: Callable[[Row, Row, int], float]  # of the objective
slope: Callable[[float], float]  # of its loss
load_state: Callable[[Row, int], Any]
store_state: Callable[[Row, int, Any], None]
rule: Callable[..., Any]  # `meet` and `tell` of the protocol


def exchange(
    state: Arrays,
    fixed: tuple[Floats],
    i: int,
    j: int,
    slot: int,
    tick: float,
    edge_share: float,
    options: Options,
) -> None:
    """Carry out the exchange of two nodes; where all nodes take a step, others meet themselves."""
    (nodes, visitors, known, counts, _, _), (x,) = state, fixed
    if PASSES_ROWS:
        from_i, from_j = next_row(state, i, j), next_row(state, j, i)
        take_in(state, i, j, from_j)
        take_in(state, j, i, from_i)
    else:
        visitors[i, 0], visitors[j, 0] = visitors[j, 0], visitors[i, 0]
        known[i, 0], known[j, 0] = visitors[i, 0], visitors[j, 0]
    exchanges_i = load(row(nodes, i), EXCHANGES) + 1.0
    exchanges_j = load(row(nodes, j), EXCHANGES) + 1.0
    fewer = min(exchanges_i, exchanges_j)
    for k in range(len(nodes) if EVERY_NODE else 2):
        node = k if EVERY_NODE else (j if k else i)
        cells = row(nodes, node)
        store(cells, EXCHANGES, load(cells, EXCHANGES) + 1.0)
        set_gradient(x, cells, known, counts[node], node)
        if node != i and node != j:
            count = load(cells, EXCHANGES)
            for c in range(STATES):
                me = load_state(cells, c)
                store_state(cells, c, rule_of(cells, c, me, me, count, count, 1.0, tick))
    cells_i, cells_j = row(nodes, i), row(nodes, j)
    for c in range(STATES):
        a, b = load_state(cells_i, c), load_state(cells_j, c)
        new_i = rule_of(cells_i, c, a, b, exchanges_i, fewer, edge_share, tick)
        new_j = rule_of(cells_j, c, b, a, exchanges_j, fewer, edge_share, tick)
        store_state(cells_i, c, new_i)
        store_state(cells_j, c, new_j)


def rule_of(
    cells: Row,
    c: int,
    me: Any,
    you: Any,
    exchanges: float,
    fewer: float,
    edge_share: float,
    tick: float,
) -> Any:
    """Apply the rule to the state of a parameter."""
    samples = (load(cells, GRADIENT + c), PENALTY, PACE)
    weight = 1.0 / exchanges
    return rule(me, you, samples, exchanges, fewer, weight, edge_share, 0.5, 1.0, 0.0, tick)


def next_row(state: Arrays, node: int, neighbour: int) -> int:
    """Return the row that a node sends a neighbour, and note that it was sent."""
    _, _, known, counts, came_from, sent = state
    place = sent[node, neighbour]
    while place < counts[node] and came_from[node, place] == neighbour:
        place += 1
    if place == counts[node]:
        place = 0
    sent[node, neighbour] = max(sent[node, neighbour], place + 1)
    home: int = known[node, place]
    return home


def take_in(state: Arrays, node: int, neighbour: int, home: int) -> None:
    """Add a row that came from a neighbour to those that a node knows."""
    _, visitors, known, counts, came_from, _ = state
    visitors[node, 0] = home
    count = counts[node]
    for k in range(count):
        if known[node, k] == home:
            return
    known[node, count], came_from[node, count] = home, neighbour
    counts[node] = count + 1


def set_gradient(x: Floats, cells: Row, known: Integers, count: int, node: int) -> None:
    """Set the mean gradient of the loss over known rows; where that is the own one, it is zero."""
    own = part(x, node, 0, NUMBERS)
    for c in range(STATES):
        store(cells, GRADIENT + c, 0.0)
    for k in range(count):
        home = known[node, k]
        if home == node:
            continue
        other = part(x, home, 0, NUMBERS)
        margin = 0.0
        for c in range(STATES):
            margin += feature(own, other, c) * load(cells, c * FIELDS + POINT)
        share = slope(margin)
        for c in range(STATES):
            total = load(cells, GRADIENT + c) + share * feature(own, other, c)
            store(cells, GRADIENT + c, total)
    for c in range(STATES):
        store(cells, GRADIENT + c, load(cells, GRADIENT + c) / count)
