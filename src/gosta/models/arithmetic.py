"""Arithmetic with the same bits on every machine: exp, log, and linear algebra of small matrices.

Each node of a network computes the next step of a fit by itself, and all must agree. Linear algebra
of libraries, and exp and log of numpy, choose their instructions by the processor. Here are only
sums, products, quotients and square roots of single numbers, which IEEE 754 defines to the last
bit, in an order that this file gives.
"""

from __future__ import annotations

import math

import numpy as np

from gosta.errors import GostaError
from gosta.runtime.arrays import Floats, Integers

LOG_2_HIGH, LOG_2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10  # together log 2
LARGEST_EXPONENT = 700.0  # of exp; smaller than that of the largest float
EXP_TERMS = [1 / math.factorial(k) for k in range(14)]  # all that count within ± log(2) / 2
LOG_TERMS = [1 / (2 * k + 1) for k in range(12)]  # all that count within ± 0.1716


class SingularError(GostaError, ArithmeticError):
    """A matrix is not positive definite: of a row and column, nothing is left after others."""

    def __init__(self, row: int) -> None:
        super().__init__(f"row {row} of a matrix depends on the rows before")
        self.row = row


def exp(x: Floats | float) -> Floats:
    """Return exp(x), within two units of the last digit.

    >>> exp(np.array([0.0, 1.0])).round(12).tolist()
    [1.0, 2.718281828459]
    """
    x = np.clip(np.asarray(x, dtype=np.float64), -LARGEST_EXPONENT, LARGEST_EXPONENT)
    doublings = np.rint(x / math.log(2))
    rest = (x - doublings * LOG_2_HIGH) - doublings * LOG_2_LOW
    return np.asarray(np.ldexp(_polynomial(rest, EXP_TERMS), doublings.astype(np.int64)))


def log(x: Floats | float) -> Floats:
    """Return the logarithm of positive numbers.

    >>> log(np.array([1.0, 2.0, 10.0])).round(12).tolist()
    [0.0, 0.69314718056, 2.302585092994]
    """
    part, doublings = np.frexp(np.asarray(x, dtype=np.float64))
    is_small = part < math.sqrt(0.5)
    part, doublings = np.where(is_small, 2 * part, part), doublings - is_small
    ratio = (part - 1) / (part + 1)
    near = 2 * ratio * _polynomial(ratio * ratio, LOG_TERMS)
    return np.asarray(doublings * LOG_2_HIGH + (near + doublings * LOG_2_LOW))


def _polynomial(x: Floats, terms: list[float]) -> Floats:
    found = np.full_like(x, terms[-1])
    for term in terms[-2::-1]:
        found = found * x + term
    return found


def expit(x: Floats | float) -> Floats:
    """Return 1 / (1 + exp(−x))."""
    return np.asarray(1 / (1 + exp(-np.asarray(x))))


def softplus(x: Floats | float) -> Floats:
    """Return log(1 + exp(x))."""
    x = np.asarray(x, dtype=np.float64)
    return np.asarray(np.maximum(x, 0.0) + log(1 + exp(-np.abs(x))))


def dot(a: Floats, b: Floats) -> float:
    """Return the scalar product of two vectors."""
    return math.fsum((a * b).tolist())


def product(a: Floats, b: Floats) -> Floats:
    """Return the product of two matrices."""
    found = np.zeros((a.shape[0], b.shape[1]))
    for column, row in zip(a.T, b, strict=True):
        found += np.multiply.outer(column, row)
    return found


def upper(columns: int) -> tuple[Integers, Integers]:
    """Return rows and columns of the upper triangle of a matrix, its diagonal included."""
    return np.triu_indices(columns)


def symmetric(triangle: Floats, columns: int) -> Floats:
    """Return the symmetric matrix with an upper triangle, or one for each row of triangles."""
    found = np.zeros((*triangle.shape[:-1], columns, columns))
    rows, places = upper(columns)
    found[..., rows, places] = triangle
    found[..., places, rows] = triangle
    return found


def cholesky(matrix: Floats, least: float = 0.0) -> Floats:
    """Return the lower triangle L with L L' = matrix; an error if a squared pivot is not above
    `least`.
    """
    left, size = matrix.copy(), len(matrix)
    for k in range(size):
        if not left[k, k] > least:
            raise SingularError(k)
        left[k:, k] = left[k:, k] / math.sqrt(left[k, k])
        left[k + 1 :, k + 1 :] -= np.multiply.outer(left[k + 1 :, k], left[k + 1 :, k])
    return np.asarray(np.tril(left))


def least_eigenvalue(matrix: Floats) -> float:
    """Return the least eigenvalue of a symmetric matrix, to 2^-40 of its largest row.

    >>> round(least_eigenvalue(np.array([[2.0, 1.0], [1.0, 2.0]])), 9)
    1.0
    """
    size = max(math.fsum(row) for row in np.abs(matrix).tolist())
    low, high = -size, size
    while high - low > size * 2.0**-40:
        middle = (low + high) / 2
        try:
            cholesky(matrix - middle * np.eye(len(matrix)))
            low = middle
        except SingularError:
            high = middle
    return low


def solve_lower(triangle: Floats, right: Floats) -> Floats:
    """Return x with L x = right, rows × columns, for a lower triangle L."""
    x = right.copy()
    for k in range(len(triangle)):
        x[k] = x[k] / triangle[k, k]
        x[k + 1 :] -= np.multiply.outer(triangle[k + 1 :, k], x[k])
    return x


def solve(triangle: Floats, right: Floats) -> Floats:
    """Return x with L L' x = right, for the triangle L of `cholesky`."""
    x = solve_lower(triangle, right.reshape(len(triangle), -1))
    for k in range(len(triangle) - 1, -1, -1):
        x[k] = x[k] / triangle[k, k]
        x[:k] -= np.multiply.outer(triangle[k, :k], x[k])
    return x.reshape(right.shape)


def inverse(triangle: Floats) -> Floats:
    """Return the inverse of L L', for the triangle L of `cholesky`."""
    return solve(triangle, np.eye(len(triangle)))
