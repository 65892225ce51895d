"""Gossip protocols, one file each: pure rules about one node in one meeting."""

from __future__ import annotations

from gosta.errors import InputError, unknown
from gosta.protocols import averaging, flooding, gosta_async, gosta_sync, master_node, tracking, u1, u2
from gosta.protocols.protocol import Collecting, Protocol

__all__ = ["PROTOCOLS", "Collecting", "Protocol", "find"]

PROTOCOLS: dict[str, Protocol | Collecting] = {
    p.name: p
    for p in (
        tracking.protocol,
        gosta_async.protocol,
        gosta_sync.protocol,
        u2.protocol,
        u1.protocol,
        averaging.protocol,
        flooding.protocol,
        master_node.protocol,
    )
}


def find(what: str | Protocol | Collecting) -> Protocol | Collecting:
    """A protocol by its name, or itself."""
    if isinstance(what, str):
        if what not in PROTOCOLS:
            raise unknown("protocol", what, PROTOCOLS)
        return PROTOCOLS[what]
    if not isinstance(what, Protocol | Collecting):
        raise InputError(f"protocol = {what!r} is neither a name nor a protocol")
    return what
