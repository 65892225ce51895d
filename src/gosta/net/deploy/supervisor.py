"""All nodes of a network as processes of this machine: started, watched, started again, stopped."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from gosta.errors import InputError
from gosta.net.config import LOG, NETWORK, NODE, NodeFile, read_node
from gosta.net.deploy import folders
from gosta.net.deploy.ask import ask, within
from gosta.net.node.status import Status

LOOK = 0.25  # seconds between two looks at the processes
ASK = 0.5  # and between two questions to a node
SOON = 10.0  # seconds: a node that dies earlier died right after its start
TRIES = 5  # such deaths, one after the other, after which something must be mended by hand
WAIT = 0.25, 10.0  # seconds before a node is started again: after the first death, and at most
GRACE = 10.0  # seconds that nodes get to stop by themselves

Command = Callable[[Path], Sequence[str]]


def node_command(folder: Path) -> list[str]:
    """How a node is started."""
    return [sys.executable, "-m", "gosta", "node", str(folder)]


class View(NamedTuple):
    """A node as its supervisor sees it."""

    name: str
    state: str
    restarts: int
    status: Status | None  # the last that it said


Show = Callable[[Sequence[View], float], None]  # of all nodes, and the seconds that passed


class Child:
    """The process of a node."""

    def __init__(self, folder: Path, command: Command) -> None:
        self.folder, self.name, self.command = folder, folder.name, command
        self.process: subprocess.Popen[bytes] | None = None
        self.restarts, self.early = -1, 0
        self.started = self.asked = 0.0
        self.at = 0.0  # when it is to be started
        self.file: NodeFile | None = None
        self.done, self.answers = False, False
        self.status: Status | None = None
        self.question: Future[Status | None] | None = None

    def look(self, now: float, pool: ThreadPoolExecutor) -> None:
        """Start it, start it again, ask it: whatever there is to do."""
        if self.process is None:
            if not self.done and now >= self.at:
                self._start(now)
        elif self.process.poll() is not None:
            self._died(now, self.process.returncode)
        elif self.question is None and self.file is not None and now - self.asked >= ASK:
            self.asked, self.question = now, pool.submit(ask, self.file)
        elif self.question is not None and self.question.done():
            self.heard(self.question.result())
            self.question = None

    def heard(self, status: Status | None) -> None:
        """What it answered."""
        self.answers = status is not None
        self.status = status or self.status

    def view(self) -> View:
        """How it looks."""
        if self.process is None:
            state = "stopped" if self.done else "starts again soon"
        elif self.answers and self.status is not None:
            state = self.status.state
        elif self.file is not None and not self.file.node.status:
            state = "no status page"
        else:
            state = "starting" if time.monotonic() - self.started < SOON else "no answer"
        return View(self.name, state, max(self.restarts, 0), self.status)

    def last_words(self) -> str:
        """The last line of its log."""
        with contextlib.suppress(OSError), (self.folder / LOG).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 4096))
            lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
            return _told(lines[-1]) if lines else "nothing"
        return "nothing"

    def _start(self, now: float) -> None:
        self.started, self.restarts = now, self.restarts + 1
        try:
            self.file = read_node(self.folder / NODE)
            with (self.folder / LOG).open("ab") as log:
                self.process = subprocess.Popen(
                    self.command(self.folder),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C is for the supervisor, which tells the nodes
                )
        except OSError as error:
            raise InputError(f"cannot start {self.name}: {error.strerror or error}") from None

    def _died(self, now: float, code: int) -> None:
        self.process, self.question, self.answers = None, None, False
        if code == 0:  # somebody asked it to stop
            self.done = True
            return
        self.early = self.early + 1 if now - self.started < SOON else 1
        if self.early >= TRIES:
            raise InputError(
                f"{self.name} ended {TRIES} times right after its start; its last words: {self.last_words()} "
                f"(see {self.folder / LOG})"
            )
        self.at = now + min(WAIT[1], WAIT[0] * 2 ** (self.early - 1))


class Crew:
    """All nodes of a network that are on this machine."""

    def __init__(self, folder: Path, command: Command) -> None:
        self.folder, self.command = folder, command
        self.children: dict[str, Child] = {}
        self._read = 0  # when network.toml was written that was read last, and nobody of it has to be waited for
        for name in _here(folder):
            if folders.running(folder / name):
                raise InputError(f"{name} of {folder} is running already; stop it with: gosta network down {folder}")
            if not _has_data(folder / name):
                raise InputError(f"{name} has no rows: put its table at {_data(folder / name)} first")

    def look(self, pool: ThreadPoolExecutor) -> None:
        """Look after every node, those that were added among them, and no more after those that were forgotten."""
        with contextlib.suppress(InputError, OSError):  # a file that is being mended
            written = (self.folder / NETWORK).stat().st_mtime_ns
            if written != self._read:
                self._follow(_here(self.folder), written)
        for child in self.children.values():
            child.look(time.monotonic(), pool)

    def _follow(self, names: Sequence[str], written: int) -> None:
        ready = [name for name in names if name in self.children or _has_data(self.folder / name)]
        kept = [name for name in self.children if name not in names and self.children[name].process is not None]
        self.children = {
            name: self.children.get(name) or Child(self.folder / name, self.command) for name in (*ready, *kept)
        }
        if not kept and len(ready) == len(names):
            self._read = written

    def views(self) -> list[View]:
        """How they all look."""
        return [child.view() for child in self.children.values()]

    def finished(self, until: float | None) -> bool:
        """Whether all of them stopped, or expect an error that is small enough."""
        children = self.children.values()
        if all(child.done for child in children):
            return True
        statuses = [child.status for child in children if child.answers and child.status is not None]
        return until is not None and len(statuses) == len(children) and within(statuses, until)

    def ask(self, pool: ThreadPoolExecutor) -> None:
        """Ask all once more, and wait for the answers."""
        asked = {child: child.file for child in self.children.values() if child.process is not None and child.file}
        for child, status in zip(asked, pool.map(ask, asked.values()), strict=True):
            child.heard(status)

    def stop(self, at_once: threading.Event) -> None:
        """Tell all to stop; end those that do not within the grace, or at once when somebody insists."""
        processes = [child.process for child in self.children.values() if child.process is not None]
        for process in processes:
            process.terminate()
        last = time.monotonic() + GRACE
        while any(process.poll() is None for process in processes):
            if at_once.wait(0.05) or time.monotonic() > last:
                for process in processes:
                    process.kill()
        for process in processes:
            process.wait()


def up(
    folder: Path,
    show: Show,
    seconds: float | None = None,
    until: float | None = None,
    command: Command | None = None,
) -> list[View]:
    """Run all nodes of a network until Ctrl-C, for some seconds, or until all expect an error that is small enough.

    Nodes that die are started again; nodes that are added meanwhile are started too. In the end all are stopped, and
    what they were like before is given back.
    """
    crew, begun = Crew(folder.resolve(), command or node_command), time.monotonic()
    for name in _here(folder) if until is not None else ():
        if not read_node(folder / name / NODE).node.status:
            raise InputError(f"until goes by the nodes' status pages, and {name} has none: give it one in node.toml")
    with _signals() as stop, ThreadPoolExecutor(32) as pool:
        try:
            while not stop.is_set():
                crew.look(pool)
                passed = time.monotonic() - begun
                show(crew.views(), passed)
                if crew.finished(until) or (seconds is not None and passed >= seconds):
                    break
                stop.wait(LOOK)
            crew.ask(pool)
            return crew.views()
        finally:
            stop.clear()  # from now on a signal means: at once
            crew.stop(stop)


def down(folder: Path) -> list[str]:
    """Stop all nodes of a network that run on this machine, and give their names."""
    stopped = [name for name in _here(folder) if folders.running(folder / name)]
    for name in stopped:
        with contextlib.suppress(ProcessLookupError):
            os.kill(folders.process_of(folder / name), signal.SIGTERM)
    last = time.monotonic() + GRACE
    while left := [name for name in stopped if folders.running(folder / name)]:
        if time.monotonic() > last:
            pid = folders.process_of(folder / left[0])
            raise InputError(f"{left[0]} does not stop; end it with: kill -9 {pid}")
        time.sleep(0.05)
    return stopped


def _told(line: str) -> str:
    """What a line of a log says went wrong."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(json.loads(line)["why"])[-300:]
    return line[-300:]


@contextlib.contextmanager
def _signals() -> Iterator[threading.Event]:
    """An event that happens when somebody wants this process to stop, instead of its end."""
    event = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, lambda *_: event.set()) for number in numbers]
    try:
        yield event
    finally:
        for number, old in zip(numbers, before, strict=True):
            signal.signal(number, old)


def _here(folder: Path) -> list[str]:
    """The nodes whose folders are on this machine."""
    names = [name for name in folders.overview(folder).nodes if (folder / name / NODE).exists()]
    if not names:
        raise InputError(f"{folder} has no node's folder: are they all at their sites?")
    return names


def _data(folder: Path) -> Path:
    return folder / read_node(folder / NODE).node.data


def _has_data(folder: Path) -> bool:
    return _data(folder).is_file()
