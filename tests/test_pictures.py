"""Pictures: networks with their bottleneck, runs before and after, animations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import command
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba

from gosta import graphs, theory
from gosta.errors import InputError
from gosta.graphs.graph import Graph
from gosta.theory.plotting import CUT, SMALLER


def collections(ax: Any, kind: type) -> list[Any]:
    return [one for one in ax.collections if isinstance(one, kind)]


@pytest.mark.parametrize("name", ["two-cliques", "complete", "watts-strogatz"])
def test_the_bottleneck_is_drawn(name: str) -> None:
    found = theory.bottleneck(name, n=40, seed=1)
    ax = found.plot()
    (nodes,) = collections(ax, PathCollection)
    np.testing.assert_array_equal(np.flatnonzero((nodes.get_facecolors() == to_rgba(SMALLER)).all(axis=1)), found.side)
    every, cut = collections(ax, LineCollection)
    assert (len(every.get_segments()), len(cut.get_segments())) == (found.graph.m, found.edges)
    assert (cut.get_color() == to_rgba(CUT)).all()
    title = ax.get_title()
    assert f"40 nodes, {found.graph.m:,} edges, spectral gap {theory.spectral_gap(found.graph):.3g}" in title
    assert found.description in title.replace("\n", " ")


def test_a_part_of_very_many_edges_is_drawn() -> None:
    every = collections(graphs.two_cliques(400).plot(), LineCollection)[0]
    assert 10_000 <= len(every.get_segments()) <= 20_000


def test_a_network_too_large_to_draw() -> None:
    with pytest.raises(InputError, match="path has 10,001 nodes; pictures of networks have at most 10,000"):
        graphs.path(10_001).plot()


def test_a_graph_is_drawn_into_given_axes() -> None:
    ax = Graph("pair", 2, np.array([[0, 1]], dtype=np.int32)).plot()
    assert graphs.star(5).plot(ax) is ax
    assert ax.get_title() == "star: 5 nodes, 4 edges"


def test_graph_plot_on_the_command_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gosta, file = command(capsys, monkeypatch), tmp_path / "network.svg"
    code, out, _ = gosta("graph", "two-cliques", "--n", 10, "--plot", file)
    assert (code, out.splitlines()[-1]) == (0, f"plot: {file}")
    assert file.read_text().startswith("<?xml")
    code, _, err = gosta("graph", "cycle", "--n", 20_000, "--plot", file)
    assert (code, err) == (2, "gosta: cycle has 20,000 nodes; pictures of networks have at most 10,000\n")
    code, _, err = gosta("graph", "--plot", tmp_path / "network.bmp")
    assert (code, err.count("\n")) == (2, 1)
