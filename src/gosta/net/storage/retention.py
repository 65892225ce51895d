"""Which records of a journal are no longer needed, from counts in memory: the journal is not searched for them."""

from __future__ import annotations

from collections import deque

from gosta.net.protocol.records import (
    EpochStarted,
    ExchangeCompleted,
    ExchangeConfirmed,
    ReceiptReceived,
    tag_of,
)

STARTED, RECEIPT = tag_of(EpochStarted), tag_of(ReceiptReceived)
# at the initiator and at the receiver
EXCHANGES = (tag_of(ExchangeCompleted), tag_of(ExchangeConfirmed))


class Retention:
    """Keeps the last exchanges of the epoch, and its start."""

    def __init__(self, keep_exchanges: int) -> None:
        self._keep_exchanges = keep_exchanges
        # the last number and the exchanges of each, in order
        self._stretches: deque[tuple[int, int]] = deque()
        self._exchanges = self._new_exchanges = 0  # of all stretches; after the last one
        # records up to the first number are not needed, except for the second
        self._boundary, self._start = (0, 0)
        self._receipts: list[int] = []  # since the last snapshot, which has them

    def add(self, number: int, kind: str) -> None:
        """Take note of a record."""
        if kind in EXCHANGES:
            self._new_exchanges += 1
        elif kind == STARTED:
            self._stretches.clear()
            self._exchanges = self._new_exchanges = 0
            self._boundary, self._start = number - 1, number
        elif kind == RECEIPT:
            self._receipts.append(number)

    def add_stretch(self, last_number: int, exchanges: int) -> None:
        """Take note of the exchanges up to a record."""
        self._stretches.append((last_number, exchanges))
        self._exchanges += exchanges

    def expire(self, last_number: int) -> tuple[int, int, list[int]]:
        """End a stretch; return the number up to which records can go, the one of them that stays, and receipts."""
        self.add_stretch(last_number, self._new_exchanges)
        self._new_exchanges = 0
        while self._stretches and self._exchanges - self._stretches[0][1] >= self._keep_exchanges:
            self._boundary, exchanges = self._stretches.popleft()
            self._exchanges -= exchanges
        receipts, self._receipts = self._receipts, []
        return self._boundary, self._start, receipts
