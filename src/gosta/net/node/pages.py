"""The HTTP server of a node: an HTML page, its status and logs as JSON, and metrics for Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus

import msgspec
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from gosta.net import addresses
from gosta.net.node.metrics import StatusCollector
from gosta.net.node.page import page
from gosta.net.node.status import Status
from gosta.net.storage.journal import Journal

MAX_REQUEST_BYTES = 8 * 1024
REQUEST_TIMEOUT_SECONDS = 5.0  # for a request and its response
MAX_REQUESTS = 32  # at a time

# A page loads nothing from elsewhere, and is neither cached nor embedded.
HEADERS = (
    "Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n"
)


class Pages:
    """A minimal HTTP server: GET of five pages."""

    def __init__(self, status: Callable[[], Status], journal: Journal | None) -> None:
        self.address = ""  # where it listens, once started
        self._status, self._journal = status, journal
        self._registry = CollectorRegistry()
        self._registry.register(StatusCollector(status))
        ProcessCollector(registry=self._registry)
        self._requests: set[asyncio.Task[None]] = set()

    async def start(self, address: str) -> None:
        listener = addresses.listen(address, "status_page")
        self.address = addresses.listening_address(listener)
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=MAX_REQUEST_BYTES)

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
                writer.write(await self._respond(reader))
                writer.close()
                await writer.wait_closed()
        except OSError:
            pass  # the client disconnected or timed out: TimeoutError is an OSError
        finally:
            writer.transport.abort()

    async def _respond(self, reader: asyncio.StreamReader) -> bytes:
        if len(self._requests) > MAX_REQUESTS:
            return _response(503)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return _response(400)
        match head.split(b"\r\n", 1)[0].split(b" "):
            case [b"GET", target, b"HTTP/1.1" | b"HTTP/1.0"]:
                return self._page(target.partition(b"?")[0])
            case [_, _, b"HTTP/1.1" | b"HTTP/1.0"]:
                return _response(405)
            case _:
                return _response(400)

    def _page(self, path: bytes) -> bytes:
        match path:
            case b"/":
                return _response(200, page(self._status()).encode(), "text/html; charset=utf-8")
            case b"/status":
                return _response(200, msgspec.json.encode(self._status()), "application/json")
            case b"/ledger":
                ledger = [] if self._journal is None else self._journal.ledger()
                return _response(200, msgspec.json.encode(ledger), "application/json")
            case b"/contributions":
                log = [] if self._journal is None else self._journal.contributions()
                return _response(200, "".join(f"{one.line()}\n" for one in log).encode(), "application/jsonl")
            case b"/metrics":
                return _response(200, generate_latest(self._registry), CONTENT_TYPE_LATEST)
            case _:
                return _response(404)


async def serve(address: str, status: Callable[[], Status], journal: Journal | None = None) -> Pages:
    pages = Pages(status, journal)
    await pages.start(address)
    return pages


def _response(code: int, body: bytes | None = None, kind: str = "text/plain; charset=utf-8") -> bytes:
    phrase = HTTPStatus(code).phrase
    body = f"{phrase}\n".encode() if body is None else body
    allow = "Allow: GET\r\n" if code == 405 else ""
    head = f"{HEADERS}{allow}Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return f"HTTP/1.1 {code} {phrase}\r\n{head}".encode() + body
