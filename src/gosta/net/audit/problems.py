"""What is wrong about a claim, and what of it could not be checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gosta.net.audit.verify import Finding

MOST_NAMED = 4  # of what is wrong, and of what was not checked


@dataclass
class Problems:
    """What is wrong about a claim, and what of it could not be checked."""

    wrong: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def finding(self, claim: str, evidence: str) -> Finding:
        texts = [text for text in (evidence, some(self.wrong)) if text]
        texts += ["not checked: " * bool(texts) + some(self.unknown)] if self.unknown else []
        return Finding(
            claim, False if self.wrong else None if self.unknown else True, "; ".join(texts)
        )


def some(texts: Sequence[str]) -> str:
    """Return the first texts, and how many more there are."""
    more = f"; {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return "; ".join(texts[:MOST_NAMED]) + more
