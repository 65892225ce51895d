"""Gossip protocols, one file each: pure rules about one node in one exchange."""

from __future__ import annotations

from gosta.errors import InputError, unknown
from gosta.protocols import (
    averaging,
    carried_means,
    dual_averaging,
    dual_averaging_sync,
    flooding,
    gosta_async,
    gosta_sync,
    gradient_tracking,
    master_node,
    relay,
    tracking,
    u1,
    u2,
)
from gosta.protocols.protocol import CollectingProtocol, Protocol

__all__ = ["DEFAULT", "PROTOCOLS", "AnyProtocol", "CollectingProtocol", "Protocol", "find"]

AnyProtocol = Protocol | CollectingProtocol

PROTOCOLS: dict[str, AnyProtocol] = {
    module.protocol.name: module.protocol
    for module in (
        carried_means,
        relay,
        tracking,
        gosta_async,
        gosta_sync,
        u2,
        u1,
        averaging,
        flooding,
        master_node,
        gradient_tracking,
        dual_averaging,
        dual_averaging_sync,
    )
}
DEFAULT = carried_means.protocol.name


def find(protocol: str | AnyProtocol) -> AnyProtocol:
    """Return a protocol by its name; a protocol is returned as it is.

    Parameters
    ----------
    protocol
        A name from ``gosta protocols``, or a protocol.

    Returns
    -------
    Protocol or CollectingProtocol
        The protocol.

    Examples
    --------
    >>> find("gosta-async").keeps
    'an estimate, a count of exchanges, a visitor'
    """
    if isinstance(protocol, str):
        if protocol not in PROTOCOLS:
            raise unknown("protocol", protocol, PROTOCOLS)
        return PROTOCOLS[protocol]
    if not isinstance(protocol, Protocol | CollectingProtocol):
        raise InputError(f"protocol = {protocol!r} is neither a name nor a protocol")
    return protocol
