"""Options of ``gosta run`` for what a real network does: faults, and neighbours that are alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from gosta.cli import options
from gosta.errors import InputError

SHARE = "a share such as 10% or 0.1, below 100%"


@dataclass(frozen=True)
class Placement(options.Placement):
    """How rows are distributed to nodes, and how alike those of neighbours are."""

    homophily: Annotated[
        float | None,
        "How alike neighbours are in the column --by, from 0 (rows at random) to 1 (sorted).",
    ] = None


@dataclass(frozen=True)
class Faults:
    """What keeps exchanges from taking place."""

    TITLE: ClassVar = "Faults"
    loss: Annotated[
        str | None, "Share of messages that are lost, such as 10%; an exchange takes two."
    ] = None
    away: Annotated[
        str | None,
        "Share of nodes that are away at any time, such as 5%; they come back as they were.",
    ] = None
    away_for: Annotated[
        float | None, "Exchanges that a node misses while away, on average; by default 10."
    ] = None
    partition: Annotated[
        str | None,
        "Iterations FROM-TO during which the first half of the nodes is separated from the others.",
    ] = None

    def settings(self) -> dict[str, Any]:
        """Return arguments of `gosta.simulate`."""
        return {
            "loss": options.fraction("loss", self.loss, SHARE, may_be_zero=True),
            "away": options.fraction("away", self.away, SHARE, may_be_zero=True),
            "away_for": self.away_for,
            "partition": None if self.partition is None else _iterations(self.partition),
        }


def _iterations(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal()):
        raise InputError(
            f"partition = {text!r} must be two iterations, FROM-TO, such as 5000-15000"
        )
    return int(first), int(last)
