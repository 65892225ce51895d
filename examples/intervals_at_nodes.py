"""
Confidence intervals at every node
==================================

The patients at hand are a sample. Every node computes an interval for the AUC in the population,
and counts the error of gossip that is left in it: the interval is wide at first, and in the end
nearly that of somebody who has all rows in one place.
"""

import matplotlib.pyplot as plt

import gosta

# %%
# 20 hospitals, each of which sees tumours of about one size, so that their own values are far off.

data = gosta.datasets.load("breast-cancer")
pooled = gosta.exact(data, "auc", interval=0.95)
trace = gosta.simulate(data, "auc", nodes=20, by="mean radius", interval=0.95, runs=1)
low, high = (one.isel(run=0) for one in trace.intervals())
print(
    f"all rows in one place: {pooled.value:.4f}, 95 % interval {pooled.low:.4f} to "
    f"{pooled.high:.4f}"
)
estimate, ends = (
    float(trace.estimates[0, -1, 0]),
    f"{float(low[-1, 0]):.4f} to {float(high[-1, 0]):.4f}",
)
print(f"node 0 at the end:     {estimate:.4f}, 95 % interval {ends}")

# %%
# The median over nodes of estimates and ends of intervals, and the one from all rows in one place.

exchanges = 2 * trace.iterations / 20
estimates, lows, highs = (one.median("node") for one in (trace.estimates.isel(run=0), low, high))
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.fill_between(exchanges, lows, highs, color="C0", alpha=0.25, linewidth=0)
ax.plot(exchanges, estimates, color="C0", label="at the nodes")
ax.axhspan(pooled.low, pooled.high, color="C1", alpha=0.25, linewidth=0)
ax.axhline(pooled.value, color="C1", label="from all rows in one place")
ax.set(
    xscale="log",
    ylim=(0.85, 1.0),
    xlabel="exchanges of a node",
    ylabel="AUC",
    title="20 hospitals, 95 % intervals",
)
ax.legend(frameon=False, loc="lower right")
plt.show()
