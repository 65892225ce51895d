"""Processes of nodes, and waiting for the states that they reach."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, Self

from gosta.net.config import NODE_FILE, read_node
from gosta.net.deploy.query import query_status
from gosta.net.node.status import Status

GOSTA = [sys.executable, "-m", "gosta"]
WAIT_SECONDS = 120.0  # generous: machines are slow, and no test of processes is about speed
POLL_SECONDS = 0.2  # asking all nodes again takes processor time from them


def gosta(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*GOSTA, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False
    )


@contextlib.contextmanager
def serving(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a command that serves a page, and return its process and the page's address; Ctrl-C ends
    it.
    """
    process = subprocess.Popen([*GOSTA, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+/", process.stdout.readline())
        assert found
        yield process, found[0]
    finally:  # a killed process would leave nodes behind
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0


def wait_until(is_reached: Callable[[], bool], describe: Callable[[], object] = lambda: "") -> None:
    """Wait for a condition; after `WAIT_SECONDS` without it, fail with a description."""
    end = time.monotonic() + WAIT_SECONDS
    while not is_reached():
        assert time.monotonic() < end, describe()
        time.sleep(POLL_SECONDS)


class Processes:
    """Processes of the nodes in some folders, by the folders' names; what is left of them is killed
    at the end.
    """

    def __init__(self, *folders: Path) -> None:
        self.folders = {folder.name: folder for folder in folders}
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill(*self.running)

    def start(self, *names: str) -> None:
        for name in names:
            with (self.folders[name] / "log.jsonl").open("ab") as log:
                command = [*GOSTA, "node", str(self.folders[name])]
                self.running[name] = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, *names: str) -> None:
        for process in [self.running.pop(name) for name in names]:
            process.kill()
            process.wait()

    def stop(self) -> None:
        """Let all nodes stop by a signal; each ends without an error."""
        for process in self.running.values():
            process.terminate()
        assert [process.wait(WAIT_SECONDS) for process in self.running.values()] == [0] * len(
            self.running
        )

    def statuses(self, names: Collection[str] = ()) -> list[Status]:
        """Return the status of these nodes, or of all, without those that do not answer."""
        configs = [read_node(self.folders[name] / NODE_FILE) for name in names or self.folders]
        return [status for config in configs if (status := query_status(config)) is not None]

    def wait(
        self, condition: Callable[[list[Status]], Any], names: Collection[str] = ()
    ) -> list[Status]:
        """Return the statuses of these nodes, or of all, once all answer and a condition holds of
        what they say.
        """
        found: list[Status] = []

        def is_reached() -> bool:
            found[:] = self.statuses(names)
            return len(found) == len(names or self.folders) and bool(condition(found))

        wait_until(is_reached, lambda: found)
        return found

    def wait_for_exchanges(self, count: int) -> list[Status]:
        """Return the statuses of all nodes once each has had `count` more exchanges in an epoch."""
        before = {one.node: (one.epoch, one.exchanges) for one in self.wait(lambda _: True)}

        def are_enough(one: Status) -> bool:
            epoch, exchanges = before[one.node]
            return one.exchanges - (exchanges if one.epoch == epoch else 0) >= count

        return self.wait(lambda found: all(map(are_enough, found)))

    def log(self, name: str) -> str:
        return (self.folders[name] / "log.jsonl").read_text()
