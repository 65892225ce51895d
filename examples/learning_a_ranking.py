"""
Learning a ranking
==================

Nodes that hold one patient each learn a score that ranks patients with a malignant tumour above
others: they minimise a loss of pairs of rows. ``dual-averaging`` is the algorithm of Colin et al.
(2016); ``gradient-tracking``, the default, passes rows on and averages gradients at all rows that a
node knows.
"""

import matplotlib.pyplot as plt
import numpy as np

import gosta

data = gosta.datasets.load("breast-cancer", n=100)

# %%
# The error is how far the objective at the parameters of a node is above its minimum, in per cent
# of the minimum. Dual averaging has a step size to choose, ``pace``: 3 is about the best here.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for protocol, pace, iterations in (
    ("gradient-tracking", 1, 20_000),
    ("dual-averaging", 3, 100_000),
):
    trace = gosta.simulate(
        data,
        "pairwise-logistic",
        graph="watts-strogatz",
        protocol=protocol,
        pace=pace,
        iterations=iterations,
        runs=2,
        checkpoints=40,
        spacing="log",
    )
    error = trace.error()["mean"].values
    exchanges = 2 * trace.iterations / len(data)
    below = np.flatnonzero(error < 0.01)
    print(f"{protocol:>17}: 1 % above after {exchanges[below[0]]:,.0f} exchanges a node")
    ax.plot(exchanges, 100 * error, label=protocol)
ax.axhline(1, color="0.5", linewidth=0.8)
ax.set(xscale="log", yscale="log", xlabel="exchanges a node", ylabel="above the minimum")
ax.set_title("Pairwise logistic loss of 100 tumours, small world")
ax.yaxis.set_major_formatter("{x:g} %")
ax.legend(frameon=False)
plt.show()
