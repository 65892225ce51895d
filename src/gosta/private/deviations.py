"""Finding out who deviates, when a total cannot be a sum over rows, without opening sums.

Every site appends to its vector, before masking it, a few *pads*: random numbers of a law of
differential privacy. All sites have committed to their masked vectors before any of these is shown.
If the total is implausible, the numbers of all contributions choose random halves of the vector,
one for each pad. Every site then opens, for each of its partners, the sum of the mask between them
over such a half and its pad. What remains of a contribution is the site's sum over that half, plus
its pad:

    s_i = Σ_{p in half} y_i[p] + y_i[pad] − Σ_j opened_ij = Σ_{p in half} v_i[p] + pad

A pad is a Gaussian number whose standard deviation is what the largest participant declared, its
rows times the features of a row: an opening tells little more of a site's sums than that they lie
between zero and that. One row moves each s_i by at most its features, and where the total has
noise, what another site opens as much: an opening has μ = √(2 CHECKS) / rows. Many openings could
be averaged, so they are charged to the budget, and few (`MAX_OPENINGS`).

A deviation of a number by fifteen times the declared rows is out of bounds in each half with that
number, so it is missed once in 2^CHECKS times; one by eight times is missed once in thirty times,
and a smaller one mostly. Two partners that open different masks are named together; one that
disagrees with most of its partners is accused, which proves nothing if these collude.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gosta.private.accounting import gaussian_epsilon
from gosta.private.masks import random_bytes
from gosta.private.noise import Noise
from gosta.runtime.arrays import Booleans, Words

LARGEST_SUM = 1 << 60  # so that twice that is a number of 64 bits with a sign
CHECKS = 8  # halves: a gross deviation is missed once in 256 times
PAD_REACH = 6.5  # standard deviations within which a pad is, but once in 10^10 pads
PAD_DELTA = 1e-6  # with which the epsilon of pads is told
LEAST_ROWS = 50  # that a pad is made for
MAX_OPENINGS = 3  # of a site's masks while the member list stays the same


class Deviations(NamedTuple):
    """Participants that did not contribute a sum over their rows, or did not open their masks."""

    sites: tuple[str, ...]  # for sure: what they contributed and opened themselves shows it
    accused: tuple[str, ...]  # that opened other masks than more than half of their partners say
    pairs: tuple[tuple[str, str], ...]  # of others, one of which opened another mask than there is


def pad_noise(bits: int, features: int, rows: int) -> Noise:
    """Return the law of a site's pads, with the privacy of an opening.

    `bits` are those of the grid, `features` those of a row, `rows` the most that a participant
    declared.
    """
    scale = max(rows, LEAST_ROWS)
    epsilon = gaussian_epsilon(math.sqrt(2 * CHECKS) / scale, PAD_DELTA)
    return Noise("gaussian", float(scale * features), bits, epsilon, PAD_DELTA)


def choose_halves(seed: bytes, size: int) -> Booleans:
    """Return which numbers of a vector, and which pad, each check adds up, a row each."""
    bits = (
        np.frombuffer(random_bytes(seed, b"gosta checks")(CHECKS * size), dtype=np.uint8).reshape(
            CHECKS, size
        )
        & 1
    )
    return np.hstack([bits.astype(bool), np.eye(CHECKS, dtype=bool)])


def add_up(vector: Words, halves: Booleans) -> Words:
    """Return the sum of a vector with pads over each half, modulo 2^64."""
    return np.array([vector[half].sum(dtype=np.uint64) for half in halves], dtype=np.uint64)


def find_deviations(
    sums: Mapping[str, Words],
    opened: Mapping[str, Mapping[str, Words]],
    bounds: Mapping[str, tuple[int, int]],
) -> Deviations:
    """Find out who deviates.

    Parameters
    ----------
    sums
        For each participant, the sums of its masked vector over the halves.
    opened
        For each participant and each of its partners, the sums of the mask between them, as this
        participant says.
    bounds
        For each participant, how small and how large its own sums with a pad can be.
    """
    pairs = [
        (name, partner)
        for name, by_partner in opened.items()
        for partner, words in by_partner.items()
        if name < partner and (words + opened[partner][name]).any()
    ]
    found = set()
    for name, words in opened.items():
        rest = (sums[name] - np.sum(list(words.values()), axis=0, dtype=np.uint64)).view(np.int64)
        low, high = bounds[name]
        if (rest < low).any() or (rest > high).any():
            found.add(name)
    differing = {name: sum(name in pair for pair in pairs) for name in opened}
    accused = {
        name for name, by_partner in opened.items() if 2 * differing[name] > len(by_partner)
    } - found
    others = tuple(pair for pair in pairs if not (found | accused) & set(pair))
    return Deviations(tuple(sorted(found)), tuple(sorted(accused)), others)
