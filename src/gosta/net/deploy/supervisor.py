"""Running all nodes of a network as processes on this machine: start, watch, restart, stop."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from subprocess import DEVNULL, Popen

from gosta.errors import InputError, NetworkError
from gosta.net.config import LOG_FILE, NETWORK_FILE, NodeConfig
from gosta.net.deploy.network import Network, is_network, nodes_in
from gosta.net.deploy.node_folder import NodeFolder
from gosta.net.deploy.query import QUERY_THREADS, View, all_within, query_all, query_status
from gosta.net.node import lock
from gosta.net.node.lock import STOP_TIMEOUT_SECONDS
from gosta.net.node.log_file import old_log
from gosta.net.node.requests import request_epoch
from gosta.net.node.status import Status
from gosta.runtime import interrupts

POLL_SECONDS = 0.25  # between checks of the processes
QUERY_SECONDS = 0.5  # between two status queries to a node
EARLY_SECONDS = 10.0  # a node that ends sooner ended right after its start
MAX_EARLY_ENDS = 5  # in a row, after which a restart will not help
RESTART_SECONDS = 0.25, 10.0  # before the first restart, doubled each time; and at most
FAILED_CODE = 2  # exit status of a node whose files are wrong: a restart does not help

Command = Callable[[Path], Sequence[str]]
Show = Callable[[Sequence[View], float], None]  # gets all nodes, and the seconds since the start


def node_command(folder: Path) -> list[str]:
    """Return the command that runs the node in a folder."""
    return [sys.executable, "-m", "gosta", "node", str(folder)]


class NodeProcess:
    """The process of one node, restarted when it ends."""

    def __init__(self, folder: Path, command: Command) -> None:
        self.folder = folder
        self.name = folder.name
        self.command = command
        self.process: Popen[bytes] | None = None
        self.restarts = -1
        self.early_ends = 0  # times in a row that it ended right after its start
        self.started_at = self.queried_at = self.restart_at = 0.0
        self.config: NodeConfig | None = None
        self.is_done = False  # it was stopped, or it failed
        self.failure = ""  # why it failed
        self.has_answered = False
        self.status: Status | None = None
        self.query: Future[Status | None] | None = None

    def poll(self, now: float, pool: ThreadPoolExecutor) -> None:
        """Start, restart or query the process, whichever is due."""
        if self.process is None:
            if not self.is_done and now >= self.restart_at:
                self._start(now)
        elif self.process.poll() is not None:
            self._handle_end(now, self.process.returncode)
        elif self.query is None:
            if self.config is not None and now - self.queried_at >= QUERY_SECONDS:
                self.queried_at = now
                self.query = pool.submit(query_status, self.config)
        elif self.query.done():
            self.update(self.query.result())
            self.query = None

    def update(self, status: Status | None) -> None:
        self.has_answered = status is not None
        self.status = status or self.status

    def view(self) -> View:
        if self.process is None:
            state = "failed" if self.failure else "stopped" if self.is_done else "restarting soon"
        elif self.has_answered and self.status is not None:
            state = self.status.state
        elif self.config is not None and not self.config.node.status_page:
            state = "no status page"
        else:
            state = (
                "starting" if time.monotonic() - self.started_at < EARLY_SECONDS else "no answer"
            )
        return View(self.name, state, max(self.restarts, 0), self.status, self.failure)

    def _last_log_message(self) -> str:
        """Return the reason in the last line of the node's log, or the line itself."""
        lines: list[str] = []
        # The current log is empty right after it was rotated.
        for path in (old_log(self.folder, 1), self.folder / LOG_FILE):
            with contextlib.suppress(OSError), path.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - 4096))
                lines += log.read().decode(errors="replace").strip().splitlines()
        line = lines[-1] if lines else "none"
        with contextlib.suppress(ValueError, KeyError, TypeError):
            line = str(json.loads(line)["reason"])
        return line[-300:]

    def _start(self, now: float) -> None:
        self.started_at = now
        self.restarts += 1
        try:
            self.config = NodeFolder(self.folder).read()
            command = self.command(self.folder)
            with (self.folder / LOG_FILE).open("ab") as log:
                # In a new session, so that Ctrl-C reaches the supervisor only.
                self.process = Popen(
                    command, stdin=DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
        except OSError as error:
            raise NetworkError(f"cannot start {self.name}: {error.strerror or error}") from None

    def _handle_end(self, now: float, code: int) -> None:
        self.process, self.query, self.has_answered = None, None, False
        if code == FAILED_CODE:
            self.failure = self._last_log_message()
        # Another process stopped it, or a restart does not help.
        if code in (0, -signal.SIGTERM, FAILED_CODE):
            self.is_done = True
            return
        self.early_ends = self.early_ends + 1 if now - self.started_at < EARLY_SECONDS else 1
        if self.early_ends >= MAX_EARLY_ENDS:
            last = f"its last message: {self._last_log_message()} (see {self.folder / LOG_FILE})"
            raise NetworkError(
                f"{self.name} ended {MAX_EARLY_ENDS} times right after its start; {last}"
            )
        first, longest = RESTART_SECONDS
        self.restart_at = now + min(longest, first * 2 ** (self.early_ends - 1))


class Supervisor:
    """All nodes of a network whose folders are on this machine."""

    def __init__(self, folder: Path, command: Command) -> None:
        self.folder, self.command = folder, command
        self.nodes: dict[str, NodeProcess] = {}
        self._applied = 0  # modification time of the network.toml whose nodes are all running
        for node in Network.read(folder).nodes_here():
            if node.is_running:
                raise NetworkError(
                    f"{node.name} of {folder} is running already; stop it with: gosta network down "
                    f"{folder}"
                )
            if not node.data_file().is_file():
                raise NetworkError(
                    f"{node.name} has no data: put its rows into {node.data_file()} first"
                )

    def poll(self, pool: ThreadPoolExecutor) -> None:
        """Take up nodes that were added, drop those that were removed, and poll every process."""
        with contextlib.suppress(InputError, OSError):  # a file that is being edited
            modified = (self.folder / NETWORK_FILE).stat().st_mtime_ns
            if modified != self._applied:
                self._follow(Network.read(self.folder).nodes_here(), modified)
        for node in self.nodes.values():
            node.poll(time.monotonic(), pool)

    def _follow(self, here: Sequence[NodeFolder], modified: int) -> None:
        names = {node.name for node in here}
        ready = {
            node.name: self.nodes.get(node.name) or NodeProcess(node.path, self.command)
            for node in here
            if node.name in self.nodes or node.data_file().is_file()
        }
        leaving = {
            name: process
            for name, process in self.nodes.items()
            if name not in names and process.process is not None
        }
        self.nodes = ready | leaving
        if not leaving and len(ready) == len(here):
            self._applied = modified

    def views(self) -> list[View]:
        return [node.view() for node in self.nodes.values()]

    def is_finished(self, until: float | None) -> bool:
        """Return whether all nodes stopped, or all expect at most this error."""
        nodes = self.nodes.values()
        failed = [node for node in nodes if node.failure]
        if failed and (until is not None or len(failed) == len(nodes)):
            raise NetworkError(
                f"{failed[0].name} failed: {failed[0].failure} (see {failed[0].folder / LOG_FILE})"
            )
        if all(node.is_done for node in nodes):
            return True
        statuses = [node.status for node in nodes if node.has_answered and node.status is not None]
        return until is not None and len(statuses) == len(nodes) and all_within(statuses, until)

    def query_all(self) -> None:
        """Query all nodes that run."""
        running = [node for node in self.nodes.values() if node.process is not None]
        for node, status in zip(running, query_all([n.config for n in running]), strict=True):
            node.update(status)

    def stop(self, signals: interrupts.Signals) -> None:
        """Send SIGTERM to all nodes; kill those still running after the timeout or at a signal."""
        processes = [node.process for node in self.nodes.values() if node.process is not None]
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        while any(process.poll() is None for process in processes):
            if signals.wait(0.05) or time.monotonic() > deadline:
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
    """Run all nodes until Ctrl-C, for some seconds, or until all expect at most the error `until`.

    Returns their states. Nodes that end are restarted, unless they failed because of their files or
    another process stopped them. Nodes that are added meanwhile are started too.
    """
    lock.check_platform()
    supervisor, start = Supervisor(folder.resolve(), command or node_command), time.monotonic()
    for node in nodes_in(folder) if until is not None else ():
        if not node.read().node.status_page:
            raise InputError(
                f"until needs the nodes' status pages, and {node.name} has none: "
                "set status_page in node.toml"
            )
    # Whoever holds the lock on the folder of the network would start its nodes again: see `down`.
    with (
        lock.hold(folder),
        interrupts.signals(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals,
        ThreadPoolExecutor(QUERY_THREADS) as pool,
    ):
        try:
            while True:
                supervisor.poll(pool)
                elapsed = time.monotonic() - start
                show(supervisor.views(), elapsed)
                is_over = seconds is not None and elapsed >= seconds
                if supervisor.is_finished(until) or is_over or signals.wait(POLL_SECONDS):
                    break
            supervisor.query_all()
            return supervisor.views()
        finally:
            signals.clear()  # a second one kills the nodes
            supervisor.stop(signals)


def down(folder: Path) -> list[str]:
    """Stop all nodes of a network that run on this machine, and return their names."""
    lock.check_platform()
    nodes = [node.path for node in Network.read(folder).nodes_here()]
    running = [node.name for node in nodes if lock.is_running(node)]
    lock.stop_processes([folder], 2 * STOP_TIMEOUT_SECONDS)
    lock.stop_processes(nodes)
    return running


def start_epoch(folder: Path) -> tuple[str, int]:
    """Let a running node, the one in a folder or any of a network's, start an epoch.

    Returns its name and the epoch.
    """
    start = f"gosta {'network up' if is_network(folder) else 'node'} {folder}"
    refusal = NetworkError(
        f"{folder}: no node is running, so that none can start an epoch; start it with: {start}"
    )
    names = {node: node.read().node.name for node in nodes_in(folder)}
    for node, name in names.items():
        try:
            if node.is_running:
                return name, request_epoch(node.path, name)
        except NetworkError as error:
            refusal = error
    raise refusal
