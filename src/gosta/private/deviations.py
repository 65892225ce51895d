"""Finding out which participant deviates, when a total cannot be a sum over rows, without opening anybody's sums.

Every site appends to its vector, before masking it, a few *pads*: random numbers from 0 to the largest sum that its
declared rows can have. All sites have committed to their masked vectors before any of these is shown. If the total is
implausible, the numbers of all contributions choose random halves of the vector, one for each pad. Every site then
opens, for each of its partners, the sum of the mask between them over such a half and its pad. What remains of a
contribution is the site's sum over that half, plus its pad:

    s_i = Σ_{p in half} y_i[p] + y_i[pad] − Σ_j opened_ij = Σ_{p in half} v_i[p] + pad

One row moves s_i by no more than a pad hides with probability 1 − features / largest sum, so nobody learns more than
about how many rows the site has. A vector with a number beyond twice what was declared is out of bounds in each half
with a probability of at least one half; smaller deviations are not found. Two partners that open different masks are
named together; one that disagrees with most of its partners is accused, which proves nothing if these collude.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta.private.masks import random_bytes
from gosta.private.noise import Random

Words = NDArray[np.uint64]
LARGEST_SUM = 1 << 60  # so that twice that is a number of 64 bits with a sign
CHECKS = 8  # halves: a gross deviation is missed once in 256 times


class Deviations(NamedTuple):
    """Participants that did not contribute a sum over their declared rows, or did not open their masks."""

    sites: tuple[str, ...]  # for sure: what they contributed and opened themselves shows it
    accused: tuple[str, ...]  # that opened other masks than more than half of their partners say
    pairs: tuple[tuple[str, str], ...]  # of others, one of which opened another mask than there is


def draw_pads(largest: int, random: Random) -> Words:
    """Draw the pads of a vector whose entries add up to at most `largest`."""
    return np.array([int.from_bytes(random(16), "little") % max(largest, 1) for _ in range(CHECKS)], dtype=np.uint64)


def choose_halves(seed: bytes, size: int) -> NDArray[np.bool_]:
    """Return which numbers of a vector, and which pad, each check adds up: checks × (size + CHECKS)."""
    bits = np.frombuffer(random_bytes(seed, b"gosta checks")(CHECKS * size), dtype=np.uint8).reshape(CHECKS, size) & 1
    return np.hstack([bits.astype(bool), np.eye(CHECKS, dtype=bool)])


def add_up(vector: Words, halves: NDArray[np.bool_]) -> Words:
    """Return the sum of a vector with pads over each half, modulo 2^64."""
    return np.array([vector[half].sum(dtype=np.uint64) for half in halves], dtype=np.uint64)


def find_deviations(
    sums: Mapping[str, Words], opened: Mapping[str, Mapping[str, Words]], bounds: Mapping[str, tuple[int, int]]
) -> Deviations:
    """Find out who deviates.

    Parameters
    ----------
    sums
        For each participant, the sums of its masked vector over the halves.
    opened
        For each participant and each of its partners, the sums of the mask between them, as this participant says.
    bounds
        For each participant, how small and how large its own sums with a pad can be.
    """
    pairs = [
        (name, partner)
        for name, own in opened.items()
        for partner, words in own.items()
        if name < partner and (words + opened[partner][name]).any()
    ]
    found = set()
    for name, own in opened.items():
        rest = (sums[name] - np.sum(list(own.values()), axis=0, dtype=np.uint64)).view(np.int64)
        low, high = bounds[name]
        if (rest < low).any() or (rest > high).any():
            found.add(name)
    differing = {name: sum(name in pair for pair in pairs) for name in opened}
    accused = {name for name, own in opened.items() if 2 * differing[name] > len(own)} - found
    others = tuple(pair for pair in pairs if not (found | accused) & set(pair))
    return Deviations(tuple(sorted(found)), tuple(sorted(accused)), others)


def largest_sum(rows: int, features: int, bits: int, reach: float) -> int:
    """Return how large the sum of all numbers of a site's vector can be, in grid units.

    `reach` is how far from 0 the sum of its noise can be, in units of features.
    """
    return min(math.ceil((rows * features + reach) * 2.0**bits), LARGEST_SUM)
