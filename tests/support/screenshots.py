"""Make the pictures of docs/how-to/watch.md and live.md in a real browser. Run with: make
screenshots
"""

from __future__ import annotations

import contextlib
import random
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import ports
from browser import Browser, browse
from PIL import Image
from processes import GOSTA, Processes, gosta

IMAGES = Path(__file__).parents[2] / "docs" / "images"
COLOURS = 160  # of a picture, which makes it small


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, browse() as browser:
        browser.resize(1280, 900)
        _eight_nodes(browser, Path(folder) / "hospitals")
        _private_sums(browser, Path(folder) / "registry")
        _live_run(browser)
    for path in sorted([*IMAGES.glob("watch*.png"), *IMAGES.glob("live*.png")]):
        print(f"{path.name}: {path.stat().st_size // 1000} kB")


def _eight_nodes(browser: Browser, folder: Path) -> None:
    """Eight nodes, one of which was killed, and a stranger that was rejected."""
    names, port = [f"node-{k}" for k in range(8)], ports.free()
    gosta("network", "init", folder, "--data", "breast-cancer", "--nodes", 8, "--port", port)
    with (
        Processes(*(folder / name for name in names)) as nodes,
        _serving("watch", folder, "--address", f"127.0.0.1:{port + 30}") as url,
    ):
        browser.prefer(scheme="light")
        browser.open(url)
        nodes.start(*names)
        browser.wait(
            "moment !== null && past.length > 25 && moment.totals[0][ERROR] && "
            "moment.totals[0][ERROR] < 0.01"
        )
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
        nodes.kill("node-3")
        browser.run("choose(2)")
        browser.wait("byId('rejections').innerText.includes('unauthenticated')")
        browser.wait(
            "moment.nodes[3][0] === 'stopped' && byId('details').innerText.includes('not "
            "connected')"
        )
        _save(browser, "watch.png")


def _private_sums(browser: Browser, folder: Path) -> None:
    """Five sites with private sums of two statistics, in strata."""
    rng, rows = random.Random(1), folder.with_suffix(".csv")
    died = [rng.random() < 0.3 for _ in range(800)]
    lines = [
        f"{_within(rng.gauss(0.45 + 0.2 * one, 0.15)):.3f},{one:d},{rng.choice('fm')}"
        for one in died
    ]
    rows.write_text("\n".join(["risk,died,sex", *lines]))
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
        48,
    ]
    gosta(
        "network",
        "init",
        folder,
        *what,
        "--statistic",
        "auc,gini-index:risk",
        "--nodes",
        5,
        "--port",
        ports.free(),
    )
    with (
        Processes(*sorted(folder.glob("node-*"))) as nodes,
        _serving("watch", folder, "--address", f"127.0.0.1:{ports.free()}") as url,
    ):
        browser.prefer(scheme="dark")
        browser.open(url)
        nodes.start(*nodes.folders)
        browser.wait(
            "moment !== null && moment.totals[0][CERTAIN_LOW] && moment.nodes.every((n) => n[0] "
            "=== 'complete')"
        )
        browser.run("choose(1)")
        points = browser.run("past.length")
        browser.wait(
            f"past.length > {points + 8} && byId('details').innerText.includes('certainly within')"
        )
        _save(browser, "watch-private.png")
        browser.resize(390, 844, 1.5)
        browser.run("choose(null)")
        time.sleep(2)  # for the charts to be drawn in their new size
        _save(browser, "watch-phone.png", 1500)


def _live_run(browser: Browser) -> None:
    """A default run, halfway."""
    with _serving("run", "--live", "--plot", "none") as url:
        browser.prefer(scheme="light")
        browser.resize(1280, 900)
        browser.open(url)
        browser.wait("scene !== null")
        browser.run("choose(7)")
        browser.wait("frames.at(-1).iteration > 5000")
        browser.run("ask('pause')")
        browser.wait("state === 'paused' && details?.history.at(-1)[0] === frames.at(-1).iteration")
        browser.run("ask('play')")
        browser.wait("state === 'running'")
        _save(browser, "live.png")
        browser.run("ask('speed=8')")
        browser.wait("state === 'finished'")


def _within(value: float) -> float:
    return min(1.0, max(0.0, value))


def _save(browser: Browser, name: str, height: int | None = None) -> None:
    browser.screenshot(IMAGES / name, height)
    with Image.open(IMAGES / name) as image:
        image.convert("RGB").quantize(
            COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE
        ).save(IMAGES / name, optimize=True)


@contextlib.contextmanager
def _serving(*arguments: object) -> Iterator[str]:
    process = subprocess.Popen([*GOSTA, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+/", process.stdout.readline())
        assert found
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


if __name__ == "__main__":
    main()
