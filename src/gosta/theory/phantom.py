"""The phantom network, the paper's way to see why GoSta-sync works.

Beside the n estimates imagine n copies of the network, one a node. In copy k every node l carries the number
H(X_k, X_l); swapping visitors moves these numbers around, and node k always sees the one that lies at its own place in
its own copy. Estimates and copies together are a state of n + n² numbers, and one iteration multiplies its expectation
by a matrix: all about the protocol is in it. It is far too large for anything but teaching.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gosta import graphs
from gosta.errors import InputError
from gosta.runtime.arrays import Floats
from gosta.theory.arguments import whole_times
from gosta.theory.spectrum import dense_laplacian

MOST = 40  # nodes; the matrix has (n + n²)² numbers


class PhantomNetwork:
    """Estimates of GoSta-sync and what the copies carry, in expectation.

    Parameters
    ----------
    kernel
        H, n × n: the kernel of all pairs of observations.
    graph
        As for `gosta.graphs.load`, n ≤ 40.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([1.0, 2.0, 4.0])
    >>> network = PhantomNetwork(np.abs(x[:, None] - x), "path")
    >>> network.transition(1).shape
    (12, 12)
    >>> network.expectation([1, 10, 1000]).round(3)  # V = 4/3; gini-mean-difference is 3/2 of it
    array([[0.   , 1.07 , 1.331],
           [0.   , 1.1  , 1.331],
           [0.   , 1.163, 1.332]])
    """

    def __init__(self, kernel: Any, graph: Any) -> None:
        try:
            self.kernel = np.atleast_2d(np.asarray(kernel, dtype=np.float64))
        except (TypeError, ValueError):
            raise InputError("kernel must be an array of n x n numbers, the kernel of all pairs") from None
        self.n = n = len(self.kernel)
        if self.kernel.shape != (n, n) or not np.isfinite(self.kernel).all():
            raise InputError(f"kernel of shape {self.kernel.shape}; the kernel of all pairs is n x n finite numbers")
        if n > MOST:
            raise InputError(f"a phantom network of {n} nodes has {n + n * n:,} states; take at most {MOST} nodes")
        matrix = dense_laplacian(graphs.load(graph, n).check())
        self.average, self.swap = np.eye(n) - matrix / 2, np.eye(n) - matrix

    def start(self) -> Floats:
        """No estimates yet, and every number at home."""
        return np.concatenate([np.zeros(self.n), self.kernel.ravel()])

    def transition(self, t: int) -> Floats:
        """What iteration t multiplies the expected state by: update, then average, then swap."""
        whole_times(t)
        n = self.n
        seen = np.zeros((n, n * n))
        seen[np.arange(n), np.arange(n) * (n + 1)] = 1.0  # node k sees place k of copy k
        upper = np.hstack([(t - 1) / t * self.average, self.average @ seen / t])
        lower = np.hstack([np.zeros((n * n, n)), np.kron(np.eye(n), self.swap)])
        return np.vstack([upper, lower])

    def expectation(self, times: Any) -> Floats:
        """Expected estimates, nodes × times, by multiplying out."""
        ticks = whole_times(times)
        state, out = self.start(), np.empty((self.n, len(ticks)))
        for t in range(1, int(ticks.max()) + 1):
            state = self.transition(t) @ state
            out[:, ticks == t] = state[: self.n, None]
        return out
