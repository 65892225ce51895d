"""Gossip protocols, one file each: pure rules about one node in one exchange."""

from __future__ import annotations

from gosta.errors import InputError, unknown
from gosta.protocols import averaging, flooding, gosta_async, gosta_sync, master_node, tracking, u1, u2
from gosta.protocols.protocol import CollectingProtocol, Protocol

__all__ = ["DEFAULT", "PROTOCOLS", "AnyProtocol", "CollectingProtocol", "Protocol", "find"]

AnyProtocol = Protocol | CollectingProtocol

PROTOCOLS: dict[str, AnyProtocol] = {
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
DEFAULT = tracking.protocol.name


def find(protocol: str | AnyProtocol) -> AnyProtocol:
    """Return a protocol by its name; a protocol is returned as it is."""
    if isinstance(protocol, str):
        if protocol not in PROTOCOLS:
            raise unknown("protocol", protocol, PROTOCOLS)
        return PROTOCOLS[protocol]
    if not isinstance(protocol, Protocol | CollectingProtocol):
        raise InputError(f"protocol = {protocol!r} is neither a name nor a protocol")
    return protocol
