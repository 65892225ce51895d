"""
Private sums, or rows
=====================

Where no row may leave a hospital, the hospitals add up masked sums instead: how many patients of
each class have a risk in each of some bins. Nobody sees the sums of one hospital, the total gives
the AUC with a bracket that is certain, and noise under the masks gives differential privacy.
"""

import matplotlib.pyplot as plt
import numpy as np

import gosta
from gosta.sketches import StratumResult
from gosta.statistics import encode

# %%
# 20 hospitals with 28 or 29 patients each.

data = gosta.datasets.load("breast-cancer").shuffle(seed=0)
risk, died = encode.scored(data).T
sites = [
    {"risk": risk[rows], "died": died[rows]} for rows in np.array_split(np.arange(len(risk)), 20)
]
exact = float(gosta.exact({"risk": risk, "died": died}, "auc", score="risk", label="died"))


def release(epsilon: float | None, seed: int = 0) -> StratumResult:
    """Return what all hospitals know after one release; with noise, fewer bins have less of it in
    all.
    """
    found = gosta.private.release(
        sites, "auc", score="risk", label="died", classes=[-1.0, 1.0],
        ranges={"risk": (risk.min(), risk.max())},
        bins=64 if epsilon is None else 16, epsilon=epsilon, seed=seed,
    )  # fmt: skip
    return found.results[0]


found = release(None)
print(f"all rows in one place: {exact:.5f}")
print(
    f"from masked sums:      {found.value[0]:.5f}, certainly between {found.low[0]:.5f} and "
    f"{found.high[0]:.5f}"
)

# %%
# The smaller epsilon is, the less can be learnt about one patient, and the more noise the value
# has: here from 10 releases each.

epsilons = [1, 2, 4, 8, 16]
errors = [
    [100 * abs(release(e, seed).value[0] / exact - 1) for seed in range(10)] for e in epsilons
]
gossip = gosta.simulate(data, "auc", nodes=20, runs=4).error()["mean"]

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.boxplot(errors, tick_labels=[f"{e:g}" for e in epsilons], showfliers=False)
ax.axhline(
    100 * abs(found.value[0] / exact - 1),
    color="C0",
    label="masked sums without noise: the bins' error",
)
ax.axhline(100 * float(gossip[-1]), color="C1", label="rows: gossip, 200 exchanges a node")
ax.set(
    yscale="log",
    xlabel="epsilon",
    ylabel="relative error of the AUC",
    title="569 patients at 20 hospitals",
)
ax.yaxis.set_major_formatter("{x:g} %")
ax.legend(frameon=False)
plt.show()
