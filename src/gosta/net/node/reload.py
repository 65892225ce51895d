"""Reloading the files of a running node when they change: settings, policy, data, credentials.

A file that is being written is not read: its size and times must have been the same for some polls,
and while it is read. A file whose content is the one in use is not loaded again. Without a data
file, or without a policy that can be read and allows what runs, the node withdraws its rows from
the network until the file is right again.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from gosta.errors import GostaError, NetworkError
from gosta.net.agreements import AGREED_FILE
from gosta.net.config import NODE_FILE, read_node
from gosta.net.members import ACCEPTED_FILE, MEMBERS_FILE
from gosta.net.node.contact import Log
from gosta.net.node.credentials import certificate_ends, load_credentials
from gosta.net.node.node import Node
from gosta.net.node.source import check_policy, read_source
from gosta.net.transport.tcp import TcpTransport
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
CREDENTIAL_FILES = ("cert.pem", "key.pem", "ca.pem", MEMBERS_FILE, ACCEPTED_FILE)
TEXT_SUFFIXES = (".csv", ".tsv", ".toml")
# Files are read when they have been the same for these polls,
STABLE_POLLS = 2
# or for these if the last line of a text file has no end, as in the middle of writing it.
UNFINISHED_POLLS = 10
# Credentials are read again after a day, though nothing changed, to warn of their end.
RELOAD_SECONDS = 86_400.0
MISSING = (0, 0)  # size and time of a file that is not there


class FileWatcher:
    """Compares a node's files with those that it uses."""

    def __init__(self, node: Node, folder: Path, log: Log) -> None:
        self._node, self._folder, self._log = node, folder, log
        self._data = node.config.node.data  # as the last node.toml says
        self._seen = self._handled = self._stat_files()
        self._polls = 0  # at which the files were as they are
        self._used = self._digests()

    def poll(self) -> None:
        """Reload files that changed and are complete; if they are invalid, keep the old ones."""
        now = self._stat_files()
        self._polls = self._polls + 1 if now == self._seen else 1
        self._seen = now
        needed = STABLE_POLLS if self._has_ended() else UNFINISHED_POLLS
        if now == self._handled or self._polls < needed:
            return
        self._handled = now
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
        has_fixed = all(getattr(new.node, f) == getattr(old.node, f) for f in FIXED_SETTINGS)
        if new.network != old.network or not has_fixed:
            return f"restart the node: [network] changed, or one of {', '.join(FIXED_SETTINGS)}"
        source = read_source(new, self._folder)
        if source.fingerprint != node.peer.identity.fingerprint:
            why = "a file that the statistic needs has changed; all sites need the same"
            return f"restart the node: {why}"
        # Before the node uses them: rows that the statistic cannot take are an error.
        rows = source.rows
        if self._digests() != digests and self._data == data:
            self._handled = ()  # they changed meanwhile: again later
            return ""
        node.change(new, source)
        self._used, self._handled = self._digests(), self._stat_files()
        self._log("reloaded", neighbours=sorted(new.neighbours), rows=rows)
        return ""

    def _check_policy(self) -> None:
        """Withdraw the rows unless a policy can be read, which allows that they leave the site."""
        task = self._node.config.network
        try:
            read_policy(self._folder)
            if task.private is None:  # of private sums, the peer asks the policy in each epoch
                check_policy(task, self._folder)
        except GostaError as error:
            self._node.withdraw()
            raise NetworkError(f"withdrawn: {error}") from None

    def _data_files(self) -> list[Path]:
        return [self._folder / name for name in sorted({self._data, self._node.config.node.data})]

    def _files(self) -> list[Path]:
        names = (NODE_FILE, POLICY_FILE, AGREED_FILE)
        return [*(self._folder / name for name in names), *self._data_files()]

    def _stat_files(self) -> tuple[tuple[Path, int, int], ...]:
        return tuple((file, *stat_file(file)) for file in self._files())

    def _has_ended(self) -> bool:
        changed = [file for file, *stat in self._seen if (file, *stat) not in self._handled]
        return all(_has_line_end(file) for file in changed if file.suffix in TEXT_SUFFIXES)

    def _digests(self) -> dict[Path, bytes]:
        return {file: _digest(file) for file in self._files()}


class CredentialWatcher:
    """Reloads the credentials of a running node when their files change.

    The files of a bundle are written one after the other: they are read once nothing has changed
    between two polls.
    """

    def __init__(self, node: Node, transport: TcpTransport, folder: Path, log: Log) -> None:
        self._node, self._transport, self._folder, self._log = node, transport, folder, log
        self._loaded = self._seen = self._stat_files()
        self._loaded_at = time.monotonic()

    def poll(self) -> None:
        """Load credentials that changed; if they are invalid, keep the old ones."""
        last, self._seen = self._seen, self._stat_files()
        is_due = self._seen != self._loaded or time.monotonic() - self._loaded_at > RELOAD_SECONDS
        if not is_due or self._seen != last:
            return
        self._loaded, self._loaded_at = self._seen, time.monotonic()
        self._node.credentials_error = ""
        try:
            self._reload()
        except GostaError as error:
            self._node.credentials_error = str(error)
            self._log("reload failed", reason=str(error))

    def _reload(self) -> None:
        config, peer = self._node.config, self._node.peer
        tls, keyring = load_credentials(self._folder, config, self._log)
        self._transport.reload_tls(tls, keyring.list)
        self._node.certificate_ends = certificate_ends(self._folder)
        if peer.is_withdrawn:  # its rows are read again when they are back
            peer.trust = keyring
        else:
            self._node.change(config, peer.source.with_trust(keyring))
        self._log(
            "credentials reloaded", member_list=keyring.list.serial, members=len(keyring.members)
        )

    def _stat_files(self) -> list[tuple[int, int]]:
        return [stat_file(self._folder / name) for name in CREDENTIAL_FILES]


def stat_file(file: Path) -> tuple[int, int]:
    """Return a file's size, and when it was changed last, or who may read it."""
    try:
        stat = file.stat()
    except FileNotFoundError:
        return MISSING
    except OSError as error:
        return -1, error.errno or 0
    return stat.st_size, max(stat.st_mtime_ns, stat.st_ctime_ns)


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
