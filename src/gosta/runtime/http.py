"""A minimal HTTP server for status pages: GET and HEAD of routes, bounded, with server-sent events.

Actions, which change something, are requested with POST, without a body, by pages of this server
only: a browser says which page a request comes from.

A page on this machine can be read by any website that a browser on this machine opens, if the
website's name is made to resolve to 127.0.0.1 (DNS rebinding). Requests whose Host header has a
name that is not known to be the server's are therefore rejected; IP addresses and localhost are
safe.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple

MAX_REQUEST_BYTES = 8 * 1024
REQUEST_TIMEOUT_SECONDS = 5.0  # for a request and its response
MAX_REQUESTS = 32  # at a time; streams of events count
MAX_STREAMS = 16  # so that status and health are still served
MAX_WAITING_EVENTS = 16  # that a client has not read yet, before it is disconnected
STREAM_BUFFER_BYTES = 1 << 20  # of the operating system's and the event loop's buffers
# between comments on a stream without events: proxies close silent connections
HEARTBEAT_SECONDS = 10.0
TEXT, EVENTS = "text/plain; charset=utf-8", "text/event-stream"
HOST_PATTERN = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.%]+)\]|(?P<name>[0-9A-Za-z._-]+))(?::[0-9]{1,5})?"
)
# A page loads nothing from elsewhere, and is neither cached nor embedded.
HEADERS = (
    "Connection: close\r\nCache-Control: no-store\r\nContent-Security-Policy: {policy}\r\n"
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
)


class Response(NamedTuple):
    body: bytes
    kind: str = TEXT
    code: int = 200
    is_head: bool = False  # the answer to HEAD: as to GET, without the body


class Events:
    """Server-sent events: a client is sent the current state when it connects, then each change."""

    def __init__(self, greet: Callable[[], bytes]) -> None:
        """`greet` returns the event with the current state."""
        self._greet = greet
        self._clients: dict[asyncio.Task[None], asyncio.Queue[bytes]] = {}

    def __len__(self) -> int:
        """Return the number of clients."""
        return len(self._clients)

    def publish(self, event: bytes) -> None:
        """Send an event to all clients; disconnect those that do not read, which connect again."""
        for client, waiting in list(self._clients.items()):
            if waiting.full():
                del self._clients[client]
                client.cancel()
            else:
                waiting.put_nowait(event)

    async def serve(self, writer: asyncio.StreamWriter) -> None:
        """Send events to a client until it disconnects."""
        client = asyncio.current_task()
        assert client is not None
        waiting = self._clients[client] = asyncio.Queue(MAX_WAITING_EVENTS)
        try:
            writer.write(self._greet())
            while True:
                await writer.drain()
                try:
                    writer.write(await asyncio.wait_for(waiting.get(), HEARTBEAT_SECONDS))
                except TimeoutError:
                    writer.write(b":\n\n")
        finally:
            self._clients.pop(client, None)


def make_event(name: str, data: bytes) -> bytes:
    """Return a server-sent event; the data have no line breaks, such as JSON."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)


Routes = Mapping[str, Callable[[str], Response | Events]]  # called with what follows "?"
NO_ROUTES: Routes = {}


