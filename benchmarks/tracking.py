"""Exchanges that `tracking` needs, beside GoSta-async on the same edges; with --variants, those of its variants.

An answer is the number of exchanges after which the mean relative error over nodes and runs is down to a target. The
limit is plain averaging that starts from every node's exact row mean: what is left to do where visitors cost nothing.

Run with: python benchmarks/tracking.py [--variants | --smoke]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np

import gosta
from gosta.estimation import exchange
from gosta.protocols import Protocol, tracking
from gosta.simulation.engines.compiled import one_row

RUNS = 20
COMPARED = ("gosta-async", "tracking", "averaging")
BUILT_IN_HOMES, RECENT_HOMES = exchange.RECENT_HOMES_PER_ROW, (1, 2, 16, 64)


class Case(NamedTuple):
    """A statistic of some data."""

    title: str
    data: str
    statistic: str
    n: int
    options: dict[str, Any]


class Network(NamedTuple):
    """Cases on a graph, the error they are to reach, and how many iterations a node they are given for it."""

    graph: str
    cases: list[Case]
    target: float
    per_node: int


CASES = [
    Case("scatter", "wine-quality-red", "within-cluster-scatter", 1599, {"centroids": "class-means"}),
    Case("Gini", "wine-quality-red", "gini-mean-difference", 900, {"columns": "alcohol"}),
    Case("tau", "wine-quality-red", "kendall-tau", 900, {"columns": ["alcohol", "density"], "variant": "b"}),
    Case("distance", "wine-quality-red", "mean-pairwise-distance", 900, {}),
    Case("AUC", "breast-cancer", "auc", 560, {}),
]
# Where the network is slow: fewer nodes, or an error that GoSta-async reaches too.
SMALL = [case._replace(n=400) for case in CASES]
NETWORKS = [
    Network("complete", CASES, 0.01, 600),
    Network("watts-strogatz", CASES, 0.01, 1500),
    Network("torus", CASES, 0.01, 3000),
    Network("cycle", SMALL, 0.05, 20_000),
    Network("two-cliques", SMALL, 0.02, 20_000),
]
SMOKE = Network("complete", [Case("AUC", "breast-cancer", "auc", 60, {})], 0.05, 100)


def exchanges_to(network: Network, case: Case, protocol: str | Protocol, runs: int = RUNS, **settings: Any) -> float:
    """Return the exchanges to the target, interpolated between checkpoints; infinite if it is not reached."""
    rows = gosta.datasets.load(case.data).shuffle(1).head(case.n)
    trace = gosta.simulate(
        rows, case.statistic, graph=network.graph, protocol=protocol, iterations=network.per_node * case.n, runs=runs,
        checkpoints=200, spacing="log", seed=7, **settings, **case.options,
    )  # fmt: skip
    error, at = trace.error()["mean"].values, trace.iterations
    above = np.flatnonzero(error > network.target)
    last = above[-1] if len(above) else 0
    if last == len(error) - 1:
        return float("inf")
    share = np.log(error[last] / network.target) / np.log(error[last] / error[last + 1])
    return float(at[last] * (at[last + 1] / at[last]) ** share)


def compare(networks: list[Network]) -> None:
    """Print the exchanges of tracking beside those of GoSta-async; tracking needs fewer everywhere."""
    print("| graph | statistic | n | to error | GoSta-async | tracking | fewer | limit |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for network in networks:
        for case in network.cases:
            most = network.per_node * case.n
            gosta_async, ours, limit = (exchanges_to(network, case, name) for name in COMPARED)
            assert ours < min(gosta_async, most), (network.graph, case, ours, gosta_async)
            shown = [f"{x:,.0f}" if np.isfinite(x) else f"over {most:,}" for x in (gosta_async, ours, limit)]
            fewer = f"{'' if np.isfinite(gosta_async) else 'over '}{min(gosta_async, most) / ours:.1f} x"
            print(
                f"| {network.graph} | {case.title} | {case.n} | {100 * network.target:g} % | {shown[0]} | {shown[1]} | "
                f"{fewer} | {shown[2]} |",
                flush=True,
            )


def variant(*changes: tuple[str, str]) -> Protocol:
    """Return the protocol of `protocols/tracking.py` with some of its text replaced."""
    text = Path(tracking.__file__).read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, f"protocols/tracking.py no longer contains {old!r} once: adapt this variant"
        text = text.replace(old, new)
    names: dict[str, Any] = {"__name__": "variant"}
    exec(compile(text, "variant", "exec"), names)
    made: Protocol = names["protocol"]
    return made


def variants() -> dict[str, Protocol]:
    """Return the protocol as it is, first, and with one thing changed each."""
    fixed = ("max(5.0, exchanges / 4.0)", "20.0")
    return {
        "as it is": variant(),
        "no momentum": variant(("PUSH = 0.4", "PUSH = 0.0")),
        "memory of 20 exchanges, ramp of 80": variant(fixed, ("RAMP = 40.0", "RAMP = 80.0")),
        "memory of half of all exchanges": variant(("exchanges / 4.0", "exchanges / 2.0")),
        "memory of all exchanges": variant(("exchanges / 4.0", "exchanges / 1.0")),
        "push 0.2": variant(("PUSH = 0.4", "PUSH = 0.2")),
        "push 0.6": variant(("PUSH = 0.4", "PUSH = 0.6")),
        "no ramp": variant(("RAMP = 40.0", "RAMP = 1.0")),
        "changes seen at once": variant(("return State(z, ahead + change", "return State(z + change, ahead + change")),
        "smoothed forever": variant(("SMOOTH = 0.02", "SMOOTH = 0.0")),
        "own mean not smoothed": variant(("max(SMOOTH, 2.0 / (exchanges + 3.0))", "1.0")),
        "own mean smoothed once": variant(("2.0 / (exchanges + 3.0)", "1.0 / (exchanges + 2.0)")),
        "own mean smoothed thrice": variant(("2.0 / (exchanges + 3.0)", "3.0 / (exchanges + 4.0)")),
        "all edges pushed alike": variant(("RARE = 4.0", "RARE = 1e9")),
        **{f"{count} homes kept apart for each row": variant() for count in RECENT_HOMES},
    }


def compare_variants(networks: list[Network], **settings: Any) -> None:
    """Print the exchanges of the protocol as it is, and those of its variants as multiples of that."""
    places = [(network, case) for network in networks for case in network.cases]
    print("| variant | " + " | ".join(f"{network.graph} {case.title}" for network, case in places) + " |")
    print("| --- |" + " --- |" * len(places))
    first: list[float] = []
    for name, protocol in variants().items():
        for module in (exchange, one_row):
            vars(module)["RECENT_HOMES_PER_ROW"] = int(name.split()[0]) if "homes" in name else BUILT_IN_HOMES
        found = [exchanges_to(network, case, protocol, **settings) for network, case in places]
        shown = [f"{a / b:.2f}" for a, b in zip(found, first, strict=True)] if first else [f"{a:,.0f}" for a in found]
        first = first or found
        print(f"| {name} | " + " | ".join(shown) + " |", flush=True)
    assert np.isfinite(first).all()


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--variants", action="store_true", help="compare variants of tracking instead")
    arguments = parser.parse_args()
    common.print_machine("numba")
    if arguments.smoke:
        compare([SMOKE])
        compare_variants([SMOKE._replace(per_node=30)], runs=1, engine="reference")  # which needs no compilation
    elif arguments.variants:
        compare_variants([each._replace(cases=each.cases[:4], per_node=each.per_node // 3) for each in NETWORKS])
    else:
        compare(NETWORKS)


if __name__ == "__main__":
    main()
