"""``gosta run --live``: the page of a run while it is simulated."""

from __future__ import annotations

import signal
import sys
import threading
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from gosta.estimation.setting import Setting
    from gosta.runtime.arrays import Integers
    from gosta.simulation.live import LiveRunner
    from gosta.simulation.trace import TraceInfo


class WatchedRun:
    """A run with a page, which is served until the command ends."""

    def __init__(self, context: typer.Context, is_opened: bool, as_json: bool) -> None:
        self._context, self._is_opened, self._as_json = context, is_opened, as_json
        self._is_over = threading.Event()

    def make_runner(self, setting: Setting, info: TraceInfo, checkpoints: Integers) -> LiveRunner:
        """Serve the page, print its address, and return what advances the run."""
        from gosta.cli.nodes import listen
        from gosta.net.watch import serve
        from gosta.simulation import live

        page = live.LivePage(setting, info)
        listener, host = listen(None, "live")
        url, output = serve.url(listener), sys.stderr if self._as_json else sys.stdout
        self._context.with_resource(page.serving(listener, host))
        print(f"live page: {url} (the run begins when it is opened)", file=output, flush=True)
        if self._is_opened:
            import webbrowser

            webbrowser.open(url)
        self._runner = live.LiveRunner(setting, info, checkpoints, page)
        return self._runner

    def end(self) -> None:
        """Say on the page that the run has ended; from now on, Ctrl-C ends the page."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._is_over.set())
        self._runner.end()

    def wait(self) -> None:
        """Wait for Ctrl-C, unless it was pressed since the run has ended."""
        print("the run has ended; its page stays until Ctrl-C", file=sys.stderr, flush=True)
        self._is_over.wait()
