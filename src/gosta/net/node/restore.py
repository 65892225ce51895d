"""Restoring the peer of a node from the files in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import overload

import msgspec

from gosta.errors import NetworkError
from gosta.net.config import JOURNAL_FILE, NODE_FILE, NodeConfig, read_node
from gosta.net.node.source import RowSource, Source, SumSource, read_source
from gosta.net.protocol.epochs import Identity
from gosta.net.protocol.peer import Peer
from gosta.net.protocol.sums import SumPeer
from gosta.net.storage.journal import Journal


@overload
def restore_peer(config: NodeConfig, source: RowSource, journal: Journal) -> Peer: ...
@overload
def restore_peer(config: NodeConfig, source: SumSource, journal: Journal) -> SumPeer: ...
@overload
def restore_peer(config: NodeConfig, source: Source, journal: Journal) -> Peer | SumPeer: ...


def restore_peer(config: NodeConfig, source: Source, journal: Journal) -> Peer | SumPeer:
    """Return a node's peer in the state that its journal tells of."""
    journal.check_owner(config.node.name)
    identity = Identity(config.node.name, config.network.id, source.fingerprint)
    neighbours, trust = config.neighbours, source.trust
    if isinstance(source, RowSource):
        peer = Peer(identity, source, neighbours, trust, config.network.confidence_level)
        peer.restore(*journal.load())
        return peer
    sum_peer = SumPeer(identity, source, neighbours, trust)
    try:
        sum_peer.restore(*journal.load())
    except msgspec.MsgspecError as error:
        hint = "move it away, with contributions.json beside it, and the node starts anew"
        why = f"journal {journal.path} is of another version: {error}"
        raise NetworkError(f"{why}; {hint}") from None
    sum_peer.log = [contribution.entry for contribution in journal.contributions()]
    return sum_peer


def load_peer(folder: Path) -> tuple[NodeConfig, Peer | SumPeer, Journal]:
    """Restore the state of a node that is not running from its journal, opened read-only."""
    config = read_node(folder / NODE_FILE)
    source = read_source(config, folder, has_key=False)
    if not (folder / JOURNAL_FILE).is_file():
        hint = f"start it with: gosta node {folder}"
        raise NetworkError(f"{folder} has no journal: the node was never started; {hint}")
    journal = Journal(folder / JOURNAL_FILE, read_only=True)
    try:
        return config, restore_peer(config, source, journal), journal
    except BaseException:
        journal.close()
        raise
