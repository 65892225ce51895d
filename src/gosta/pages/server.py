"""Serving a live page: its files, and the routes of its source."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

from gosta.pages import document
from gosta.runtime.http import NO_ROUTES, TEXT, Response, Routes, Server

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' "
    "data:; base-uri 'none'; form-action 'none'"
)
HTML, SCRIPT, STYLE = (f"text/{kind}; charset=utf-8" for kind in ("html", "javascript", "css"))


def make_server(
    source: document.Source, routes: Routes, host: str, actions: Routes = NO_ROUTES
) -> Server:
    """Return a server of the page of a source.

    `host` is the name under which it was asked to listen.
    """
    files = {
        "/": _give(document.served(source), HTML),
        "/healthz": _give(b"ok\n"),
        f"/{document.ICON}": _give(document.read_static(document.ICON), "image/svg+xml"),
        **{f"/{name}": _give(document.read_static(name), STYLE) for name in document.STYLES},
        **{
            f"/{name}": _give(document.read_static(name), SCRIPT)
            for name in document.SCRIPTS[source]
        },
    }
    return Server({**files, **routes}, POLICY, [host], actions)


def _give(body: bytes, kind: str = TEXT) -> Callable[[str], Response]:
    response = Response(body, kind)
    return lambda _: response


@contextlib.contextmanager
def serving(server: Server, listener: socket.socket) -> Iterator[asyncio.AbstractEventLoop]:
    """Serve in a thread beside other work.

    Yield the event loop, in which whatever the page shows must be changed.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(listener), loop).result()
        try:
            yield loop
        finally:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
