"""Template of the loop that draws edges on a GPU, with the bits that numpy gives on the CPU.

A block of draws is one stream of PCG64, whose state after k steps is A^k s + (A^k - 1) / (A - 1) c
modulo 2^128. So each thread begins at its own place in the stream, and goes on by as many steps as
there are threads. Numbers that are rejected (Lemire's method) are left out, and those after them
move up. The engine appends the constants declared here, and compiles the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda, int16, int32, int64, uint64

# Constants.
KIND: int  # of the numbers that are drawn
IS_COMPLETE: bool  # whether edges are not stored
HAS_SHARES: bool  # whether the share of each edge is wanted
PER_STEP: int  # numbers drawn from one of the generator's
THREADS: int
TILE: int  # numbers drawn by all threads in one step

# Functions and constants of the template of `gosta.simulation.edges`.
NARROW: int
WIDE: int
WEIGHTED: int
STATE: int
STATE_LOW: int
STEP: int
STEP_LOW: int
STREAM_SIZE: int
LOW_HALF: Any
HALF_BITS: Any
FRACTION_SHIFT: Any
FRACTION: float
TREE_SHARE: float
mul_high: Callable[[Any, Any], Any]
seed_stream: Callable[[Any, Any, int, int], None]
output: Callable[[Any, Any], Any]
place_of: Callable[[Any, Any, float], int]


def times(a: Any, a_low: Any, b: Any, b_low: Any) -> Any:
    """Return the product of two numbers of 128 bits, modulo 2^128."""
    return mul_high(a_low, b_low) + a * b_low + a_low * b, a_low * b_low


def draw_blocks(
    entropy: Any,
    runs: Any,
    first: Any,
    jumps: Any,
    bound: Any,
    threshold: Any,
    nodes: Any,
    ends: Any,
    cumulated: Any,
    guide: Any,
    all_shares: Any,
    parents: Any,
    edges: Any,
    shares: Any,
) -> None:
    """Draw a block of edges, both ends in one number, with each block of threads."""
    rejected = cuda.shared.array(TILE, int16)
    rejections = cuda.shared.array(1, int32)
    stream = cuda.shared.array(STREAM_SIZE, uint64)
    me, block, size = cuda.threadIdx.x, cuda.blockIdx.x, edges.shape[1]
    blocks = edges.shape[0] // len(runs)  # of each run
    if me == 0:
        rejections[0] = 0
        seed_stream(stream, entropy, runs[block // blocks], first + block % blocks)
    cuda.syncthreads()
    state = stream[STATE]
    state_low = stream[STATE_LOW]
    step = stream[STEP]
    step_low = stream[STEP_LOW]
    # The place of this thread, and what all threads together add to a state.
    high, low = times(jumps[me, 0], jumps[me, 1], state, state_low)
    more, more_low = times(jumps[me, 2], jumps[me, 3], step, step_low)
    state_low = low + more_low
    state = high + more + np.uint64(state_low < low)
    power, power_low = jumps[THREADS - 1, 0], jumps[THREADS - 1, 1]
    added, added_low = times(jumps[THREADS - 1, 2], jumps[THREADS - 1, 3], step, step_low)
    total = cumulated[len(cumulated) - 1]
    filled = 0
    while filled < size:
        raw = output(state, state_low)
        high, low = times(power, power_low, state, state_low)
        state_low = low + added_low
        state = high + added + np.uint64(state_low < low)
        is_kept, is_second_kept = True, True
        number, second = int64(0), int64(0)
        if KIND == NARROW:
            product, second_product = (raw & LOW_HALF) * bound, (raw >> HALF_BITS) * bound
            number, second = int64(product >> HALF_BITS), int64(second_product >> HALF_BITS)
            is_kept = product & LOW_HALF >= threshold
            is_second_kept = second_product & LOW_HALF >= threshold
        elif KIND == WIDE:
            number, is_kept = int64(mul_high(raw, bound)), raw * bound >= threshold
        else:
            drawn = (raw >> FRACTION_SHIFT) * FRACTION
            if KIND == WEIGHTED:
                number = int64(place_of(cumulated, guide, drawn * total))
            elif drawn / TREE_SHARE * total < total:
                number = -1 - int64(place_of(cumulated, guide, drawn / TREE_SHARE * total))
            else:
                number = int64((drawn - TREE_SHARE) / (1.0 - TREE_SHARE) * bound)
                number = min(max(number, int64(0)), int64(bound) - 1)
        place, before, second_before, missing = PER_STEP * me, 0, 0, 0
        if KIND in (NARROW, WIDE) and cuda.syncthreads_or(int32(not (is_kept and is_second_kept))):
            if not is_kept:
                rejected[cuda.atomic.add(rejections, 0, 1)] = place
            if not is_second_kept:
                rejected[cuda.atomic.add(rejections, 0, 1)] = place + 1
            cuda.syncthreads()
            missing = rejections[0]
            for k in range(missing):
                before += int32(rejected[k] < place)
                second_before += int32(rejected[k] < place + 1)
            cuda.syncthreads()
            if me == 0:
                rejections[0] = 0
        at = filled + place - before
        if is_kept and at < size:
            edges[block, at] = ends_of(number, nodes, ends, parents)
            if HAS_SHARES:
                shares[block, at] = all_shares[number]
        at = filled + place + 1 - second_before
        if PER_STEP == 2 and is_second_kept and at < size:
            edges[block, at] = ends_of(second, nodes, ends, parents)
            if HAS_SHARES:
                shares[block, at] = all_shares[second]
        filled += TILE - missing


def ends_of(number: Any, nodes: Any, ends: Any, parents: Any) -> Any:
    """Return both ends of an edge, given its number; negative: that of a node and its parent."""
    if not IS_COMPLETE:
        return ends[number]
    if number < 0:
        return (-1 - number) | parents[-1 - number] << 32
    step = number // nodes
    start = number - step * nodes
    other = start + step + 1
    return start | (other - nodes if other >= nodes else other) << 32
