"""A network of nodes as a live page shows it."""

from __future__ import annotations

import math
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gosta.net.config import LOG_FILE, NetworkConfig, Task
from gosta.net.node import status_text
from gosta.net.node.status import STATES, Neighbour, Status
from gosta.pages.feed import MAX_LOG_LINES, LogLine, Moment, NodeState, Rejection, Scene, Value
from gosta.sketches.results import StratumResult

if TYPE_CHECKING:
    from gosta.net.deploy.query import View

Edge = tuple[str, str]  # two nodes, in the order of their names
Seen = Mapping[Edge, Neighbour]  # neighbours as running nodes see them: by node and neighbour

# States that are seen from outside: the status is an earlier one, or there is none.
OUTSIDE = (
    "stopped",
    "starting",
    "no answer",
    "restarting soon",
    "failed",
    "no status page",
    "not on this machine",
)
# Kinds of states; all others are trouble.
KINDS = {
    **dict.fromkeys(status_text.GOOD_STATES, "good"),
    **dict.fromkeys(("joining", "contributing", "starting", "restarting soon"), "waiting"),
    **dict.fromkeys(("stopped", "no status page", "not on this machine"), "away"),
    "connected": "good",
}
# What the states of nodes on other machines mean.
REMOTE = {
    "connected": "Its folder is not on this machine; a neighbour is connected to it.",
    "not connected": "Its folder is not on this machine, and no neighbour that is here is "
    "connected to it.",
}
MAX_QUANTITIES = 32  # that are shown
MAX_REJECTIONS = 50  # that are shown
RATE_SECONDS = 5.0  # over which exchanges per second are counted
DIGITS = 9  # of numbers that are sent
MAX_READ_BYTES = 32 * 1024  # of a log at a time; what was written before these is skipped
MAX_TEXT = 400  # characters of a line that are shown

_decode_line = msgspec.json.Decoder(dict[str, Any]).decode


