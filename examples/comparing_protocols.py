"""
Comparing protocols
===================

Four ways to gossip, on the same rows, the same network and the same meetings: ``carried-means``,
the default of gosta; ``gosta-async`` and ``u2`` of the paper; and ``flooding``, where nodes keep
all rows that they receive.
"""

import matplotlib.pyplot as plt

import gosta

PROTOCOLS = ["carried-means", "gosta-async", "u2", "flooding"]

# %%
# For a fair comparison the axis is what it costs: numbers sent by all nodes together.

data = gosta.datasets.load("breast-cancer", n=400)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for protocol in PROTOCOLS:
    trace = gosta.simulate(
        data,
        "gini-mean-difference",
        columns="mean radius",
        graph="torus",
        protocol=protocol,
        runs=4,
        spacing="log",
    )
    error = trace.error()
    print(
        f"{protocol:>14}: error {100 * float(error['mean'][-1]):.2f} % after {trace.units[-1]:,} "
        "numbers sent"
    )
    ax.plot(trace.units, 100 * error["mean"], label=protocol)
ax.set(xscale="log", yscale="log", xlabel="numbers sent", ylabel="mean relative error")
ax.set_title("Gini mean difference of 400 tumours on a torus")
ax.yaxis.set_major_formatter("{x:g} %")
ax.legend(frameon=False)
plt.show()
