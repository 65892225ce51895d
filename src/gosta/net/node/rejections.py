"""What a node rejected: counted by sender and reason, logged once a minute at most."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

LOG_SECONDS = 60.0  # between two log lines about the same sender and reason
MAX_KINDS = 1000  # pairs of sender and reason
MAX_DETAIL = 200  # characters


class Rejection(msgspec.Struct):
    """Messages or connections of one sender that were rejected for one reason."""

    neighbour: str  # empty: a connection, before or without a greeting
    reason: str
    count: int
    detail: str  # of the last one
    seconds: float  # since then


class Rejections:
    def __init__(self, log: Callable[..., None]) -> None:
        self._log = log
        self._kinds: dict[tuple[str, str], Rejection] = {}
        self._logged_at: dict[tuple[str, str], float] = {}

    def add(self, neighbour: str, reason: str, detail: str, now: float) -> None:
        kind = neighbour, reason
        if kind not in self._kinds and len(self._kinds) >= MAX_KINDS:
            return
        detail = detail[:MAX_DETAIL] if detail.isprintable() else ascii(detail)[1 : MAX_DETAIL + 1]
        one = self._kinds.setdefault(kind, Rejection(neighbour, reason, 0, detail, now))
        one.count, one.detail, one.seconds = one.count + 1, detail, now
        if kind not in self._logged_at or now - self._logged_at[kind] >= LOG_SECONDS:
            self._logged_at[kind] = now
            sender = {"neighbour": neighbour} if neighbour else {}
            self._log("rejected", **sender, reason=reason, detail=detail, count=one.count)

    def list(self, now: float) -> tuple[Rejection, ...]:
        """Return all rejections so far, the latest first."""
        found = [
            msgspec.structs.replace(one, seconds=now - one.seconds) for one in self._kinds.values()
        ]
        return tuple(sorted(found, key=lambda one: one.seconds))
