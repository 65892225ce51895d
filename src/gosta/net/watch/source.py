"""A network of nodes as a live page shows it."""

from __future__ import annotations

import math
import stat
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from gosta.net.config import LOG_FILE, NetworkConfig, Task
from gosta.net.deploy.query import View
from gosta.net.node import status_text
from gosta.net.node.status import STATES, Neighbour, Status, SumStatus
from gosta.pages.feed import MAX_LOG_LINES, LogLine, Moment, NodeState, Rejection, Scene, Value
from gosta.sketches.results import StratumResult

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
KINDS = {
    **dict.fromkeys(status_text.GOOD_STATES, "good"),
    **dict.fromkeys(("joining", "contributing", "starting", "restarting soon"), "waiting"),
    **dict.fromkeys(("stopped", "no status page", "not on this machine"), "away"),
    "connected": "good",
}  # all others are trouble
REMOTE = {
    "connected": "Its folder is not on this machine; a neighbour is connected to it.",
    "not connected": "Its folder is not on this machine, and no neighbour that is here is connected to it.",
}
MAX_QUANTITIES = 32
MAX_REJECTIONS = 50
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
        # of each edge: what it was, and how often it changed
        self._counts: dict[tuple[str, str], tuple[Any, int]] = {}
        self._rates: deque[tuple[float, int]] = deque()
        self._rejections: dict[tuple[str, str, str], Rejection] = {}

    def read(self, views: Sequence[View], network: NetworkConfig | None) -> tuple[Scene, Moment]:
        """Return what the page shows of these nodes and their neighbours; `network` is None for one node's page."""
        now = time.time()
        self.views = {view.name: view for view in views}
        live = [
            view.status for view in views if view.status is not None and view.state not in OUTSIDE
        ]
        known = [view.status for view in views if view.status is not None]
        seen = {
            (one.node, neighbour.name): neighbour for one in live for neighbour in one.neighbours
        }
        folders = [self.folder] if network is None else [self.folder / name for name in self.views]
        pairs = _pairs(known, live, network)
        names = (
            *self.views,
            *sorted({name for edge in pairs for name in edge} - set(self.views), key=_by_number),
        )
        places = {name: place for place, name in enumerate(names)}
        edges = sorted(pairs, key=lambda edge: (places[edge[0]], places[edge[1]]))
        quantities = self._quantities(known)
        values = {one.node: _values(one) for one in known}
        how = f"{self.task.statistic} · " + (
            "private sums" if self.task.private else f"protocol {self.task.protocol}"
        )
        scene = Scene(
            title=self.folder.name,
            subtitle=f"{how} · network {self.task.id}",
            quantities=quantities,
            level=self.task.confidence_level,
            nodes=names,
            edges=tuple((places[a], places[b]) for a, b in edges),
            states=STATES | REMOTE,
            has_errors=self.task.private is None,
        )
        last = max((one.estimate_epoch for one in live if one.estimate is not None), default=0)
        current = [values[one.node] for one in live if one.estimate_epoch == last]
        epochs = {one.node: one.epoch for one in live}
        activity = tuple(self._count(edge, seen) for edge in edges)
        missing = set.intersection(*(set(one.missing) for one in live)) if live else set()
        moment = Moment(
            time=round(now, 2),
            facts=tuple(self._facts(live, now, sum(activity), is_whole=network is not None)),
            totals=tuple(
                _total([one[name] for one in current if name in one]) for name in quantities
            ),
            nodes=tuple(
                _node(name, self.views.get(name), values.get(name, {}), quantities, seen)
                for name in names
            ),
            edges=tuple(_edge_state(edge, seen, epochs) for edge in edges),
            activity=activity,
            missing=tuple(sorted(missing, key=_by_number)),
            partly_missing=len(
                set(names) & {name for one in live for name in one.missing} - missing
            ),
            rejections=self._list_rejections(live, now),
            log=self._log.poll(folders),
        )
        return scene, moment

    def describe(self, name: str) -> dict[str, Any] | None:
        """Return the details of a node: names and values, and tables with a heading; None if there is no such node."""
        view = self.views.get(name)
        if view is None:
            known = [one.status for one in self.views.values() if one.status is not None]
            about = [
                (one, other) for one in known for other in one.neighbours if other.name == name
            ]
            rows = [
                (one.node, *status_text.neighbour_row(other, one.epoch)[1:]) for one, other in about
            ]
            return (
                {"facts": [], "tables": [[("seen by", *status_text.NEIGHBOURS_HEADING[1:]), *rows]]}
                if rows
                else None
            )
        reason = [("because", view.reason)] if view.reason else []
        if view.status is None:
            return {
                "facts": [
                    ("state", view.state),
                    ("that means", STATES.get(view.state, "")),
                    *reason,
                ],
                "tables": [],
            }
        status = (
            view.status if view.state == view.status.state else _as_of_old(view.status, view.state)
        )
        return {
            "facts": [*status_text.summary(status), *reason],
            "tables": status_text.tables(status),
        }

    def _quantities(self, known: Sequence[Status]) -> tuple[str, ...]:
        names = [name for one in known for name in _values(one)]
        return tuple(dict.fromkeys(names or self.task.statistic.split(",")))[:MAX_QUANTITIES]

    def _count(self, edge: tuple[str, str], seen: dict[tuple[str, str], Neighbour]) -> int:
        """Return how many exchanges an edge had since the page runs, in all epochs together."""
        both = [seen[pair] for pair in (edge, edge[::-1]) if pair in seen]
        if not both:
            return self._counts.get(edge, (None, 0))[1]
        sums = [view.status.sums for name in edge if (view := self.views.get(name)) and view.status]
        if any(
            sums
        ):  # no exchanges are counted there: a change of what the two know stands for some
            state: Any = [
                (one.joined, one.missing, one.contributions, one.releases) for one in sums if one
            ]
            before, count = self._counts.get(edge, (state, 0))
            count += state != before and any(one.connected for one in both)
        else:
            state = max(one.exchanges for one in both)
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
            near = [one for status in live for one in status.neighbours]
            yield "neighbours connected", f"{sum(one.connected for one in near):,} of {len(near):,}"
        if not live:
            return
        least = min(live, key=lambda one: (one.sites_seen, one.rows_seen))
        about = "about " * (least.sums is not None and least.sums.law != "none")
        yield "sites covered", f"{least.sites_seen:,}" + f" of {least.sites:,}" * (least.sites > 0)
        of = f" of {least.rows_declared:,}" if least.rows_declared else ""
        yield "rows covered", f"{about}{least.rows_seen:,}{of}"
        epochs = sorted({one.epoch for one in live})
        yield "epoch", " to ".join(f"{one:,}" for one in (epochs[0], epochs[-1])[: len(epochs)])
        if least.sums is not None:
            yield from _sums_facts(least.sums)
            return
        self._rates.append((now, exchanges))
        while len(self._rates) > 2 and self._rates[1][0] <= now - RATE_SECONDS:
            self._rates.popleft()
        (start, before), seconds = self._rates[0], now - self._rates[0][0]
        if seconds > 0 and start:
            yield "exchanges", f"{(exchanges - before) / seconds:,.0f} / s"

    def _list_rejections(self, live: Sequence[Status], now: float) -> tuple[Rejection, ...]:
        found: dict[tuple[str, str, str], Rejection] = {}
        for status in live:
            for one in status.rejections[:MAX_REJECTIONS]:
                sender = one.neighbour or "a connection"
                # messages of an earlier epoch
                at, is_late = (round(now - one.seconds), one.reason == "late")
                new = Rejection(status.node, sender, one.reason, one.count, at, one.detail, is_late)
                old = self._rejections.get((new.node, sender, one.reason))
                found[new.node, sender, one.reason] = (
                    old if old is not None and old.count == one.count else new
                )
            for neighbour in (one for one in status.neighbours if one.mismatch):
                key = status.node, neighbour.name, f"{neighbour.mismatch} mismatch"
                found[key] = self._rejections.get(key) or Rejection(
                    *key, 1, round(now), "the two compute different things"
                )
        self._rejections = found
        return tuple(
            sorted(found.values(), key=lambda one: (one.is_harmless, -one.time))[:MAX_REJECTIONS]
        )


