"""The paper's table of spectral gaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gosta import graphs
from gosta.experiments.paper.model import GRAPHS, Claim, Curves, Found, Plan
from gosta.runtime import progress
from gosta.theory import spectral_gap

PAPER = {
    1599: {"complete": 6.26e-4, "watts-strogatz": 2.72e-5, "torus": 3.66e-6},
    1260: {"complete": 7.94e-4, "watts-strogatz": 5.49e-5, "torus": 6.03e-6},
}
DRAWS = 50
FACTS = {"wine-quality-red": (1599, 12, 11), "svmguide3": (1260, 23, 2)}


def table1(plan: Plan, _curve: Curves) -> Found:
    """1 − λ₂(2) for both sizes on all three networks, and what the paper says of networks and data."""
    table = [["network", "n", "paper", "here"]]
    numbers: dict[str, Any] = {}
    claims = []
    with progress.bar("spectral gaps", 2 * (DRAWS + 2)) as advance:
        for n, row in PAPER.items():
            for name, paper in row.items():
                gaps = []
                for seed in range(DRAWS if name == "watts-strogatz" else 1):
                    gaps.append(float(f"{spectral_gap(graphs.make(name, n, seed)):.6g}"))
                    advance(1)
                numbers[f"{name} {n}"] = gaps
                claims.append(_gap_claim(name, n, paper, gaps))
                table.append([GRAPHS[name], f"{n:,}", f"{paper:.2e}", claims[-1].measured.partition(";")[0]])
    return Found(numbers, [*claims, *_network_claims(numbers), *_data_claims(plan)], table)


def _gap_claim(name: str, n: int, paper: float, gaps: list[float]) -> Claim:
    sentence = f"The {GRAPHS[name]} of {n:,} nodes has a gap of {paper:.2e}."
    if len(gaps) == 1:
        return Claim(sentence, f"{gaps[0]:.2e}", f"{gaps[0]:.2e}" == f"{paper:.2e}")
    rank = float(np.mean([gap < paper for gap in gaps]))
    low, high = np.quantile(gaps, [0.005, 0.995])
    return Claim(
        f"A Watts-Strogatz graph of {n:,} nodes has a gap of {paper:.2e}.",
        f"{min(gaps):.2e} to {max(gaps):.2e} ({len(gaps)} graphs); {100 * rank:.0f} % of them are below the paper's "
        "(asked: within their central 99 %)",
        bool(low <= paper <= high),
        "The paper shows one draw of a random graph, at the edge of what is drawn here.",
    )


def _network_claims(numbers: Mapping[str, list[float]]) -> list[Claim]:
    n = 1599
    complete, between, grid = (float(np.median(numbers[f"{name} {n}"])) for name in PAPER[n])
    return [
        Claim(
            "On the complete graph the gap is 1/n.",
            f"1/{1 / complete:.0f} for n = {n}",
            round(1 / complete) == n,
            "It is 1/(n - 1); so is the paper's own 6.26e-04.",
        ),
        Claim(
            "Watts-Strogatz graphs lie between the complete graph and the grid.",
            f"{grid:.2e} < {between:.2e} < {complete:.2e}",
            grid < between < complete,
        ),
    ]


def _data_claims(plan: Plan) -> list[Claim]:
    """What the paper says of its data, where these are what was taken."""
    claims = []
    for subject in (plan.scatter, plan.auc):
        if subject.data in FACTS:
            rows, numbers, classes = FACTS[subject.data]
            data = subject.rows
            assert data.label is not None
            has = (len(data), len(data.features), len(np.unique(data.columns[data.label])))
            claims.append(
                Claim(
                    f"{subject.data} has {rows:,} rows of {numbers} numbers in {classes} classes.",
                    f"{has[0]:,} rows of {has[1]} numbers in {has[2]} classes",
                    has == (rows, numbers, classes),
                    "So the file has it that is found under this name today.",
                )
            )
    return claims
