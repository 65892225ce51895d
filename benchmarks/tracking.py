"""How many exchanges `tracking` needs, beside GoSta-async on the same edges; with --tried, what else was tried.

An answer is the number of exchanges after which the mean relative error over nodes and runs is down to a target. The
limit is plain averaging that starts from every node's exact row mean: what is left to do where visitors cost nothing.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gosta
from gosta.protocols import PROTOCOLS, Protocol, tracking

RUNS = 20


class Case(NamedTuple):
    """A statistic of some data."""

    title: str
    data: str
    statistic: str
    n: int
    more: dict[str, Any]


CASES = [
    Case("scatter", "wine-quality-red", "within-cluster-scatter", 1599, {"centroids": "class-means"}),
    Case("Gini", "wine-quality-red", "gini-mean-difference", 900, {"columns": "alcohol"}),
    Case("tau", "wine-quality-red", "kendall-tau", 900, {"columns": ["alcohol", "density"], "variant": "b"}),
    Case("distance", "wine-quality-red", "mean-pairwise-distance", 900, {}),
    Case("AUC", "breast-cancer", "auc", 560, {}),
]
# Where the network is slow: fewer nodes, or an error that GoSta-async reaches too.
SMALL = [case._replace(n=400) for case in CASES]
GRAPHS: dict[str, tuple[list[Case], float, int]] = {
    "complete": (CASES, 0.01, 600),
    "watts-strogatz": (CASES, 0.01, 1500),
    "torus": (CASES, 0.01, 3000),
    "cycle": (SMALL, 0.05, 20_000),
    "two-cliques": (SMALL, 0.02, 20_000),
}
COMPARED = ("gosta-async", "tracking", "averaging")


def exchanges(case: Case, graph: str, protocol: Any, target: float, a_node: int) -> float:
    """The exchanges to the target, between two checkpoints as errors fall along a power; infinite if not reached."""
    rows = gosta.datasets.load(case.data).shuffle(1).head(case.n)
    trace = gosta.simulate(
        rows, case.statistic, graph=graph, protocol=protocol, iterations=a_node * case.n, runs=RUNS, checkpoints=200,
        spacing="log", seed=7, **case.more,
    )  # fmt: skip
    error, at = trace.error()["mean"].values, trace.iterations
    above = np.flatnonzero(error > target)
    last = above[-1] if len(above) else 0
    if last == len(error) - 1:
        return float("inf")
    share = np.log(error[last] / target) / np.log(error[last] / error[last + 1])
    return float(at[last] * (at[last + 1] / at[last]) ** share)


def compare() -> None:
    print("| graph | statistic | n | to error | GoSta-async | tracking | fewer | limit |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for graph, (cases, target, a_node) in GRAPHS.items():
        for case in cases:
            found = [exchanges(case, graph, PROTOCOLS[p], target, a_node) for p in COMPARED]
            most = found[0] if np.isfinite(found[0]) else a_node * case.n
            shown = [f"{x:,.0f}" if np.isfinite(x) else f"over {a_node * case.n:,}" for x in found]
            more = "" if np.isfinite(found[0]) else "over "
            print(
                f"| {graph} | {case.title} | {case.n} | {100 * target:g} % | {shown[0]} | {shown[1]} | "
                f"{more}{most / found[1]:.1f} x | {shown[2]} |",
                flush=True,
            )


def variant(*changes: tuple[str, str], **fields: Any) -> Protocol:
    """The protocol's own file with some of its text replaced, or with other fields."""
    text = Path(tracking.__file__).read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    names: dict[str, Any] = {"__name__": "variant"}
    exec(compile(text, "variant", "exec"), names)
    made: Protocol = replace(names["protocol"], **fields)
    return made


FIXED = ("max(5.0, meetings / 4.0)", "20.0")
TRIED = {
    "as it is": variant(),
    "no momentum": variant(("PUSH = 0.4", "PUSH = 0.0")),
    "memory of 20 meetings, ramp of 80": variant(FIXED, ("RAMP = 40.0", "RAMP = 80.0")),
    "memory of half of all meetings": variant(("meetings / 4.0", "meetings / 2.0")),
    "memory of all meetings": variant(("meetings / 4.0", "meetings / 1.0")),
    "push 0.2": variant(("PUSH = 0.4", "PUSH = 0.2")),
    "push 0.6": variant(("PUSH = 0.4", "PUSH = 0.6")),
    "no ramp": variant(("RAMP = 40.0", "RAMP = 1.0")),
    "changes seen at once": variant(("return State(z, ahead + change", "return State(z + change, ahead + change")),
    "smoothed for ever": variant(("SMOOTH = 0.02", "SMOOTH = 0.0")),
    "own mean not smoothed": variant(("max(SMOOTH, 2.0 / (meetings + 3.0))", "1.0")),
    "own mean smoothed once": variant(("2.0 / (meetings + 3.0)", "1.0 / (meetings + 2.0)")),
    "own mean smoothed thrice": variant(("2.0 / (meetings + 3.0)", "3.0 / (meetings + 4.0)")),
    "all edges pushed alike": variant(("SELDOM = 4.0", "SELDOM = 1e9")),
    "no visitor x visitor": variant(cross=0.0),
    "visitor x visitor half": variant(cross=0.5),
}


def tried() -> None:
    picked = {graph: [cases[k] for k in (0, 1, 2, 3)] for graph, (cases, _, _) in GRAPHS.items()}
    titles = [f"{graph} {case.title}" for graph, cases in picked.items() for case in cases]
    print("| variant | " + " | ".join(titles) + " |\n| --- |" + " --- |" * len(titles))
    first: list[float] = []
    for name, protocol in TRIED.items():
        found = []
        for graph, cases in picked.items():
            _, target, a_node = GRAPHS[graph]
            found += [exchanges(case, graph, protocol, target, a_node // 3) for case in cases]
        first = first or found
        ratios = [f"{a / b:.2f}" for a, b in zip(found, first, strict=True)]
        shown = [f"{a:,.0f}" for a in found] if found is first else ratios
        print(f"| {name} | " + " | ".join(shown) + " |", flush=True)


if __name__ == "__main__":
    tried() if "--tried" in sys.argv else compare()
