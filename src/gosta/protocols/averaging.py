"""Plain averaging (Boyd et al. 2006): what is left where every node knows its own row mean already."""

from __future__ import annotations

from typing import NamedTuple

from gosta.protocols.protocol import Protocol


class State(NamedTuple):
    """An estimate."""

    z: float


def init(row: float) -> State:
    """Begin with the node's own row mean."""
    return State(row)


def tell(me: State, now: float) -> tuple[float]:
    """The estimate."""
    return (me.z,)


def meet(me: State, you: tuple[float], share: float) -> State:
    """Both take the mean."""
    return State(me.z + share * (you[0] - me.z))


def read(me: State, now: float) -> float:
    """The estimate."""
    return me.z


protocol = Protocol(
    "averaging",
    "Both ends take the mean. Starts from exact row means: what a protocol could do if visitors cost nothing.",
    "an estimate",
    State,
    init,
    tell,
    meet,
    read,
    visitors=0,
)
