"""Restoring a node from its files."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from gosta.errors import NetworkError
from gosta.net.config import JOURNAL_FILE, NODE_FILE, NodeConfig, read_node
from gosta.net.node import lock
from gosta.net.node.source import Source, read_source
from gosta.net.node.status import Neighbour, Status, make_status
from gosta.net.node.sum_source import SumSource, read_sum_source
from gosta.net.node.sum_status import make_sum_status
from gosta.net.protocol.epochs import Identity
from gosta.net.protocol.peer import Peer
from gosta.net.protocol.sums import SumPeer
from gosta.net.storage.journal import Journal


def restore_peer(config: NodeConfig, source: Source, journal: Journal) -> Peer:
    journal.check_owner(config.node.name)
    identity = Identity(config.node.name, config.network.id, source.fingerprint)
    peer = Peer(identity, source, config.neighbours, source.trust, config.network.confidence_level)
    peer.restore(*journal.load())
    return peer


def restore_sum_peer(config: NodeConfig, source: SumSource, journal: Journal) -> SumPeer:
    journal.check_owner(config.node.name)
    identity = Identity(config.node.name, config.network.id, source.fingerprint)
    peer = SumPeer(identity, source, config.neighbours, source.trust)
    try:
        peer.restore(*journal.load())
    except msgspec.MsgspecError as error:
        hint = "move it away, with contributions.json beside it, and the node starts anew"
        raise NetworkError(
            f"journal {journal.path} is of another version: {error}; {hint}"
        ) from None
    peer.log = [one.entry for one in journal.contributions()]
    return peer


def open_journal(folder: Path) -> Journal:
    """Open the journal of a node that is not running, read-only."""
    if not (folder / JOURNAL_FILE).is_file():
        raise NetworkError(
            f"{folder} has no journal: the node was never started; start it with: gosta node {folder}"
        )
    return Journal(folder / JOURNAL_FILE, read_only=True)


def load_peer(folder: Path) -> tuple[NodeConfig, Source, Peer, Journal]:
    """Restore the state of a node that is not running from its journal, opened read-only."""
    config = read_node(folder / NODE_FILE)
    source = read_source(config, folder, has_key=False)
    journal = open_journal(folder)
    return config, source, restore_peer(config, source, journal), journal


def load_sum_peer(folder: Path) -> tuple[NodeConfig, SumPeer]:
    """Restore the state of a node of private sums that is not running."""
    config = read_node(folder / NODE_FILE)
    source = read_sum_source(config, folder, has_key=False)
    with contextlib.closing(open_journal(folder)) as journal:
        return config, restore_sum_peer(config, source, journal)


def status_from_journal(folder: Path) -> Status:
    if lock.is_running(folder):
        raise NetworkError(
            f"{folder}: the node is running but does not answer, or has no status_page in node.toml"
        )
    if read_node(folder / NODE_FILE).network.private is not None:
        config, sum_peer = load_sum_peer(folder)
        away = tuple(Neighbour(name, exchanges=0) for name in config.neighbours)
        return make_sum_status(config, sum_peer, away, state="stopped")
    config, _, peer, journal = load_peer(folder)
    journal.close()
    neighbours = tuple(
        Neighbour(name, exchanges=peer.exchanges_with(name)) for name in config.neighbours
    )
    return make_status(config, peer, neighbours, state="stopped")
