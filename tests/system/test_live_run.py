"""A run in a real browser while it is simulated, and a report that is a file of its own."""

from __future__ import annotations

import base64
import json
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import CONTRAST, Browser, browse, forget, needs_browser
from processes import GOSTA

import gosta
from gosta import graphs
from gosta.schedule import Faults
from gosta.simulation import run_page, runner

IRIS: dict[str, Any] = {"data": "iris", "statistic": "gini-mean-difference"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browse() as browser:
        yield browser


@pytest.fixture(scope="module")
def trace() -> gosta.Trace:
    return gosta.simulate(**IRIS, runs=1)


def start(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """Start a live run, and return its process and the address of its page."""
    process = subprocess.Popen(
        [*GOSTA, "run", "--live", *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    found = re.search(r"http://\S+/", process.stdout.readline())
    assert found
    return process, found[0]


def test_a_run_that_nobody_watched_leaves_no_picture(tmp_path: Path) -> None:
    process, _ = start("iris", "-s", "variance", "--plot", str(tmp_path / "run.png"))
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=60)
    # Python ends by the signal itself if that came while it executed text, such as the fields of a
    # named tuple.
    assert process.returncode in (130, -signal.SIGINT)
    assert printed == ""
    assert not (tmp_path / "run.png").exists()


def ask(url: str, pace: str, origin: str) -> int:
    request = urllib.request.Request(f"{url}pace?{pace}", method="POST", headers={"Origin": origin})
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@needs_browser
def test_live_run(browser: Browser, trace: gosta.Trace, tmp_path: Path) -> None:
    plot = str(tmp_path / "plot.png")
    process, url = start("iris", "--statistic", "gini-mean-difference", "--plot", plot)
    try:
        browser.resize(1280, 900)
        browser.open(url)
        browser.wait("scene !== null && frames.length > 3")
        assert [
            ask(url, "pause", origin) for origin in ("http://elsewhere.example", "null", url[:-1])
        ] == [403, 403, 200]
        browser.wait("state === 'paused'")
        assert browser.text("#play") == "Play"
        shown = browser.run("frames.length")
        time.sleep(0.5)  # a few frames, if it were not paused
        assert browser.run("frames.length") == shown
        browser.run("byId('step').click()")
        browser.wait(f"frames.length === {shown + 1}")

        browser.run("document.querySelector('#map canvas.nodes').focus()")
        browser.press("ArrowRight")
        browser.press("ArrowDown")
        browser.wait("details !== null && byId('details').innerText.includes('visitors')")
        node = browser.run("chosen")
        edges = graphs.make("watts-strogatz", 150, seed=0).edges
        assert edges is not None
        near = sorted(
            {*edges[edges[:, 0] == node, 1].tolist(), *edges[edges[:, 1] == node, 0].tolist()}
        )
        assert browser.run("details.neighbours.map(([k]) => k)") == near
        assert browser.run("neighboursOf(chosen).sort((a, b) => a - b)") == near
        assert len(browser.run("details.visitors")) == 2
        assert browser.text("#details-title") == f"Node {node}"

        before = browser.run("colourTable.join()")
        browser.run(
            "byId('colour').value = 'estimate'; byId('colour').dispatchEvent(new Event('change'))"
        )
        assert browser.run("colourTable.join()") != before
        assert "above" in browser.text("#map-legend")

        browser.run("byId('speed').value = 8; byId('speed').dispatchEvent(new Event('change'))")
        browser.run("byId('play').click()")
        browser.wait("state === 'finished'")
        assert browser.text("#link") == "Finished"
        last = float(trace.data["mean"][0, -1])
        assert browser.run("frames.at(-1).errors[MEAN]") == last
        assert browser.run("frames.at(-1).iteration") == trace.iterations[-1]
        assert browser.run("frames.at(-1).sent") == trace.units[-1]
        assert browser.run(f"percent({last})") in browser.text("#accuracy")
        assert browser.run("frames.at(-1).counts.reduce((a, b) => a + b)") == 150
        own = float(trace.estimates[0, -1, node])
        browser.wait(f"details?.history.at(-1)[1] === {own!r}")
        browser.wait(f"byId('details').innerText.includes(number({own!r}))")

        shown = browser.run("frames.length")
        browser.run("byId('play').click()")  # the same frames again
        browser.wait("at < frames.length - 1 && timer !== null")
        browser.run("byId('at').value = 2; byId('at').dispatchEvent(new Event('input'))")
        assert browser.run("[at, timer, frames.length]") == [2, None, shown]
        for scheme in ("light", "dark"):
            browser.prefer(scheme=scheme, motion="reduce")
            browser.wait(f"document.documentElement.dataset.theme === '{scheme}'")
            assert browser.run(CONTRAST)[0][0] >= 4.5, browser.run(CONTRAST)
        browser.resize(320, 800)
        browser.wait("innerWidth === 320")
        browser.wait("document.documentElement.scrollWidth <= 320")
        assert all(one.startswith(url) for one in browser.requests)
        assert browser.problems == []
        browser.open("about:blank#")
    finally:
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert f"after {trace.iterations[-1]:,} iterations, 1 run:" in printed
    assert f"plot: {plot}" in printed
    forget(browser)


@needs_browser
def test_report_is_a_file_of_its_own(browser: Browser, trace: gosta.Trace, tmp_path: Path) -> None:
    hostile = "</script><script>hacked()</script><img src=x onerror=hacked()>"
    faults = Faults(loss=0.1, partition=(5, 1000))
    estimand = replace(trace.setting.estimand, data=hostile)
    setting = replace(trace.setting, estimand=estimand, faults=faults)
    named = gosta.Trace(trace.data, setting, trace.info, trace.resume_data)
    named.report(tmp_path / "run.html")
    forget(browser)
    browser.prefer(motion="reduce")
    browser.resize(1280, 900)
    url = (tmp_path / "run.html").as_uri()
    browser.open(url)
    browser.wait("scene !== null && frames.length > 0")
    assert hostile in browser.text("#title")
    told = "; 10 % of messages lost; two halves separated from iteration 5 to 1,000"
    assert browser.text("#subtitle").endswith(told)
    assert browser.run("frames.map((frame) => frame.iteration)") == trace.iterations.tolist()
    assert (
        browser.run("frames.map((frame) => frame.errors[MEAN])")
        == trace.data["mean"][0].values.tolist()
    )
    assert browser.run("frames.map((frame) => frame.sent)") == trace.units.tolist()
    browser.run("byId('at').value = 40; byId('at').dispatchEvent(new Event('input'))")
    browser.run("byId('node').value = 17; byId('node').dispatchEvent(new Event('change'))")
    browser.run("byId('node').value = 150; byId('node').dispatchEvent(new Event('change'))")
    said = browser.run("byId('node').validationMessage")
    assert (browser.run("chosen"), said) == (17, "Nodes have the numbers 0 to 149.")
    own = trace.estimates[0, :, 17].values.tolist()
    browser.wait(f"byId('details').innerText.includes(number({own[40]!r}))")
    np.testing.assert_allclose(
        browser.run("details.history.map(([, value]) => value)"), own, rtol=1e-7
    )
    assert browser.run("details.neighbours.length") == browser.run("neighboursOf(17).length") > 0
    browser.run("byId('speed').value = 8; byId('speed').dispatchEvent(new Event('change'))")
    browser.run("byId('play').click()")
    browser.wait("at === frames.length - 1 && timer === null")
    assert browser.requests == [url]
    assert browser.problems == []
    forget(browser)


def recorded(path: Path) -> dict[str, Any]:
    """Return the data inside a report."""
    found = re.search(r'id="recording">(.*?)</script>', path.read_text())
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_report_of_1600_nodes_is_small(tmp_path: Path) -> None:
    values = np.random.default_rng(0).gamma(2, 1, 1600)
    trace = gosta.simulate(
        values, "gini-mean-difference", runs=1, graph="complete", protocol="gosta-async"
    )
    trace.report(tmp_path / "run.html")
    assert (tmp_path / "run.html").stat().st_size < 3_000_000
    found = recorded(tmp_path / "run.html")
    estimates = np.frombuffer(base64.b64decode(found["estimates"]), "<f4").reshape(100, 1600)
    np.testing.assert_array_equal(estimates, trace.estimates[0].values.astype(np.float32))
    assert found["scene"]["edge_ends"] == ""
    assert "every other" in found["scene"]["note"]


def test_all_edges_of_a_small_complete_graph_are_drawn(tmp_path: Path) -> None:
    gosta.simulate(
        np.arange(4.0), "variance", runs=1, graph="complete", protocol="gosta-async"
    ).report(tmp_path / "a.html")
    scene = recorded(tmp_path / "a.html")["scene"]
    assert (len(base64.b64decode(scene["edge_ends"])), scene["note"]) == (6 * 2 * 2, "")


def test_report_without_the_estimates_of_all_nodes(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runner, "MAX_ESTIMATES", 10)
    trace = gosta.simulate(**IRIS, runs=2)
    trace.report(tmp_path / "run.html", run=1)
    found = recorded(tmp_path / "run.html")
    assert (found["scene"]["places"], found["estimates"]) == (None, None)
    assert [frame[4][0] for frame in found["recorded"][0]] == trace.data["mean"][1].values.tolist()
    forget(browser)
    browser.open((tmp_path / "run.html").as_uri())
    browser.wait("byId('map').innerText.includes('too many to keep')")
    assert browser.problems == []


@pytest.mark.parametrize(
    ("path", "run", "message"),
    [
        ("run.pdf", 0, "path = 'run.pdf' must end in .html"),
        ("nowhere/run.html", 0, "cannot write nowhere/run.html: No such file or directory"),
        ("run.html", 1, "run = 1 must be a whole number from 0 to 0"),
    ],
)
def test_bad_reports(
    trace: gosta.Trace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    run: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(gosta.InputError) as error:
        trace.report(path, run)
    assert str(error.value) == message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--live", "--runs", "3"), "runs = 3: --live shows one run; leave --runs out"),
        (
            ("--live", "--protocol", "u2,tracking"),
            "protocol = 'u2,tracking': --live shows one protocol; name one",
        ),
        (("--open",), "open is for the page of --live; give both"),
        (("--live", "--private"), "live is for exchanges of rows; leave it out with --private"),
        (
            ("--live", "large.csv", "-s", "gini-mean-difference"),
            "live: 10,001 nodes are too many to be drawn; ",
        ),
        (("--report", "run.pdf"), "report = 'run.pdf' must end in .html"),
        (
            ("--report", "nowhere/run.html"),
            "report = 'nowhere/run.html': there is no folder nowhere",
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
    Path("large.csv").write_text("x\n" + "".join(f"{k % 97}\n" for k in range(10_001)))
    code, out, error = gosta_("run", *arguments)
    assert (code, out) == (2, "")
    assert error.startswith(f"gosta: {message}")
    assert error.count("\n") == 1


def test_frames_hold_errors_in_a_byte_of_each_node() -> None:
    rng = np.random.default_rng(0)
    off = rng.choice([-1.0, 1.0], 5000) * 10 ** rng.uniform(-6, 1, 5000)
    estimates = 2.0 + 4.0 * off
    frame = run_page.make_frame(7, 8, estimates, np.array([2.0]), 4.0, 2.0)
    found = np.frombuffer(frame.colours, np.uint8)
    decoded = run_page.MIN_ERROR * 10 ** (
        run_page.DECADES * (found % 128).astype(float) / run_page.STEPS
    )
    half_a_step = 10 ** (run_page.DECADES / run_page.STEPS / 2)
    assert (np.abs(np.log(decoded / np.abs(off))) <= np.log(half_a_step) * (1 + 1e-6)).all()
    assert ((found >= run_page.IS_BELOW) == (off < 0)).all()
    assert frame.errors[0] == np.abs((estimates - 2.0) / 4.0).mean()
    assert frame.estimates[1:] == tuple(np.quantile(estimates, run_page.QUANTILES))
    assert (len(frame.counts), sum(frame.counts)) == (run_page.BINS, 5000)
    low, high = frame.ends
    assert high - 2.0 == 2.0 - low == 32.0
    inside = (estimates > low) & (estimates < low + (high - low) / run_page.BINS)
    assert frame.counts[0] == (inside | (estimates <= low)).sum()


def test_frames_of_nodes_that_agree_to_the_last_bit() -> None:
    frame = run_page.make_frame(1, 1, np.full(5, 0.1), np.array([0.1]), 0.1, 0.1)
    assert frame.colours == bytes(5)
    assert frame.counts[32] == 5