def _as_of_old(status: Status, state: str) -> Status:
    """Return the last status of a node that does not run any more, or does not answer."""
    apart = tuple(
        msgspec.structs.replace(one, connected=False, alive=False) for one in status.neighbours
    )
    return msgspec.structs.replace(status, state=state, neighbours=apart, uptime_seconds=None)


def _sums_facts(sums: SumStatus) -> Iterator[tuple[str, str]]:
    if sums.release_time is not None:
        yield "result at", f"{datetime.fromtimestamp(sums.release_time):%H:%M:%S}"
    yield "noise", status_text.noise(sums)


def _pairs(
    known: Sequence[Status], live: Sequence[Status], network: NetworkConfig | None
) -> set[tuple[str, str]]:
    """Return all edges; nodes that stopped may know of neighbours that were removed since."""
    told = known if network is None else live
    pairs = {_edge(one.node, neighbour.name) for one in told for neighbour in one.neighbours}
    return pairs if network is None else pairs | {_edge(*one) for one in network.edges}


def _edge(a: str, b: str) -> tuple[str, str]:
    return (a, b) if _by_number(a) <= _by_number(b) else (b, a)


def _by_number(name: str) -> tuple[str, int, str]:
    """Return a key that sorts node-2 before node-10."""
    text = name.rstrip("0123456789")
    return text, int(name[len(text) :] or 0), name


