"""Clocks without waiting: one whose time jumps to the next timer, and a calendar that is ahead."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import Any


class Timer:
    """A scheduled call."""

    def __init__(self, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.callback, self.args, self.is_cancelled = callback, args, False

    def cancel(self) -> None:
        self.is_cancelled = True


class VirtualClock:
    """Virtual time with timers; implements `gosta.net.transport.base.Loop`."""

    def __init__(self) -> None:
        self.now = 0.0
        self._order = itertools.count()
        self._timers: list[tuple[float, int, Timer]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> Timer:
        timer = Timer(callback, args)
        heapq.heappush(self._timers, (self.now + max(0.0, delay), next(self._order), timer))
        return timer

    def step(self) -> bool:
        """Run the next timer; return False if there is none."""
        if not self._timers:
            return False
        self.now, _, timer = heapq.heappop(self._timers)
        if not timer.is_cancelled:
            timer.callback(*timer.args)
        return True

    def run(self, until: float) -> None:
        """Run all timers up to a time."""
        while self._timers and self._timers[0][0] <= until:
            self.step()
        self.now = until

    def run_all(self) -> None:
        """Run until no timer is left."""
        while self.step():
            pass


def shifted(days: float) -> type[datetime]:
    """Return a `datetime` whose `now` is some days later."""

    class Shifted(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Shifted:
            return cls.fromtimestamp((datetime.now(tz) + timedelta(days=days)).timestamp(), tz)

    return Shifted
