"""From a site's rows to what it adds to the total, and from what all sites contributed to the total."""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from gosta.private.noise import Noise, Random, Words, draw
from gosta.runtime.arrays import Floats
from gosta.sketches import Layout


def site_vector(layout: Layout, x: Floats, noise: Noise, random: Random = os.urandom) -> Words:
    """Return the sums over a site's encoded rows plus its share of the noise, in grid units modulo 2^64."""
    return layout.sums(x, noise.bits) + draw(noise, layout.size, random)


def open_totals(vectors: Iterable[Words], noise: Noise) -> tuple[NDArray[np.int64], Floats]:
    """Return the total of all contributions, in which masks cancel: in grid units, and in units of features."""
    # wraps as uint64
    exact: NDArray[np.int64] = np.array([vector.view(np.int64) for vector in vectors]).sum(axis=0)
    return exact, np.asarray(exact / 2.0**noise.bits)
