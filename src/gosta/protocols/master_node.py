"""Master-node, a baseline of the paper: a server sends all observations to every node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gosta.protocols.protocol import CollectingProtocol

row: Callable[[Any, int], Any]  # provided by the engine
values: Callable[[Any, Any, Any], tuple[float, ...]]


def arrays(n: int, values: int) -> dict[str, Any]:
    """Allocate the arrays of a run.

    They are: flags of observations sent; the kernel sum over their pairs; each node's kernel sum
    with them.
    """
    return {
        "sent": np.zeros(n, dtype=np.bool_),
        "common": np.zeros(values),
        "own": np.zeros((n, values)),
    }


def advance(
    x: Any,
    options: Any,
    edges: Any,
    uniforms: Any,
    order: Any,
    start: int,
    sent: Any,
    common: Any,
    own: Any,
) -> None:
    """Send the next observation to every node, until all have been sent."""
    n = len(x)
    for t in range(start, min(n, start + len(edges))):
        new = order[t]
        h = values(row(x, new), row(x, new), options)
        for c in range(len(h)):
            common[c] += 2.0 * own[new, c] + h[c]
        for node in range(n):
            h = values(row(x, node), row(x, new), options)
            for c in range(len(h)):
                own[node, c] += h[c]
        sent[new] = True


def means(arrays: dict[str, Any], diagonal: Any) -> Any:
    """Return the mean over the pairs of the observations sent and the node's own."""
    sent, common, own = arrays["sent"], arrays["common"], arrays["own"]
    count = sent.sum()
    with_own = (common + 2.0 * own + diagonal) / (count + 1) ** 2
    return np.where(sent[:, None], common / max(count, 1) ** 2, with_own)


def sent(iterations: int, n: int, numbers: int) -> int:
    """Count all observations sent to the server, then one sent to all nodes in each iteration."""
    return n * numbers * (1 + min(iterations, n))


SUMMARY = "A server collects all observations, then sends one to every node in each iteration."
KEEPS = "all observations received"
protocol = CollectingProtocol(
    "master-node",
    SUMMARY,
    KEEPS,
    __file__,
    arrays,
    means,
    sent,
    "n d numbers, and n d before the first",
    has_server=True,
)
