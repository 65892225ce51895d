"""
Several statistics at once
==========================

Rows travel once, and nodes estimate several statistics from them together: one run costs little
more than a run for one statistic.
"""

import matplotlib.pyplot as plt

import gosta

STATISTICS = ["auc", "kendall-tau:mean radius+mean texture", "gini-index:mean area"]

# %%
# Each statistic names its columns after a colon.

data = gosta.datasets.load("breast-cancer")
exact = gosta.exact(data, STATISTICS)
print(exact[["statistic", "value"]].to_string(index=False))

# %%
# The same three, estimated by 20 hospitals without any of them collecting the rows.

trace = gosta.simulate(data, STATISTICS, nodes=20, runs=4)
print(trace)

# %%
# How far the mean estimate of each is from its exact value.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for title, target in zip(trace.value_names, trace.data["target"].values, strict=True):
    relative = abs(trace.estimates.sel(value=title) / target - 1).mean(["run", "node"])
    ax.plot(2 * trace.iterations / 20, 100 * relative, label=title)
ax.set(
    yscale="log",
    xlabel="exchanges of a node",
    ylabel="mean relative error",
    title="Three statistics, one run",
)
ax.yaxis.set_major_formatter("{x:g} %")
ax.legend(frameon=False)
plt.show()
