"""The HTTP pages of a node, requested as browsers, programs and Prometheus do."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import http.client
import io
import os
import platform
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families
from statuses import NEW, RUNNING, SUPPRESSED

from gosta.cli import status as status_command
from gosta.errors import InputError
from gosta.net import addresses
from gosta.net.deploy import query
from gosta.net.deploy.query import View
from gosta.net.node import pages
from gosta.net.node.pages import page
from gosta.net.node.status import OWN_STATES, STATES, Status
from gosta.net.node.status_text import neighbours
from gosta.net.protocol import messages as wire
from gosta.net.transport.base import REJECTION_REASONS
from gosta.net.watch import overview
from gosta.runtime import http as server


def serve_to(status: Status, client: Callable[[str, int], Any]) -> Any:
    """Serve a status to a client with blocking calls, and return the client's result."""

    async def run() -> Any:
        served = await pages.serve("127.0.0.1:0", lambda: status, names={"node-3", "a.example"})
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
    found = [
        sample
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    ]
    return {(sample.name, tuple(sample.labels.values())): sample.value for sample in found}


def test_status_page_is_the_status_as_json() -> None:
    for status in (RUNNING, NEW):
        response, body = get(status, "/status?now")
        assert (response.status, response.headers["Content-Type"]) == (200, "application/json")
        assert msgspec.json.decode(body, type=Status) == status


def test_metrics() -> None:
    found = samples(RUNNING)
    wanted: dict[tuple[str, tuple[str, ...]], float] = {
        ("gosta_up", ("0123456789abcdef", "node-3", "auc")): 1,
        ("gosta_estimate", ("0",)): 0.75,
        ("gosta_estimate", ("1",)): 2,
        ("gosta_estimate_low", ()): 0.7,
        ("gosta_estimate_high", ()): 0.8,
        ("gosta_epoch", ()): 2,
        ("gosta_exchanges_total", ()): 1234,
        ("gosta_expected_error", ()): 0.001,
        ("gosta_max_difference", ()): 0.002,
        **{("gosta_state", (state,)): state == "stalled" for state in OWN_STATES},
        ("gosta_build_info", (platform.python_version(), "0.1.0")): 1,
        ("gosta_certificate_end_timestamp_seconds", ("node",)): 2e9,
        ("gosta_certificate_end_timestamp_seconds", ("authority",)): 3e9,
        ("gosta_epoch_start_timestamp_seconds", ()): 1.5e9,
        ("gosta_journal_bytes", ()): 4096,
        ("gosta_member_list_serial", ()): 3,
        ("gosta_member_list_proposed", ()): 0,
        ("gosta_rows_own", ()): RUNNING.rows,
        ("gosta_members", ()): 5,
        ("gosta_members_seen", ()): 4,
        ("gosta_members_missing", ()): 1,
        ("gosta_rows_known", ()): 1203,
        ("gosta_rows_declared", ()): 1416,
        ("gosta_reload_failed", ()): 1,
        ("gosta_neighbour_alive", ("node-7",)): 1,
        ("gosta_neighbour_alive", ("<b>node-8</b>",)): 0,
        ("gosta_neighbour_round_trip_seconds", ("node-7",)): 0.0123,
        ("gosta_neighbour_connected", ("node-7",)): 1,
        ("gosta_neighbour_connected", ("<b>node-8</b>",)): 0,
        ("gosta_neighbour_exchanges_total", ("node-7",)): 600,
        ("gosta_neighbour_exchanges_total", ("<b>node-8</b>",)): 0,
        ("gosta_events_total", ("offers",)): 700,
        ("gosta_events_total", ("offers declined: busy",)): 3,
        ("gosta_rejected_total", ("unauthenticated",)): 2,
        ("gosta_rejected_total", ("values",)): 3,
    }
    assert {name: value for name, value in found.items() if name[0].startswith("gosta")} == wanted
    assert found["process_resident_memory_bytes", ()] > 0


