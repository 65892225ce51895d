"""
A regression model over three hospitals
=======================================

Cox regression of survival, fitted to all rows in one place and by private sums: the coefficients
are the same. One hospital alone has much wider intervals.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import gosta

# %%
# Three hospitals of 90 to 300 patients, who are seen for 60 weeks at most.

rng = np.random.default_rng(4)


def hospital(n: int, oldest: int) -> dict[str, np.ndarray]:
    """Return the rows of a hospital."""
    age, sex = rng.integers(40, oldest, n), rng.choice(["F", "M"], n)
    stage = rng.choice(["I", "II", "III"], n, p=[0.5, 0.3, 0.2])
    log_hazard = 0.04 * (age - 60) + 0.3 * (sex == "M") + 0.5 * (stage == "II")
    weeks = np.ceil(40 * rng.exponential(np.exp(-log_hazard - 1.1 * (stage == "III"))))
    row = {"age": age, "sex": sex, "stage": stage, "weeks": np.minimum(weeks, 60)}
    return {**row, "died": (weeks <= 60).astype(int)}


sites = {"north": hospital(300, 70), "south": hospital(160, 90), "west": hospital(90, 95)}
rows = {name: np.concatenate([site[name] for site in sites.values()]) for name in sites["north"]}
settings: dict[str, Any] = {"time": "weeks", "event": "died", "columns": ["age", "sex", "stage"]}
fit = gosta.fit(rows, "cox", **settings)
print(fit.summary())

# %%
# By private sums the hospitals declare what they expect, and no hospital shows its own sums.

private = gosta.private.fit(
    sites, "cox", **settings, ranges={"age": (30, 100)}, times=tuple(range(1, 61)),
    levels={"sex": ["F", "M"], "stage": ["I", "II", "III"]},
)  # fmt: skip
print("largest difference:", f"{np.abs(private.coefficients - fit.coefficients).max():.0e}")

# %%
# The hazard ratios of each hospital alone, and of all.

fits = {name: gosta.fit(site, "cox", **settings) for name, site in sites.items()} | {"all": fit}
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", width_ratios=[3, 2])
for shift, (name, one) in enumerate(fits.items()):
    places = np.arange(len(one.names)) + 0.18 * (shift - 1.5)
    low, high = np.exp(one.low), np.exp(one.high)
    errors = [one.ratios - low, high - one.ratios]
    axes[0].errorbar(one.ratios, places, xerr=errors, fmt="o", markersize=4, label=name)
axes[0].axvline(1, color="grey", linestyle="--", linewidth=1)
axes[0].set(xscale="log", xlabel="hazard ratio", yticks=range(len(fit.names)))
axes[0].set_yticklabels(fit.names)
axes[0].set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
axes[0].minorticks_off()
axes[0].legend(loc="lower right")
fit.plot_baseline(axes[1])
plt.show()
