"""A member of a network of private sums with a valid key, that keeps all that it is sent, and adds
up all totals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
from sum_network import SumNetwork

from gosta.net.protocol import statements
from gosta.net.protocol.epochs import Moment, Step
from gosta.net.protocol.statements import Part, Refusal, Roster, Slot
from gosta.net.protocol.sum_epoch import Round
from gosta.net.protocol.sums import SumPeer
from gosta.private.settings import PrivateSettings
from gosta.private.snapshots import RowSnapshot

RNG = np.random.default_rng(29)
SPY = "node-1"
Words = np.ndarray[Any, Any]
Prepare = Callable[[SumPeer], None]
NOISY = PrivateSettings(bins=8, ranges={"": (0.0, 1.0)}, epsilon=1.0, deadline_seconds=2.0)
AUC: dict[str, Any] = {"statistic": "auc", "score": "score", "label": "label", "classes": (0, 1)}


def complete(nodes: int) -> list[tuple[int, int]]:
    return list(combinations(range(nodes), 2))


def scores(rows: int) -> Words:
    return np.column_stack([RNG.random(rows).round(3), np.arange(rows) % 2])


def ring(sites: int) -> list[tuple[int, int]]:
    return [(k, (k + step) % sites) for k in range(sites) for step in (1, 7)]


class Spy:
    """All totals that a member can open."""

    def __init__(self, network: SumNetwork, name: str = SPY) -> None:
        self.network, self.name = network, name
        self.totals: dict[tuple[int, str, int], tuple[Words, str, tuple[str, ...]]] = {}

    def run(self, until: float) -> None:
        """Let time pass; add up what can be added up."""
        while self.network.clock.now < until:
            self.network.clock.run(min(until, self.network.clock.now + 0.02))
            peer = self.network.sum_peers[self.name]
            for number, current in peer.current._rounds.items():
                self._add_up(peer, current, number)

    def _add_up(self, peer: SumPeer, current: Round, number: int) -> None:
        held = {
            name: peer.slots.get(Slot("part", name, number)) for name in peer.current.participants
        }
        parts = {
            name: one[1]
            for name, one in held.items()
            if one is not None and isinstance(one[1], Part)
        }
        vectors = {name: statements.unpack(part.vector) for name, part in parts.items()}
        if number in peer.current._parts:
            vectors[self.name] = peer.current._parts[number]
        if set(vectors) == set(peer.current.participants):
            total: Words = np.array(list(vectors.values())).sum(axis=0, dtype=np.uint64)[
                : current.layout.size
            ]
            self.totals[(*peer.current.id, number)] = (
                total,
                current.layout.fingerprint,
                peer.current.participants,
            )

    def differences(self) -> Iterator[Words]:
        """Yield the differences of all pairs of totals of the same sums."""
        for (first, layout, _), (second, other, _) in combinations(self.totals.values(), 2):
            if layout == other:
                yield (first - second).view(np.int64) / 2.0**24


def make_part(peer: SumPeer, current: Round) -> Words:
    assert peer.rows is not None
    return peer.current.part(current, peer.rows, peer.memory.secret, peer.trust)


def change_parts(peer: SumPeer, change: Callable[[Words], Words]) -> None:
    """Contribute something else, and commit to that."""
    honest = peer._part

    def part(current: Round, rows: RowSnapshot) -> bytes:
        if current.number not in peer.current._parts:
            honest(current, rows)
            peer.current._parts[current.number] = change(peer.current._parts[current.number].copy())
        return honest(current, rows)

    peer._part = part  # type: ignore


def keep_part(peer: SumPeer) -> None:
    """Take part, and keep the own contribution back."""

    def show(current: Round, _now: Moment, _connected: object) -> Step:
        make_part(peer, current)
        return Step()

    peer._show_part = show  # type: ignore


def refuse_late(peer: SumPeer) -> None:
    """Take part, wait for the contributions of all others, and refuse."""

    def show(current: Round, _now: Moment, _connected: object) -> Step:
        make_part(peer, current)
        if peer.current.lacking(Slot("part", "", current.number)) == [peer.name]:
            return peer._say(Refusal(*peer.current.id, peer.name, peer.current.roster_id, ()))
        return Step()

    peer._show_part = show  # type: ignore


def choose_rosters(peer: SumPeer) -> list[tuple[str, ...]]:
    """Let a spy choose the participants of epochs that it starts: the last ones of the list, with
    itself.
    """
    wanted: list[tuple[str, ...]] = []
    made = peer._next_roster

    def choose(now: Moment) -> Roster | None:
        roster = made(now)
        if roster is None or not wanted:
            return roster
        names = sorted({peer.name, *wanted[-1]})
        chosen = tuple((name, peer.slots[Slot("join", name)][0]) for name in names)
        return Roster(*peer.current.id, peer.name, chosen)

    peer.missing_agreements = lambda _names: ()  # type: ignore
    peer._next_roster = choose  # type: ignore
    return wanted
