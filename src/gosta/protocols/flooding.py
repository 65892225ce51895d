"""Gossip-flooding, a baseline of the paper: nodes copy observations and keep all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gosta.protocols.protocol import CollectingProtocol
from gosta.runtime import machine

row: Callable[[Any, int], Any]  # provided by the engine
values: Callable[[Any, Any, Any], tuple[float, ...]]


def arrays(n: int, values: int) -> dict[str, Any]:
    """Allocate the arrays of a run.

    They are: observations held, in order of arrival; flags of those held; their number; sums over
    their pairs.
    """
    machine.require_memory(
        5 * n * n, f"flooding {n} nodes, each of which can receive all observations,"
    )
    held = np.zeros((n, n), dtype=np.int32)
    held[:, 0] = np.arange(n)
    has, size, sums = np.eye(n, dtype=np.bool_), np.ones(n, dtype=np.int64), np.zeros((n, values))
    return {"held": held, "has": has, "size": size, "sums": sums}


def advance(
    x: Any,
    options: Any,
    edges: Any,
    uniforms: Any,
    order: Any,
    start: int,
    held: Any,
    has: Any,
    size: Any,
    sums: Any,
) -> None:
    """Let each end of an edge copy one of its observations, chosen at random, to the other end."""
    for t in range(len(edges)):
        i, j = edges[t, 0], edges[t, 1]
        for_j = held[i, int(uniforms[t, 0] * size[i])]
        for_i = held[j, int(uniforms[t, 1] * size[j])]
        receive(x, options, held, has, size, sums, i, for_i)
        receive(x, options, held, has, size, sums, j, for_j)


def receive(
    x: Any, options: Any, held: Any, has: Any, size: Any, sums: Any, node: int, new: int
) -> None:
    """Keep an observation that is new: add two pairs with each one held, one pair with itself."""
    if has[node, new]:
        return
    held[node, size[node]] = new
    has[node, new] = True
    size[node] += 1
    for k in range(size[node]):
        h = values(row(x, new), row(x, held[node, k]), options)
        count = 1.0 if held[node, k] == new else 2.0
        for c in range(len(h)):
            sums[node, c] += count * h[c]


def means(arrays: dict[str, Any], diagonal: Any) -> Any:
    """Return the mean over the pairs held.

    A node holds its own observation, paired with itself, from the start.
    """
    return (arrays["sums"] + diagonal) / (arrays["size"] ** 2)[:, None]


def sent(iterations: int, n: int, numbers: int) -> int:
    """Count an observation and the number of its owner, in each direction."""
    return 2 * (numbers + 1) * iterations


SUMMARY = (
    "The pair drawn copies one observation to each other and keeps all; estimates over the "
    "observations held."
)
KEEPS = "all observations received, with their owners"
protocol = CollectingProtocol(
    "flooding", SUMMARY, KEEPS, __file__, arrays, means, sent, "2 d + 2 numbers"
)