class NetworkSource:
    """Makes moments of a network from views of its nodes."""

    def __init__(self, folder: Path, task: Task) -> None:
        self.folder, self.task = folder, task
        self.views: dict[str, View] = {}
        self._log = LogTail()
        # Of each edge, what was last known of it and how often that changed.
        self._counts: dict[Edge, tuple[Any, int]] = {}
        self._rates: deque[tuple[float, int]] = deque()
        self._rejections: dict[tuple[str, str, str], Rejection] = {}

    def read(self, views: Sequence[View], network: NetworkConfig | None) -> tuple[Scene, Moment]:
        """Return what the page shows of these nodes and their neighbours.

        `network` is None for the page of one node.
        """
        now = time.time()
        self.views = {view.name: view for view in views}
        known = [view.status for view in views if view.status is not None]
        live = [view.status for view in views if view.status and view.state not in OUTSIDE]
        seen = {(status.node, near.name): near for status in live for near in status.neighbours}
        pairs = _pairs(known, live, network)
        away = {name for edge in pairs for name in edge} - set(self.views)
        names = (*self.views, *sorted(away, key=_by_number))
        places = {name: place for place, name in enumerate(names)}
        edges = sorted(pairs, key=lambda edge: (places[edge[0]], places[edge[1]]))
        quantities = self._quantities(known)
        values = {status.node: _values(status) for status in known}
        how = "private sums" if self.task.private else f"protocol {self.task.protocol}"
        scene = Scene(
            title=self.folder.name,
            subtitle=f"{self.task.statistic} · {how} · network {self.task.id}",
            quantities=quantities,
            level=self.task.confidence_level,
            nodes=names,
            edges=tuple((places[a], places[b]) for a, b in edges),
            states=STATES | REMOTE,
            has_errors=self.task.private is None,
        )
        epochs = {status.node: status.epoch for status in live}
        activity = tuple(self._count(edge, seen) for edge in edges)
        missing = set.intersection(*(set(status.missing) for status in live)) if live else set()
        partly_missing = {name for status in live for name in status.missing} - missing
        folders = [self.folder] if network is None else [self.folder / name for name in self.views]
        moment = Moment(
            time=round(now, 2),
            facts=tuple(self._facts(live, now, sum(activity), is_whole=network is not None)),
            totals=_totals(live, values, quantities),
            nodes=tuple(
                _node(name, self.views.get(name), values.get(name, {}), quantities, seen)
                for name in names
            ),
            edges=tuple(_edge_state(edge, seen, epochs) for edge in edges),
            activity=activity,
            missing=tuple(sorted(missing, key=_by_number)),
            partly_missing=len(partly_missing & set(names)),
            rejections=self._list_rejections(live, now),
            log=self._log.poll(folders),
        )
        return scene, moment

    def describe(self, name: str) -> dict[str, Any] | None:
        """Return the details of a node: names and values, and tables with a heading.

        Returns None if there is no such node.
        """
        view = self.views.get(name)
        if view is None:
            return self._describe_remote(name)
        reason = [("because", view.reason)] if view.reason else []
        if view.status is None:
            facts = [("state", view.state), ("that means", STATES.get(view.state, "")), *reason]
            return {"facts": facts, "tables": []}
        is_current = view.state == view.status.state
        status = view.status if is_current else _as_of_old(view.status, view.state)
        facts = [*status_text.summary(status), *reason]
        return {"facts": facts, "tables": status_text.tables(status)}

    def _describe_remote(self, name: str) -> dict[str, Any] | None:
        """Return how nodes on this machine see a node that is elsewhere."""
        statuses = [view.status for view in self.views.values() if view.status is not None]
        rows = [
            (status.node, *status_text.neighbour_row(neighbour, status.epoch)[1:])
            for status in statuses
            for neighbour in status.neighbours
            if neighbour.name == name
        ]
        heading = ("seen by", *status_text.NEIGHBOURS_HEADING[1:])
        return {"facts": [], "tables": [[heading, *rows]]} if rows else None

    def _quantities(self, known: Sequence[Status]) -> tuple[str, ...]:
        names = [name for status in known for name in _values(status)]
        return tuple(dict.fromkeys(names or self.task.statistic.split(",")))[:MAX_QUANTITIES]

    def _count(self, edge: Edge, seen: Seen) -> int:
        """Return how many exchanges an edge had since the page runs, in all epochs together."""
        ends = [seen[pair] for pair in (edge, edge[::-1]) if pair in seen]
        if not ends:
            return self._counts.get(edge, (None, 0))[1]
        views = [view for name in edge if (view := self.views.get(name))]
        sums = [view.status.sums for view in views if view.status and view.status.sums]
        if sums:
            # There are no exchanges: a change of what the two know stands for some.
            state: Any = [
                (one.joined, one.missing, one.contributions, one.releases) for one in sums
            ]
            before, count = self._counts.get(edge, (state, 0))
            count += state != before and any(neighbour.connected for neighbour in ends)
        else:
            state = max(neighbour.exchanges for neighbour in ends)
            before, count = self._counts.get(edge, (state, 0))
            count += state - before if state >= before else state  # a new epoch counts from 0
        self._counts[edge] = state, count
        return count

    def _facts(
        self, live: Sequence[Status], now: float, exchanges: int, is_whole: bool
    ) -> Iterator[tuple[str, str]]:
        if is_whole:
            yield "nodes running", f"{len(live):,} of {len(self.views):,}"
        else:
            connected = [near.connected for status in live for near in status.neighbours]
            yield "neighbours connected", f"{sum(connected):,} of {len(connected):,}"
        if not live:
            return
        least = min(live, key=lambda status: (status.sites_seen, status.rows_seen))
        sites, rows = f"{least.sites_seen:,}", f"{least.rows_seen:,}"
        if least.sums is not None and least.sums.law != "none":
            rows = f"about {rows}"
        yield "sites covered", f"{sites} of {least.sites:,}" if least.sites else sites
        yield "rows covered", f"{rows} of {least.rows_declared:,}" if least.rows_declared else rows
        first, last = min(status.epoch for status in live), max(status.epoch for status in live)
        yield "epoch", f"{first:,}" if first == last else f"{first:,} to {last:,}"
        if least.sums is not None:
            if least.sums.release_time is not None:
                yield "result at", f"{datetime.fromtimestamp(least.sums.release_time):%H:%M:%S}"
            yield "noise", status_text.noise(least.sums)
            return
        self._rates.append((now, exchanges))
        while len(self._rates) > 2 and self._rates[1][0] <= now - RATE_SECONDS:
            self._rates.popleft()
        start, before = self._rates[0]
        if now > start > 0:
            yield "exchanges", f"{(exchanges - before) / (now - start):,.0f} / s"

    def _list_rejections(self, live: Sequence[Status], now: float) -> tuple[Rejection, ...]:
        """Return what nodes rejected and mismatches; those that were there before as they were."""
        current: dict[tuple[str, str, str], Rejection] = {}
        for status in live:
            for kind in status.rejections[:MAX_REJECTIONS]:
                key = status.node, kind.neighbour or "a connection", kind.reason
                is_harmless = kind.reason == "late"  # messages of an earlier epoch
                at = round(now - kind.seconds)
                rejection = Rejection(*key, kind.count, at, kind.detail, is_harmless)
                before = self._rejections.get(key)
                is_same = before is not None and before.count == rejection.count
                current[key] = before if before is not None and is_same else rejection
            for neighbour in status.neighbours:
                if neighbour.mismatch:
                    key = status.node, neighbour.name, f"{neighbour.mismatch} mismatch"
                    detail = "the two compute different things"
                    mismatch = Rejection(*key, 1, round(now), detail)
                    current[key] = self._rejections.get(key) or mismatch
        self._rejections = current
        ordered = sorted(current.values(), key=lambda one: (one.is_harmless, -one.time))
        return tuple(ordered[:MAX_REJECTIONS])


