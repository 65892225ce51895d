"""The data of a live page of nodes: their present state, its history, and events for browsers.

A browser is sent a "start" event with everything, and then "change" events with what differs from
the moment before. A start is sent again when nodes, edges or quantities are others than before.
Nothing here knows what nodes are: a network of processes and a simulation can both be shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from gosta.runtime.http import make_event

# Points of the history; of more, every second one of the older half is removed.
MAX_POINTS = 360
# Nodes × quantities; of more, the history has the values of all nodes together only.
MAX_POINT_VALUES = 256
MAX_LOG_LINES = 200


class Value(msgspec.Struct, frozen=True, array_like=True):
    """A quantity at one node, or over all of them."""

    value: float | None = None
    low: float | None = None  # ends of the confidence interval
    high: float | None = None
    certain_low: float | None = None  # ends of the bracket in which it certainly is
    certain_high: float | None = None
    error: float | None = None  # relative error that is expected; 0: none


class NodeState(msgspec.Struct, frozen=True, array_like=True):
    """A node at one moment."""

    state: str
    kind: str  # of the state: "good", "waiting", "trouble" or "away"
    note: str  # beside the state, such as "restarted 1 x"
    values: tuple[Value, ...]  # of each quantity
    is_live: bool = True  # otherwise the values are old


class Rejection(msgspec.Struct, frozen=True, array_like=True):
    """What a node rejected of one sender for one reason."""

    node: str
    sender: str
    reason: str
    count: int
    time: float  # of the last one, in seconds since 1970
    detail: str
    is_harmless: bool = False


class LogLine(msgspec.Struct, frozen=True, array_like=True):
    time: str
    node: str
    event: str
    text: str


class Scene(msgspec.Struct, frozen=True):
    """What a page shows and what stays the same for long."""

    title: str
    subtitle: str
    quantities: tuple[str, ...]
    level: float | None  # of the intervals
    nodes: tuple[str, ...]
    edges: tuple[tuple[int, int], ...]  # places in `nodes`
    states: dict[str, str]  # what each state means
    has_errors: bool  # whether nodes expect errors, which get smaller


class Moment(msgspec.Struct, frozen=True):
    """What changes."""

    time: float  # in seconds since 1970
    facts: tuple[tuple[str, str], ...]  # of all nodes together: name, text
    totals: tuple[Value, ...]  # each quantity over all nodes
    nodes: tuple[NodeState, ...]
    # State of each edge: "connected", "connected via node-3", "not connected", ...
    edges: tuple[str, ...]
    activity: tuple[int, ...]  # of each edge: a count that grows
    missing: tuple[str, ...]  # nodes whose rows are in no node's estimate
    partly_missing: int  # nodes whose rows are in some estimates only
    rejections: tuple[Rejection, ...]
    log: tuple[LogLine, ...]  # new lines


class Feed:
    """The latest moment, and a history of the quantities."""

    def __init__(self) -> None:
        self._scene: Scene | None = None
        self._moment: Moment | None = None
        self._history: list[tuple[float, list[tuple[float | None, ...]]]] = []
        self._log: list[LogLine] = []

    def update(self, scene: Scene, moment: Moment) -> bytes:
        """Take up a moment, and return the event to send."""
        before, self._moment = self._moment, moment
        self._log = [*self._log, *moment.log][-MAX_LOG_LINES:]
        if before is None or scene != self._scene:
            if (
                self._scene is None
                or scene.nodes != self._scene.nodes
                or scene.quantities != self._scene.quantities
            ):
                self._history = []
            self._scene = scene
            self._record(moment)
            return self.start()
        self._record(moment)
        return make_event("change", msgspec.json.encode(_changes(before, moment)))

    def start(self) -> bytes:
        """Return the event with everything; one that says so, if there is nothing yet."""
        scene, moment = self._scene, self._moment
        if scene is None or moment is None:
            return make_event("wait", b"{}")
        now = msgspec.structs.replace(moment, log=tuple(self._log))
        return make_event(
            "start", msgspec.json.encode({"scene": scene, "moment": now, "history": self._history})
        )

    def _record(self, moment: Moment) -> None:
        """Add a point to the history.

        For each quantity it has the total, then the value at each node, if these are few.
        """
        has_nodes = len(moment.nodes) * len(moment.totals) <= MAX_POINT_VALUES
        point = []
        for k, total in enumerate(moment.totals):
            node_values = (
                [node.values[k].value if node.is_live else None for node in moment.nodes]
                if has_nodes
                else []
            )
            point.append((*msgspec.structs.astuple(total), *node_values))
        self._history.append((moment.time, point))
        if len(self._history) > MAX_POINTS:
            half = MAX_POINTS // 2
            self._history = self._history[:half:2] + self._history[half:]


def _changes(before: Moment, now: Moment) -> dict[str, Any]:
    """Return the fields that changed; of nodes and edges those that did, by their places."""
    changes: dict[str, Any] = {"time": now.time}
    for name in ("facts", "totals", "missing", "partly_missing", "rejections"):
        if getattr(now, name) != getattr(before, name):
            changes[name] = getattr(now, name)
    changes["nodes"] = _differences(before.nodes, now.nodes)
    changes["edges"] = _differences(before.edges, now.edges)
    counts = zip(before.activity, now.activity, strict=True)
    changes["activity"] = {k: new - old for k, (old, new) in enumerate(counts) if new > old}
    changes["log"] = now.log
    return {
        name: value
        for name, value in changes.items()
        if value or name in ("missing", "partly_missing", "rejections")
    }


def _differences(before: Sequence[object], now: Sequence[object]) -> dict[int, object]:
    return {k: new for k, (old, new) in enumerate(zip(before, now, strict=True)) if new != old}
