"""``gosta graph``: properties of a graph and how fast gossip is on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gosta.cli.options import DEFAULT_PROTOCOL, check_picture
from gosta.views import terminal

if TYPE_CHECKING:
    from gosta.graphs import Graph

DEFAULT_SIZE = 1000
MAX_QUICK_NODES = 100_000  # up to which the eigenvalues take seconds


def graph(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[GRAPH]",
            help="A family (complete, torus, grid, cycle, path, star, hypercube, watts-strogatz, "
            "erdos-renyi, random-regular, barabasi-albert, geometric, two-cliques), with "
            "parameters if you like (watts-strogatz:k=8,p=0.1), or a file with one edge per line; "
            "by default watts-strogatz, complete for fewer than 6 nodes.",
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
    from gosta.theory.speed import speed as compute_speed

    is_named = source is None or is_family(source)
    size = DEFAULT_SIZE if n is None and is_named else n
    plot = None if plot == Path("none") else plot
    check_picture("plot", plot)
    network = load(source, size, seed)
    if plot is not None:
        check_drawable(network)
    record = network.to_dict() | {"seed": seed if is_named else None}
    if not as_json:
        print(f"{network.name}\n{_aligned(network.rows())}", flush=True)
    if network.n <= MAX_QUICK_NODES or network.spectrum is not None or speed:
        known = compute_speed(network)
        record |= known.to_dict()
        explanation = (
            f"to x %: mean error, derived for {DEFAULT_PROTOCOL} and a typical kernel;\n"
            "'gosta theory' computes it for your data"
        )
        text = f"{_aligned(known.rows())}\n{explanation}"
    else:
        limit = f"not computed above {MAX_QUICK_NODES:,} nodes"
        text = _aligned({"speed": f"{limit}: that takes minutes; --speed does it"})
    print(json.dumps(record) if as_json else text)
    if plot is not None:
        _draw(network, plot)
        if not as_json:
            print(f"plot: {plot}")


def _draw(graph: Graph, file: Path) -> None:
    from gosta.theory import bottleneck
    from gosta.theory.bottleneck import plot_bottleneck
    from gosta.views import plots

    plots.save(plot_bottleneck(bottleneck(graph), plots.new_figure).figure, file)


def _aligned(rows: Mapping[str, str]) -> str:
    """Return names and what they stand for; both parts of the output are aligned alike."""
    padded = ((name.ljust(len("spectral gap")), text) for name, text in rows.items())
    return terminal.definitions(padded, wrap=True)
