"""Pictures: networks with their bottleneck, runs before and after, animations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import command
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba

import gosta
from gosta import graphs, theory
from gosta.errors import InputError
from gosta.graphs.graph import Graph
from gosta.simulation.overview import overview, reason_not_to_draw
from gosta.simulation.trace import Trace
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


@pytest.fixture(scope="module")
def trace() -> Trace:
    return gosta.simulate("iris", "gini-mean-difference", graph="torus", iterations=3000, runs=2, checkpoints=20)


def test_an_overview_shows_the_network_before_and_after(trace: Trace) -> None:
    before, after, curves = overview([trace], ["carried-means"]).figure.axes[:3]
    estimates = trace.estimates.values[0]
    for ax, checkpoint in ((before, 0), (after, -1)):
        (nodes,) = collections(ax, PathCollection)
        np.testing.assert_allclose(nodes.get_array(), estimates[checkpoint] / trace.target - 1)
        assert nodes.get_clim() == (-1.0, 1.0)
    assert before.get_title().startswith("after 2 exchanges a node:\noff by ")
    assert after.get_title().startswith("after 40 exchanges a node:\noff by ")
    assert "mean of 2 runs" in curves.get_title()
    title = "150 nodes, each knows one row of iris: together they estimate its gini-mean-difference"
    assert curves.figure.get_suptitle() == title


def test_nodes_with_several_rows_begin_with_their_own_values() -> None:
    trace = gosta.simulate(
        "breast-cancer", "auc", nodes=20, by="mean radius", iterations=400, runs=1, checkpoints=4, protocol="tracking"
    )
    before = overview([trace], ["tracking"]).figure.axes[0]
    (nodes,) = collections(before, PathCollection)
    known = np.array(trace.info.local_values[0], dtype=np.float64)
    np.testing.assert_allclose(np.ma.filled(nodes.get_array(), np.nan), known / trace.target - 1)
    assert before.get_title().startswith("at the start, from its own rows:\noff by ")
    assert before.get_title().endswith(f", {np.isnan(known).sum()} without a value")


def test_only_the_curve_is_drawn_where_nodes_have_no_common_value(trace: Trace) -> None:
    assert reason_not_to_draw(trace) == ""
    lost = Trace(trace.data, trace.info, {})
    assert reason_not_to_draw(lost).startswith("the trace does not hold its network")
    assert reason_not_to_draw(Trace(trace.data.drop_vars("estimates"), trace.info, trace.resume_data))
