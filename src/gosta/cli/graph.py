"""``gosta graph``: properties of a graph and how fast gossip is on it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gosta.cli.options import DEFAULT_PROTOCOL, check_picture
from gosta.views import numbers, terminal

if TYPE_CHECKING:
    from gosta.graphs import Graph

DEFAULT_SIZE = 1000
MAX_QUICK_NODES = 100_000  # up to which the eigenvalues take seconds
MAX_BOTTLENECK_NODES = 2_000_000  # beyond, finding it takes many minutes
ACCURACIES = (0.1, 0.01, 0.001)


def graph(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[GRAPH]",
            help="A family (complete, torus, grid, cycle, path, star, hypercube, watts-strogatz, erdos-renyi, "
            "random-regular, barabasi-albert, geometric, two-cliques), with parameters if you like "
            "(watts-strogatz:k=8,p=0.1), or a file with one edge per line; by default watts-strogatz, complete for "
            "fewer than 6 nodes.",
        ),
    ] = None,
    n: Annotated[int | None, f"Number of nodes of a family (default {DEFAULT_SIZE})."] = None,
    seed: Annotated[int, "Seed of a random family."] = 0,
    plot: Annotated[
        Path | None, "Draw the network with its bottleneck: a .png, .svg or .pdf file."
    ] = None,
    speed: Annotated[
        bool,
        f"Compute how fast gossip is beyond {MAX_QUICK_NODES:,} nodes, too: minutes for a million.",
    ] = False,
    as_json: Annotated[bool, "Print one JSON object.", "--json"] = False,
) -> None:
    """Show the properties of a graph, how fast gossip is on it, and its bottleneck."""
    from gosta.graphs import is_family, load
    from gosta.graphs.pictures import check_drawable

    is_named = source is None or is_family(source)
    size = DEFAULT_SIZE if n is None and is_named else n
    plot = None if plot == Path("none") else plot
    check_picture("plot", plot)
    network = load(source, size, seed)
    if plot is not None:
        check_drawable(network)
    record = _record(network, seed if is_named else None)
    if not as_json:
        print(_properties(record), flush=True)
    if network.n <= MAX_QUICK_NODES or network.spectrum is not None or speed:
        record |= _theory(network)
    print(json.dumps(record) if as_json else _speed(record))
    if plot is not None:
        _draw(network, plot)
        if not as_json:
            print(f"plot: {plot}")


def _draw(graph: Graph, file: Path) -> None:
    from gosta.theory import bottleneck
    from gosta.theory.bottleneck import plot_bottleneck
    from gosta.views import plots

    plots.save(plot_bottleneck(bottleneck(graph), plots.new_figure).figure, file)


def _record(graph: Graph, seed: int | None) -> dict[str, Any]:
    degrees = graph.degrees
    return {
        "graph": graph.name,
        "n": graph.n,
        "edges": graph.m,
        "degrees": {
            "min": int(degrees.min()),
            "mean": float(degrees.mean()),
            "max": int(degrees.max()),
        },
        "components": len(graph.components()),
        "weighted": graph.weights is not None,
        "seed": seed,
    }


def _theory(graph: Graph) -> dict[str, Any]:
    """Return how fast gossip is on a graph."""
    from gosta.theory import bottleneck, mixing_time, predict, spectral_gap

    def rounded(value: float) -> int | None:
        return round(value) if math.isfinite(value) else None

    mixing = mixing_time(graph)
    found = {accuracy: predict(graph, accuracy=accuracy) for accuracy in ACCURACIES}
    return {
        "spectral_gap": spectral_gap(graph),
        "mixing_time": mixing if math.isfinite(mixing) else None,
        "protocol": DEFAULT_PROTOCOL,
        "exchanges": {str(accuracy): rounded(one.exchanges) for accuracy, one in found.items()},
        "exchanges_per_node": {
            str(accuracy): rounded(one.per_node) for accuracy, one in found.items()
        },
        "bottleneck": bottleneck(graph).description if graph.n <= MAX_BOTTLENECK_NODES else None,
    }


def _properties(record: dict[str, Any]) -> str:
    low, mean, high = record["degrees"].values()
    degrees = f"{low:,} each" if low == high else f"{low:,} to {high:,}, mean {mean:.4g}"
    entries = {
        "nodes": numbers.count(record["n"]),
        "edges": numbers.count(record["edges"]) + ", weighted" * record["weighted"],
        "degrees": degrees,
        "components": numbers.count(record["components"]),
    }
    return f"{record['graph']}\n{_aligned(entries)}"


def _speed(record: dict[str, Any]) -> str:
    if "spectral_gap" not in record:
        reason = (
            f"not computed above {MAX_QUICK_NODES:,} nodes: that takes minutes; --speed does it"
        )
        return _aligned({"speed": reason})
    gap, mixing, per_node = (
        record["spectral_gap"],
        record["mixing_time"],
        record["exchanges_per_node"],
    )
    time = numbers.count(1 / gap if gap else math.inf, "exchange")
    mixes = (
        f"{numbers.count(mixing, 'exchange')} until a visitor can be anywhere"
        if mixing
        else "visitors never mix"
    )
    entries = {
        "spectral gap": f"{gap:.3g}: differences shrink by e in {time}",
        "mixing time": mixes,
    }
    for accuracy, total in record["exchanges"].items():
        each = numbers.count(per_node[accuracy] or math.inf)
        reached = f"{numbers.count(total or math.inf)} exchanges, {each} a node"
        entries[f"to {numbers.percent(float(accuracy))}"] = reached
    too_large = f"not computed above {MAX_BOTTLENECK_NODES:,} nodes; use a smaller graph"
    entries["bottleneck"] = record["bottleneck"] or too_large
    subject = f"derived for {record['protocol']} and a typical kernel"
    return f"{_aligned(entries)}\nto x %: mean error, {subject};\n'gosta theory' computes it for your data"


def _aligned(entries: Mapping[str, str]) -> str:
    """Align names, which are printed in two parts, and what they stand for."""
    padded = ((name.ljust(len("spectral gap")), text) for name, text in entries.items())
    return terminal.definitions(padded, wrap=True)
