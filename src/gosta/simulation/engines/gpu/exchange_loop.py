"""Template of the loops on a GPU that carry out many exchanges at once.

The result is the same as that of one exchange after the other.

Each thread has one pending exchange, with its number in the order of the schedule. All exchanges
before the last pending one are done or pending in some thread. In every round each exchange claims
both its nodes, the earliest wins, and those that have won both nodes take place: no earlier
exchange of these nodes is left. The earliest of all always wins, so every round makes progress. Who
finds a claim to be its own removes it.

An exchange is counted after it has taken place: one whose function failed is missed at the end, and
nobody waits for it, since its claims are removed before.

The engine appends this to the template of a compiled engine, with the constants and adapters
declared here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import cuda, float64, int32, int64, uint32

from gosta.runtime.observation import Row, row

Arrays = tuple[Any, ...]
Options = tuple[Any, ...]

# Constants.
NODES: int
STATES: int  # states of a node
DRAWS: int  # edges in an iteration
HAS_SHARES: bool  # whether edges have different shares
QUEUE: int  # where the queue begins in shared memory, in numbers of 8 bytes
IN_SHARED: bool  # whether the arrays of a run are in the shared memory of its block
FREE = 2147483647  # no claim
LOW_HALF_BITS = 0xFFFFFFFF
TURNS = 4  # numbers of exchanges done are kept for the last rounds

# Adapters, and functions of the engine's own template.
of_run: Callable[[Arrays, int], Arrays]  # the arrays of one run
state_of: Callable[[Any, Arrays], Arrays]  # the same, in shared memory if IN_SHARED
fixed_of: Callable[[Any, Arrays], Arrays]  # arrays that never change, some of them in shared memory
copy_all: Callable[[Arrays, Arrays], None]
copy_fixed: Callable[[Arrays, Arrays], None]
integers_at: Callable[[Any, int, int, int], Any]
take: Callable[[Any, Any], int]
exchange: Callable[..., None]
load_state: Callable[[Row, int], Any]
read: Callable[[Any, float], float]


def advance_side_by_side(
    arrays: Arrays,
    device_fixed: Arrays,
    positions: Any,
    edges: Any,
    shares: Any,
    skip: Any,
    count: Any,
    start: Any,
    options: Options,
    finished: Any,
) -> None:
    """Carry out `count` exchanges of each run, from its edge number `skip` on.

    A block of threads works on each run.

    Exchanges that have won are queued and carried out by the first threads, so that few of them
    wait for others. There is one set of claims, since shared memory is scarce, and so a second
    barrier in each round.
    """
    block, me, threads = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    shared = cuda.shared.array(0, float64)
    taken = cuda.shared.array(1, int32)
    claims, queue = integers_at(shared, 0, 1, NODES), integers_at(shared, QUEUE, 2, threads)
    device_state = of_run(arrays, positions[block])
    state, fixed = state_of(shared, device_state), fixed_of(shared, device_fixed)
    if IN_SHARED:
        copy_all(device_state, state)
        copy_fixed(device_fixed, fixed)
    for k in range(me, NODES, threads):
        claims[0, k] = FREE
    if me == 0:
        taken[0] = threads
    cuda.syncthreads()
    t, done, before, won, pair = int32(me), int32(0), int32(threads), int32(1), int64(0)
    if t < count:
        pair = edges[block, skip + t]
        claim(claims, 0, pair, t)
    while won > 0:
        cuda.syncthreads()
        wins = False
        if t < count:
            wins = has_won(claims, 0, pair, t)
        later = int32(take(taken, wins))
        if wins:
            queue[0, later - before] = t
            queue[1, later - before] = int32(pair | pair >> 16)
            t = later
            if t < count:
                pair = edges[block, skip + t]
        cuda.syncthreads()
        won = taken[0] - before
        before += won
        if me < won:
            now, both = queue[0, me], queue[1, me]
            i, j, share = both & 0xFFFF, both >> 16 & 0xFFFF, share_of(shares, block, skip + now)
            exchange(state, fixed, i, j, now % DRAWS, start + now // DRAWS + 1.0, share, options)
            done += int32(1)
        if t < count:
            claim(claims, 0, pair, t)
    cuda.atomic.add(finished, positions[block], done)
    if IN_SHARED:
        cuda.syncthreads()
        copy_all(state, device_state)


def advance_one(
    arrays: Arrays,
    fixed: Arrays,
    position: Any,
    edges: Any,
    shares: Any,
    which: Any,
    skip: Any,
    count: Any,
    start: Any,
    options: Options,
    finished: Any,
    claims: Any,
    control: Any,
) -> None:
    """Carry out `count` exchanges of one run, from its edge number `skip` on, with all threads.

    Claims of odd and even rounds are apart, so that one barrier of all threads in a round is
    enough. The first thread of a block has no pending exchange: the others wait for it at barriers,
    and it must not fail. `control` holds the number of exchanges taken, then the numbers done in
    each of the last rounds.
    """
    grid, me = cuda.cg.this_grid(), cuda.threadIdx.x
    taken = cuda.shared.array(1, int32)
    first = cuda.shared.array(1, int32)
    state = of_run(arrays, position)
    if me == 0:
        taken[0] = 0
    t = count if me == 0 else int32(cuda.blockIdx.x * (cuda.blockDim.x - 1) + me - 1)
    pair, share, done, all_done, more, turn = int64(0), shares[0, 0], int32(0), 0, 1, 0
    if t < count:
        pair = edges[which, skip + t]
        share = share_of(shares, which, skip + t)
        claim(claims, 0, pair, t)
    grid.sync()
    while all_done < count and more > 0:  # none: the others are pending in threads that have failed
        i, j, wins = int32(pair & LOW_HALF_BITS), int32(pair >> 32), False
        if t < count:
            wins = has_won(claims, turn & 1, pair, t)
        rank = int32(take(taken, wins))
        cuda.syncthreads()
        if me == 0:
            if taken[0] > 0:
                first[0] = cuda.atomic.add(control, 0, taken[0])
                cuda.atomic.add(control, 1 + turn % TURNS, taken[0])
                taken[0] = 0
            if cuda.blockIdx.x == 0:
                control[1 + (turn + 2) % TURNS] = 0
        if wins:
            exchange(state, fixed, i, j, t % DRAWS, start + t // DRAWS + 1.0, share, options)
            done += int32(1)
        cuda.syncthreads()
        if wins:
            t = first[0] + rank
            if t < count:
                pair = edges[which, skip + t]
                share = share_of(shares, which, skip + t)
        turn += 1
        if t < count:
            claim(claims, turn & 1, pair, t)
        grid.sync()
        more = control[1 + (turn - 1) % TURNS]
        all_done += more
    cuda.atomic.add(finished, position, done)


def claim(claims: Any, turn: Any, pair: Any, t: Any) -> None:
    """Claim both nodes of an exchange."""
    cuda.atomic.min(claims, (turn, uint32(pair & LOW_HALF_BITS)), t)
    cuda.atomic.min(claims, (turn, uint32(pair >> 32)), t)


def has_won(claims: Any, turn: Any, pair: Any, t: Any) -> bool:
    """Return whether an exchange has won both its nodes, and remove its claims."""
    i, j = uint32(pair & LOW_HALF_BITS), uint32(pair >> 32)
    is_first_i, is_first_j = claims[turn, i] == t, claims[turn, j] == t
    if is_first_i:
        claims[turn, i] = FREE
    if is_first_j:
        claims[turn, j] = FREE
    return bool(is_first_i and is_first_j)


def share_of(shares: Any, k: Any, t: Any) -> float:
    """Return the share of an edge in the exchanges of its ends."""
    return float(shares[k, t] if HAS_SHARES else shares[0, 0])


def read_runs(arrays: Arrays, positions: Any, stop: Any, tick: Any, out: Any) -> None:
    """Read all states of all nodes of some runs, to number `stop` of their readings."""
    for k in range(cuda.grid(1), len(positions) * NODES, cuda.gridsize(1)):
        run = k // NODES
        i = k - run * NODES
        cells = row(of_run(arrays, positions[run])[0], i)
        for c in range(STATES):
            out[run, stop, i, c] = read(load_state(cells, c), tick)


def copy(source: Any, target: Any) -> None:
    """Copy the numbers of a table that is not wider, with all threads of a block."""
    rows, width = source.shape[0], min(source.shape[1], target.shape[1])
    for k in range(cuda.threadIdx.x, rows * width, cuda.blockDim.x):
        i = k // width
        target[i, k - i * width] = source[i, k - i * width]
