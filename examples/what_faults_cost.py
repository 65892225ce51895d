"""
What faults cost
================

A simulation in which all goes well says little about a real network. Here every fifth message is
lost, three in ten nodes are away at any time, or the two halves of the network are separated for a
while; the rows, the network and the drawn edges are the same.
"""

from typing import Any

import matplotlib.pyplot as plt

import gosta

FAULTS: dict[str, dict[str, Any]] = {
    "no faults": {},
    "20 % of messages lost": {"loss": 0.2},
    "30 % of nodes away": {"away": 0.3},
    "halves separated from 20 to 60": {"partition": (4000, 12_000)},
}

# %%
# An exchange takes place on both sides or on neither, so that a lost message costs an exchange and
# nothing else: the error falls later.

data = gosta.datasets.load("breast-cancer", n=400)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for title, faults in FAULTS.items():
    trace = gosta.simulate(
        data,
        "gini-mean-difference",
        columns="mean radius",
        graph="watts-strogatz",
        runs=4,
        **faults,
    )
    error = 100 * trace.error()["mean"]
    print(f"{title:>31}: {float(error[-1]):.2f} % at the end")
    ax.plot(2 * trace.iterations / 400, error, label=title)
ax.set(yscale="log", xlabel="exchanges of a node that are drawn", ylabel="mean relative error")
ax.yaxis.set_major_formatter("{x:g} %")
ax.set_title("Gini mean difference of 400 tumours, Watts–Strogatz")
ax.legend(frameon=False)
plt.show()
