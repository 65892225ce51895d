"""The HTTP pages of a node, requested as browsers, programs and Prometheus do."""

from __future__ import annotations

import asyncio
import http.client
import re
import socket
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gosta.errors import InputError
from gosta.net import addresses
from gosta.net.node import pages
from gosta.net.node.page import page
from gosta.net.node.status import Neighbour, PendingOffer, Status

RUNNING = Status(
    node="node-3",
    network="0123456789abcdef",
    statistic="auc",
    protocol="tracking",
    state="waiting for reply",
    epoch=2,
    exchanges=1234,
    rows=10,
    rows_seen=500,
    nodes_seen=50,
    estimate=(0.75, 2.0),
    low=0.7,
    high=0.8,
    confidence_level=0.95,
    expected_error=0.001,
    estimate_epoch=1,
    max_difference=0.002,
    pending_offer=PendingOffer("node-7", 1.5),
    neighbours=(
        Neighbour("node-7", True, 600, 0.5, 0.002),
        Neighbour("<b>node-8</b>", False, 0, None, None),
    ),
    counters={"offers": 700, "busy": 3, "rejected: unauthenticated": 2, "rejected: not a neighbour": 1},
    uptime_seconds=4000.0,
)
NEW = msgspec.structs.replace(
    RUNNING,
    state="disconnected",
    estimate=None,
    low=None,
    high=None,
    expected_error=None,
    max_difference=None,
    pending_offer=None,
    counters={},
)


def serve_to(status: Status, client: Callable[[str, int], Any]) -> Any:
    """Serve a status to a client with blocking calls, and return the client's result."""

    async def run() -> Any:
        served = await pages.serve("127.0.0.1:0", lambda: status)
        try:
            async with asyncio.timeout(20):
                return await asyncio.to_thread(client, *addresses.parse(served.address))
        finally:
            await served.stop()

    return asyncio.run(run())


def get(status: Status, path: str, method: str = "GET") -> tuple[http.client.HTTPResponse, bytes]:
    def client(host: str, port: int) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection(host, port, timeout=10)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    response: tuple[http.client.HTTPResponse, bytes] = serve_to(status, client)
    return response


def samples(status: Status) -> dict[tuple[str, tuple[str, ...]], float]:
    response, body = get(status, "/metrics")
    assert response.status == 200
    assert response.headers["Content-Type"].startswith("text/plain")
    found = [sample for family in text_string_to_metric_families(body.decode()) for sample in family.samples]
    return {(sample.name, tuple(sample.labels.values())): sample.value for sample in found}


def test_status_page_is_the_status_as_json() -> None:
    for status in (RUNNING, NEW):
        response, body = get(status, "/status?now")
        assert (response.status, response.headers["Content-Type"]) == (200, "application/json")
        assert msgspec.json.decode(body, type=Status) == status


def test_metrics() -> None:
    found = samples(RUNNING)
    wanted = {
        ("gosta_up", ("0123456789abcdef", "node-3", "auc")): 1,
        ("gosta_estimate", ("0",)): 0.75,
        ("gosta_estimate", ("1",)): 2,
        ("gosta_estimate_low", ()): 0.7,
        ("gosta_estimate_high", ()): 0.8,
        ("gosta_epoch", ()): 2,
        ("gosta_exchanges_total", ()): 1234,
        ("gosta_expected_error", ()): 0.001,
        ("gosta_max_difference", ()): 0.002,
        ("gosta_waiting_for_reply_seconds", ()): 1.5,
        ("gosta_neighbour_connected", ("node-7",)): 1,
        ("gosta_neighbour_connected", ("<b>node-8</b>",)): 0,
        ("gosta_neighbour_exchanges_total", ("node-7",)): 600,
        ("gosta_neighbour_exchanges_total", ("<b>node-8</b>",)): 0,
        ("gosta_events_total", ("offers",)): 700,
        ("gosta_events_total", ("busy",)): 3,
        ("gosta_rejected_total", ("unauthenticated",)): 2,
        ("gosta_rejected_total", ("not a neighbour",)): 1,
    }
    assert {name: value for name, value in found.items() if name[0].startswith("gosta")} == wanted
    assert found["process_resident_memory_bytes", ()] > 0


def test_unknown_values_have_no_metric() -> None:
    names = {name for name, _ in samples(NEW)}
    assert not names & {"gosta_estimate", "gosta_estimate_low", "gosta_expected_error", "gosta_max_difference"}
    assert {"gosta_up", "gosta_waiting_for_reply_seconds"} <= names
    assert samples(msgspec.structs.replace(NEW, state="stopped"))["gosta_up", (NEW.network, "node-3", "auc")] == 0


def test_html_page() -> None:
    response, body = get(RUNNING, "/")
    assert (response.status, response.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "script" not in body.decode()
    text = re.sub(r"<[^>]*>", " ", body.decode())
    for shown in (
        "node-3",
        "0.75, 2 (of epoch 1)",
        "0.7 to 0.8",
        "95 % interval",
        "from node-7, 1.5 s",
        "1 h 6 min",
        "offers",
    ):
        assert shown in text, shown
    assert "&lt;b&gt;node-8&lt;/b&gt;" in text
    assert "none yet" in page(NEW)


@pytest.mark.parametrize(
    ("method", "path", "code"), [("GET", "/nothing", 404), ("GET", "//", 404), ("POST", "/", 405), ("HEAD", "/", 405)]
)
def test_invalid_paths_and_methods(method: str, path: str, code: int) -> None:
    response, _ = get(RUNNING, path, method)
    assert response.status == code
    assert response.headers["Connection"] == "close"


@pytest.mark.parametrize(
    "data", [b"hello\r\n\r\n", b"GET /\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"x" * 8192, b""]
)
def test_malformed_requests(data: bytes) -> None:
    def client(host: str, port: int) -> bytes:
        with socket.create_connection((host, port), timeout=10) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(12)

    assert serve_to(RUNNING, client) == b"HTTP/1.1 400"


def test_a_silent_client_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "REQUEST_TIMEOUT_SECONDS", 0.1)

    def client(host: str, port: int) -> bytes:
        with socket.create_connection((host, port), timeout=10) as connection:
            return connection.recv(1)

    assert serve_to(RUNNING, client) == b""


def test_the_number_of_requests_at_a_time_is_limited() -> None:
    def client(host: str, port: int) -> bytes:
        silent = [socket.create_connection((host, port), timeout=10) for _ in range(pages.MAX_REQUESTS)]
        try:
            with socket.create_connection((host, port), timeout=10) as connection:
                return connection.recv(12)
        finally:
            for each in silent:
                each.close()

    assert serve_to(RUNNING, client) == b"HTTP/1.1 503"


def test_an_address_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = addresses.listening_address(taken)
        with pytest.raises(InputError, match=rf"status_page = '{address}' in node.toml: .* in use"):
            asyncio.run(serving(address))


async def serving(address: str) -> None:
    await (await pages.serve(address, lambda: RUNNING)).stop()
