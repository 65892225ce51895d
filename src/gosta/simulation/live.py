"""A run that is watched in a browser while it is simulated, at a pace that a person can follow.

The simulation goes on in the thread that calls `LiveRunner.run`; the page is served by another one.
Whatever the page shows is changed in the thread that serves it, whatever it asks for (pause, step,
speed) is noted in `Pace`.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import functools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.estimation.setting import Setting
from gosta.graphs.graph import Graph
from gosta.pages.server import make_server, serving
from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.http import TEXT, Events, Response, make_event
from gosta.simulation.engines import Batch, Engine
from gosta.simulation.run_options import RunInfo
from gosta.simulation.run_page import MAX_MAP_NODES, RunPicture
from gosta.simulation.runner import Runner

FRAMES_PER_SECOND = 8.0
RUN_SECONDS = 30.0  # how long a run takes at speed 1
PACED_ITERATIONS_PER_NODE = 100  # in RUN_SECONDS, where nodes decide when to stop
SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
IDLE_SECONDS = 0.1  # between two checks whether a paused run goes on or was interrupted
MAX_FRAMES = 480  # frames kept; of more, every second one of the older half is removed
MAX_KEPT_NUMBERS = 1 << 23  # numbers in the frames kept: 64 MiB
MIN_FRAMES = 16
MAX_COUNT = 10**16  # more iterations than a run can have
MAX_NEIGHBOURS = 50  # neighbours of the chosen node that are listed


class Pace:
    """How fast a run is shown, and whether it is paused."""

    def __init__(self) -> None:
        self.speed, self.is_paused, self.is_watched = 1.0, False, False
        self._steps, self._shown_at, self._wake = 0, 0.0, threading.Event()

    def change(
        self, speed: float | None = None, is_paused: bool | None = None, steps: int = 0
    ) -> None:
        """Take up what the page asks for."""
        self.speed = self.speed if speed is None else speed
        self.is_paused = self.is_paused if is_paused is None else is_paused
        self._steps += steps
        self._wake.set()

    def watch(self) -> None:
        """Note that a browser shows the page: the run begins with the first."""
        self.is_watched = True
        self._wake.set()

    def wait(self, is_interrupted: Callable[[], bool]) -> bool:
        """Wait until the next frame is due; return False if the run was interrupted."""
        while not is_interrupted():
            left = self._shown_at + 1 / FRAMES_PER_SECOND - time.monotonic()
            if self.is_watched and (not self.is_paused or self._steps) and left <= 0:
                self._steps, self._shown_at = max(0, self._steps - 1), time.monotonic()
                return True
            self._wake.wait(min(IDLE_SECONDS, left) if left > 0 else IDLE_SECONDS)
            self._wake.clear()
        return False


class Reading(NamedTuple):
    """Estimates of all nodes after some iterations."""

    iteration: int
    sent: int  # numbers, by all nodes together
    values: Floats  # nodes × values
    visitors: NDArray[np.uint16]  # home of each visitor that nodes hold: nodes × visitors


class LivePage:
    """The page of a run, with the frames shown so far."""

    def __init__(self, setting: Setting) -> None:
        nodes = setting.placement.nodes
        if nodes > MAX_MAP_NODES:
            advice = f"give --nodes {MAX_MAP_NODES} or fewer, or simulate without --live"
            raise InputError(f"live: {nodes:,} nodes are too many to be drawn; {advice}")
        self.pace, self._setting, self._state = Pace(), setting, "running"
        self._picture: RunPicture | None = None
        self._readings: list[Reading] = []
        values = setting.target.shape[1]
        self._max_frames = max(MIN_FRAMES, min(MAX_FRAMES, MAX_KEPT_NUMBERS // (nodes * values)))
        self._events = [
            Events(functools.partial(self._greet, quantity)) for quantity in range(values)
        ]
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextlib.contextmanager
    def serving(self, listener: socket.socket, host: str) -> Iterator[None]:
        """Serve the page, in a thread of its own.

        `host` is the name under which it was asked to listen.
        """
        routes: dict[str, Callable[[str], Response | Events]] = {
            "/events": self._subscribe,
            "/node": self._describe,
        }
        server = make_server("simulation", routes, host, {"/pace": self._change_pace})
        with serving(server, listener) as self._loop:
            yield

    def begin(self, picture: RunPicture) -> None:
        """Show a scene; frames follow."""
        self._call(self._begin, picture)

    def show(self, reading: Reading) -> None:
        """Show what was read."""
        self._call(self._show, reading)

    def end(self, state: str) -> None:
        """Show that the run has ended, and how."""
        self._call(self._end, state)

    def _call(self, function: Callable[[Any], None], argument: Any) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(function, argument)

    # What follows is called in the thread that serves the page.

    def _begin(self, picture: RunPicture) -> None:
        self._picture = picture

    def _show(self, reading: Reading) -> None:
        self._readings.append(reading)
        if len(self._readings) > self._max_frames:
            half = self._max_frames // 2
            self._readings = self._readings[:half:2] + self._readings[half:]
        for quantity, events in enumerate(self._events):
            if events:
                is_first = len(self._readings) == 1
                event = (
                    self._greet(quantity)
                    if is_first
                    else self._event("change", frame=self._frame(quantity, reading))
                )
                events.publish(event)

    def _end(self, state: str) -> None:
        self._state = state
        self._publish_state()

    def _publish_state(self) -> None:
        for events in self._events:
            events.publish(self._event("change"))

    def _event(self, name: str, **more: Any) -> bytes:
        state = "paused" if self._state == "running" and self.pace.is_paused else self._state
        return make_event(
            name, msgspec.json.encode({"state": state, "speed": self.pace.speed, **more})
        )

    def _frame(self, quantity: int, reading: Reading) -> Any:
        assert self._picture is not None
        return self._picture.frame(quantity, reading.iteration, reading.sent, reading.values)

    def _greet(self, quantity: int) -> bytes:
        self.pace.watch()
        if self._picture is None or not self._readings:
            return make_event("wait", b"{}")
        frames = [self._frame(quantity, reading) for reading in self._readings]
        return self._event("start", scene=self._picture.scene, frames=frames)

    def _subscribe(self, query: str) -> Events | Response:
        quantity = _whole_number(query, len(self._events))
        return (
            Response(b"no such quantity\n", TEXT, 404)
            if quantity is None
            else self._events[quantity]
        )

    def _change_pace(self, query: str) -> Response:
        changes: dict[str, dict[str, Any]] = {
            "pause": {"is_paused": True},
            "play": {"is_paused": False},
            "step": {"is_paused": True, "steps": 1},
            **{f"speed={speed:g}": {"speed": speed} for speed in SPEEDS},
        }
        if query not in changes:
            return Response(b"no such pace\n", TEXT, 404)
        self.pace.change(**changes[query])
        self._publish_state()
        return Response(b"ok\n")

    def _describe(self, query: str) -> Response:
        """Return what is known of a node.

        The query has its number, the quantity and an iteration.
        """
        limits = self._setting.placement.nodes, len(self._events), MAX_COUNT
        numbers = [
            _whole_number(text, end) for text, end in zip(query.split(","), limits, strict=False)
        ]
        if len(numbers) < len(limits) or None in numbers or not self._readings:
            return Response(b"no such node\n", TEXT, 404)
        place, quantity, iteration = (item or 0 for item in numbers)
        at = bisect.bisect_right(self._readings, iteration, key=lambda reading: reading.iteration)
        last, near = self._readings[max(0, at - 1)], neighbours(self._setting.graph, place)
        description = {
            "node": place,
            "rows": int(self._setting.placement.rows[place]),
            "target": float(
                self._setting.target[min(place, len(self._setting.target) - 1), quantity]
            ),
            "visitors": last.visitors[place].tolist(),
            "neighbour_count": len(near),
            "neighbours": [
                (int(k), float(last.values[k, quantity])) for k in near[:MAX_NEIGHBOURS]
            ],
            "history": [
                (item.iteration, float(item.values[place, quantity])) for item in self._readings
            ],
        }
        return Response(msgspec.json.encode(description), "application/json")


def _whole_number(text: str, end: int) -> int | None:
    """Return a number below an end; None if it is none."""
    return (
        int(text)
        if text.isascii() and text.isdigit() and len(text) < 17 and int(text) < end
        else None
    )


def neighbours(graph: Graph, node: int) -> Integers:
    """Return the neighbours of a node, in order."""
    if graph.edges is None:
        return np.delete(np.arange(graph.n), node)
    at, side = np.nonzero(graph.edges == node)
    return np.sort(graph.edges[at, 1 - side].astype(np.int64))


class LiveRunner(Runner):
    """Advances one run from frame to frame, at the pace of its page."""

    def __init__(
        self, setting: Setting, info: RunInfo, checkpoints: Integers, page: LivePage
    ) -> None:
        super().__init__(setting, info, checkpoints)
        self._page = page
        page.begin(RunPicture(setting, info.iterations, setting.target))

    def end(self) -> None:
        """Say on the page that the run has ended, and how."""
        has_reached = self.reached[0] == self.checkpoints[-1]
        self._page.end(
            "stopped" if self.stopped[0] else "finished" if has_reached else "interrupted"
        )

    def _advance(self, engine: Engine[Any], batch: Batch[Any]) -> None:
        pace, last, shown_seconds = self._page.pace, int(self.checkpoints[-1]), 0.0
        end = (
            last
            if self.info.until is None
            else PACED_ITERATIONS_PER_NODE * self.setting.placement.nodes
        )
        self._advance_to(engine, batch, 1)  # before, not every protocol has estimates
        while batch.iteration < last and batch.active.any() and pace.wait(self._is_interrupted):
            # Slowly at first, as most happens then; the square lets each node exchange within three
            # seconds.
            shown_seconds += pace.speed / FRAMES_PER_SECOND
            due = round(end * (shown_seconds / RUN_SECONDS) ** 2)
            self._advance_to(engine, batch, min(last, max(batch.iteration + 1, due)))

    def _advance_to(self, engine: Engine[Any], batch: Batch[Any], iteration: int) -> None:
        """Advance the run to an iteration and show it.

        It is evaluated at each checkpoint on the way, and may stop.
        """
        runs, due = np.array(batch.runs), np.union1d(self.checkpoints, self._reading_times)
        stops = np.union1d(due[(due > batch.iteration) & (due <= iteration)], [iteration])
        for stop in stops:
            before, readings = batch.iteration, engine.advance(batch, int(stop), np.array([stop]))
            self._evaluate(runs, np.array([stop]), readings)
            self.reached[runs] = stop
            self._report(int(stop) - before)
            batch.active &= self.stopped[runs] == 0
            if not batch.active.any():
                break
        self._show(engine, batch, readings()[0, 0])

    def _show(self, engine: Engine[Any], batch: Batch[Any], readings: Floats) -> None:
        setting = self.setting
        values = setting.values(setting.means(readings))
        drawn = max(1, batch.iteration * setting.protocol.draws)
        unsent = self._failed(0, batch.iteration)[1:].sum() / drawn  # as in the trace
        sent = round(self._units_sent(batch.iteration) * (1 - float(unsent)))
        self._page.show(
            Reading(batch.iteration, sent, values, engine.visitors(batch)[0].astype(np.uint16))
        )
