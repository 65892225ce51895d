"""The paper's table of spectral gaps."""

from __future__ import annotations

from gosta import graphs, progress
from gosta.experiments.paper import GRAPHS, Claim, Curves, Found, Plan
from gosta.theory import spectral_gap

PAPER = {
    1599: {"complete": 6.26e-4, "watts-strogatz": 2.72e-5, "torus": 3.66e-6},
    1260: {"complete": 7.94e-4, "watts-strogatz": 5.49e-5, "torus": 6.03e-6},
}
DRAWS = 50


def table1(_plan: Plan, _curve: Curves) -> Found:
    """1 − λ₂(2) for both sizes on all three networks."""
    table = [["network", "n", "paper", "here"]]
    numbers: dict[str, float | list[float]] = {}
    claims = []
    networks = [(n, name, paper) for n, row in PAPER.items() for name, paper in row.items()]
    with progress.bar("spectral gaps", 2 * (DRAWS + 2)) as advance:
        for n, name, paper in networks:
            random = name == "watts-strogatz"
            gaps = []
            for seed in range(DRAWS if random else 1):
                gaps.append(spectral_gap(graphs.make(name, n, seed)))
                advance(1)
            gaps.sort()
            here = f"{gaps[0]:.2e}" if not random else f"{gaps[0]:.2e} to {gaps[-1]:.2e} ({DRAWS} graphs)"
            table.append([GRAPHS[name], f"{n:,}", f"{paper:.2e}", here])
            numbers[f"{name} {n}"] = [float(f"{gap:.6g}") for gap in gaps] if random else float(f"{gaps[0]:.6g}")
            if random:
                agrees = gaps[0] <= paper <= gaps[-1]
                sentence = f"A Watts-Strogatz graph of {n:,} nodes has a gap of {paper:.2e}."
                above = sum(gap >= paper for gap in gaps)
                measured = f"{here}; {above} of them have a gap as large"
            else:
                agrees = f"{paper:.2e}" == f"{gaps[0]:.2e}"
                sentence = f"The {GRAPHS[name]} of {n:,} nodes has a gap of {paper:.2e}."
                measured = here
            why = "" if agrees or not random else "The paper shows one draw of a random graph; ours lie beside it."
            claims.append(Claim(sentence, measured, agrees, why))
    return Found(numbers, claims, table)
