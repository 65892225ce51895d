"""Serving the live page of a network: its events, and the details of a node."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

import msgspec

from gosta.errors import InputError
from gosta.net import addresses
from gosta.net.config import NetworkConfig
from gosta.net.deploy.network import Network
from gosta.net.deploy.query import Poller, View
from gosta.net.transport.tls import describe_error
from gosta.net.watch.source import NetworkSource
from gosta.pages.feed import Feed
from gosta.pages.server import make_server
from gosta.runtime.http import TEXT, Events, Response

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
        found = self._source.describe(unquote(query[:MAX_NAME]))
        return (
            Response(b"no such node\n", TEXT, 404)
            if found is None
            else Response(msgspec.json.encode(found), "application/json")
        )


def listen(address: str, option: str, or_any_port: bool = False) -> socket.socket:
    """Open a listening socket for a page, at any port if this one is taken; `option` is named in the error message."""
    place = addresses.parse(address)
    try:
        return addresses.open_listener(place)
    except OSError as error:
        if or_any_port:
            return addresses.open_listener(place._replace(port=0))
        is_taken = error.errno in (errno.EADDRINUSE, errno.EACCES)
        way_out = (
            "give another port, or 0 for any that is free"
            if is_taken
            else "give an address of this machine"
        )
        raise InputError(
            f"{option} = {address!r}: cannot listen there ({describe_error(error)}); {way_out}"
        ) from None


def url(listener: socket.socket) -> str:
    host, port = addresses.parse(addresses.listening_address(listener))
    return f"http://{addresses.Address(socket.gethostname() if host in addresses.ALL_INTERFACES else host, port)}/"


async def watch(poller: Poller, listener: socket.socket, host: str) -> None:
    """Serve the page of a network, or of one node, until SIGINT or SIGTERM."""
    own_task = asyncio.current_task()
    assert own_task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, own_task.cancel)
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
    """Serve a page in a thread, beside a program that queries the nodes anyway; yield what shows their views."""
    first, loop, stop = Network.read(folder).config, asyncio.new_event_loop(), asyncio.Event()
    latest: list[Sequence[View]] = []

    async def run() -> None:
        network, live = first, LivePage(NetworkSource(folder, first.network), host)
        await live.server.start(listener)
        while not stop.is_set():
            if latest:
                with contextlib.suppress(InputError):  # a file that is being edited
                    network = Network.read(folder).config
                live.update(latest[-1], network)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), POLL_SECONDS)
        await live.server.stop()

    def show(views: Sequence[View]) -> None:
        latest[:] = [views]

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    try:
        yield show
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
