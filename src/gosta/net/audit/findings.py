"""What verifying a network finds: whether each claim holds, and why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_NAMED = 4  # problems of one claim that are named; of the others their number is told


class Finding(NamedTuple):
    """A claim that must hold, whether it does, and the evidence."""

    claim: str
    holds: bool | None  # None: it could not be checked, or not all of it
    evidence: str


@dataclass
class Problems:
    """What is wrong about a claim, and what of it could not be checked."""

    wrong: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def add_wrong(self, is_wrong: bool, text: str) -> None:
        """Note that something is wrong, if it is."""
        if is_wrong:
            self.wrong.append(text)

    def add_unknown(self, is_unknown: bool, text: str) -> None:
        """Note that something could not be checked, if it could not."""
        if is_unknown:
            self.unknown.append(text)

    def finding(self, claim: str, evidence: str) -> Finding:
        texts = [text for text in (evidence, some(self.wrong)) if text]
        if self.unknown:
            texts.append(("not checked: " if texts else "") + some(self.unknown))
        holds = False if self.wrong else None if self.unknown else True
        return Finding(claim, holds, "; ".join(texts))


def some(texts: Sequence[str]) -> str:
    """Return the first texts, and how many more there are."""
    more = f"; {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return "; ".join(texts[:MOST_NAMED]) + more
