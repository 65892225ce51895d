"""
Your own statistic
==================

A statistic is a plain function of two rows, whose mean over all pairs is wanted. The decorator
``gosta.statistic`` makes it work everywhere: exactly, in simulations, with intervals, and on real
networks.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt

import gosta

# %%
# Huber's loss of the difference of two rows: like the variance for rows that are close, like Gini's
# mean difference for those that are not, so that a few outliers do not decide the value. Its third
# parameter is an option.


@gosta.statistic(name="huber-scatter")
def huber_scatter(x: Sequence[float], y: Sequence[float], delta: float = 1.0) -> float:
    """Mean Huber loss of the difference of two rows."""
    gap = abs(x[0] - y[0])
    return 0.5 * gap * gap if gap < delta else delta * (gap - 0.5 * delta)


# %%
# The function is compiled, and checked against itself uncompiled on a few rows.

data = gosta.datasets.load("breast-cancer")
for delta in (0.5, 2.0, 8.0):
    print(
        f"delta = {delta}: "
        f"{gosta.exact(data, huber_scatter, columns='mean radius', delta=delta):.4f}"
    )

# %%
# Nodes that know one row each estimate it by gossip, as any other.

trace = gosta.simulate(
    data, huber_scatter, columns="mean radius", delta=2.0, graph="watts-strogatz", runs=4
)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
trace.plot(ax=ax)
plt.show()
