"""Which of a site's own rows left it, to whom and how often, from the ledger of its node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from gosta.errors import GostaError, NetworkError
from gosta.net.config import JOURNAL_FILE, NODE_FILE, read_node
from gosta.net.deploy.query import fetch
from gosta.net.members import MEMBERS_FILE, read_list
from gosta.net.node import lock
from gosta.net.node.source import read_row_source
from gosta.net.storage.journal import Journal
from gosta.net.storage.ledger import Disclosure

MAX_RESPONSE_BYTES = 1 << 28  # a million entries


class Site(NamedTuple):
    """A node's ledger, and what is needed to read it."""

    node: str
    data: str  # digest of the rows in its data file now; "": there is no valid file
    members: tuple[str, ...]  # of the network; empty: there is no list
    ledger: list[Disclosure]


class Total(NamedTuple):
    """What one neighbour got of one version of the data file."""

    data: str
    neighbour: str
    samples: int
    rows: int  # different ones
    of: int
    first_time: float
    last_time: float


class Row(NamedTuple):
    """How often one row was sent, and to whom."""

    data: str
    row: int  # counted from 0
    times: int
    neighbours: dict[str, int]
    first_time: float
    last_time: float


def read_site(folder: Path) -> Site:
    """Return the ledger of a node: from its status page if it is running, else its journal."""
    config = read_node(folder / NODE_FILE)
    try:
        data = read_row_source(config, folder, has_key=False).data_digest
    except GostaError:
        data = ""
    has_list = (folder / MEMBERS_FILE).is_file()
    members = (
        tuple(member.name for member in read_list(folder / MEMBERS_FILE).list.members)
        if has_list
        else ()
    )
    ledger = _query(folder) if lock.is_running(folder) else _read(folder)
    return Site(config.node.name, data, members, ledger)


def _query(folder: Path) -> list[Disclosure]:
    config = read_node(folder / NODE_FILE)
    answer = fetch(config, "/ledger", MAX_RESPONSE_BYTES)
    try:
        if answer is not None:
            return msgspec.json.decode(answer, type=list[Disclosure])
    except msgspec.DecodeError:
        pass
    why = (
        "the node is running, and its journal is locked; "
        "its status page does not answer, or there is none"
    )
    raise NetworkError(f"{folder}: {why}: set status_page in node.toml, or stop the node first")


def _read(folder: Path) -> list[Disclosure]:
    if not (folder / JOURNAL_FILE).is_file():
        raise NetworkError(
            f"{folder} has no journal: the node was never started, so that no row left this site"
        )
    journal = Journal(folder / JOURNAL_FILE, read_only=True)
    try:
        return journal.ledger()
    finally:
        journal.close()


def total_by_neighbour(ledger: Sequence[Disclosure]) -> list[Total]:
    groups: dict[tuple[str, str], list[Disclosure]] = {}
    for disclosure in ledger:
        groups.setdefault((disclosure.shown.data, disclosure.shown.neighbour), []).append(
            disclosure
        )
    return [
        Total(
            *key,
            samples=sum(disclosure.times for disclosure in group),
            rows=len({row for disclosure in group for row in disclosure.shown.row_numbers()}),
            of=group[0].shown.total,
            first_time=min(disclosure.first_time for disclosure in group),
            last_time=max(disclosure.last_time for disclosure in group),
        )
        for key, group in sorted(groups.items())
    ]


def total_by_row(ledger: Sequence[Disclosure]) -> list[Row]:
    groups: dict[tuple[str, int], list[Disclosure]] = {}
    for disclosure in ledger:
        for row in disclosure.shown.row_numbers():
            groups.setdefault((disclosure.shown.data, row), []).append(disclosure)
    found = []
    for key, group in sorted(groups.items()):
        neighbours: Counter[str] = Counter()
        for disclosure in group:
            neighbours[disclosure.shown.neighbour] += disclosure.times
        first = min(disclosure.first_time for disclosure in group)
        last = max(disclosure.last_time for disclosure in group)
        found.append(
            Row(*key, sum(neighbours.values()), dict(sorted(neighbours.items())), first, last)
        )
    return found
