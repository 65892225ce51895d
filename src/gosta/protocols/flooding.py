"""Gossip-flooding: nodes copy observations to each other and keep all they get. A baseline of the paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gosta.protocols.protocol import Collecting
from gosta.runtime import machine

row: Callable[[Any, int], Any]  # given by the engine, with the kernel as a tuple of floats
values: Callable[[Any, Any, Any], tuple[float, ...]]


def arrays(n: int, values: int) -> dict[str, Any]:
    """What is held, in order of arrival; whether it is held; how many; the sum of the kernel over pairs held."""
    machine.require_memory(5 * n * n, f"flooding {n} nodes, each of which may come to hold all observations,")
    held = np.zeros((n, n), dtype=np.int32)
    held[:, 0] = np.arange(n)
    return {
        "held": held,
        "has": np.eye(n, dtype=np.bool_),
        "size": np.ones(n, dtype=np.int64),
        "sums": np.zeros((n, values)),
    }


def advance(
    x: Any, options: Any, edges: Any, chances: Any, order: Any, start: int, held: Any, has: Any, size: Any, sums: Any
) -> None:
    """Each end picks one of the observations it holds and copies it to the other."""
    for t in range(len(edges)):
        i, j = edges[t, 0], edges[t, 1]
        for_j = held[i, int(chances[t, 0] * size[i])]
        for_i = held[j, int(chances[t, 1] * size[j])]
        receive(x, options, held, has, size, sums, i, for_i)
        receive(x, options, held, has, size, sums, j, for_j)


def receive(x: Any, options: Any, held: Any, has: Any, size: Any, sums: Any, node: int, new: int) -> None:
    """Keep an observation that is new: it makes two pairs with each one held, and one with itself."""
    if has[node, new]:
        return
    for k in range(size[node]):
        h = values(row(x, new), row(x, held[node, k]), options)
        for c in range(len(h)):
            sums[node, c] += 2.0 * h[c]
    h = values(row(x, new), row(x, new), options)
    for c in range(len(h)):
        sums[node, c] += h[c]
    held[node, size[node]] = new
    has[node, new] = True
    size[node] += 1


def means(arrays: dict[str, Any], diagonal: Any) -> Any:
    """Over the pairs held; a node's own observation paired with itself was there from the start."""
    return (arrays["sums"] + diagonal) / (arrays["size"] ** 2)[:, None]


def sent(iterations: int, n: int, numbers: int) -> int:
    """An observation and its owner's number, each way."""
    return 2 * (numbers + 1) * iterations


protocol = Collecting(
    "flooding",
    "The pair drawn copies one of its observations to each other and keeps all; estimates over what is held.",
    "all observations received, with their owners",
    __file__,
    arrays,
    means,
    sent,
    "2 d + 2 numbers",
)
