"""What a gossip protocol is: a small pure rule about one node in one meeting.

The rule is applied to each number of the kernel on its own. It is plain arithmetic, so the same source runs on floats,
compiled, and on whole arrays of nodes at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
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
        The first state, from what its parameters name: ``held`` (kernel of the node's own observation with itself) or
        ``row`` (the node's exact row mean).
    tell
        What a node says of itself at a meeting at tick `now`: a tuple of numbers.
    meet
        ``meet(me, you, ..., now)``: the next state, from one's own, what the other told, and the kernel values named by
        the parameters between: ``held`` (own × visitor before the swap), ``fresh`` (own × visitor after it). With two
        visitors they are visitor × visitor.
    read
        The estimate at tick `now`.
    visitors
        How many travelling observations a node holds; an iteration draws one edge for each (one if there are none).
    of_rows
        Whether nodes estimate their own row mean instead of the statistic.
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
    of_rows: bool = False

    @property
    def draws(self) -> int:
        """Edges drawn in an iteration."""
        return max(1, self.visitors)

    @property
    def fields(self) -> int:
        """Numbers a node keeps for each number of the kernel."""
        return len(self.state._fields)  # type: ignore[attr-defined]

    @property
    def samples(self) -> tuple[str, ...]:
        """The kernel values a meeting needs."""
        return tuple(inspect.signature(self.meet).parameters)[2:-1]

    @property
    def sends(self) -> str:
        """What goes over the edges in one iteration, for observations of d numbers and kernels of k values."""
        told, visits = self.units(0, 1), self.units(1, 0)
        return " + ".join(f"{count} {name}" for count, name in ((visits, "d"), (told, "k")) if count) + " numbers"

    def units(self, numbers: int, values: int) -> int:
        """Numbers sent in one iteration, for observations of so many numbers and kernels of so many values."""
        told = len(self.tell(self.state(*[0.0] * self.fields), 1.0))  # type: ignore[arg-type]
        return 2 * self.draws * (told * values + (numbers if self.visitors else 0))


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
