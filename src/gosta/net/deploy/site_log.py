"""What left a site of private sums: its log of contributions, whose entries form a hash chain."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from gosta.errors import InputError, NetworkError
from gosta.net.config import HEAD_FILE, JOURNAL_FILE, NodeConfig
from gosta.net.deploy.node_folder import NodeFolder
from gosta.net.deploy.query import fetch, query_status
from gosta.net.protocol.sums import last_contribution
from gosta.net.storage.contributions import Logged, find_break, find_lost
from gosta.net.storage.journal import Journal
from gosta.private.accounting import total_epsilon
from gosta.private.log import history_of
from gosta.private.policy import Past, Policy, read_policy

MAX_RESPONSE_BYTES = 1 << 28  # half a million entries


class SiteLog(NamedTuple):
    """A site's log, and what follows from it."""

    node: str
    log: list[Logged]
    missing: str  # why the log cannot be all that it was; empty: nothing is known to be missing
    policy: Policy  # the default one if there is none that can be read
    history: list[Past]
    policy_error: str = ""  # why there is none that can be read

    @property
    def spent_epsilon(self) -> float:
        """Privacy of all contributions together, for a row or for a person."""
        return total_epsilon(
            [past.spent for past in self.history if past.spent is not None],
            self.policy.delta_budget,
        )


class _Line(msgspec.Struct):
    number: int
    hash: str
    entry: msgspec.Raw


def parse_lines(lines: Iterable[str]) -> list[Logged]:
    """Return a log from its lines of JSON, with the texts of the entries as they were hashed."""
    try:
        parsed = [msgspec.json.decode(line, type=_Line) for line in lines if line.strip()]
        log = [
            Logged(line.number, bytes(line.entry).decode(), bytes.fromhex(line.hash))
            for line in parsed
        ]
        for logged in log:
            _ = logged.entry  # which raises an error if it is no entry
    except (msgspec.DecodeError, ValueError) as error:
        raise NetworkError(f"this is no log of contributions: {error}") from None
    return log


def read_log(folder: Path, config: NodeConfig | None = None) -> list[Logged]:
    """Return the log of a node: from its status page if it is running, else from its journal."""
    config = config or NodeFolder(folder).read()
    if NodeFolder(folder).is_running:
        answer = fetch(config, "/contributions", MAX_RESPONSE_BYTES)
        if answer is None:
            raise NetworkError(
                f"{folder}: the node is running but does not answer, or has no status_page in "
                "node.toml"
            )
        return parse_lines(answer.decode(errors="replace").splitlines())
    if not (folder / JOURNAL_FILE).is_file():
        return []
    with contextlib.closing(Journal(folder / JOURNAL_FILE, read_only=True)) as journal:
        return journal.contributions()


def read_history(folder: Path, config: NodeConfig) -> list[Past]:
    """Return the site's contributions so far, as its policy looks at them."""
    return history_of([logged.entry for logged in read_log(folder, config)])


def read_site_log(folder: Path) -> SiteLog:
    """Return the log of the node in a folder, and what follows from it."""
    config = NodeFolder(folder).read()
    log = read_log(folder, config)
    policy, policy_error = Policy(), ""
    try:
        policy = read_policy(folder)
    except InputError as error:
        policy_error = str(error)
    missing = find_missing(folder, config, log)
    history = history_of([logged.entry for logged in log])
    return SiteLog(config.node.name, log, missing, policy, history, policy_error)


def find_missing(folder: Path, config: NodeConfig, log: list[Logged]) -> str:
    """Return why a log cannot be all that was logged.

    Entries were changed or removed, or the journal tells of more. Empty: nothing is missing.
    """
    number = find_break(log)
    if number is not None:
        return f"entry {number} was changed, or one before it was removed"
    is_running = NodeFolder(folder).is_running
    last = None
    if is_running:
        status = query_status(config)
        sums = None if status is None else status.sums
        if status is not None and sums is not None and config.node.name in sums.participants:
            last = status.estimate_epoch
    elif (folder / JOURNAL_FILE).is_file():
        with contextlib.closing(Journal(folder / JOURNAL_FILE, read_only=True)) as journal:
            contribution = last_contribution(*journal.load(), config.node.name)
            last = None if contribution is None else contribution[0]
    else:
        return f"there is no {JOURNAL_FILE}: no node has run in this folder, or it was deleted"
    logged_epochs = {each.entry.epoch for each in log if each.entry.event == "contribution"}
    if last is not None and last not in logged_epochs:
        what = "it ends too early" if log else "it is empty"
        return f"{what}, although the node has contributed to epoch {last}: entries were removed"
    # While the node runs, both the log and the file about its end grow.
    lost = "" if is_running else find_lost(folder / HEAD_FILE, log)
    return f"it {lost}" if lost else ""
