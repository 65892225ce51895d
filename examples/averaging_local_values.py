"""What goes wrong when sites average their local values of a pairwise statistic.

The 569 patients of the breast-cancer data, each with a risk score, are spread over 20 hospitals: by chance, or as
it is in life, where one hospital screens and another treats, so that each sees tumours of about one size.
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
    filled = {"by chance": np.random.default_rng(0).permutation(len(data)), "by size": np.argsort(patients["size"])}
    print("".join(f"{title:>24}" for title in ("statistic", "all patients", *(f"filled {how}" for how in filled))))
    for name, columns in STATISTICS.items():
        row = f"{name:>24}{gosta.exact(patients, name, columns=columns):>24.4f}"
        for order in filled.values():
            values = local_values(patients, order, name)
            none = f" ({HOSPITALS - len(values)} have none)" if len(values) < HOSPITALS else ""
            row += f"{f'{np.mean(values):.4f}{none}':>24}"
        print(row)


if __name__ == "__main__":
    main()
