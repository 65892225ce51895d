"""The lock on a folder: at most one process runs a node, or all nodes of a network, and others see
whether it runs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from gosta.errors import NetworkError
from gosta.net.config import LOCK_FILE

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Attempts to take the lock: `is_running` of another process holds it for a moment.
ATTEMPTS = 10
RETRY_SECONDS = 0.05
STOP_TIMEOUT_SECONDS = 10.0  # for nodes to stop after SIGTERM


def check_platform() -> None:
    """Raise `NetworkError` where nodes cannot run: they need file locks and signals of Unix."""
    if fcntl is None:
        raise NetworkError(
            "running nodes is supported on Linux and macOS only; "
            "'gosta network init' works here too"
        )


@contextlib.contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold the lock on the folder of a node or a network, with the process id written into it.

    Raises `NetworkError` if another process holds it.
    """
    check_platform()
    try:
        lock = (folder / LOCK_FILE).open("a+")
    except OSError as error:
        raise NetworkError(
            f"cannot write to {folder}: {error.strerror}; nodes keep locks and journals there"
        ) from None
    with lock:
        for attempts_left in reversed(range(ATTEMPTS)):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if not attempts_left:
                    raise NetworkError(
                        f"{folder} is run by another process already; stop that one first"
                    ) from None
                time.sleep(RETRY_SECONDS)
        lock.seek(0)
        lock.truncate()
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def is_running(folder: Path) -> bool:
    """Return whether a process runs the node or the network in this folder."""
    if fcntl is None:
        return False
    try:
        with (folder / LOCK_FILE).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def stop_processes(folders: Sequence[Path], timeout: float = STOP_TIMEOUT_SECONDS) -> None:
    """Stop the processes that hold the locks on some folders.

    Each is sent SIGTERM; raises `NetworkError` if one has not stopped in time.
    """
    running = [folder for folder in folders if is_running(folder)]
    for folder in running:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process_id(folder), signal.SIGTERM)
    deadline = time.monotonic() + timeout
    while running := [folder for folder in running if is_running(folder)]:
        if time.monotonic() > deadline:
            name, pid = running[0].name, process_id(running[0])
            raise NetworkError(f"{name} does not stop; kill it with: kill -9 {pid}")
        time.sleep(RETRY_SECONDS)


def process_id(folder: Path) -> int:
    try:
        return int((folder / LOCK_FILE).read_text()[:20])
    except (OSError, ValueError):
        raise NetworkError(
            f"{folder / LOCK_FILE} has no process id; stop the node by hand"
        ) from None
