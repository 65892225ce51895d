"""Bounds on numbers that a node reads from files or neighbours, and on how often things happen."""

from __future__ import annotations

VERSION = 5  # of the wire format
MAX_MESSAGE_BYTES = 1280 * 1024  # of a message between neighbours
MAX_ROW_NUMBERS = 3_600  # a visitor of 8 such rows fits into a message
MAX_ROW_VALUE = (
    1e50  # absolute value of a number in a row: products of five are at most MAX_ESTIMATE
)
MAX_ESTIMATE = 1e250  # a mean of products of kernel values; rows with larger ones are not accepted
MAX_COUNT = 2**53  # integers up to here are exact in a float and in JSON
MAX_ROWS = 2**40  # at one node
MAX_NAME_CHARACTERS = 64
# Least time between epochs: an epoch's number is at most that of such intervals since 1970.
SECONDS_PER_EPOCH = 10.0
MAX_HOMES = 100_000  # nodes whose visitors one node keeps apart
MAX_ROWS_FACTOR = 2  # rows that a home may have, relative to those in the member list
MAX_CACHED_SEALS = 10_000  # visitors whose signatures a node need not verify again
# A mean, relative to the product of the largest numbers seen, of a statistic without a range: far
# beyond what honest sites with different rows tell.
MAX_TOLD_FACTOR = 1e18
MAX_SUMS = 131_072  # numbers in a vector of private sums: 1 MiB, in one message
MAX_ROUNDS = 12  # of private sums in one epoch
# Of private sums in one epoch: thirty-two for each of 1,000 participants.
MAX_STATEMENTS = 32_768
# Rows that a member of private sums can contribute if its member list declares no number.
UNDECLARED_ROWS = 100_000


def max_kernel_value(degree: int) -> float:
    """Return the largest kernel value: products of `degree` of them are far below MAX_ESTIMATE."""
    return float((1e-3 * MAX_ESTIMATE) ** (1 / degree))


class Budget:
    """A token bucket: for each key `burst` events at once, and then one per `seconds`.

    >>> budget = Budget(burst=2, seconds=10.0)
    >>> [budget.take("node-1", now) for now in (0.0, 0.0, 0.0, 9.9, 10.1)]
    [True, True, False, False, True]
    """

    def __init__(self, burst: float, seconds: float) -> None:
        self.burst, self.seconds = burst, seconds
        self._left: dict[str, tuple[float, float]] = {}  # tokens, and when they were counted

    def take(self, key: str, now: float) -> bool:
        """Return whether an event may happen now; if so, count it."""
        tokens, counted_at = self._left.get(key, (self.burst, now))
        tokens = min(self.burst, tokens + max(0.0, now - counted_at) / self.seconds)
        allowed = tokens >= 1.0
        self._left[key] = tokens - 1.0 if allowed else tokens, now
        return allowed