def test_unknown_values_have_no_metric() -> None:
    names = {name for name, _ in samples(NEW)}
    assert not names & {
        "gosta_estimate",
        "gosta_estimate_low",
        "gosta_expected_error",
        "gosta_members",
    }
    assert {"gosta_up", "gosta_state", "gosta_rows_known"} <= names
    assert (
        samples(msgspec.structs.replace(NEW, state="stopped"))[
            "gosta_up", (NEW.network, "node-3", "auc")
        ]
        == 0
    )


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
        "4 of 5 sites, 1,203 of 1,416 rows; missing: node-4",
        "2, started by node-9: rows &lt;changed&gt;",
        "data.csv is empty",
        "fingerprint of list 3  8695 94b6 712b 7342, to be compared",
        "two member lists  the coordinator signed two lists",
        "12 ms",
        "it tells &lt;i&gt;1e200&lt;/i&gt;",
        "a connection",
        "1 min 40 s ago",
        "1 h 6 min",
        "offers declined: busy",
        "&lt;b&gt;node-8&lt;/b&gt;",
    ):
        assert shown in text, shown
    assert f'<tr title="{STATES["stalled"]}">' in body.decode()
    assert "rejected: " not in text
    assert "4 sites, 1,203 rows " in re.sub(r"<[^>]*>", " ", page(NEW))
    assert "none yet" in page(NEW)


def test_states_of_neighbours() -> None:
    one = RUNNING.neighbours[0]
    change = msgspec.structs.replace
    states = {
        "connected": one,
        "connected via node-1": change(one, via="node-1"),
        "silent": change(one, alive=False),
        "not connected": change(one, connected=False, alive=False),
        "in epoch 7": change(one, epoch=7),
        "statistic mismatch": change(one, mismatch="statistic", connected=False),
        "suspended for 30.0 s": change(one, suspended_seconds=30.0, connected=False),
    }
    shown = neighbours(change(RUNNING, neighbours=tuple(states.values())))
    assert [row[1] for row in shown[1:]] == list(states)


