"""What a malicious neighbour sends: each attack turns a message that an honest node would send into
others.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import msgspec
from hostile import Attack, HostileNode, Sent

from gosta.estimation.visitor import Visitor
from gosta.net.protocol import messages as wire
from gosta.net.protocol.messages import (
    Abort,
    Accept,
    AnyMessage,
    Busy,
    Confirm,
    Decline,
    Offer,
    Ping,
    Pong,
    Receipt,
)

replace = msgspec.structs.replace
Exchanged = Offer | Accept


def told(numbers: Callable[[HostileNode], list[float]]) -> Attack:
    """Tell other means."""
    return altered(lambda node, _: {"payload": tuple(numbers(node))})


def altered(change: Callable[[HostileNode, Exchanged], dict[str, Any]]) -> Attack:
    """Change fields of every contribution."""
    return exchanged(
        lambda node, one: replace(one, contribution=one.contribution._replace(**change(node, one)))
    )


def exchanged(change: Callable[[HostileNode, Exchanged], AnyMessage]) -> Attack:
    """Change every offer and every acceptance."""
    return lambda node, _, message: [
        change(node, message) if isinstance(message, Exchanged) else message
    ]


def visitor(**fields: Callable[[Visitor], Any]) -> Attack:
    """Change fields of every visitor, and keep the signature."""

    def change(_: HostileNode, one: Exchanged) -> dict[str, Any]:
        held = one.contribution.visitor
        return {"visitor": held._replace(**{name: value(held) for name, value in fields.items()})}

    return altered(change)


def instead(kind: type[AnyMessage], *others: Callable[[Any], AnyMessage | bytes]) -> Attack:
    """Send other messages instead of those of a kind."""
    return lambda _node, _to, message: (
        [other(message) for other in others] if isinstance(message, kind) else [message]
    )


def announce(
    *epochs: Callable[[HostileNode], int], origin: str = "", reason: str = "an attack"
) -> Attack:
    """Announce epochs before every heartbeat."""

    def attack(node: HostileNode, _: str, message: AnyMessage) -> Sent:
        forged = [node.ping_from(epoch(node), origin, reason) for epoch in epochs]
        return [*forged, message] if isinstance(message, Ping) else [message]

    return attack


def kept(node: HostileNode, _: str, message: AnyMessage) -> Sent:
    """Keep the first visitor of another node, and send it to everybody from then on."""
    if isinstance(message, Exchanged) and message.contribution.visitor.home != node.peer.name:
        node.booty = node.booty or (message.contribution.visitor, message.seal)
    if isinstance(message, Exchanged) and node.booty is not None:
        held, seal = node.booty
        return [
            replace(message, contribution=message.contribution._replace(visitor=held), seal=seal)
        ]
    return [message]


def differently_to_each(node: HostileNode, to: str, message: AnyMessage) -> Sent:
    """Sign visitors with another number of rows for every neighbour."""
    return [
        node.sealed(message, rows=8 + int(to[-1])) if isinstance(message, Exchanged) else message
    ]


def false_receipt(change: Callable[[Receipt], Receipt]) -> Attack:
    def attack(_node: HostileNode, _to: str, message: AnyMessage) -> Sent:
        if isinstance(message, Ping) and message.receipt is not None:
            return [replace(message, receipt=change(message.receipt))]
        return [message]

    return attack


def noise(node: HostileNode, _: str, message: AnyMessage) -> Sent:
    """Send random bytes, half a message and a message with a changed byte too."""
    raw = bytearray(wire.encode(message))
    raw[node.rng.randrange(len(raw))] ^= 1 << node.rng.randrange(8)
    half = wire.encode(message)[: max(1, len(raw) // 2)]
    return [node.rng.randbytes(30), half, bytes(raw), message]


def slow_confirmation(node: HostileNode, to: str, message: AnyMessage) -> Sent:
    """Confirm as late as possible."""
    if isinstance(message, Confirm):
        node.loop.call_later(2.2, node.send, to, message)
        return []
    return [message]


def disconnection(node: HostileNode, to: str, message: AnyMessage) -> Sent:
    """Close the connection instead of confirming."""
    link = node.contacts[to].link
    if isinstance(message, Confirm) and link is not None:
        link.close()
        return []
    return [message]


def highest(node: HostileNode) -> list[float]:
    return [high for _, high in node.peer.checks._bounds]


def lowest(node: HostileNode) -> list[float]:
    return [low for low, _ in node.peer.checks._bounds]


def count(node: HostileNode) -> int:
    return len(node.peer.checks._bounds)


# Names, what is sent, and the reason for which it is rejected; empty: for none, or for several.
ATTACKS: dict[str, tuple[Attack, str]] = {
    "a decline with a long reason and a huge id": (
        instead(Accept, lambda one: Decline(one.id, "x" * 200), lambda _: Decline(2**53, "values")),
        "",
    ),
    "declines that accuse": (instead(Accept, lambda one: Decline(one.id, "values")), ""),
    "aborts that accuse": (instead(Confirm, lambda one: Abort(one.id, "values")), ""),
    "a mean of 1e200": (told(lambda node: [1e200] * count(node)), "values"),
    "a mean beyond the "
    "range": (told(lambda node: [high * 1.01 for high in highest(node)]), "values"),
    "a mean that is not a number": (told(lambda node: [nan] * count(node)), "malformed"),
    "an infinite mean": (told(lambda node: [inf] * count(node)), "malformed"),
    "too many means": (told(lambda node: [0.5] * (count(node) + 1)), "malformed"),
    "the highest means that are accepted": (told(highest), ""),
    "the lowest means that are accepted": (told(lowest), ""),
    "highest and lowest means by "
    "turns": (told(lambda node: node.rng.choice([highest, lowest])(node)), ""),
    "2^40 - 1 rows": (altered(lambda _node, _one: {"rows": 2**40 - 1}), "rows"),
    "three times the declared "
    "rows": (exchanged(lambda node, one: node.sealed(one, rows=31)), "rows"),
    "other rows to every neighbour": (differently_to_each, "rows"),
    "a tiny share of the edge": (altered(lambda _node, _one: {"edge_share": 5e-324}), ""),
    "2^53 - 1 exchanges": (altered(lambda _node, _one: {"exchanges": 2**53 - 1}), ""),
    "no exchanges so far": (altered(lambda _node, _one: {"edge_exchanges": 0}), "counts"),
    "a home that is no member": (visitor(home=lambda _: "nobody"), "member"),
    "a home that is no name": (visitor(home=lambda _: "\x1b[2J"), "malformed"),
    "an altered "
    "sample": (visitor(sample=lambda held: tuple((a + 1.0, b) for a, b in held.sample)),
        "signature"),
    "an altered "
    "correction": (visitor(correction=lambda held: tuple(0.1 + a for a in held.correction)),
        "signature"),
    "an altered "
    "diagonal": (visitor(diagonal=lambda held: tuple(0.1 + a for a in held.diagonal)), "signature"),
    "a forged signature": (
        exchanged(lambda _, one: replace(one, seal=one.seal._replace(signature=b"x" * 64))),
        "signature",
    ),
    "a class that does not "
    "exist": (exchanged(lambda node, one: node.sealed(one, sample=((0.5, 3.0),) * 8)), "visitor"),
    "a correction of "
    "1e249": (exchanged(lambda node, one: node.sealed(one, correction=(1e249, 0.0))), "visitor"),
    "trips of "
    "2^53": (exchanged(lambda _, one: replace(one, seal=one.seal._replace(trip=2**53))), ""),
    "own visitors for everybody": (exchanged(lambda node, one: node.sealed(one)), ""),
    "a visitor of another node for everybody": (kept, ""),
    "a receipt for other "
    "exchanges": (false_receipt(lambda one: one._replace(digest=b"x" * 16)), "receipt"),
    "a receipt that is not "
    "signed": (false_receipt(lambda one: one._replace(signature=b"x" * 64)), "signature"),
    "epochs 2^32 and 2^33 ahead": (
        announce(lambda node: node.peer.epoch + 2**32, lambda node: node.peer.epoch + 2**33),
        "epoch",
    ),
    "many "
    "epochs": (announce(*[lambda node, k=k: node.peer.epoch + k for k in range(1, 40)]), "epoch"),
    "the highest epoch of this moment": (announce(lambda node: int(node.clock() / 10.0)), ""),
    "an epoch in another's "
    "name": (announce(lambda node: node.peer.epoch + 1, origin="node-0"), "signature"),
    "an epoch of "
    "nobody": (announce(lambda node: node.peer.epoch + 1, origin="nobody"), "signature"),
    "an epoch with a reason for "
    "terminals": (announce(lambda node: node.peer.epoch + 1, reason="\x1b[2J"), "malformed"),
    "offers that are never confirmed": (instead(Confirm), "unconfirmed"),
    "offers that are confirmed late": (slow_confirmation, ""),
    "a closed connection instead of a confirmation": (disconnection, ""),
    "offers that are withdrawn at "
    "once": (instead(Offer, lambda one: one, lambda one: Abort(one.id)), ""),
    "never an answer": (
        lambda _node, _to, one: [] if isinstance(one, Accept | Busy | Decline) else [one],
        "unanswered",
    ),
    "always busy": (instead(Accept, lambda one: Busy(one.id)), ""),
    "pretended round trips, and no confirmation": (
        lambda _node, _to,
        one: [] if isinstance(one, Confirm) else [Pong(0)] if isinstance(one, Pong) else [one],
        "unconfirmed",
    ),
    "every message fifty times": (lambda _node, _to, one: [one] * 50, ""),
    "thousands of "
    "heartbeats": (lambda _node, _to, one: [one] * 6000 if isinstance(one, Ping) else [one],
        "flood"),
    "random bytes and broken messages": (noise, "malformed"),
    "a member list of its own": (lambda _node, _to, one: [wire.Members(b"{}"), one], "signature"),
}  # fmt: skip


def storm(node: HostileNode, to: str, message: AnyMessage) -> Sent:
    """Choose among all attacks at random."""
    attack, _ = node.rng.choice(
        [value for name, value in ATTACKS.items() if "thousands" not in name]
    )
    return attack(node, to, message)
