"""Template of compiled code that draws the edges of `gosta.schedule`, with numpy's bits.

A block of draws is one stream of numpy's PCG64, seeded by numpy's SeedSequence. A stream is an
array of numbers: state and increment of the generator (two words of 64 bits each), the half of its
last number that is still to be used, whether there is one, and the number of draws so far, over all
blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from gosta.runtime.arrays import Floats, Integers

Words = Any  # an array of unsigned integers

STATE, STATE_LOW, STEP, STEP_LOW, HALF, HAS_HALF, DRAWN = range(7)

# Constants, appended by `gosta.simulation.edges`.
BLOCK: int  # draws in a block
EDGES: int  # number of the stream of edges of a run
PIECE: int  # draws at a time, a fraction of a block; they stay in the nearest cache
TREE_SHARE: float
NARROW: int
WIDE: int
WEIGHTED: int
TREE: int

# Constants of SeedSequence and PCG64.
POOL_SIZE = 4
MULTIPLIER = np.uint64(0x2360ED051FC65DA4)
MULTIPLIER_LOW = np.uint64(0x4385DF649FCCF645)

LOW_HALF = np.uint64(0xFFFFFFFF)
ONE = np.uint64(1)
HALF_BITS = np.uint64(32)
# A fraction has 53 bits of a number of 64.
FRACTION_SHIFT = np.uint64(11)
FRACTION = 1.0 / 9007199254740992.0


@intrinsic
def mul_high(context: Any, a: Any, b: Any) -> Any:
    """Return the upper half of the product of two numbers of 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, wide(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


def hash_word(value: Any, factor: Any, next_factor: Any) -> Any:
    """Return the hash of a word of 32 bits by SeedSequence."""
    value = (value ^ factor) * next_factor & LOW_HALF
    return value ^ value >> np.uint64(16)


def mix_words(x: Any, y: Any) -> Any:
    """Mix two words of 32 bits as SeedSequence does."""
    mixed = x * np.uint64(0xCA01F9DD) - y * np.uint64(0x4973F715) & LOW_HALF
    return mixed ^ mixed >> np.uint64(16)


def seed_stream(stream: Words, entropy: Any, run: int, block: int) -> None:
    """Set a stream to the start of a block.

    That is PCG64(SeedSequence(seed, spawn_key=(run, EDGES, block))).
    """
    pool, factor = stream[POOL_SIZE:], np.uint64(0x43B0D7E5)
    for k in range(POOL_SIZE):
        after = factor * np.uint64(0x931E8875) & LOW_HALF
        pool[k] = hash_word(np.uint64(entropy[k]), factor, after)
        factor = after
    for source in range(len(entropy) + 3):
        for target in range(POOL_SIZE):
            if source == target:
                continue
            if source < POOL_SIZE:
                word = pool[source]
            elif source < len(entropy):
                word = np.uint64(entropy[source])
            else:
                key = source - len(entropy)
                word = (
                    np.uint64(run)
                    if key == 0
                    else np.uint64(EDGES)
                    if key == 1
                    else np.uint64(block)
                )
            after = factor * np.uint64(0x931E8875) & LOW_HALF
            pool[target] = mix_words(pool[target], hash_word(word, factor, after))
            factor = after
    factor = np.uint64(0x8B51F9DD)
    for k in range(2 * POOL_SIZE):
        after = factor * np.uint64(0x58F38DED) & LOW_HALF
        word = hash_word(pool[k % POOL_SIZE], factor, after)
        factor = after
        stream[k // 2] = word if k % 2 == 0 else stream[k // 2] | word << HALF_BITS
    state, state_low, step, step_low = stream[0], stream[1], stream[2], stream[3]
    step, step_low = step << ONE | step_low >> np.uint64(63), step_low << ONE | ONE
    low = step_low + state_low
    state, state_low = next_state(step + state + np.uint64(low < step_low), low, step, step_low)
    stream[STATE] = state
    stream[STATE_LOW] = state_low
    stream[STEP] = step
    stream[STEP_LOW] = step_low
    stream[HAS_HALF], stream[DRAWN] = np.uint64(0), np.uint64(block * BLOCK)


def next_state(state: Any, state_low: Any, step: Any, step_low: Any) -> Any:
    """Return the next state of PCG64."""
    product = state_low * MULTIPLIER_LOW
    high = mul_high(state_low, MULTIPLIER_LOW) + state * MULTIPLIER_LOW + state_low * MULTIPLIER
    low = product + step_low
    return high + step + np.uint64(low < product), low


def output(state: Any, state_low: Any) -> Any:
    """Return the number of 64 bits that PCG64 makes of a state."""
    mixed, turn = state ^ state_low, state >> np.uint64(58)
    return mixed >> turn | mixed << (np.uint64(64) - turn & np.uint64(63))


def place_of(cumulated: Floats, guide: Integers, at: float) -> Any:
    """Return the number of the first cumulated weight above `at`, or that of the last one."""
    last = len(cumulated) - 1
    part = min(int(at / cumulated[last] * (len(guide) - 1)), len(guide) - 2)
    low, high = guide[part], guide[part + 1]
    while low > 0 and cumulated[low - 1] > at:
        low -= 1
    while high < last and cumulated[high] <= at:
        high += 1
    while low < high:
        middle = (low + high) // 2
        if cumulated[middle] > at:
            high = middle
        else:
            low = middle + 1
    return low


def draw_narrow(stream: Words, bound: Any, threshold: Any, numbers: Integers) -> None:
    """Draw numbers below a bound of at most 2^32.

    Each number of the generator gives two, unless one is rejected.
    """
    state = stream[STATE]
    state_low = stream[STATE_LOW]
    step = stream[STEP]
    step_low = stream[STEP_LOW]
    half, has_half, t = stream[HALF], stream[HAS_HALF], 0
    while t < len(numbers):
        if not has_half:
            state, state_low = next_state(state, state_low, step, step_low)
            half = output(state, state_low)
            product = (half & LOW_HALF) * bound
            numbers[t] = product >> HALF_BITS
            t += int(product & LOW_HALF >= threshold)
            half, has_half = half >> HALF_BITS, ONE
        if t < len(numbers):
            product = half * bound
            numbers[t] = product >> HALF_BITS
            t += int(product & LOW_HALF >= threshold)
            has_half = np.uint64(0)
    stream[STATE] = state
    stream[STATE_LOW] = state_low
    stream[HALF] = half
    stream[HAS_HALF] = has_half


def draw_wide(stream: Words, bound: Any, threshold: Any, numbers: Integers) -> None:
    """Draw numbers below a bound beyond 2^32."""
    state = stream[STATE]
    state_low = stream[STATE_LOW]
    step = stream[STEP]
    step_low = stream[STEP_LOW]
    t = 0
    while t < len(numbers):
        state, state_low = next_state(state, state_low, step, step_low)
        raw = output(state, state_low)
        numbers[t] = mul_high(raw, bound)
        t += int(raw * bound >= threshold)
    stream[STATE], stream[STATE_LOW] = state, state_low


def draw_places(stream: Words, network: Any, numbers: Integers) -> None:
    """Draw numbers of edges by their weights.

    With a tree, they are numbers of children, or n + the number of any pair.
    """
    state = stream[STATE]
    state_low = stream[STATE_LOW]
    step = stream[STEP]
    step_low = stream[STEP_LOW]
    cumulated, n = network.cumulated, network.nodes
    total = cumulated[len(cumulated) - 1]
    for t in range(len(numbers)):
        state, state_low = next_state(state, state_low, step, step_low)
        drawn = (output(state, state_low) >> FRACTION_SHIFT) * FRACTION
        if network.kind == WEIGHTED:
            numbers[t] = place_of(cumulated, network.guide, drawn * total)
        elif drawn / TREE_SHARE * total < total:
            numbers[t] = place_of(cumulated, network.guide, drawn / TREE_SHARE * total)
        else:
            number = int((drawn - TREE_SHARE) / (1.0 - TREE_SHARE) * network.bound)
            numbers[t] = n + min(max(number, 0), int(network.bound) - 1)
    stream[STATE], stream[STATE_LOW] = state, state_low


def draw_runs(
    streams: Words,
    entropy: Any,
    runs: Integers,
    network: Any,
    first: int,
    edges: Any,
    shares: Floats,
) -> None:
    """Draw edges of some runs from draw `first` on, runs × draws × 2.

    Their shares are looked up if these differ.
    """
    numbers = np.empty(PIECE, dtype=np.int64)
    for k in range(len(runs)):
        stream, drawn, last = streams[k], first, first + edges.shape[1]
        if int(stream[DRAWN]) != first:
            seed_stream(stream, entropy, runs[k], first // BLOCK)
        while int(stream[DRAWN]) < first:  # a run that is continued
            draw_numbers(stream, network, numbers[: min(PIECE, first - int(stream[DRAWN]))])
        while drawn < last:
            if drawn % BLOCK == 0:
                seed_stream(stream, entropy, runs[k], drawn // BLOCK)
            count = min(PIECE - drawn % PIECE, last - drawn)
            draw_numbers(stream, network, numbers[:count])
            look_up(network, numbers[:count], edges[k, drawn - first : drawn - first + count])
            if shares.size > 0:
                for t in range(count):
                    shares[k, drawn - first + t] = network.shares[numbers[t]]
            drawn += count


def look_up(network: Any, numbers: Integers, edges: Any) -> None:
    """Look up the ends of edges by their numbers."""
    n, ends, parents = network.nodes, network.ends, network.parents
    for t in range(len(edges)):
        number = numbers[t]
        if len(ends) > 0:
            edges[t, 0], edges[t, 1] = ends[number, 0], ends[number, 1]
        elif network.kind == TREE and number < n:
            edges[t, 0], edges[t, 1] = number, parents[number]
        else:
            step, start = divmod(number - n if network.kind == TREE else number, n)
            other = start + step + 1
            edges[t, 0], edges[t, 1] = start, other - n if other >= n else other


def draw_numbers(stream: Words, network: Any, numbers: Integers) -> None:
    """Draw the numbers of the next edges, as many as there is room for."""
    if network.kind == NARROW:
        draw_narrow(stream, network.bound, network.threshold, numbers)
    elif network.kind == WIDE:
        draw_wide(stream, network.bound, network.threshold, numbers)
    else:
        draw_places(stream, network, numbers)
    stream[DRAWN] += np.uint64(len(numbers))
