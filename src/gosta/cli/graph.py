"""``gosta graph``: who may meet whom."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    """Show the nodes, edges, degrees and components of a graph."""
    from gosta.graphs import TABLE, load

    size = DEFAULT_SIZE if n is None and source in TABLE else n
    record = _record(load(source, size, seed), seed if source in TABLE else None)
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


def _text(record: dict[str, Any]) -> str:
    low, mean, high = record["degrees"].values()
    degrees = f"{low:,} each" if low == high else f"{low:,} to {high:,}, mean {mean:.4g}"
    rows = {
        "nodes": f"{record['n']:,}",
        "edges": f"{record['edges']:,}" + ", weighted" * record["weighted"],
        "degrees": degrees,
        "components": f"{record['components']:,}",
    }
    return "\n".join([record["graph"], *(f"  {name:<12}{value}" for name, value in rows.items())])
