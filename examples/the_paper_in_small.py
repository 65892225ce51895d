"""
The paper's figure 2, in small
==============================

GoSta-sync against U2-gossip on three networks, as in figure 2 of Colin, Bellet, Salmon and
Clémençon (2015): 4 runs instead of 50 on 399 rows of another data set. ``gosta reproduce`` runs the
paper in full, and :doc:`the page with all of its figures and claims </reference/gallery>` shows
what came out.
"""

import matplotlib.pyplot as plt

import gosta

NETWORKS = {
    "complete": "complete graph",
    "watts-strogatz": "Watts–Strogatz",
    "torus": "two-dimensional grid",
}

# %%
# The within-cluster point scatter: the mean distance of two rows of the same class.

data = gosta.datasets.load("breast-cancer").shuffle(seed=0).head(399)
figure, panels = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True, layout="constrained")
for ax, (graph, title) in zip(panels, NETWORKS.items(), strict=True):
    for protocol in ("gosta-sync", "u2"):
        trace = gosta.simulate(
            data,
            "within-cluster-scatter",
            graph=graph,
            protocol=protocol,
            iterations=40_000,
            runs=4,
            spacing="log",
        )
        error = trace.error()
        mean, spread = 100 * error["mean"], 100 * error["spread"]
        (line,) = ax.plot(trace.iterations, mean, label=protocol)
        ax.fill_between(
            trace.iterations,
            mean / (1 + spread / mean),
            mean + spread,
            color=line.get_color(),
            alpha=0.2,
        )
        print(
            f"{title:>20}, {protocol:>10}: {float(mean[-1]):5.2f} % after {trace.iterations[-1]:,} "
            "iterations"
        )
    ax.set(xscale="log", yscale="log", xlabel="iterations", title=title)
panels[0].set_ylabel("relative error")
panels[0].yaxis.set_major_formatter("{x:g} %")
panels[0].legend(frameon=False)
plt.show()
