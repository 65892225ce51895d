"""
Your own protocol
=================

A gossip protocol is a small rule about one node in one exchange: which numbers it keeps, what it
tells the other node, how it goes on after they have met, and what it reads as its estimate.
Visitors, schedules, engines and plots come from gosta.
"""

from typing import NamedTuple

import matplotlib.pyplot as plt

import gosta

# %%
# This one averages estimates, and folds in each new sample with a fixed weight of 5 % instead of
# 1/count, which is what ``gosta-async`` does.


class State(NamedTuple):
    """The state of a node: its estimate."""

    z: float


def init(zero: float) -> State:
    """Start from zero."""
    return State(zero)


def tell(me: State, tick: float) -> tuple[float]:
    """Send the estimate."""
    return (me.z,)


def meet(me: State, you: tuple[float], fresh: float, row_share: float) -> State:
    """Average the two estimates, and fold in the kernel of the own row and the visitor that has
    just arrived.
    """
    z = me.z + row_share * (you[0] - me.z)
    return State(0.95 * z + 0.05 * fresh)


def read(me: State, tick: float) -> float:
    """Read the estimate."""
    return me.z


leaky = gosta.Protocol(
    "leaky",
    "Averages, and folds in samples with a fixed weight.",
    "an estimate, a visitor",
    State,
    init,
    tell,
    meet,
    read,
)

# %%
# A fixed weight is slower at first, when the first samples should count most, and never comes to
# rest: its error stays where the newest samples leave it, while that of ``gosta-async`` falls on.

data = gosta.datasets.load("breast-cancer", n=400)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for protocol in (leaky, gosta.protocols.find("gosta-async")):
    trace = gosta.simulate(
        data,
        "gini-mean-difference",
        columns="mean radius",
        graph="complete",
        protocol=protocol,
        runs=4,
        spacing="log",
    )
    ax.plot(2 * trace.iterations / 400, 100 * trace.error()["mean"], label=protocol.name)
ax.set(xscale="log", yscale="log", xlabel="exchanges of a node", ylabel="mean relative error")
ax.set_title("A fixed weight against 1/count")
ax.yaxis.set_major_formatter("{x:g} %")
ax.legend(frameon=False)
plt.show()
