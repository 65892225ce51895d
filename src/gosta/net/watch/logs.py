"""The last lines of the logs of nodes on this machine."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from gosta.net.config import LOG_FILE
from gosta.pages.feed import MAX_LOG_LINES, LogLine

MAX_READ_BYTES = 32 * 1024  # of a log at a time; what was written before these is skipped
MAX_TEXT = 400  # characters of a line that are shown

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class LogTail:
    """Reads what was appended to the logs of some nodes."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[int, int]] = {}  # inode of a log, and how much of it was read

    def poll(self, folders: Iterable[Path]) -> tuple[LogLine, ...]:
        """Return the lines that were written since the last call, in order of time."""
        found = [line for folder in folders for line in self._new_lines(folder)]
        return tuple(sorted(found, key=lambda line: line.time)[-MAX_LOG_LINES:])

    def _new_lines(self, folder: Path) -> list[LogLine]:
        path = folder / LOG_FILE
        try:
            now = path.stat()
            inode, start = self._read.get(path, (now.st_ino, 0))
            if inode != now.st_ino or start > now.st_size:  # the log was rotated
                start = 0
            if start == now.st_size or not stat.S_ISREG(now.st_mode):
                return []
            is_cut = now.st_size - start > MAX_READ_BYTES
            start = max(start, now.st_size - MAX_READ_BYTES)
            with path.open("rb") as log:
                log.seek(start)
                new = log.read(MAX_READ_BYTES)
        except OSError:
            return []
        end = new.rfind(b"\n") + 1  # a line that is being written is read the next time
        if end == 0 and len(new) == MAX_READ_BYTES:
            end = len(new)
        self._read[path] = now.st_ino, start + end
        return [
            _parse(line, folder.name)
            for line in new[:end].splitlines()[is_cut:][-MAX_LOG_LINES:]
            if line.strip()
        ]


def _parse(line: bytes, node: str) -> LogLine:
    try:
        fields = _decode(line)
        known = [str(fields.pop(name, "")) for name in ("time", "node", "event")]
    except msgspec.DecodeError:
        return LogLine(
            "", node, "", line.decode(errors="replace")[:MAX_TEXT] + "…" * (len(line) > MAX_TEXT)
        )
    text = "  ".join(f"{name} {_text(value)}" for name, value in fields.items())
    return LogLine(
        known[0][:32], node, known[2][:MAX_TEXT], text[:MAX_TEXT] + "…" * (len(text) > MAX_TEXT)
    )


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
