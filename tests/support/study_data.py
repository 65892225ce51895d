"""Rows of three sites of a validation study: two predicted risks, an outcome, times, groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np

NAMES = ("age", "sex", "risk", "other", "died", "time", "event")
ROLES = ("--label", "died", "--score", "risk,other", "--time", "time", "--event", "event")


def write_sites(folder: Path, rows: tuple[int, ...] = (90, 120, 75)) -> list[Path]:
    """Write a CSV file for each site, with some missing values, and return the files."""
    rng, files = np.random.default_rng(5), []
    for k, n in enumerate(rows):
        logit = rng.normal(-0.5, 1.3, n)
        second = 0.6 * logit + rng.normal(size=n)
        risk, other = (1 / (1 + np.exp(-part)) for part in (logit, second))
        end, censored = rng.exponential(4 / np.exp(0.7 * logit)), rng.uniform(1, 8, n)
        columns = {
            "age": rng.normal(65, 10, n).round(),
            "sex": rng.choice(["F", "M"], n),
            "risk": risk.round(4),
            "other": other.round(4),
            "died": np.where(rng.random(n) < risk, "yes", "no"),
            "time": (np.minimum(end, censored) + 0.01).round(2),
            "event": (end <= censored).astype(int),
        }
        texts = np.column_stack([values.astype(str) for values in columns.values()]).astype(object)
        texts[rng.choice(n, 4, replace=False), 0] = ""  # ages
        texts[rng.choice(n, 3, replace=False), 2] = ""  # risks
        file = folder / f"site-{k}.csv"
        lines = [",".join(columns), *(",".join(line) for line in texts.tolist())]
        file.write_text("\n".join([*lines, ""]))
        files.append(file)
    return files
