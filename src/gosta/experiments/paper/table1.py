"""Table 1: spectral gaps of the networks, and the paper's facts about networks and data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gosta import graphs
from gosta.experiments.paper.model import GRAPHS, Claim, Experiment, Findings, HistoryOf, Plan
from gosta.runtime import progress
from gosta.theory import spectral_gap
from gosta.views.numbers import percent

GAPS_OF_THE_PAPER = {
    1599: {"complete": 6.26e-4, "watts-strogatz": 2.72e-5, "torus": 3.66e-6},
    1260: {"complete": 7.94e-4, "watts-strogatz": 5.49e-5, "torus": 6.03e-6},
}
RANDOM_GRAPHS = 50  # Watts-Strogatz graphs of each size
# Rows, numbers of a row, classes.
DATA_OF_THE_PAPER = {"wine-quality-red": (1599, 12, 11), "svmguide3": (1260, 23, 2)}
MARKS = range(11)  # that a wine can be given


def evaluate(plan: Plan, _history_of: HistoryOf) -> Findings:
    """Compute 1 − λ₂(2) for both sizes on all three networks, and check the paper's facts."""
    table = [["network", "n", "paper", "here"]]
    gaps: dict[str, list[float]] = {}
    claims = []
    with progress.bar("spectral gaps", 2 * (RANDOM_GRAPHS + 2)) as advance:
        for n, expected in GAPS_OF_THE_PAPER.items():
            for name, paper in expected.items():
                gaps_of_graphs = []
                for seed in range(RANDOM_GRAPHS if name == "watts-strogatz" else 1):
                    gaps_of_graphs.append(float(f"{spectral_gap(graphs.make(name, n, seed)):.6g}"))
                    advance(1)
                gaps[f"{name} {n}"] = gaps_of_graphs
                claims.append(_gap_claim(name, n, paper, gaps_of_graphs))
                table.append(
                    [GRAPHS[name], f"{n:,}", f"{paper:.2e}", claims[-1].measured.partition(";")[0]]
                )
    return Findings(gaps, [*claims, *_network_claims(gaps), *_data_claims(plan)], table)


def _gap_claim(name: str, n: int, paper: float, gaps: list[float]) -> Claim:
    if len(gaps) == 1:
        sentence = f"The {GRAPHS[name]} of {n:,} nodes has a gap of {paper:.2e}."
        return Claim(sentence, f"{gaps[0]:.2e}", f"{gaps[0]:.2e}" == f"{paper:.2e}")
    rank = float(np.mean([gap < paper for gap in gaps]))
    low, high = np.quantile(gaps, [0.005, 0.995])
    return Claim(
        f"A Watts-Strogatz graph of {n:,} nodes has a gap of {paper:.2e}.",
        f"{min(gaps):.2e} to {max(gaps):.2e} ({len(gaps)} graphs); {percent(rank, '.0f')} of them "
        "are below the paper's (required: within their central 99 %)",
        bool(low <= paper <= high),
        "The paper shows one draw of a random graph, at the edge of the range of draws here.",
    )


def _network_claims(gaps: Mapping[str, list[float]]) -> list[Claim]:
    n = 1599
    complete, between, grid = (
        float(np.median(gaps[f"{name} {n}"])) for name in GAPS_OF_THE_PAPER[n]
    )
    return [
        Claim(
            "On the complete graph the gap is 1/n.",
            f"1/{1 / complete:.0f} for n = {n}",
            round(1 / complete) == n,
            "It is 1/(n - 1); so is the paper's own 6.26e-04.",
        ),
        Claim(
            "Watts-Strogatz graphs are between the complete graph and the grid.",
            f"{grid:.2e} < {between:.2e} < {complete:.2e}",
            grid < between < complete,
        ),
    ]


def _data_claims(plan: Plan) -> list[Claim]:
    """Check the paper's facts about its data; it counts the class as a number of a row."""
    claims = []
    for subject in (plan.scatter, plan.auc):
        if subject.data not in DATA_OF_THE_PAPER:
            continue
        data, (n, width, classes) = subject.rows, DATA_OF_THE_PAPER[subject.data]
        assert data.label is not None
        labels = np.unique(data.columns[data.label])
        numbers = len({*data.features, data.label})
        here = f"{len(data):,} rows of {numbers} numbers, the class among them"
        agrees = (len(data), numbers) == (n, width)
        if subject.data == "wine-quality-red":  # 11 marks can be given
            meant = f"{classes} classes, the marks {MARKS[0]} to {MARKS[-1]}"
            here += f"; {len(labels)} of the marks occur, {labels.min():g} to {labels.max():g}"
            agrees &= set(labels.tolist()) <= set(MARKS) and len(MARKS) == classes
        else:
            meant, agrees = f"{classes} classes", agrees and len(labels) == classes
            here += f", in {len(labels)} classes"
        sentence = f"{subject.data} has {n:,} rows of {width} numbers in {meant}."
        claims.append(
            Claim(
                sentence, here, agrees, "The file that is published under this name today differs."
            )
        )
    return claims


EXPERIMENT = Experiment("Spectral gaps of the networks", lambda _plan: [], evaluate)
