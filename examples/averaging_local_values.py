"""Error of averaging the local values of a pairwise statistic, instead of gossiping over all pairs.

The 569 patients of the breast-cancer data, each with a risk score, are placed at 20 hospitals: at random, or by the
size of their tumours, as where one hospital screens and another treats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import gosta
from gosta.statistics import encode

HOSPITALS = 20
STATISTICS = {"auc": ["risk"], "kendall-tau": ["risk", "size"], "gini-mean-difference": ["size"], "variance": ["size"]}


def local_values(patients: dict[str, NDArray[Any]], order: NDArray[np.int64], name: str) -> list[float]:
    """Return the statistic at each hospital that has one: where all patients are of one class there is no AUC."""
    found = []
    for rows in np.array_split(order, HOSPITALS):
        try:
            local = {column: values[rows] for column, values in patients.items()}
            found.append(float(gosta.exact(local, name, columns=STATISTICS[name])))
        except gosta.InputError:
            continue
    return found


def main() -> None:
    data = gosta.datasets.load("breast-cancer")
    risk, label = encode.scored(data).T
    patients = {"risk": risk, "size": data.columns["mean radius"], "label": label}
    placements = {"at random": np.random.default_rng(0).permutation(len(data)), "by size": np.argsort(patients["size"])}
    print("".join(f"{title:>24}" for title in ("statistic", "all patients", *(f"placed {how}" for how in placements))))
    for name, columns in STATISTICS.items():
        row = f"{name:>24}{gosta.exact(patients, name, columns=columns):>24.4f}"
        for order in placements.values():
            values = local_values(patients, order, name)
            missing = f" ({HOSPITALS - len(values)} have none)" if len(values) < HOSPITALS else ""
            row += f"{f'{np.mean(values):.4f}{missing}':>24}"
        print(row)


if __name__ == "__main__":
    main()
