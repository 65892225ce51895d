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
from gosta.net.node import lock
from gosta.net.protocol.site import history_of
from gosta.net.protocol.sums import last_contribution
from gosta.net.storage.contributions import Logged, find_break, find_lost
from gosta.net.storage.journal import Journal
from gosta.private.accounting import total_epsilon
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
            [one.spent for one in self.history if one.spent is not None], self.policy.delta_budget
        )


class _Line(msgspec.Struct):
    number: int
    hash: str
    entry: msgspec.Raw


def parse_lines(lines: Iterable[str]) -> list[Logged]:
    """Return a log from its lines of JSON, with the texts of the entries as they were hashed."""
    try:
        found = [msgspec.json.decode(line, type=_Line) for line in lines if line.strip()]
        log = [
            Logged(one.number, bytes(one.entry).decode(), bytes.fromhex(one.hash)) for one in found
        ]
        for one in log:
            _ = one.entry
    except (msgspec.DecodeError, ValueError) as error:
        raise NetworkError(f"this is no log of contributions: {error}") from None
    return log


def read_log(folder: Path, config: NodeConfig | None = None) -> list[Logged]:
    """Return the log of a node: from its status page if it is running, else from its journal."""
    config = config or NodeFolder(folder).read()
    if lock.is_running(folder):
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
    return history_of([one.entry for one in read_log(folder, config)])


def read_site_log(folder: Path) -> SiteLog:
    config = NodeFolder(folder).read()
    policy, policy_error, log = Policy(), "", read_log(folder, config)
    try:
        policy = read_policy(folder)
    except InputError as error:
        policy_error = str(error)
    missing = find_missing(folder, config, log)
    return SiteLog(
        config.node.name, log, missing, policy, history_of([one.entry for one in log]), policy_error
    )


def find_missing(folder: Path, config: NodeConfig, log: list[Logged]) -> str:
    """Return why a log cannot be all that was logged.

    Entries were changed or removed, or the journal tells of more. Empty: nothing is missing.
    """
    number = find_break(log)
    if number is not None:
        return f"entry {number} was changed, or one before it was removed"
    last = None
    if lock.is_running(folder):
        status = query_status(config)
        if (
            status is not None
            and status.sums is not None
            and config.node.name in status.sums.participants
        ):
            last = status.estimate_epoch
    elif (folder / JOURNAL_FILE).is_file():
        with contextlib.closing(Journal(folder / JOURNAL_FILE, read_only=True)) as journal:
            found = last_contribution(*journal.load(), config.node.name)
            last = None if found is None else found[0]
    else:
        return f"there is no {JOURNAL_FILE}: no node has run in this folder, or it was deleted"
    if last is None or last in {
        one.entry.epoch for one in log if one.entry.event == "contribution"
    }:
        lost = (
            "" if lock.is_running(folder) else find_lost(folder / HEAD_FILE, log)
        )  # while it runs, both grow
        return f"it {lost}" * bool(lost)
    what = "it ends too early" if log else "it is empty"
    return f"{what}, although the node has contributed to epoch {last}: entries were removed"
