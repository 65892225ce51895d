"""The statements of an epoch that a node has, and how it gets the others: neighbours tell what they have, it asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf

from gosta.net.limits import MAX_STATEMENTS
from gosta.net.protocol import statements
from gosta.net.protocol.messages import Signed
from gosta.net.protocol.statements import AnyStatement, Slot

RETRY_SECONDS = 1.0  # until a statement is asked for again
# of contributions that a neighbour is asked for at a time: a connection's buffer holds them
WINDOW_BYTES = 48 * 1024
MAX_GIVEN = 20  # times that a neighbour is given the same statement


class Pool:
    """The statements of one epoch."""

    def __init__(self) -> None:
        self.statements: dict[bytes, Signed] = {}  # by id
        self.slots: dict[Slot, tuple[bytes, AnyStatement]] = {}
        self.news: list[bytes] = []  # that neighbours have not been told of
        self.given: Counter[tuple[str, bytes]] = Counter()  # how often each neighbour got them
        self._held = b""
        self._offered: dict[str, dict[bytes, None]] = {}  # what a neighbour has and this node lacks
        self._wanted: dict[bytes, tuple[str, float]] = {}  # who was asked for them, and when
        # neighbours that gave a statement which its home did not sign
        self._forgers: set[str] = set()

    def insert(self, signed: Signed, slot: Slot | None = None) -> None:
        """Add a statement that was checked, or is this node's own; another slot than its own is for evidence."""
        statement, id = statements.read(signed), statements.id_of(signed)
        self.statements[id], self.slots[slot or statement.slot] = signed, (id, statement)
        self._wanted.pop(id, None)
        self._held = b""
        self.news.append(id)

    def held(self) -> bytes:
        """Return a digest of the statements that this node has."""
        if not self._held:
            self._held = statements.digest_of(list(self.statements))
        return self._held

    def take_news(self) -> list[bytes]:
        """Return the statements that neighbours are now told of."""
        found, self.news = self.news, []
        return found

    def note_offers(self, sender: str, ids: Sequence[bytes]) -> None:
        """Note what a neighbour has."""
        offered = self._offered.setdefault(sender, {})
        offered.update(dict.fromkeys(id for id in ids if id not in self.statements))
        while len(offered) > MAX_STATEMENTS:
            offered.pop(next(iter(offered)))

    def ask(self, sender: str, now: float, size: int) -> list[bytes]:
        """Return what to ask a neighbour for now; a contribution has so many bytes."""
        offered = self._offered.get(sender, {})
        for id in [id for id in offered if id in self.statements]:
            del offered[id]
        if sender in self._forgers:
            return []
        waiting = sum(
            asked == sender and now - then < 2 * RETRY_SECONDS
            for asked, then in self._wanted.values()
        )
        window = max(0, max(1, WINDOW_BYTES // size) - waiting)
        lacking = [id for id in offered if self._may_ask(sender, id, now)][:window]
        self._wanted.update(dict.fromkeys(lacking, (sender, now)))
        return lacking

    def _may_ask(self, sender: str, id: bytes, now: float) -> bool:
        """Return whether to ask for a statement: another neighbour is asked sooner than the one that did not answer."""
        asked, then = self._wanted.get(id, ("", -inf))
        return now - then >= RETRY_SECONDS * (2 if asked == sender else 1)

    def postpone(self, sender: str, id: bytes) -> None:
        """Note that a statement arrived which cannot be used yet."""
        self._offered.get(sender, {}).pop(id, None)
        self._wanted.pop(id, None)

    def distrust(self, sender: str) -> None:
        """Ask a neighbour for nothing more in this epoch."""
        self._forgers.add(sender)
        self._wanted = {id: asked for id, asked in self._wanted.items() if asked[0] != sender}

    def answers(self, sender: str, ids: Sequence[bytes]) -> Iterator[Signed]:
        """Yield the statements that a neighbour asks for, unless it got them often already."""
        for id in (id for id in ids if id in self.statements):
            self.given[sender, id] += 1
            if self.given[sender, id] <= MAX_GIVEN:
                yield self.statements[id]
