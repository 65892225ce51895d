"""Reloading a running node's files when they change."""

from __future__ import annotations

from pathlib import Path

from gosta.errors import GostaError
from gosta.net.config import NODE_FILE, read_node
from gosta.net.node.node import Log, Node
from gosta.net.node.source import read_source

# Settings of [node] whose changes need a restart.
FIXED_SETTINGS = ("name", "listen", "status_page", "tls", "durable", "keep_exchanges", "secure_delete")


class FileWatcher:
    """Compares the sizes and modification times of a node's files with those found last."""

    def __init__(self, node: Node, folder: Path, log: Log) -> None:
        self._node, self._folder, self._log = node, folder, log
        self._seen = self._stat_files()

    def poll(self) -> None:
        """Reload the node's files if they changed since the last call; keep the old settings if they are invalid."""
        found = self._stat_files()
        if found == self._seen:
            return
        self._seen = found
        try:
            self._node.reload_error = self._reload()
        except GostaError as error:
            self._node.reload_error = str(error)
            self._log("reload failed", reason=str(error))

    def _reload(self) -> str:
        """Apply the files; return why they take effect at the next start only, if so."""
        old, new = self._node.config, read_node(self._folder / NODE_FILE)
        if new.network != old.network or any(getattr(new.node, f) != getattr(old.node, f) for f in FIXED_SETTINGS):
            reason = f"restart the node: [network] changed, or one of {', '.join(FIXED_SETTINGS)}"
            self._log("restart needed", reason=reason)
            return reason
        source = read_source(new, self._folder)
        self._node.change(new, source)
        self._log("reloaded", neighbours=sorted(new.neighbours), rows=source.estimand.n)
        return ""

    def _stat_files(self) -> list[tuple[int, int] | None]:
        return [_stat(self._folder / name) for name in (NODE_FILE, self._node.config.node.data)]


def _stat(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