def _values(status: Status) -> dict[str, Value]:
    """Return the quantities that a node reports, by name."""
    if status.sums is not None:
        is_current = status.estimate_epoch == status.epoch
        return dict(
            one for result in status.sums.results for one in _result_values(result, is_current)
        )
    if status.statistics:
        found: dict[str, Value] = {}
        for part in status.statistics:
            found |= _several(
                part.statistic, part.value, part.low, part.high, (), part.expected_error
            )
        return found
    errors, error = status.value_errors, status.expected_error
    return _several(status.statistic, status.estimate or (), status.low, status.high, errors, error)


def _several(
    name: str,
    value: Sequence[float],
    low: float | None,
    high: float | None,
    errors: Sequence[float | None],
    error: float | None,
) -> dict[str, Value]:
    if len(value) == 1:
        return {name: Value(_round(value[0]), _round(low), _round(high), error=_round(error, 3))}
    own = errors if len(errors) == len(value) else [error] * len(value)
    return {
        f"{name} [{k}]": Value(_round(one), error=_round(own[k], 3)) for k, one in enumerate(value)
    }


def _result_values(result: StratumResult, is_current: bool) -> Iterator[tuple[str, Value]]:
    name = f"{result.statistic}, {result.stratum}" if result.stratum else result.statistic
    error = 0.0 if is_current else None
    if not result.has_value:
        yield name, Value()
        return
    for k, one in enumerate(result.value):
        label = "" if len(result.value) == 1 else f" [{result.labels[k] if result.labels else k}]"
        bracket = (
            (_round(result.low[k]), _round(result.high[k])) if result.is_certified else (None, None)
        )
        low, high = result.interval if result.interval and not label else (None, None)
        yield name + label, Value(_round(one), _round(low), _round(high), *bracket, error)


def _total(values: Sequence[Value]) -> Value:
    """Return the mean of the nodes' values, the interval that contains all of theirs, and the largest error."""
    found = [one.value for one in values if one.value is not None]
    if not found:
        return Value()
    errors = [one.error for one in values]
    return Value(
        _round(math.fsum(found) / len(found)),
        _hull(min, [one.low for one in values]),
        _hull(max, [one.high for one in values]),
        _hull(min, [one.certain_low for one in values]),
        _hull(max, [one.certain_high for one in values]),
        None if None in errors else max(one for one in errors if one is not None),
    )


def _hull(end: Any, ends: Sequence[float | None]) -> float | None:
    known = [one for one in ends if one is not None]
    return end(known) if known else None


def _round(value: float | None, digits: int = DIGITS) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.{digits}g}")


def _node(
    name: str,
    view: View | None,
    values: dict[str, Value],
    quantities: Sequence[str],
    seen: dict[tuple[str, str], Neighbour],
) -> NodeState:
    own = tuple(values.get(one) or Value() for one in quantities)
    if view is not None and view.state != "not on this machine":
        note = f"restarted {view.restarts} x" if view.restarts else ""
        kind, is_live = KINDS.get(view.state, "trouble"), view.state not in OUTSIDE
        return NodeState(view.state, kind, note or view.reason[:200], own, is_live)
    about = [one for (_, other), one in seen.items() if other == name]
    if not about:
        return NodeState("not on this machine", "away", "", own)
    state = "connected" if any(one.connected for one in about) else "not connected"
    return NodeState(state, KINDS.get(state, "trouble"), "", own)


def _edge_state(
    edge: tuple[str, str], seen: dict[tuple[str, str], Neighbour], epochs: dict[str, int]
) -> str:
    both = [(seen[pair], epochs[pair[0]]) for pair in (edge, edge[::-1]) if pair in seen]
    states = [
        "suspended" if one.suspended_seconds else status_text.neighbour_state(one, epoch)
        for one, epoch in both
    ]
    return next((one for one in states if one != "connected"), states[0] if states else "unknown")


class LogTail:
    """Reads what was appended to the logs of some nodes."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[int, int]] = {}  # inode of a log, and how much of it was read

    def poll(self, folders: Iterable[Path]) -> tuple[LogLine, ...]:
        """Return the lines that were written since the last call, in order of time."""
        found = [line for folder in folders for line in self._new_lines(folder)]
        return tuple(sorted(found, key=lambda line: line.time)[-MAX_LOG_LINES:])

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
        return [
            _parse(line, folder.name)
            for line in new[:end].splitlines()[is_cut:][-MAX_LOG_LINES:]
            if line.strip()
        ]


def _parse(line: bytes, node: str) -> LogLine:
    try:
        fields = _decode_line(line)
        known = [str(fields.pop(name, "")) for name in ("time", "node", "event")]
    except msgspec.DecodeError:
        return LogLine(
            "", node, "", line.decode(errors="replace")[:MAX_TEXT] + "…" * (len(line) > MAX_TEXT)
        )
    text = "  ".join(f"{name} {_text(value)}" for name, value in fields.items())
    return LogLine(
        known[0][:32], node, known[2][:MAX_TEXT], text[:MAX_TEXT] + "…" * (len(text) > MAX_TEXT)
    )


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
