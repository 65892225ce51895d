"""Rotation of a node's log.jsonl by the node itself, which alone writes there: no line is lost.

This is for a node whose standard error is log.jsonl in its own folder, as `gosta network up` starts
it, and goes on when the process that started the node is killed. Other logs are left to those who
keep them: journald, Docker, others.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from gosta.net.config import LOG_FILE

MAX_LOG_BYTES = 10 << 20  # of log.jsonl, and so of each old one: about 60,000 events
OLD_LOGS = 4  # that are kept: log.jsonl.1 is the latest


def old_log(folder: Path, number: int) -> Path:
    return folder / f"{LOG_FILE}.{number}"


class LogRotation:
    """Renames log.jsonl when it is large, and goes on in a new one."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / LOG_FILE

    def poll(self) -> None:
        """Start a new file if the log is large; to be called every second."""
        with contextlib.suppress(OSError):  # such as a full disk: again in a second
            log = os.fstat(sys.stderr.fileno())
            if log.st_size >= MAX_LOG_BYTES and os.path.samestat(log, self._path.stat()):
                self._rotate(log)

    def _rotate(self, log: os.stat_result) -> None:
        draft = self._folder / f".{LOG_FILE}-new"
        with draft.open("ab") as new:
            for number in reversed(range(1, OLD_LOGS)):
                if old_log(self._folder, number).exists():
                    old_log(self._folder, number).replace(old_log(self._folder, number + 1))
            self._path.replace(old_log(self._folder, 1))
            draft.replace(self._path)
            for stream in (sys.stdout, sys.stderr):
                if os.path.samestat(os.fstat(stream.fileno()), log):
                    stream.flush()
                    os.dup2(new.fileno(), stream.fileno())