def test_commands_in_a_reason_can_be_copied(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`gosta status` puts the folder that was typed into them, and breaks no line inside them."""
    monkeypatch.setattr(query, "read_status", lambda _: SUPPRESSED)
    folder = tmp_path / "my network"
    folder.mkdir()
    shown = []
    for width in (80, 200):
        monkeypatch.setattr(
            shutil, "get_terminal_size", lambda width=width: os.terminal_size((width, 24))
        )
        with contextlib.redirect_stdout(Terminal()) as out:
            status_command.status(folder)
        shown.append(out.getvalue())
        assert f"gosta network agree '{folder}' node-4" in shown[-1]
        assert f"gosta node leave '{folder}' --back" in shown[-1]
        assert "FOLDER" not in shown[-1]
    assert len(shown[0].splitlines()) > len(shown[1].splitlines())
    table = overview.table([View("node-3", "suppressed", 0, SUPPRESSED)], folder=folder)
    assert (
        "node-3: node-4 takes no part; wait, or agree to go on without it: gosta network agree "
        f"'{folder}/" in table
    )
    withdrawn = msgspec.structs.replace(
        SUPPRESSED, state="withdrawn", reload_error="withdrawn: no policy.toml"
    )
    both = [View("node-3", "suppressed", 0, SUPPRESSED), View("node-4", "withdrawn", 0, withdrawn)]
    assert "\nnode-4: withdrawn: no policy.toml" in overview.table(both)
    assert "6 of 5" not in table, "sites of an earlier result need not be members now"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_documentation_explains_states_and_rejections() -> None:
    text = (Path(__file__).parents[3] / "docs" / "how-to" / "network.md").read_text()
    assert [
        state for state, meaning in STATES.items() if f"\n| {state} | {meaning} |\n" not in text
    ] == []
    explained = [line.split("|")[1] for line in text.splitlines() if line.startswith("| ")]
    reasons = {reason.strip() for cell in explained for reason in cell.split(",")}
    assert {*wire.REASONS, *REJECTION_REASONS} - reasons == set()


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("GET", "/nothing", 404), ("GET", "//", 404), ("POST", "/", 405), ("HEAD", "/x", 404)],
)
def test_invalid_paths_and_methods(method: str, path: str, code: int) -> None:
    response, _ = get(RUNNING, path, method)
    assert response.status == code
    assert response.headers["Connection"] == "close"


def test_head_is_answered_without_a_body() -> None:
    """As monitors ask for the health of a node."""
    for path in ("/healthz", "/"):
        (whole, body), (head, nothing) = get(RUNNING, path), get(RUNNING, path, "HEAD")
        assert (head.status, nothing) == (whole.status, b"")
        assert int(head.headers["Content-Length"]) == len(body) > 0


@pytest.mark.parametrize(
    "data",
    [
        b"hello\r\n\r\n",
        b"GET /\r\n\r\n",
        b"\x16\x03\x01\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 8192,
        b"",
    ],
)
def test_malformed_requests(data: bytes) -> None:
    def client(host: str, port: int) -> bytes:
        with socket.create_connection((host, port), timeout=10) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(12)

    assert serve_to(RUNNING, client) == b"HTTP/1.1 400"


def test_a_silent_client_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST_TIMEOUT_SECONDS", 0.1)

    def client(host: str, port: int) -> bytes:
        with socket.create_connection((host, port), timeout=10) as connection:
            return connection.recv(1)

    assert serve_to(RUNNING, client) == b""


def test_the_number_of_requests_at_a_time_is_limited() -> None:
    def client(host: str, port: int) -> bytes:
        silent = [
            socket.create_connection((host, port), timeout=10) for _ in range(server.MAX_REQUESTS)
        ]
        try:
            with socket.create_connection((host, port), timeout=10) as connection:
                return connection.recv(12)
        finally:
            for each in silent:
                each.close()

    assert serve_to(RUNNING, client) == b"HTTP/1.1 503"


def test_health() -> None:
    response, body = get(RUNNING, "/healthz")
    assert (response.status, body) == (200, b"ok\n")
    response, body = get(msgspec.structs.replace(RUNNING, disk_error="disk is full"), "/healthz")
    assert (response.status, body) == (503, b"disk error: disk is full\n")


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("127.0.0.1:7401", 200),
        ("192.0.2.7", 200),
        ("[::1]:7401", 200),
        ("localhost:7401", 200),
        ("LOCALHOST.", 200),
        ("node-3:7401", 200),
        ("A.example", 200),
        ("evil.example:7401", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost@evil.example", 421),
        ("", 421),
    ],
)
def test_only_hosts_that_are_the_servers_own_are_answered(host: str, code: int) -> None:
    def client(address: str, port: int) -> bytes:
        with socket.create_connection((address, port), timeout=10) as connection:
            connection.sendall(f"GET /status HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
            return connection.makefile("rb").read()

    answer = serve_to(RUNNING, client)
    assert answer.startswith(f"HTTP/1.1 {code} ".encode())
    assert (b"node-3" in answer.partition(b"\r\n\r\n")[2]) == (code == 200)


def test_a_request_has_one_host() -> None:
    def client(address: str, port: int, head: str) -> bytes:
        with socket.create_connection((address, port), timeout=10) as connection:
            connection.sendall(f"GET / {head}\r\n\r\n".encode())
            return connection.recv(12)

    for head, code in {
        "HTTP/1.0": 200,
        "HTTP/1.1": 400,
        "HTTP/1.1\r\nHost: localhost\r\nHost: a.example": 400,
    }.items():
        assert (
            serve_to(RUNNING, functools.partial(client, head=head)) == f"HTTP/1.1 {code}".encode()
        )


def test_events_reach_all_clients_that_read() -> None:
    async def run() -> None:
        events = server.Events(lambda: server.make_event("start", b"0"))
        served = server.Server({"/events": lambda _: events}, "default-src 'none'")
        listener = addresses.listen("127.0.0.1:0", "page")
        await served.start(listener)
        clients = [
            await subscribe(*addresses.parse(addresses.listening_address(listener)))
            for _ in range(2)
        ]
        try:
            async with asyncio.timeout(20):
                reader, _ = clients[0]
                head = await reader.readuntil(b"\r\n\r\n")
                assert b"text/event-stream" in head
                assert b"X-Accel-Buffering: no" in head
                assert await reader.readuntil(b"\n\n") == b"event: start\ndata: 0\n\n"
                assert await reader.readuntil(b"\n\n") == b":\n\n"
                number = 0
                while len(events) > 1:  # the other client does not read
                    number += 1
                    events.publish(server.make_event("change", b"%d " % number + b"x" * 1_000_000))
                    while not (await reader.readuntil(b"\n\n")).startswith(
                        b"event: change\ndata: %d " % number
                    ):
                        pass
                clients[0][1].close()
                while len(events):
                    await asyncio.sleep(0.01)
        finally:
            clients[1][1].transport.abort()
            await served.stop()

    async def subscribe(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(host, port, limit=1 << 21)
        writer.write(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return reader, writer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "HEARTBEAT_SECONDS", 0.1)
        asyncio.run(run())


def test_an_address_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = addresses.listening_address(taken)
        with pytest.raises(InputError, match=rf"status_page = '{address}' in node.toml: .* in use"):
            asyncio.run(serving(address))


async def serving(address: str) -> None:
    await (await pages.serve(address, lambda: RUNNING)).stop()
