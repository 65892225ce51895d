"""
How the graph matters
=====================

The same rows on four networks of 400 nodes. What counts is not how many edges there are but whether
some of them are a bottleneck; the spectral gap measures that before anything is run.
"""

import matplotlib.pyplot as plt

import gosta

GRAPHS = ["complete", "watts-strogatz", "torus", "two-cliques"]

# %%
# Two complete halves that are joined by a single edge have fifty times as many edges as a torus,
# and a far smaller gap.

for name in GRAPHS:
    graph = gosta.graphs.make(name, 400)
    print(f"{name:>16}: {graph.m:>6,} edges, spectral gap {gosta.theory.spectral_gap(graph):.1e}")
print(gosta.theory.bottleneck("two-cliques", n=400).description)

# %%
# All information has to pass through the bottleneck, and so the error falls as late as that allows.

data = gosta.datasets.load("breast-cancer", n=400)
figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4), layout="constrained", width_ratios=(3, 2)
)
for name in GRAPHS:
    trace = gosta.simulate(data, "gini-mean-difference", columns="mean radius", graph=name, runs=4)
    left.plot(2 * trace.iterations / 400, 100 * trace.error()["mean"], label=name)
left.set(yscale="log", xlabel="exchanges of a node", ylabel="mean relative error")
left.set_title("Gini mean difference of 400 tumours")
left.yaxis.set_major_formatter("{x:g} %")
left.legend(frameon=False)
gosta.theory.bottleneck("two-cliques", n=60).plot(ax=right)
plt.show()
