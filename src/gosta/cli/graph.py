"""``gosta graph``: who may meet whom."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gosta.cli import options

if TYPE_CHECKING:
    from gosta.graphs import Graph

EXAMPLES = """
[bold]Examples[/bold]

gosta graph watts-strogatz --n 1599

gosta graph torus --n 1260

gosta graph erdos-renyi --n 100000 --seed 7 --json

gosta graph friends.csv
"""
DEFAULT_SIZE = 1000
MOST = 2_000_000  # nodes up to which the eigen-solver takes about a minute
ACCURACIES = (0.1, 0.01, 0.001)


def graph(
    source: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH",
            help="A family (complete, torus, grid, cycle, path, star, hypercube, watts-strogatz, erdos-renyi, "
            "random-regular, barabasi-albert, geometric, two-cliques), or a file with one edge a line.",
        ),
    ] = "watts-strogatz",
    n: Annotated[int | None, typer.Option("--n", help=f"Number of nodes of a family (default {DEFAULT_SIZE}).")] = None,
    seed: Annotated[int, typer.Option(help="Seed of a random family.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show what a graph is like, how fast gossip is on it, and where it is narrow."""
    from gosta.graphs import GRAPHS, load

    size = DEFAULT_SIZE if n is None and source in GRAPHS else n
    network = load(source, size, seed)
    record = _record(network, seed if source in GRAPHS else None) | _theory(network)
    print(json.dumps(record) if as_json else _text(record))


def _record(graph: Graph, seed: int | None) -> dict[str, Any]:
    """What is printed of a graph, as JSON has it."""
    degrees = graph.degrees
    return {
        "graph": graph.name,
        "n": graph.n,
        "edges": graph.m,
        "degrees": {"min": int(degrees.min()), "mean": float(degrees.mean()), "max": int(degrees.max())},
        "components": len(graph.components()),
        "weighted": graph.weights is not None,
        "seed": seed,
    }


def _theory(graph: Graph) -> dict[str, Any]:
    """How gossip does on a graph, as JSON has it; nothing where that would take long."""
    if graph.n > MOST and graph.spectrum is None:
        return {}
    from gosta.theory import bottleneck, mixing_time, predict, spectral_gap

    gap, mixing = spectral_gap(graph), mixing_time(graph)
    found = {accuracy: predict(graph, options.THEORY_PROTOCOL, accuracy) for accuracy in ACCURACIES}
    return {
        "spectral_gap": gap,
        "mixing_time": mixing if math.isfinite(mixing) else None,
        "protocol": options.THEORY_PROTOCOL,
        "exchanges": {str(accuracy): _whole(one.exchanges) for accuracy, one in found.items()},
        "exchanges_per_node": {str(accuracy): _whole(one.per_node) for accuracy, one in found.items()},
        "bottleneck": bottleneck(graph).description if graph.n <= MOST else None,
    }


def _whole(value: float) -> int | None:
    return round(value) if math.isfinite(value) else None


def _text(record: dict[str, Any]) -> str:
    low, mean, high = record["degrees"].values()
    degrees = f"{low:,} each" if low == high else f"{low:,} to {high:,}, mean {mean:.4g}"
    rows = {
        "nodes": f"{record['n']:,}",
        "edges": f"{record['edges']:,}" + ", weighted" * record["weighted"],
        "degrees": degrees,
        "components": f"{record['components']:,}",
    }
    if "spectral_gap" in record:
        gap, mixing, per_node = record["spectral_gap"], record["mixing_time"], record["exchanges_per_node"]
        time = options.count(1 / gap if gap else math.inf)
        rows["spectral gap"] = f"{gap:.3g}: differences shrink by e in {time} exchange{'s' * (time != '1')}"
        mixed = "visitors never mix"
        if mixing:
            mixed = f"{options.count(mixing)} exchange{'s' * (mixing > 1)} until a visitor may be anywhere"
        rows["mixing time"] = mixed
        for accuracy, total in record["exchanges"].items():
            each = options.count(per_node[accuracy] or math.inf)
            numbers = f"{options.count(total or math.inf)} exchanges, {each} a node"
            rows[f"to {100 * float(accuracy):g} %"] = numbers
        rows["bottleneck"] = record["bottleneck"] or f"not looked for above {MOST:,} nodes"
    else:
        rows["speed"] = f"not computed above {MOST:,} nodes; gosta.theory in Python has no such limit"
    lines = [record["graph"], *(f"  {name:<14}{value}" for name, value in rows.items())]
    if "exchanges" in record:
        lines.append(f"to x %: mean error of {record['protocol']} for a typical kernel; 'gosta theory' takes your data")
        lines.append("tracking, the default of 'gosta run', has no prediction; it usually needs fewer exchanges")
    return "\n".join(lines)
