"""Template of compiled code that computes mean, deviation and median of the errors of nodes.

Sums are added pairwise, in the order in which numpy adds them, so that they are numpy's to the last
bit.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from gosta.runtime.arrays import Floats, Integers

PAIRWISE_BLOCK = 128  # numbers that numpy adds with eight accumulators
MAX_DEPTH = 64  # times that numbers are halved


def summarise(
    values: Floats, target: Floats, starts: Integers, scales: Floats, out: Floats
) -> None:
    """Write mean, standard deviation and median over nodes of the errors of readings.

    `values` are readings × nodes × values.

    The values of statistic k begin at starts[k], its errors are relative to scales[k]; of several,
    the largest error of a node counts. `target` is that of all nodes, or has a row for each.
    """
    nodes, count = values.shape[1], values.shape[2]
    errors, scratch = np.empty(nodes), np.empty(max(nodes, count))
    parts, sums = np.empty((MAX_DEPTH, 3), dtype=np.int64), np.empty(MAX_DEPTH)
    for r in range(len(values)):
        if count == 1 and len(target) == 1:
            for i in range(nodes):
                errors[i] = abs(values[r, i, 0] - target[0, 0]) / scales[0]
        else:
            for i in range(nodes):
                errors[i] = largest_error(
                    values[r, i],
                    target[min(i, len(target) - 1)],
                    starts,
                    scales,
                    scratch,
                    parts,
                    sums,
                )
        mean = pairwise_sum(errors, nodes, parts, sums) / nodes
        for i in range(nodes):
            scratch[i] = (errors[i] - mean) * (errors[i] - mean)
        out[r, 0], out[r, 1] = mean, sqrt(pairwise_sum(scratch, nodes, parts, sums) / nodes)
        out[r, 2] = select(errors, nodes // 2)


def largest_error(
    values: Floats,
    target: Floats,
    starts: Integers,
    scales: Floats,
    scratch: Floats,
    parts: Integers,
    sums: Floats,
) -> float:
    """Return the largest error of several statistics at a node."""
    largest = 0.0
    for k in range(len(starts)):
        first, last = starts[k], starts[k + 1] if k + 1 < len(starts) else len(values)
        for c in range(first, last):
            scratch[c - first] = (values[c] - target[c]) * (values[c] - target[c])
        total = pairwise_sum(scratch, last - first, parts, sums)
        error = abs(values[first] - target[first]) if last - first == 1 else sqrt(total)
        largest = max(largest, error / scales[k])
    return largest


def pairwise_sum(numbers: Floats, count: int, parts: Integers, sums: Floats) -> Any:
    """Add the first numbers as numpy does: it halves them, at a multiple of eight, down to blocks.

    `parts` has room for start and size of each part that is being halved and whether its first half
    is done, `sums` for the sums of those halves.
    """
    depth, parts[0, 0], parts[0, 1] = 0, 0, count
    while True:
        start, size = parts[depth, 0], parts[depth, 1]
        if size > PAIRWISE_BLOCK:
            parts[depth, 2] = 0
            depth += 1
            parts[depth, 0], parts[depth, 1] = start, first_half(size)
            continue
        total = block_sum(numbers, start, size)
        while depth > 0 and parts[depth - 1, 2] == 1:
            depth -= 1
            total = sums[depth] + total
        if depth == 0:
            return total
        sums[depth - 1], parts[depth - 1, 2] = total, 1
        start, size = parts[depth - 1, 0], parts[depth - 1, 1]
        parts[depth, 0], parts[depth, 1] = start + first_half(size), size - first_half(size)


def first_half(size: int) -> int:
    """Return how many numbers are in the first half of a part."""
    return size // 2 - size // 2 % 8


def block_sum(numbers: Floats, start: int, size: int) -> Any:
    """Add the numbers of a block with eight accumulators, and the rest one by one."""
    whole, total = size - size % 8, 0.0
    if whole > 0:
        a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(start, start + whole, 8):
            a += numbers[i]
            b += numbers[i + 1]
            c += numbers[i + 2]
            d += numbers[i + 3]
            e += numbers[i + 4]
            f += numbers[i + 5]
            g += numbers[i + 6]
            h += numbers[i + 7]
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(start + whole, start + size):
        total += numbers[i]
    return total


def select(numbers: Floats, k: int) -> Any:
    """Return the number that is at place k when they are sorted; they are moved.

    Quickselect, without branches that depend on a comparison: half of those would be mispredicted.
    """
    low, high = 0, len(numbers)
    while high - low > 1:
        a, b, c = numbers[low], numbers[(low + high) // 2], numbers[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        smaller = low
        for i in range(low, high):
            number = numbers[i]
            numbers[i] = numbers[smaller]
            numbers[smaller] = number
            smaller += int(number < pivot)
        if k < smaller:
            high = smaller
            continue
        larger = smaller
        for i in range(smaller, high):
            number = numbers[i]
            numbers[i] = numbers[larger]
            numbers[larger] = number
            larger += int(number <= pivot)
        if k < larger:
            return pivot
        low = larger
    return numbers[k]
