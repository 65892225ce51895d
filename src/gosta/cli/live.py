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
    from gosta.simulation.runner import RunnerFactory
    from gosta.simulation.trace import TraceInfo


def make_runner(context: typer.Context, is_opened: bool, as_json: bool) -> RunnerFactory:
    """Return what makes the runner of a run with a page, which is served until the command ends."""
    from gosta.cli.nodes import listen
    from gosta.net.watch import serve
    from gosta.simulation import live

    def make(setting: Setting, info: TraceInfo, checkpoints: Integers) -> LiveRunner:
        page = live.LivePage(setting, info)
        listener, host = listen(None, "live")
        url = serve.url(listener)
        context.with_resource(page.serving(listener, host))
        print(f"live page: {url} (the run begins when it is opened)", file=sys.stderr if as_json else None, flush=True)
        if is_opened:
            import webbrowser

            webbrowser.open(url)
        return live.LiveRunner(setting, info, checkpoints, page)

    return make


def wait(is_ended: threading.Event) -> None:
    """Wait for Ctrl-C or SIGTERM while the page of a run that has ended is served; an early Ctrl-C set the event."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_ended.set())
    print("the run has ended; its page stays until Ctrl-C", file=sys.stderr, flush=True)
    is_ended.wait()