class Server:
    """Serves routes by path, on a listening socket."""

    def __init__(
        self, routes: Routes, policy: str, names: Collection[str] = (), actions: Routes = NO_ROUTES
    ) -> None:
        """`policy` is the Content-Security-Policy, `names` are host names of the server."""
        self._routes, self._actions = routes, actions
        self._headers = HEADERS.format(policy=f"{policy}; frame-ancestors 'none'")
        self._names = {name.lower() for name in (*names, socket.gethostname(), "localhost")}
        self._requests: set[asyncio.Task[None]] = set()

    async def start(self, listener: socket.socket) -> None:
        self._server = await asyncio.start_server(
            self._accept, sock=listener, limit=MAX_REQUEST_BYTES
        )

    def close(self) -> None:
        self._server.close()
        for request in self._requests:
            request.cancel()

    async def stop(self) -> None:
        """Close, and wait until all connections are closed."""
        self.close()
        if self._requests:
            await asyncio.wait(self._requests)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._requests.add(request)
        request.add_done_callback(self._requests.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
                answer = await self._respond(reader)
                if isinstance(answer, Response):
                    body = b"" if answer.is_head else answer.body
                    writer.write(self._head(answer.code, answer.kind, len(answer.body)) + body)
                    writer.close()
                    await writer.wait_closed()
            if isinstance(answer, Events):
                await self._stream(answer, reader, writer)
        except OSError:
            pass  # the client disconnected or timed out: TimeoutError is an OSError
        finally:
            writer.transport.abort()

    async def _stream(
        self, events: Events, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.transport.set_write_buffer_limits(STREAM_BUFFER_BYTES)
        # nginx does not buffer a response with this header.
        writer.write(self._head(200, EVENTS, None, "X-Accel-Buffering: no\r\n"))
        sending = asyncio.ensure_future(events.serve(writer))
        # Nothing else tells that a client closed a silent stream.
        end = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait([sending, end], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, end):
                task.cancel()
            await asyncio.gather(sending, end, return_exceptions=True)

    async def _respond(self, reader: asyncio.StreamReader) -> Response | Events:
        if len(self._requests) > MAX_REQUESTS:
            return _plain(503)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return _plain(400)
        request, *lines = head.decode("latin-1").split("\r\n")
        match request.split(" "):
            case [method, target, "HTTP/1.1" | "HTTP/1.0" as version]:
                hosts, origins = _values(lines, "host"), _values(lines, "origin")
                is_without_host = version == "HTTP/1.0" and not hosts  # which is allowed there
                if len(hosts) != 1 and not is_without_host:
                    return _plain(400)
                if hosts and not self._is_known(hosts[0]):
                    name = f"{hosts[0][:100]!a}"
                    return _plain(421, f"{name} is not a name of this server: use its IP address")
                path, _, query = target.partition("?")
                if method == "POST" and path in self._actions:
                    pages = [origin.partition("//")[2] for origin in origins]
                    is_from_here = bool(hosts) and pages == hosts
                    return self._actions[path](query) if is_from_here else _plain(403)
                if method not in ("GET", "HEAD"):
                    return _plain(405)
                answer = self._route(path, query)
                if method == "GET":
                    return answer
                if isinstance(answer, Events):
                    return Response(b"", EVENTS)
                return answer._replace(is_head=True)
            case _:
                return _plain(400)

    def _is_known(self, host: str) -> bool:
        match = HOST_PATTERN.fullmatch(host)
        name = "" if match is None else (match["v6"] or match["name"]).lower().removesuffix(".")
        try:
            return bool(ipaddress.ip_address(name))
        except ValueError:
            return name in self._names or name.endswith(".localhost")

    def _route(self, path: str, query: str) -> Response | Events:
        answer = self._routes[path](query) if path in self._routes else _plain(404)
        return _plain(503) if isinstance(answer, Events) and len(answer) >= MAX_STREAMS else answer

    def _head(self, code: int, kind: str, length: int | None, more: str = "") -> bytes:
        more += "Allow: GET, HEAD\r\n" if code == 405 else ""
        more += "" if length is None else f"Content-Length: {length}\r\n"
        status = f"HTTP/1.1 {code} {HTTPStatus(code).phrase}"
        return f"{status}\r\n{self._headers}{more}Content-Type: {kind}\r\n\r\n".encode()


def _values(lines: Sequence[str], name: str) -> list[str]:
    """Return the values of a header."""
    return [line.partition(":")[2].strip() for line in lines if line.lower().startswith(f"{name}:")]


def _plain(code: int, reason: str = "") -> Response:
    return Response(f"{reason or HTTPStatus(code).phrase}\n".encode(), TEXT, code)
