"""Serving the live page of a network: its events, and the details of a node."""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from gosta.errors import InputError
from gosta.net.config import NetworkConfig
from gosta.net.deploy.network import Network
from gosta.net.watch.source import NetworkSource
from gosta.pages.feed import Feed
from gosta.pages.server import make_server, serving
from gosta.runtime.http import TEXT, Events, Response

if TYPE_CHECKING:
    from gosta.net.deploy.query import Poller, View

POLL_SECONDS = 1.0  # between two queries of all nodes while a browser shows them
IDLE_SECONDS = 10.0  # while none does
MAX_NAME = 200  # characters of a request for a node's details


class LivePage:
    """A page that shows a network."""

    def __init__(self, source: NetworkSource, host: str) -> None:
        """`host` is the name under which the page was asked to listen."""
        self._source, self._feed, self._wanted = source, Feed(), asyncio.Event()
        self.events = Events(self._greet)
        self.server = make_server(
            "network", {"/events": lambda _: self.events, "/node": self._describe}, host
        )

    def update(self, views: Sequence[View], network: NetworkConfig | None) -> None:
        """Show these nodes."""
        self.events.publish(self._feed.update(*self._source.read(views, network)))

    async def wait(self) -> None:
        """Wait until the next query is due: soon if a browser shows the page, or opens it."""
        self._wanted.clear()
        with contextlib.suppress(TimeoutError):
            seconds = POLL_SECONDS if self.events else IDLE_SECONDS
            await asyncio.wait_for(self._wanted.wait(), seconds)

    def _greet(self) -> bytes:
        self._wanted.set()
        return self._feed.start()

    def _describe(self, query: str) -> Response:
        details = self._source.describe(unquote(query[:MAX_NAME]))
        if details is None:
            return Response(b"no such node\n", TEXT, 404)
        return Response(msgspec.json.encode(details), "application/json")


async def watch(poller: Poller, listener: socket.socket, host: str) -> None:
    """Serve the page of a network, or of one node, until SIGINT or SIGTERM."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    live = LivePage(NetworkSource(poller.folder, poller.task), host)
    await live.server.start(listener)
    try:
        while True:
            live.update(await poller.views(), poller.network)
            await live.wait()
    except asyncio.CancelledError:
        pass
    finally:
        await live.server.stop()


@contextlib.contextmanager
def serve_beside(
    folder: Path, listener: socket.socket, host: str
) -> Iterator[Callable[[Sequence[View]], None]]:
    """Serve a page in a thread, beside a program that queries the nodes; yield what shows them."""
    network, shown_at = Network.read(folder), -math.inf
    live = LivePage(NetworkSource(folder, network.task), host)

    def update(views: Sequence[View]) -> None:
        nonlocal network
        with contextlib.suppress(InputError):  # a file that is being edited
            network = Network.read(folder)
        live.update(views, network.config)

    with serving(live.server, listener) as loop:

        def show(views: Sequence[View]) -> None:
            nonlocal shown_at
            if time.monotonic() - shown_at >= POLL_SECONDS:
                shown_at = time.monotonic()
                loop.call_soon_threadsafe(update, views)

        yield show
