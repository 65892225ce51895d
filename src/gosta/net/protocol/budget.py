"""Token buckets: how often something may happen for each key."""

from __future__ import annotations


class Budget:
    """For each key `burst` events at once, and then one per `seconds`.

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
