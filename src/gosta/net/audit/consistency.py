"""What must hold of all nodes of a network together: every visitor exists once, both sides tell the same meetings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gosta.errors import InputError
from gosta.estimation.exchange import Visitor
from gosta.net.protocol import messages as wire
from gosta.net.protocol.peer import Peer
from gosta.net.storage.journal import Met


class Meeting(NamedTuple):
    """A meeting as both sides have it; the one who began it may not know yet that it took place."""

    begun_by: str
    other: str
    id: int
    first: Met | None
    second: Met

    @property
    def pace(self) -> float:
        """The share of meetings over this edge, at the end where that is less."""
        answer = wire.decode(self.second.reply)
        assert isinstance(answer, wire.Accept)
        return min(self.second.theirs.pace, answer.side.pace)


def visitors(peers: Mapping[str, Peer]) -> dict[str, Visitor]:
    """The visitor at each node; where a node waits for an answer that was given, the one that is on its way to it."""
    found = {name: peer.site.visitor for name, peer in peers.items()}
    for name, peer in peers.items():
        answer = answer_to(peers, name)
        if answer is not None and answer.epoch == peer.epoch:
            found[name] = answer.side.visitor
    return found


def answer_to(peers: Mapping[str, Peer], name: str) -> wire.Accept | None:
    """The yes to a node's pending offer, if it was said and has not arrived."""
    me = peers[name]
    if me.pending is None or me.pending.to not in peers:
        return None
    last = peers[me.pending.to].answers.get(name)
    if last is None or (last.birth, last.id) != (me.birth, me.pending.id):
        return None
    answer = wire.decode(last.reply)
    return answer if isinstance(answer, wire.Accept) else None


def lost_or_doubled(peers: Mapping[str, Peer]) -> list[str]:
    """Homes whose visitor does not exist exactly once."""
    homes = Counter(visitor.home for visitor in visitors(peers).values())
    return sorted(name for name in {*homes, *peers} if homes[name] != 1 or name not in peers)


def meetings(records: Mapping[str, Sequence[Met]], peers: Mapping[str, Peer]) -> list[Meeting]:
    """All meetings of an epoch in an order in which each node had them; InputError where there is none."""
    left = {name: list(reversed(own)) for name, own in records.items()}
    ordered: list[Meeting] = []
    waiting = list(left)
    while waiting:
        name = waiting.pop()
        pending = peers[name].pending
        if left[name] and left[name][-1].begun:
            name = left[name][-1].partner
        elif not left[name] and pending is not None:
            name = pending.to
        if not left.get(name) or left[name][-1].begun:
            continue
        second = left[name][-1]
        begun_by = second.partner
        mine = left.get(begun_by, [])
        if mine and mine[-1].begun and (mine[-1].partner, mine[-1].id) == (name, second.id):
            first = mine.pop()
        elif not mine and begun_by in peers and answer_to(peers, begun_by) is not None:
            first = None
        else:
            continue
        left[name].pop()
        ordered.append(Meeting(begun_by, name, second.id, first, second))
        waiting += [name, begun_by]
    rest = ", ".join(f"{len(own)} of {name}" for name, own in left.items() if own)
    if rest:
        raise InputError(f"the journals do not go together: the other side does not have {rest} in that order")
    return ordered
