"""What a gossip protocol is: a small pure rule about one node in one meeting.

The rule is applied to each number that is estimated on its own. It is plain arithmetic, so the same source runs on
floats, compiled, and on whole arrays of nodes at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True)
class Protocol:
    """A protocol in which nodes keep a few numbers and at most two visitors.

    Attributes
    ----------
    name, summary, keeps
        What it is called, what it does, what a node keeps.
    state
        A NamedTuple of numbers: all that the next meeting needs.
    init
        The first state, from what its parameter names: ``nothing`` (0), ``held`` (kernel of the node's own observation
        with itself), ``row`` (the node's exact row mean) or ``moments`` (of the node's own rows).
    tell
        What a node says of itself at a meeting at tick `now`: a tuple of numbers.
    meet
        ``meet(me, you, ...)``: the next state, from one's own, what the other told, and what further parameters name:

        - ``held``, ``fresh``: own × visitor before the swap, after it; with two visitors, visitor × visitor;
        - ``known``: the mean of ``fresh`` over all meetings, through the statistic's ``local`` if it has one;
        - ``meetings``: how many the node has had, this one included; ``fewest``: the smaller such count of the two,
          for which both have to tell theirs;
        - ``weight``: that of this meeting's visitor among all so far, 1/meetings if nodes hold one row each;
        - ``pace``: the share that meetings over this edge have of all of the node's, at the end where that is less; for
          which both have to tell theirs;
        - ``share``: the other's share of the rows that the two hold, 1/2 if nodes hold one row each;
        - ``now``: the tick.
    read
        The estimate at tick `now`.
    visitors
        How many travelling observations a node holds; an iteration draws one edge for each (one if there are none).
    cross
        Weight of visitor × visitor against ``fresh`` in ``known``, where nodes hold one row and there is no ``local``.
        Since a visitor never meets itself, ``known`` is then a mean over pairs of different rows: a visitor at home is
        left out.
    of_rows
        Whether nodes estimate their own row mean instead of the statistic.
    of_moments
        The protocol to take instead for statistics that are functions of plain means, and so need no visitors.
    """

    name: str
    summary: str
    keeps: str
    state: type[tuple[Any, ...]]
    init: Function
    tell: Function
    meet: Function
    read: Function
    visitors: int = 1
    cross: float = 0.0
    of_rows: bool = False
    of_moments: Protocol | None = None

    @property
    def draws(self) -> int:
        """Edges drawn in an iteration."""
        return max(1, self.visitors)

    @cached_property
    def fields(self) -> int:
        """Numbers a node keeps for each number that is estimated."""
        return len(self.state._fields)  # type: ignore[attr-defined]

    @cached_property
    def samples(self) -> tuple[str, ...]:
        """What a meeting needs besides the two states."""
        return tuple(inspect.signature(self.meet).parameters)[2:]

    @cached_property
    def begins(self) -> str:
        """What the first state is made from."""
        (name,) = inspect.signature(self.init).parameters
        return name

    @cached_property
    def counts(self) -> bool:
        """Whether nodes count their meetings."""
        return not {"known", "meetings", "fewest", "weight"}.isdisjoint(self.samples)

    @property
    def sends(self) -> str:
        """What goes over the edges in one iteration, for observations of d numbers and kernels of k values."""
        once = self.units(0, 0)
        parts = (self.units(1, 0) - once, " d"), (self.units(0, 1) - once, " k"), (once, "")
        return " + ".join(f"{count}{name}" for count, name in parts if count) + " numbers"

    def units(self, numbers: float, values: int) -> float:
        """Numbers sent in one iteration, for visitors of so many numbers and so many values to estimate."""
        told = len(self.tell(self.state(*[0.0] * self.fields), 1.0))  # type: ignore[arg-type]
        once = ("fewest" in self.samples) + ("pace" in self.samples)
        return 2 * self.draws * (told * values + (numbers if self.visitors else 0) + once)


@dataclass(frozen=True)
class Collecting:
    """A protocol in which nodes keep sets of observations, for comparison: each has a loop of its own.

    Attributes
    ----------
    name, summary, keeps
        As for `Protocol`.
    file
        The file of its loop, ``advance(x, options, edges, chances, order, start, *arrays)``, which does iterations,
        compiled from its text or run as it is. `chances` are two uniform numbers an iteration, `order` is a random
        order of the observations.
    arrays
        From n and the number of kernel values, the arrays a run needs.
    means
        From the arrays and kernel(x_i, x_i), each node's mean kernel values over the pairs it holds: n × k.
    sent
        Numbers sent after so many iterations, from (iterations, n, numbers of an observation).
    sends
        The same in words, for one iteration.
    """

    name: str
    summary: str
    keeps: str
    file: str
    arrays: Function
    means: Function
    sent: Function
    sends: str
    draws: int = 1
    of_rows: bool = False
