"""The pages of a node, asked for as browsers, programs and Prometheus do."""

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
from gosta.net.node.status import Doubt, Neighbour, Status

RUNNING = Status(
    node="node-3",
    network="0123456789abcdef",
    statistic="auc",
    protocol="tracking",
    state="in doubt",
    epoch=2,
    exchanges=1234,
    rows=10,
    rows_met=500,
    nodes_met=50,
    estimate=(0.75, 2.0),
    low=0.7,
    high=0.8,
    level=0.95,
    expected_error=0.001,
    estimate_epoch=1,
    agreement=0.002,
    doubt=Doubt("node-7", 1.5),
    neighbours=(
        Neighbour("node-7", True, 600, 0.5, 0.002),
        Neighbour("<b>node-8</b>", False, 0, None, None),
    ),
    counts={"offers": 700, "busy": 3, "refused: stranger": 2, "refused: not a neighbour": 1},
    uptime=4000.0,
)
NEW = msgspec.structs.replace(
    RUNNING,
    state="alone",
    estimate=None,
    low=None,
    high=None,
    expected_error=None,
    agreement=None,
    doubt=None,
    counts={},
)


def asking(status: Status, ask: Callable[[str, int], Any]) -> Any:
    """What somebody gets who asks for pages with blocking calls."""

    async def whole() -> Any:
        served = await pages.serve("127.0.0.1:0", lambda: status)
        try:
            async with asyncio.timeout(20):
                return await asyncio.to_thread(ask, *addresses.parse(served.address))
        finally:
            await served.stop()

    return asyncio.run(whole())


def get(status: Status, path: str, method: str = "GET") -> tuple[http.client.HTTPResponse, bytes]:
    def ask(host: str, port: int) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection(host, port, timeout=10)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    answer: tuple[http.client.HTTPResponse, bytes] = asking(status, ask)
    return answer


def samples(status: Status) -> dict[tuple[str, tuple[str, ...]], float]:
    response, body = get(status, "/metrics")
    assert response.status == 200
    assert response.headers["Content-Type"].startswith("text/plain")
    found = [sample for family in text_string_to_metric_families(body.decode()) for sample in family.samples]
    return {(sample.name, tuple(sample.labels.values())): sample.value for sample in found}


def test_status_is_what_the_node_said() -> None:
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
        ("gosta_agreement", ()): 0.002,
        ("gosta_in_doubt_seconds", ()): 1.5,
        ("gosta_neighbour_connected", ("node-7",)): 1,
        ("gosta_neighbour_connected", ("<b>node-8</b>",)): 0,
        ("gosta_neighbour_meetings_total", ("node-7",)): 600,
        ("gosta_neighbour_meetings_total", ("<b>node-8</b>",)): 0,
        ("gosta_events_total", ("offers",)): 700,
        ("gosta_events_total", ("busy",)): 3,
        ("gosta_refused_total", ("stranger",)): 2,
        ("gosta_refused_total", ("not a neighbour",)): 1,
    }
    assert {name: value for name, value in found.items() if name[0].startswith("gosta")} == wanted
    assert found["process_resident_memory_bytes", ()] > 0


def test_metrics_that_are_not_known_are_not_there() -> None:
    names = {name for name, _ in samples(NEW)}
    assert not names & {"gosta_estimate", "gosta_estimate_low", "gosta_expected_error", "gosta_agreement"}
    assert {"gosta_up", "gosta_in_doubt_seconds"} <= names
    assert samples(msgspec.structs.replace(NEW, state="stopped"))["gosta_up", (NEW.network, "node-3", "auc")] == 0


def test_the_page_for_people() -> None:
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
def test_requests_for_something_else(method: str, path: str, code: int) -> None:
    response, _ = get(RUNNING, path, method)
    assert response.status == code
    assert response.headers["Connection"] == "close"


@pytest.mark.parametrize(
    "words", [b"hello\r\n\r\n", b"GET /\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"x" * 8192, b""]
)
def test_bytes_that_are_no_request(words: bytes) -> None:
    def ask(host: str, port: int) -> bytes:
        with socket.create_connection((host, port), timeout=10) as caller:
            caller.sendall(words)
            caller.shutdown(socket.SHUT_WR)
            return caller.recv(12)

    assert asking(RUNNING, ask) == b"HTTP/1.1 400"


def test_who_says_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PATIENCE", 0.1)

    def ask(host: str, port: int) -> bytes:
        with socket.create_connection((host, port), timeout=10) as caller:
            return caller.recv(1)

    assert asking(RUNNING, ask) == b""


def test_so_many_at_a_time() -> None:
    def ask(host: str, port: int) -> bytes:
        silent = [socket.create_connection((host, port), timeout=10) for _ in range(pages.AT_A_TIME)]
        try:
            with socket.create_connection((host, port), timeout=10) as caller:
                return caller.recv(12)
        finally:
            for each in silent:
                each.close()

    assert asking(RUNNING, ask) == b"HTTP/1.1 503"


def test_an_address_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = addresses.bound(taken)
        with pytest.raises(InputError, match=rf"status = '{address}' in node.toml: .* in use"):
            asyncio.run(serving(address))


async def serving(address: str) -> None:
    await (await pages.serve(address, lambda: RUNNING)).stop()