def _as_of_old(status: Status, state: str) -> Status:
    """Return the last status of a node that does not run any more, or does not answer."""
    replace = msgspec.structs.replace
    apart = tuple(replace(near, connected=False, alive=False) for near in status.neighbours)
    return replace(status, state=state, neighbours=apart, uptime_seconds=None)


# Nodes and edges.


def _pairs(
    known: Sequence[Status], live: Sequence[Status], network: NetworkConfig | None
) -> set[Edge]:
    """Return all edges; nodes that stopped may know of neighbours that were removed since."""
    statuses = known if network is None else live
    pairs = {_edge(status.node, near.name) for status in statuses for near in status.neighbours}
    return pairs if network is None else pairs | {_edge(*edge) for edge in network.edges}


def _edge(a: str, b: str) -> Edge:
    return (a, b) if _by_number(a) <= _by_number(b) else (b, a)


def _by_number(name: str) -> tuple[str, int, str]:
    """Return a key that sorts node-2 before node-10."""
    text = name.rstrip("0123456789")
    return text, int(name[len(text) :] or 0), name


def _node(
    name: str, view: View | None, values: Mapping[str, Value], quantities: Sequence[str], seen: Seen
) -> NodeState:
    shown = tuple(values.get(quantity) or Value() for quantity in quantities)
    if view is not None and view.state != "not on this machine":
        note = f"restarted {view.restarts} x" if view.restarts else view.reason[:200]
        kind, is_live = KINDS.get(view.state, "trouble"), view.state not in OUTSIDE
        return NodeState(view.state, kind, note, shown, is_live)
    connected = [neighbour.connected for (_, other), neighbour in seen.items() if other == name]
    if not connected:
        return NodeState("not on this machine", "away", "", shown)
    state = "connected" if any(connected) else "not connected"
    return NodeState(state, KINDS.get(state, "trouble"), "", shown)


def _edge_state(edge: Edge, seen: Seen, epochs: Mapping[str, int]) -> str:
    """Return the state of an edge: the first trouble that one of its ends has with the other."""
    states = [
        "suspended"
        if seen[pair].suspended_seconds
        else status_text.neighbour_state(seen[pair], epochs[pair[0]])
        for pair in (edge, edge[::-1])
        if pair in seen
    ]
    trouble = [state for state in states if state != "connected"]
    return next(iter(trouble or states), "unknown")


# Values.


def _values(status: Status) -> dict[str, Value]:
    """Return the quantities that a node reports, by name."""
    if status.sums is not None:
        is_current = status.estimate_epoch == status.epoch
        results = status.sums.results
        return dict(pair for result in results for pair in _result_values(result, is_current))
    if status.statistics:
        values: dict[str, Value] = {}
        for part in status.statistics:
            ends = part.low, part.high
            values |= _estimates(part.statistic, part.value, ends, [part.expected_error])
        return values
    value, errors = status.estimate or (), status.value_errors
    if len(errors) != len(value):
        errors = (status.expected_error,)
    return _estimates(status.statistic, value, (status.low, status.high), errors)


def _estimates(
    name: str,
    value: Sequence[float],
    ends: tuple[float | None, float | None],
    errors: Sequence[float | None],
) -> dict[str, Value]:
    """Return an estimate's values by name; `errors` are those of each value, or one for all."""
    if len(value) == 1:
        low, high = map(_round, ends)
        return {name: Value(_round(value[0]), low, high, error=_round(errors[0], 3))}
    each = errors if len(errors) == len(value) else [errors[0]] * len(value)
    return {
        f"{name} [{k}]": Value(_round(number), error=_round(each[k], 3))
        for k, number in enumerate(value)
    }


