"""The HTTP server of a node: an HTML page, its status and logs as JSON, metrics, and its health."""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from gosta.net import addresses
from gosta.net.node import status_text
from gosta.net.node.metrics import StatusCollector
from gosta.net.node.status import STATES, Status
from gosta.net.storage.journal import Journal
from gosta.runtime.http import TEXT, Response, Server
from gosta.views import html

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
REFRESH_SECONDS = 2  # after which a browser reloads the page


class Pages(Server):
    """The pages of a node."""

    def __init__(
        self, status: Callable[[], Status], journal: Journal | None, names: Collection[str]
    ) -> None:
        self.address = ""  # where it listens, once served
        self._status, self._journal = status, journal
        self._registry = CollectorRegistry()
        self._registry.register(StatusCollector(status))
        ProcessCollector(registry=self._registry)
        routes = {
            "/": lambda _: Response(page(status()).encode(), "text/html; charset=utf-8"),
            "/status": lambda _: Response(msgspec.json.encode(status()), "application/json"),
            "/ledger": lambda _: self._ledger(),
            "/contributions": lambda _: self._contributions(),
            "/metrics": lambda _: Response(generate_latest(self._registry), CONTENT_TYPE_LATEST),
            "/healthz": lambda _: self._health(),
        }
        super().__init__(routes, POLICY, names)

    def _ledger(self) -> Response:
        ledger = [] if self._journal is None else self._journal.ledger()
        return Response(msgspec.json.encode(ledger), "application/json")

    def _contributions(self) -> Response:
        log = [] if self._journal is None else self._journal.contributions()
        return Response("".join(f"{entry.line()}\n" for entry in log).encode(), "application/jsonl")

    def _health(self) -> Response:
        """Return whether the node runs and can write its journal."""
        error = self._status().disk_error
        if error:
            return Response(f"disk error: {error}\n".encode(), TEXT, 503)
        return Response(b"ok\n")


def page(status: Status) -> str:
    """Return the page for browsers: the estimate and its accuracy, then tables and events."""
    parts = [
        html.table(status_text.summary(status), titles={"state": STATES.get(status.state, "")}),
        *(html.table(table, heading=True) for table in status_text.tables(status)),
        html.table(status_text.events(status)),
    ]
    return html.page(status.node, "".join(parts), REFRESH_SECONDS)


async def serve(
    address: str,
    status: Callable[[], Status],
    journal: Journal | None = None,
    names: Collection[str] = (),
) -> Pages:
    """Serve a node's pages at an address; `names` are hosts under which clients may ask."""
    listener = addresses.listen(address, "status_page")
    pages = Pages(status, journal, {addresses.parse(address).host, *names})
    pages.address = addresses.listening_address(listener)
    await pages.start(listener)
    return pages
