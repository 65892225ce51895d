"""The phantom network, by which the paper shows why GoSta-sync works.

Besides the n estimates, imagine n copies of the network, one for each node. In copy k every node l carries the number
H(X_k, X_l); swapping visitors moves these numbers around, and node k reads the one at its own place in its own copy.
Estimates and copies together are a state of n + n² numbers, and one iteration multiplies the state's expectation by a
matrix, from which everything about the protocol follows. It is far too large for anything but teaching.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gosta import graphs
from gosta.errors import InputError
from gosta.runtime.arrays import Floats
from gosta.theory.arguments import validate_times
from gosta.theory.spectrum import dense_laplacian

MAX_NODES = 40  # the matrix has (n + n²)² numbers


class PhantomNetwork:
    """Expected estimates of GoSta-sync and the expected numbers of the copies.

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

    def __init__(self, kernel: ArrayLike, graph: Any) -> None:
        try:
            self.kernel = np.atleast_2d(np.asarray(kernel, dtype=np.float64))
        except (TypeError, ValueError):
            raise InputError(
                "kernel must be an array of n x n numbers, the kernel of all pairs"
            ) from None
        self.n = n = len(self.kernel)
        if self.kernel.shape != (n, n) or not np.isfinite(self.kernel).all():
            shape = self.kernel.shape
            raise InputError(
                f"kernel of shape {shape} must be n x n finite numbers, the kernel of all pairs"
            )
        if n > MAX_NODES:
            raise InputError(
                f"a phantom network of {n} nodes has {n + n * n:,} states; take at most {MAX_NODES} nodes"
            )
        matrix = dense_laplacian(graphs.load(graph, n).check())
        self.average, self.swap = np.eye(n) - matrix / 2, np.eye(n) - matrix

    def start(self) -> Floats:
        """Return the state before the first iteration: estimates of 0, and the kernel in every copy."""
        return np.concatenate([np.zeros(self.n), self.kernel.ravel()])

    def transition(self, t: int) -> Floats:
        """Return the matrix by which iteration t multiplies the expected state: update, then average, then swap."""
        validate_times(t)
        n = self.n
        own_place = np.zeros((n, n * n))
        own_place[np.arange(n), np.arange(n) * (n + 1)] = 1.0  # node k reads place k of copy k
        upper = np.hstack([(t - 1) / t * self.average, self.average @ own_place / t])
        lower = np.hstack([np.zeros((n * n, n)), np.kron(np.eye(n), self.swap)])
        return np.vstack([upper, lower])

    def expectation(self, times: ArrayLike) -> Floats:
        """Return expected estimates, nodes × times, by multiplying all matrices out."""
        iterations = validate_times(times)
        state, out = self.start(), np.empty((self.n, len(iterations)))
        for t in range(1, int(iterations.max()) + 1):
            state = self.transition(t) @ state
            out[:, iterations == t] = state[: self.n, None]
        return out
