"""The data of a page that shows a run of a simulation: a scene, which stays the same, and frames.

A frame has a byte for each node, its colour, and otherwise sums up all nodes, so that it stays
small: of 10,000 nodes it has 14 kB of text. The byte holds how far the node's estimate is from the
exact value: in its highest bit whether it is below, in the others the size of the error in
logarithmic steps, from at most `MIN_ERROR` (0) to at least `MIN_ERROR` times ten to the power of
`DECADES` (127). The page draws errors and, by the sign, estimates from it.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from gosta.runtime.arrays import Floats

# Colours of nodes: the smallest error, the range of errors in decades, and the steps in it.
MIN_ERROR = 1e-6
DECADES = 7
STEPS = 127
IS_BELOW = 128  # added to the step where an estimate is below the exact value
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BINS = 64
# Share of the nodes that may lie beyond the ends of the histogram, in its first and last bin.
OUTSIDE = 0.02
MAX_EDGES = 150_000  # in a scene; of more, it has a sample
PLACES = 65535  # along each side of the map


class Scene(msgspec.Struct, frozen=True):
    """What a page shows of a run and what stays the same."""

    title: str
    subtitle: str
    quantities: tuple[str, ...]
    # Exact value of each quantity; the mean where each node has a target of its own.
    exact: tuple[float, ...]
    scales: tuple[float, ...]  # what errors are relative to; 1 where they are absolute
    is_relative: tuple[bool, ...]  # of each quantity
    has_own_targets: bool  # whether each node has a target of its own
    nodes: int
    rows: int
    edges: int
    exchanges: int | None  # in an iteration; None: not always as many
    iterations: int  # at the end
    places: bytes | None  # x and y of each node on the map, two bytes each; None: there is no map
    edge_ends: bytes  # both ends of the edges that can be drawn, two bytes each
    note: str  # what the map leaves out
    node_names: tuple[str, ...] = ()  # where nodes are sites with names; empty: they have numbers
    is_recording: bool = False
    # What the bands of charts show: from the second to the fourth quantile, and from the first to
    # the last.
    bands: tuple[str, str] = ("half of the nodes", "90 % of the nodes")


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """One quantity of all nodes after some iterations."""

    iteration: int
    sent: int  # numbers, by all nodes together
    colours: bytes  # of each node; empty: there is no map
    estimates: tuple[float | None, ...]  # mean over nodes, then `QUANTILES`
    errors: tuple[float | None, ...]  # likewise
    ends: tuple[float, float]  # of the histogram
    counts: list[int]  # of nodes in each of its bins


def make_frame(
    iteration: int, sent: int, estimates: Floats, target: Floats, scale: float, exact: float
) -> Frame:
    """Return a frame of the estimates of all nodes.

    The target is one number or has one for each node.
    """
    off = (estimates - target) / scale
    errors = np.abs(off)
    ends = histogram_ends(estimates, exact)
    # Estimates beyond the ends count in the first and last bin.
    counts, _ = np.histogram(np.clip(estimates, *ends), BINS, ends)
    return Frame(
        iteration,
        sent,
        encode_errors(off),
        (float(estimates.mean()), *np.quantile(estimates, QUANTILES).tolist()),
        (float(errors.mean()), *np.quantile(errors, QUANTILES).tolist()),
        ends,
        counts.tolist(),
    )


def encode_errors(off: Floats) -> bytes:
    """Return a byte for each node from how far its estimate is from the exact value.

    >>> list(encode_errors(np.array([0.0, 1.0, -1.0, 0.01, 1e-6, 50.0])))
    [0, 109, 237, 73, 0, 127]
    """
    size = np.maximum(np.abs(off), MIN_ERROR) / MIN_ERROR
    steps = np.minimum(np.rint(np.log10(size) * (STEPS / DECADES)), STEPS).astype(np.uint8)
    return (steps | np.where(off < 0, IS_BELOW, 0).astype(np.uint8)).tobytes()


def histogram_ends(estimates: Floats, exact: float) -> tuple[float, float]:
    """Return the ends of a histogram around the exact value, halved while the nodes allow it.

    >>> histogram_ends(np.array([0.9, 1.0, 1.1]), 1.0)
    (0.875, 1.125)
    """
    away = float(np.quantile(np.abs(estimates - exact), 1 - OUTSIDE))
    # Beyond the least distance, numbers near the exact value could not be told from each other.
    least = max(abs(exact), 1.0) * 2.0**-40
    half = 2.0 ** math.ceil(math.log2(max(away, least)))
    return exact - half, exact + half


def place_nodes(places: Floats) -> bytes:
    """Return the places of nodes, n × 2 between 0 and 1, as two bytes each; y grows downwards."""
    across = np.column_stack([places[:, 0], 1 - places[:, 1]])
    return _two_bytes(np.rint(across * PLACES))


def list_edges(edges: NDArray[np.int32] | None, seed: int = 0) -> tuple[bytes, str]:
    """Return both ends of the edges to draw, and what is left out.

    None stands for a complete graph.
    """
    if edges is None:
        return (
            b"",
            "Every node is a neighbour of every other: edges are drawn for the chosen node only.",
        )
    if len(edges) <= MAX_EDGES:
        return _two_bytes(edges), ""
    chosen = np.sort(np.random.default_rng(seed).choice(len(edges), MAX_EDGES, replace=False))
    return _two_bytes(edges[chosen]), f"Of {len(edges):,} edges, {MAX_EDGES:,} are drawn."


def _two_bytes(numbers: NDArray[np.float64] | NDArray[np.int32]) -> bytes:
    return np.ascontiguousarray(numbers, dtype="<u2").tobytes()
