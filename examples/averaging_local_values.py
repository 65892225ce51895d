"""
Why not average what each site computes?
========================================

The 569 patients of the breast-cancer data, each with a risk score, are placed at 20 hospitals: at
random, or by the size of their tumours, as where one hospital screens and another treats. The mean
of the hospitals' own values is compared with the value over all patients.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import gosta
from gosta.statistics import encode

HOSPITALS = 20
STATISTICS = {
    "auc": ["risk"],
    "kendall-tau": ["risk", "size"],
    "gini-mean-difference": ["size"],
    "variance": ["size"],
}

# %%
# Where all patients of a hospital are of one class, it has no AUC at all.


def local_values(
    patients: dict[str, NDArray[Any]], order: NDArray[np.int64], name: str
) -> list[float]:
    """Return the statistic at each hospital that has one."""
    found = []
    for rows in np.array_split(order, HOSPITALS):
        try:
            local = {column: values[rows] for column, values in patients.items()}
            found.append(float(gosta.exact(local, name, columns=STATISTICS[name])))
        except gosta.InputError:
            continue
    return found


data = gosta.datasets.load("breast-cancer")
risk, label = encode.scored(data).T
patients = {"risk": risk, "size": data.columns["mean radius"], "label": label}
placements = {
    "at random": np.random.default_rng(0).permutation(len(data)),
    "by size": np.argsort(patients["size"]),
}

# %%
# Most pairs of patients are at two different hospitals, and averaging leaves those pairs out.

print(
    "".join(
        f"{title:>24}"
        for title in ("statistic", "all patients", *(f"placed {how}" for how in placements))
    )
)
ratios: dict[str, list[float]] = {how: [] for how in placements}
for name, columns in STATISTICS.items():
    exact = float(gosta.exact(patients, name, columns=columns))
    line = f"{name:>24}{exact:>24.4f}"
    for how, order in placements.items():
        values = local_values(patients, order, name)
        ratios[how].append(100 * float(np.mean(values)) / exact)
        missing = f" ({HOSPITALS - len(values)} have none)" if len(values) < HOSPITALS else ""
        line += f"{f'{np.mean(values):.4f}{missing}':>24}"
    print(line)

# %%
# Only where every hospital is a fair sample of all patients does averaging come close.

place = np.arange(len(STATISTICS))
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for k, (how, values) in enumerate(ratios.items()):
    ax.bar(place + 0.4 * k - 0.2, values, 0.38, label=f"patients placed {how}")
ax.axhline(100, color="black", linewidth=1)
ax.set(
    xticks=place, xticklabels=list(STATISTICS), ylabel="mean of local values, % of the exact one"
)
ax.set_title("20 hospitals that average their own values")
figure.legend(frameon=False, loc="outside lower center", ncols=2)
plt.show()
