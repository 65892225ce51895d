"""The live page in a real browser: a network of processes, a private one, texts that try to inject,
keys, themes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import ports
import pytest
from browser import CONTRAST, Browser, browse, forget, needs_browser
from processes import Processes, gosta, serving
from statuses import NEW, RUNNING

from gosta.net.addresses import listen_for_page, page_url
from gosta.net.config import LOG_FILE, Task
from gosta.net.deploy import plan
from gosta.net.deploy.network import Network
from gosta.net.deploy.query import Poller, View
from gosta.net.node.contact import Rejection
from gosta.net.node.status import Neighbour
from gosta.net.watch import serve
from gosta.net.watch.source import LogTail, NetworkSource
from gosta.pages import server
from gosta.pages.feed import MAX_POINTS, Feed, Moment, NodeState, Scene, Value

TASK = Task("0123456789abcdef", "auc", confidence_level=0.95)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browse() as browser:
        yield browser


def node_is(name: str, state: str) -> str:
    """Return a condition: the map says that a node is in a state."""
    return f"""document.querySelector('#map [aria-label^="{name}, "][aria-label*=", {state}"]')"""


@needs_browser
def test_eight_nodes_one_of_them_killed_and_a_stranger(browser: Browser, tmp_path: Path) -> None:
    folder, names, port = tmp_path / "net", [f"node-{k}" for k in range(8)], ports.free()
    gosta("network", "init", folder, "--data", "breast-cancer", "--nodes", 8, "--port", port)
    page_port = port + 30
    address = f"127.0.0.1:{page_port}"
    with Processes(*(folder / name for name in names)) as nodes:
        nodes.start(*names)
        with serving("watch", folder, "--address", address) as (_, url):
            browser.open(url)
            for name in names:
                browser.wait(node_is(name, "running"))
            browser.wait("document.getAnimations().length > 0")  # edges pulse
            browser.wait(
                "moment.totals[0][LOW] !== null && byId('facts').innerText.includes('8 of 8')"
            )
            points, value = browser.run("past.length"), browser.text("#value")
            browser.wait(
                f"past.length > {points} && byId('value').innerText !== {json.dumps(value)}"
            )
            assert "95 % interval" in browser.text("#accuracy")
            assert (
                browser.run(
                    "document.querySelectorAll('#estimate-chart canvas, #error-chart "
                    "canvas').length"
                )
                == 2
            )

            nodes.kill("node-3")
            browser.wait(node_is("node-3", "stopped"))
            browser.wait("byId('announcement').textContent.includes('node-3: stopped')")
            browser.run("choose(scene.nodes.indexOf('node-3'))")
            browser.wait("byId('details').innerText.includes('It does not run')")
            assert browser.run("[...document.querySelectorAll('#map line.apart')].length") > 0

            with socket.create_connection(("127.0.0.1", port)) as stranger:
                stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
                stranger.recv(100)
            browser.wait("byId('rejections').innerText.includes('unauthenticated')")
            assert "a connection, rejected by node-0, 1 time" in browser.text("#rejections")

            with (folder / "node-0" / LOG_FILE).open("a") as log:
                log.write('{"event": "<img src=x onerror=hacked()>"}\n<script>hacked()</script>\n')
            browser.wait("byId('log').innerText.includes('<script>hacked()</script>')")
            assert browser.run("document.querySelectorAll('#log img, #log script').length") == 0

            nodes.start("node-3")
            browser.wait(node_is("node-3", "running"))
            assert all(one.startswith(url) for one in browser.requests)
            assert browser.problems == []
        browser.wait("byId('link').innerText === 'Connection lost, retrying'")
        with serving("watch", folder / "node-0", "--address", address):
            browser.wait(
                "byId('link').innerText === 'Live' && byId('title').innerText === 'node-0'"
            )
            browser.wait(node_is("node-1", "connected"))  # as its neighbour sees it
            browser.run("choose(scene.nodes.indexOf('node-1'))")
            browser.wait("byId('details').innerText.includes('seen by')")
        browser.open("about:blank#")
    forget(browser)


@needs_browser
def test_private_network_by_keyboard_in_both_themes(browser: Browser, tmp_path: Path) -> None:
    folder, rows = tmp_path / "private", tmp_path / "rows.csv"
    text = "".join(
        f"{k * 37 % 100 / 100},{k * 37 % 100 > k % 90:d},{'fm'[k % 2]}\n" for k in range(300)
    )
    rows.write_text("risk,died,sex\n" + text)
    what = [
        "--private",
        "--data",
        rows,
        "--score",
        "risk",
        "--label",
        "died",
        "--strata",
        "sex",
        "--bins",
        32,
    ]
    gosta("network", "init", folder, *what, "--nodes", 3, "--port", ports.free())
    forget(browser)
    browser.prefer(scheme="light", motion="reduce")
    with serving("network", "up", folder, "--page", "--page-address", "127.0.0.1:0") as (_, url):
        browser.open(url)
        browser.wait(
            "moment !== null && moment.totals[0][CERTAIN_LOW] && moment.nodes.every((n) => n[0] "
            "=== 'complete')"
        )
        assert "certainly within" in browser.text("#accuracy")
        assert "certainly within" in browser.text("#estimate-legend")
        assert browser.run("scene.quantities") == ["auc", "auc, sex = f", "auc, sex = m"]
        assert browser.run("document.getAnimations().length") == 0
        value = browser.text("#value")

        browser.press("Tab")
        assert browser.run("document.activeElement.className") == "skip"
        browser.press("Enter")
        browser.press("Tab")
        assert browser.run("document.activeElement.getAttribute('aria-label')").startswith(
            "node-0, complete"
        )
        assert (
            browser.run("getComputedStyle(document.activeElement.querySelector('.frame')).stroke")
            != "none"
        )
        browser.press("ArrowDown")
        name = browser.run("document.activeElement.getAttribute('aria-label')").partition(",")[0]
        assert name in ("node-1", "node-2")
        browser.press("Enter")
        assert browser.text("#details-title") == name
        browser.wait("byId('details').innerText.includes('sites left out')")
        browser.press("Escape")
        assert browser.text("#details-title") == "No node chosen"
        browser.run("byId('quantity').focus()")
        browser.press("ArrowDown")
        browser.wait(f"byId('value').innerText !== {json.dumps(value)}")

        for hidden, shown in {"true": "Paused", "false": "Live"}.items():  # another tab, and back
            browser.run(
                f"Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true "
                f"}})"
            )
            browser.run("document.dispatchEvent(new Event('visibilitychange'))")
            browser.wait(f"byId('link').innerText === '{shown}'")
        for scheme in ("light", "dark"):
            browser.prefer(scheme=scheme, motion="reduce")
            browser.wait(f"document.documentElement.dataset.theme === '{scheme}'")
            assert browser.run(CONTRAST)[0][0] >= 4.5, browser.run(CONTRAST)
        browser.run("byId('theme').focus()")
        browser.press("Enter")
        assert browser.run("document.documentElement.dataset.theme") == "light"
        browser.run("localStorage.clear()")
        for width in (320, 640):  # a phone, and 1280 at 200 % zoom
            browser.resize(width, 800)
            browser.wait(f"innerWidth === {width}")
            browser.wait(f"document.documentElement.scrollWidth <= {width}")
        browser.call("Emulation.clearDeviceMetricsOverride")
        assert all(one.startswith(url) for one in browser.requests)
        assert browser.problems == []
        browser.open("about:blank#2")


@contextlib.contextmanager
def served(views: Sequence[View]) -> Iterator[str]:
    """Serve a page of given views."""
    listener = listen_for_page("127.0.0.1:0", "address")
    live = serve.LivePage(NetworkSource(Path("net"), TASK), "127.0.0.1")
    with server.serving(live.server, listener) as loop:
        loop.call_soon_threadsafe(live.update, views, None)
        yield page_url(listener)


@needs_browser
def test_texts_of_nodes_are_never_html(browser: Browser) -> None:
    hostile = "<img src=x onerror=hacked()><script>hacked()</script>"
    status = msgspec.structs.replace(
        RUNNING,
        node=hostile,
        statistic=hostile,
        epoch_reason=hostile,
        missing=(hostile,),
        neighbours=(Neighbour(f"{hostile}2", 600, True, True, 0.5, 0.0123, 0.002, epoch=2),),
        rejections=(Rejection(hostile, hostile, 3, hostile, 4.0),),
        reload_error=hostile,
    )
    long = msgspec.structs.replace(NEW, node="a-very-long-name-" + "x" * 46)
    views = [View(hostile, hostile, 3, status, hostile), View(long.node, "running", 0, long)]
    forget(browser)
    with served(views) as url:
        browser.open(url)
        browser.wait("scene !== null && byId('rejections').innerText.includes('onerror')")
        browser.run("choose(0)")
        browser.wait("byId('details').innerText.includes('<script>')")
        assert browser.run("document.querySelectorAll('body img, body script').length") == 0
        assert browser.text("#details-title") == hostile
        browser.resize(400, 800)
        browser.wait("innerWidth === 400")
        browser.wait("document.documentElement.scrollWidth <= 400")
        browser.call("Emulation.clearDeviceMetricsOverride")
        assert browser.problems == []
        assert all(one.startswith(url) for one in browser.requests)
        browser.open("about:blank#3")


def test_log_tail_follows_rotated_logs(tmp_path: Path) -> None:
    folder, tail = tmp_path / "node-1", LogTail()
    folder.mkdir()
    log = folder / LOG_FILE
    line = '{"time": "2026-01-01T00:00:0%d", "event": "connected", "neighbour": "node-%d"}\n'
    assert tail.poll([folder]) == ()
    log.write_text(line % (1, 2) + "half of a")
    assert [msgspec.structs.astuple(one) for one in tail.poll([folder])] == [
        ("2026-01-01T00:00:01", "node-1", "connected", "neighbour node-2")
    ]
    with log.open("a") as more:
        more.write(" line\n")
    assert [one.text for one in tail.poll([folder])] == ["half of a line"]
    log.rename(folder / "log.jsonl.1")
    log.write_text(line % (3, 4))
    assert [one.text for one in tail.poll([folder])] == ["neighbour node-4"]
    log.write_text("x" * 100_000 + "\n" + line % (5, 6))
    assert [one.text for one in tail.poll([folder])][-1] == "neighbour node-6"
    assert tail.poll([folder]) == ()
    log.write_bytes(b'\xff\x00\n[1]\n{"event": "reloaded", "neighbours": ["a", "b"], "rows": 3}\n')
    assert [one.text for one in tail.poll([folder])] == [
        "\ufffd\0",
        "[1]",
        "neighbours a, b  rows 3",
    ]


def test_history_is_bounded_and_changes_are_small() -> None:
    scene = Scene("net", "", ("auc",), 0.95, ("a", "b"), ((0, 1),), {}, True)
    nodes = tuple(NodeState("running", "good", "", (Value(0.5),)) for _ in range(2))
    moment = Moment(0.0, (), (Value(0.5),), nodes, ("connected",), (0,), (), 0, (), ())
    feed = Feed()
    assert feed.start().startswith(b"event: wait")
    assert feed.update(scene, moment).startswith(b"event: start")
    for k in range(1, 5000):
        now = msgspec.structs.replace(moment, time=float(k), activity=(k,))
        assert (
            feed.update(scene, now)
            == b'event: change\ndata: {"time":%d.0,"activity":{"0":1}}\n\n' % k
        )
    text = feed.start().partition(b"data: ")[2]
    times = [time for time, _ in json.loads(text)["history"]]
    assert len(times) <= MAX_POINTS
    assert times == sorted(times)
    assert times[0] < 2000
    assert times[-1] == 4999
    other = msgspec.structs.replace(scene, nodes=("a", "c"))
    assert feed.update(other, moment).startswith(b"event: start")


def test_nodes_that_never_ran(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    what = ["--data", "iris", "--statistic", "variance", "--columns", "petal length"]
    gosta("network", "init", folder, *what, "--nodes", 3, "--port", ports.free())
    poller = Poller(folder)
    views = asyncio.run(poller.views())
    assert [(view.name, view.state) for view in views] == [
        (f"node-{k}", "stopped") for k in range(3)
    ]
    scene, moment = NetworkSource(folder, poller.task).read(views, poller.network)
    assert (scene.quantities, scene.edges) == (("variance",), ((0, 1), (0, 2), (1, 2)))
    assert moment.facts == (("nodes running", "0 of 3"),)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("watch", "nowhere"), "gosta: no such folder: nowhere\n"),
        (("watch", "."), r"gosta: no such file: .*node.toml; .*\n"),
        (("watch", "net", "--address", "127.0.0.1"), r"gosta: '127.0.0.1' must be host:port, .*\n"),
        (("network", "up", "net", "--page-address", "x"), r"gosta: 'x' must be host:port, .*\n"),
        (
            ("watch", "net", "--address", "192.0.2.1:80"),
            r"gosta: address = '192.0.2.1:80': cannot listen there \([^()']*\); give an address of "
            r".*\n",
        ),
    ],
)
def test_bad_arguments(
    gosta_: Callable[..., tuple[int, str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Network.create(
        Path("net"), plan.for_sites(plan.Goal("kendall-tau"), "cycle", 3, 0), port=ports.free()
    )
    code, out, error = gosta_(*arguments)
    assert (code, out) == (2, "")
    assert re.fullmatch(message, error), error
