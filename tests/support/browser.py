"""A headless Chromium, driven by its DevTools protocol over pipes: no driver, no websocket."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = (
    shutil.which("chromium")
    or shutil.which("chromium-browser")
    or shutil.which("google-chrome")
    or ""
)
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking "
    "--disable-component-update --disable-sync --disable-extensions --disable-dev-shm-usage "
    "--mute-audio --hide-scrollbars --force-color-profile=srgb --remote-debugging-pipe"
)
# The browser reads commands from descriptor 3 and writes to 4.
LAUNCH = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(one), fcntl.F_DUPFD, 10) for one in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
WAIT_SECONDS = 60.0
KEYS = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}


class Browser:
    """One page of a browser."""

    def __init__(self, profile: Path) -> None:
        ours_out, theirs_in = os.pipe()[::-1]
        theirs_out, ours_in = os.pipe()[::-1]
        command = [CHROMIUM, *FLAGS.split(), f"--user-data-dir={profile}", "about:blank"]
        launcher = [sys.executable, "-c", LAUNCH, str(theirs_in), str(theirs_out), *command]
        self._process = subprocess.Popen(
            launcher,
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out, self._rest, self._last = ours_in, ours_out, b"", 0
        self.requests: list[str] = []  # addresses of all that was loaded
        # errors of scripts, warnings of the console, violations of the page's policy
        self.problems: list[str] = []
        target = self._call("Target.createTarget", {"url": "about:blank"}, "")["targetId"]
        attached = self._call("Target.attachToTarget", {"targetId": target, "flatten": True}, "")
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        with contextlib.suppress(OSError, AssertionError):
            self._call("Browser.close", {}, "")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol for the page."""
        return self._call(method, parameters, self._session)

    def _call(self, method: str, parameters: dict[str, Any], session: str) -> Any:
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        os.write(
            self._out,
            json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0",
        )
        while True:
            answer = self._receive(WAIT_SECONDS)
            if answer is not None and answer.get("id") == self._last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def _receive(self, seconds: float) -> dict[str, Any] | None:
        """Return the next message, and keep what it says of requests and problems; None if there is
        none.
        """
        end = time.monotonic() + seconds
        while b"\0" not in self._rest:
            assert select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0], (
                "Chromium does not answer"
            )
            part = os.read(self._in, 1 << 20)
            assert part, "Chromium has ended"
            self._rest += part
        text, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        given = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(given["request"]["url"])
            case "Runtime.exceptionThrown":
                self.problems.append(str(given["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if given["type"] in ("error", "warning", "assert"):
                self.problems.append(str(given["args"]))
            case "Log.entryAdded" if given["entry"]["level"] in ("error", "warning"):
                self.problems.append(str(given["entry"]))
        return message

    def open(self, url: str) -> None:
        assert "errorText" not in (found := self.call("Page.navigate", url=url)), found
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str) -> Any:
        """Return the value of an expression of JavaScript."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, condition: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait until an expression of JavaScript is true."""
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"{condition}\n{self.text('body')}\n{self.problems}"
            time.sleep(0.05)

    def text(self, selector: str) -> str:
        """Return the text of an element as it is shown."""
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def press(self, key: str) -> None:
        """Press a key, where the focus is."""
        code = KEYS[key]
        text = {"text": "\r"} if key == "Enter" else {}
        given = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **given, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **given)

    def resize(self, width: int, height: int, scale: float = 1.0) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )

    def prefer(self, **features: str) -> None:
        """Set what the user prefers: scheme="dark", motion="reduce"."""
        names = {"scheme": "prefers-color-scheme", "motion": "prefers-reduced-motion"}
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": names[k], "value": v} for k, v in features.items()],
        )

    def screenshot(self, path: Path, height: int | None = None) -> None:
        """Save a picture of the whole page, or of its top."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "width": size["width"],
            "height": height or size["height"],
            "scale": 1,
        }
        found = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
        )
        path.write_bytes(base64.b64decode(found["data"]))


@contextlib.contextmanager
def browse() -> Iterator[Browser]:
    """Start a browser with an empty profile."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(Path(profile))
        try:
            yield browser
        finally:
            browser.close()


needs_browser = pytest.mark.skipif(not CHROMIUM, reason="needs Chromium: apt-get install chromium")


# Contrast of all visible texts to what is behind them, the least first; canvases and text on nodes
# are not counted.
CONTRAST = """(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      layers.push(colour);
      if ((colour[3] ?? 1) === 1) break;
    }
    const mix = (under, [r, g, b, a = 1]) => [r, g, b].map((v, k) => v * a + under[k] * (1 - a));
    return layers.reverse().reduce(mix, [255, 255, 255]);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement, style = getComputedStyle(element);
    if (!node.textContent.trim() || element.closest(".signs .node, noscript")) continue;
    if (!element.getClientRects().length) continue;
    const [a, b] = [light(parse(style.color)), light(behind(element))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), node.textContent.slice(0, 40)]);
  }
  return found.sort((x, y) => x[0] - y[0]).slice(0, 3);
})()"""


def forget(browser: Browser) -> None:
    browser.requests.clear()
    browser.problems.clear()
