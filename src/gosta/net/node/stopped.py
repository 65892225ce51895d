"""Restoring a node from its files."""

from __future__ import annotations

from pathlib import Path

from gosta.errors import NetworkError
from gosta.net.config import JOURNAL_FILE, NODE_FILE, NodeConfig, read_node
from gosta.net.node import lock
from gosta.net.node.source import Source, read_source
from gosta.net.node.status import Neighbour, Status, make_status
from gosta.net.protocol.epochs import Identity
from gosta.net.protocol.peer import Peer
from gosta.net.storage.journal import Journal


def restore_peer(config: NodeConfig, source: Source, journal: Journal) -> Peer:
    journal.check_owner(config.node.name)
    identity = Identity(config.node.name, config.network.id, source.fingerprint)
    peer = Peer(identity, source, config.neighbours, source.trust, config.network.confidence_level)
    peer.restore(*journal.load())
    return peer


def load_peer(folder: Path) -> tuple[NodeConfig, Source, Peer, Journal]:
    """Restore the state of a node that is not running from its journal, opened read-only."""
    config = read_node(folder / NODE_FILE)
    source = read_source(config, folder, has_key=False)
    if not (folder / JOURNAL_FILE).is_file():
        raise NetworkError(f"{folder} has no journal: the node was never started; start it with: gosta node {folder}")
    journal = Journal(folder / JOURNAL_FILE, read_only=True)
    return config, source, restore_peer(config, source, journal), journal


def status_from_journal(folder: Path) -> Status:
    if lock.is_running(folder):
        raise NetworkError(f"{folder}: the node is running but does not answer, or has no status_page in node.toml")
    config, _, peer, journal = load_peer(folder)
    journal.close()
    neighbours = tuple(Neighbour(name, exchanges=peer.exchanges_with(name)) for name in config.neighbours)
    return make_status(config, peer, neighbours, state="stopped")
