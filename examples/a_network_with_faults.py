"""
A network with faults
=====================

Messages are lost, nodes go and come back, and for a while one half of them does not reach the other: what a real
network does to the error of gossip.
"""

from typing import Any

import matplotlib.pyplot as plt

import gosta

data = gosta.datasets.load("breast-cancer")
FAULTS: dict[str, Any] = {
    "no faults": {},
    "30 % of messages lost": {"loss": 0.3},
    "20 % of nodes away, for 100 exchanges": {"away": 0.2, "away_for": 100},
    "halves separated (shaded)": {"partition": (5_000, 25_000)},
}
ALIKE: dict[str, Any] = {"by": "mean radius", "homophily": 1.0}

# %%
# Neighbours see tumours of about one size, which is hard for gossip: patients to compare with are far away. Exchanges
# that fail take place on neither side, so nothing is counted twice and nothing is lost for good.

traces = {name: gosta.simulate(data, "auc", iterations=50_000, runs=4, **ALIKE, **one) for name, one in FAULTS.items()}
for name, trace in traces.items():
    failed = float(trace.data["failed"].isel(iteration=-1).sum("fault").mean()) if trace.info.faults else 0.0
    print(f"{name:>38}: {failed / 50_000:4.0%} of the exchanges failed, error {trace.error()['mean'][-1]:.2%}")

# %%
# Lost messages cost time and nothing else. Nodes that are away for long keep old estimates, and the others do not see
# their rows meanwhile. While the halves are separated, neither sees the rows of the other; then the error falls again.

figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.axvspan(5_000, 25_000, color="0.93")
for name, trace in traces.items():
    ax.plot(trace.iterations, 100 * trace.error()["mean"], label=name)
ax.set(yscale="log", xlabel="iterations (edges drawn)", ylabel="mean relative error in %")
ax.set_title("AUC of 569 patients, one per node")
ax.legend(frameon=False)
plt.show()