def _result_values(result: StratumResult, is_current: bool) -> Iterator[tuple[str, Value]]:
    """Yield the values of a result of private sums, by name."""
    name = f"{result.statistic}, {result.stratum}" if result.stratum else result.statistic
    if not result.has_value:
        yield name, Value()
        return
    for k, number in enumerate(result.value):
        label = "" if len(result.value) == 1 else f" [{result.labels[k] if result.labels else k}]"
        low, high = result.interval if result.interval and not label else (None, None)
        if result.intervals:
            low, high = result.intervals[k]
        certain_low = certain_high = None
        if result.is_certified:
            certain_low, certain_high = _round(result.low[k]), _round(result.high[k])
        yield (
            name + label,
            Value(
                _round(number),
                _round(low),
                _round(high),
                certain_low,
                certain_high,
                0.0 if is_current else None,
            ),
        )


def _totals(
    live: Sequence[Status], values: Mapping[str, Mapping[str, Value]], quantities: Sequence[str]
) -> tuple[Value, ...]:
    """Return each quantity over the nodes that report of the latest epoch with an estimate."""
    last = max((one.estimate_epoch for one in live if one.estimate is not None), default=0)
    current = [values[status.node] for status in live if status.estimate_epoch == last]
    return tuple(_total([node[name] for node in current if name in node]) for name in quantities)


def _total(values: Sequence[Value]) -> Value:
    """Return the mean of nodes' values, the interval with all of theirs, and the largest error."""
    numbers = [one.value for one in values if one.value is not None]
    if not numbers:
        return Value()
    errors = [one.error for one in values]
    return Value(
        _round(math.fsum(numbers) / len(numbers)),
        _hull(min, [one.low for one in values]),
        _hull(max, [one.high for one in values]),
        _hull(min, [one.certain_low for one in values]),
        _hull(max, [one.certain_high for one in values]),
        None if None in errors else max(error for error in errors if error is not None),
    )


def _hull(end: Callable[[list[float]], float], ends: Sequence[float | None]) -> float | None:
    known = [number for number in ends if number is not None]
    return end(known) if known else None


def _round(value: float | None, digits: int = DIGITS) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.{digits}g}")


# Logs.


class LogTail:
    """Reads what was appended to the logs of some nodes."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[int, int]] = {}  # inode of a log, and how much of it was read

    def poll(self, folders: Iterable[Path]) -> tuple[LogLine, ...]:
        """Return the lines that were written since the last call, in order of time."""
        lines = [line for folder in folders for line in self._new_lines(folder)]
        return tuple(sorted(lines, key=lambda line: line.time)[-MAX_LOG_LINES:])

    def _new_lines(self, folder: Path) -> list[LogLine]:
        path = folder / LOG_FILE
        try:
            now = path.stat()
            inode, start = self._read.get(path, (now.st_ino, 0))
            if inode != now.st_ino or start > now.st_size:  # the log was rotated
                start = 0
            if start == now.st_size or not stat.S_ISREG(now.st_mode):
                return []
            is_cut = now.st_size - start > MAX_READ_BYTES
            start = max(start, now.st_size - MAX_READ_BYTES)
            with path.open("rb") as log:
                log.seek(start)
                new = log.read(MAX_READ_BYTES)
        except OSError:
            return []
        end = new.rfind(b"\n") + 1  # a line that is being written is read the next time
        if end == 0 and len(new) == MAX_READ_BYTES:
            end = len(new)
        self._read[path] = now.st_ino, start + end
        lines = new[:end].splitlines()[is_cut:][-MAX_LOG_LINES:]
        return [_parse(line, folder.name) for line in lines if line.strip()]


def _parse(line: bytes, node: str) -> LogLine:
    try:
        fields = _decode_line(line)
    except msgspec.DecodeError:
        return LogLine("", node, "", _cut(line.decode(errors="replace")))
    logged_at, _, event = [str(fields.pop(name, "")) for name in ("time", "node", "event")]
    text = "  ".join(f"{name} {_text(value)}" for name, value in fields.items())
    return LogLine(logged_at[:32], node, event[:MAX_TEXT], _cut(text))


def _cut(text: str) -> str:
    return text[:MAX_TEXT] + "…" * (len(text) > MAX_TEXT)


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
