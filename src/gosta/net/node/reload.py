"""Reloading a running node's node.toml, policy.toml, agreed.json and data when they change.

A file that is being written is not read: its size and times must have been the same for some polls, and while it is
read. A file whose content is the one in use is not loaded again. Without a data file, or without a policy that can be
read and allows what runs, the node withdraws its rows from the network until the file is right again.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from gosta.errors import GostaError, NetworkError
from gosta.net.agreements import AGREED_FILE
from gosta.net.config import NODE_FILE, read_node
from gosta.net.node.base import Log
from gosta.net.node.node import Node
from gosta.net.node.source import check_policy, read_source
from gosta.net.node.sum_source import read_sum_source
from gosta.net.node.sums import SumNode
from gosta.private.policy import POLICY_FILE, read_policy

# Settings of [node] whose changes need a restart.
FIXED_SETTINGS = (
    "name",
    "listen",
    "status_page",
    "proxy",
    "forward",
    "tls",
    "durable",
    "keep_exchanges",
    "secure_delete",
)
STABLE_POLLS = 2  # at which files must be the same before they are read,
# and if the last line of a text file has no end, as in the middle of writing it
UNFINISHED_POLLS = 10
TEXT_SUFFIXES = (".csv", ".tsv", ".toml")
MISSING = (0, 0)  # size and time of a file that is not there


class FileWatcher:
    """Compares a node's files with those that it uses."""

    def __init__(self, node: Node | SumNode, folder: Path, log: Log) -> None:
        self._node, self._folder, self._log = node, folder, log
        self._data = node.config.node.data  # as the last node.toml says
        self._found = self._handled = self._stat_files()
        self._polls = 0  # at which the files were as they are
        self._used = self._digests()

    def poll(self) -> None:
        """Reload the node's files if they changed and are complete; if they are invalid, keep the old ones."""
        found = self._stat_files()
        self._polls = self._polls + 1 if found == self._found else 1
        self._found = found
        if found == self._handled or self._polls < (
            STABLE_POLLS if self._has_ended() else UNFINISHED_POLLS
        ):
            return
        self._handled = found
        try:
            self._node.reload_error = self._reload()
        except (GostaError, OSError) as error:
            self._node.reload_error = str(error)
        if self._node.reload_error:
            self._log("reload failed", reason=self._node.reload_error)

    def _reload(self) -> str:
        """Reload the files; return why they are not in use, if they are not."""
        node, data = self._node, self._data
        if not any(file.exists() for file in self._data_files()):
            node.withdraw()
            self._log("withdrawn", reason=f"{data} is not there")
            return ""
        digests = self._digests()
        if digests == self._used and not node.peer.is_withdrawn:
            return ""
        self._check_policy()
        new, old = read_node(self._folder / NODE_FILE), node.config
        self._data = new.node.data
        if new.network != old.network or any(
            getattr(new.node, f) != getattr(old.node, f) for f in FIXED_SETTINGS
        ):
            return f"restart the node: [network] changed, or one of {', '.join(FIXED_SETTINGS)}"
        source = (
            read_source(new, self._folder)
            if isinstance(node, Node)
            else read_sum_source(new, self._folder)
        )
        if source.fingerprint != node.peer.identity.fingerprint:
            return "restart the node: a file that the statistic needs has changed; all sites need the same"
        # before the node uses them: rows that the statistic cannot take are an error
        rows = source.rows
        if self._digests() != digests and self._data == data:
            self._handled = ()  # they changed meanwhile: again later
            return ""
        node.change(new, source)  # type: ignore[arg-type]
        self._used, self._handled = self._digests(), self._stat_files()
        self._log("reloaded", neighbours=sorted(new.neighbours), rows=rows)
        return ""

    def _check_policy(self) -> None:
        """Withdraw the rows if there is no policy that can be read, or if it forbids that they leave the site."""
        try:
            read_policy(self._folder)
            if isinstance(self._node, Node):
                check_policy(self._node.config.network, self._folder)
        except GostaError as error:
            self._node.withdraw()
            raise NetworkError(f"withdrawn: {error}") from None

    def _data_files(self) -> list[Path]:
        return [self._folder / name for name in sorted({self._data, self._node.config.node.data})]

    def _files(self) -> list[Path]:
        own = (NODE_FILE, POLICY_FILE, AGREED_FILE)
        return [*(self._folder / name for name in own), *self._data_files()]

    def _stat_files(self) -> tuple[tuple[Path, int, int], ...]:
        return tuple((file, *stat_file(file)) for file in self._files())

    def _has_ended(self) -> bool:
        changed = [file for file, *stat in self._found if (file, *stat) not in self._handled]
        return all(_has_line_end(file) for file in changed if file.suffix in TEXT_SUFFIXES)

    def _digests(self) -> dict[Path, bytes]:
        return {file: _digest(file) for file in self._files()}


def stat_file(file: Path) -> tuple[int, int]:
    """Return a file's size, and when it was changed last, or who may read it."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return MISSING
    except OSError as error:
        return -1, error.errno or 0
    return found.st_size, max(found.st_mtime_ns, found.st_ctime_ns)


def _has_line_end(file: Path) -> bool:
    try:
        with file.open("rb") as content:
            content.seek(-1, 2)
            return content.read(1) == b"\n"
    except OSError:
        return True  # it is empty, or not there


def _digest(file: Path) -> bytes:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").digest()
    except OSError:
        return b""
