"""Pictures: networks with their bottleneck, runs before and after, animations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from commands import command
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba
from PIL import Image

import gosta
from gosta import graphs, theory
from gosta.errors import InputError, MissingExtraError
from gosta.graphs.graph import Graph
from gosta.runtime import extras
from gosta.simulation.trace import Trace
from gosta.simulation.trace_plots import overview, reason_not_to_draw
from gosta.theory.bottleneck import CUT, SMALLER
from gosta.views import numbers


def collections(ax: Any, kind: type) -> list[Any]:
    return [one for one in ax.collections if isinstance(one, kind)]


@pytest.mark.parametrize("name", ["two-cliques", "complete", "watts-strogatz"])
def test_the_bottleneck_is_drawn(name: str) -> None:
    found = theory.bottleneck(name, n=40, seed=1)
    ax = found.plot()
    (nodes,) = collections(ax, PathCollection)
    np.testing.assert_array_equal(
        np.flatnonzero((nodes.get_facecolors() == to_rgba(SMALLER)).all(axis=1)), found.side
    )
    every, cut = collections(ax, LineCollection)
    assert (len(every.get_segments()), len(cut.get_segments())) == (found.graph.m, found.edges)
    assert (cut.get_color() == to_rgba(CUT)).all()
    title = ax.get_title()
    assert (
        f"40 nodes, {found.graph.m:,} edges, spectral gap {theory.spectral_gap(found.graph):.3g}"
        in title
    )
    assert found.description in title.replace("\n", " ")


def test_a_part_of_very_many_edges_is_drawn() -> None:
    every = collections(graphs.two_cliques(400).plot(), LineCollection)[0]
    assert 10_000 <= len(every.get_segments()) <= 20_000


def test_edges_across_the_border_of_a_torus_leave_it_on_both_sides() -> None:
    graph = graphs.torus(4, 5)
    ax = graph.plot()
    (lines,) = collections(ax, LineCollection)
    (nodes,) = collections(ax, PathCollection)
    ends = np.concatenate(lines.get_segments())
    assert len(lines.get_segments()) == graph.m + 4 + 5
    at_corner = np.abs(ends - nodes.get_offsets()[0]).max(axis=1) < 1e-9
    assert at_corner.sum() == 4
    assert (ends[:, 0].min() > ax.get_xlim()[0]) & (ends[:, 0].max() < ax.get_xlim()[1])
    renamed = Graph("torus 3 x 3", 9, graphs.star(9).edges)
    assert len(collections(renamed.plot(), LineCollection)[0].get_segments()) == 8


def test_a_network_too_large_to_draw() -> None:
    with pytest.raises(
        InputError, match="path has 10,001 nodes; pictures of networks have at most 10,000"
    ):
        graphs.path(10_001).plot()


def test_a_graph_is_drawn_into_given_axes() -> None:
    ax = Graph("pair", 2, np.array([[0, 1]], dtype=np.int32)).plot()
    assert graphs.star(5).plot(ax) is ax
    assert ax.get_title() == "star: 5 nodes, 4 edges"
    assert graphs.grid(7, 1).plot().figure.get_figheight() < 8  # upright


def test_graph_plot_on_the_command_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gosta, file = command(capsys, monkeypatch), tmp_path / "network.svg"
    code, out, _ = gosta("graph", "two-cliques", "--n", 10, "--plot", file)
    assert (code, out.splitlines()[-1]) == (0, f"plot: {file}")
    assert file.read_text().startswith("<?xml")
    code, _, err = gosta("graph", "cycle", "--n", 20_000, "--plot", file)
    assert (code, err) == (
        2,
        "gosta: cycle has 20,000 nodes; pictures of networks have at most 10,000\n",
    )
    code, _, err = gosta("graph", "--plot", tmp_path / "network.bmp")
    assert (code, err.count("\n")) == (2, 1)


@pytest.fixture(scope="module")
def trace() -> Trace:
    return gosta.simulate(
        "iris", "gini-mean-difference", graph="torus", runs=2, checkpoints=20, spacing="log"
    )


def test_an_overview_shows_the_network_before_and_after(trace: Trace) -> None:
    before, after, curves = overview([trace], ["carried-means"]).figure.axes[:3]
    estimates = trace.estimates.values[0]
    # when nodes have taken part in an exchange, on average
    first = np.searchsorted(trace.iterations, 75)
    for ax, checkpoint in ((before, first), (after, -1)):
        (nodes,) = collections(ax, PathCollection)
        np.testing.assert_allclose(nodes.get_array(), estimates[checkpoint] / trace.target - 1)
        assert nodes.get_clim() == (-1.0, 1.0)
    assert before.get_title().startswith("after 1.3 exchanges a node:\noff by ")
    assert after.get_title().startswith("after 200 exchanges a node:\noff by ")
    assert "mean of 2 runs" in curves.get_title()
    title = "150 nodes, each knows one row of iris: together they estimate its gini-mean-difference"
    assert curves.figure.get_suptitle() == title


def test_networks_agree_with_the_curve_where_nodes_have_several_rows() -> None:
    trace = gosta.simulate(
        "breast-cancer",
        "auc",
        nodes=20,
        by="mean radius",
        iterations=400,
        runs=1,
        checkpoints=4,
        protocol="tracking",
    )
    for ax, checkpoint in zip(overview([trace], ["tracking"]).figure.axes, (0, -1), strict=False):
        error = numbers.error(float(trace.error()["mean"][checkpoint]))
        assert ax.get_title().endswith(f":\noff by {error} on average")


def without_estimates(trace: Trace) -> Trace:
    return Trace(trace.data.drop_vars("estimates"), trace.setting, trace.info, trace.resume_data)


def test_only_the_curve_is_drawn_where_nodes_have_no_common_value(trace: Trace) -> None:
    assert reason_not_to_draw(trace) == ""
    assert reason_not_to_draw(without_estimates(trace)).startswith("the estimates of all nodes")


@pytest.fixture(scope="module")
def frames(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> list[Image.Image]:
    file = tmp_path_factory.mktemp("animation") / "run.gif"
    trace.animate(file)
    with Image.open(file) as image:
        assert (image.size, image.info["loop"]) == ((1280, 720), 0)
        found = []
        for k in range(image.n_frames):  # type: ignore[attr-defined]
            image.seek(k)
            found.append(image.convert("RGB"))
        assert image.info["duration"] == 3000  # the last one stays
    return found


def frame_count(trace: Trace) -> int:
    # from when a tenth of the nodes have taken part in an exchange
    return int((trace.iterations >= 7.5).sum())


def test_an_animation_has_a_frame_for_each_checkpoint(
    trace: Trace, frames: list[Image.Image]
) -> None:
    assert len(frames) == frame_count(trace) > 10


def test_colours_become_equal_and_the_curve_grows(frames: list[Image.Image]) -> None:
    first, last = (np.asarray(frame, dtype=np.int64) for frame in (frames[0], frames[-1]))
    network, curves = np.s_[120:600, 40:600], np.s_[120:640, 740:1260]
    teal = np.array([33, 145, 140])  # the middle of the colours: the exact value

    def share(frame: Any, near: Any) -> float:
        is_near = np.abs(frame[network] - near).max(axis=-1) < 40
        is_dot = np.ptp(frame[network], axis=-1) > 40  # edges and background are grey
        return float((is_near & is_dot).sum() / is_dot.sum())

    assert share(first, teal) < 0.3
    assert share(last, teal) > 0.8  # all but the borders of dots
    ink = [int((np.ptp(frame[curves], axis=-1) > 10).sum()) for frame in (first, last)]
    assert ink[1] > 5 * ink[0]


def test_an_animation_as_video(trace: Trace, tmp_path: Path) -> None:
    file = tmp_path / "run.mp4"
    trace.animate(file)
    with av.open(file) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height, stream.codec_context.name) == (1280, 720, "h264")
        assert (
            sum(1 for _ in container.decode(video=0)) == frame_count(trace) + 3 * 8
        )  # the last one stays for three seconds


def test_animations_that_cannot_be_made(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"file = 'run.avi' must end in .gif or .mp4"):
        trace.animate("run.avi")
    with pytest.raises(
        InputError, match="cannot animate this trace: the estimates of all nodes were too many"
    ):
        without_estimates(trace).animate(tmp_path / "run.gif")
    monkeypatch.setattr(extras, "is_installed", lambda name: name != "av")
    with pytest.raises(
        MissingExtraError,
        match=r"needs the package 'av'; install it with: pip install 'gosta\[video\]'",
    ):
        trace.animate(tmp_path / "run.mp4")


def test_animate_on_the_command_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gosta, file = command(capsys, monkeypatch), tmp_path / "run.gif"
    arguments = [
        "run",
        "iris",
        "--statistic",
        "gini-mean-difference",
        "--runs",
        1,
        "--checkpoints",
        3,
        "--plot",
        "none",
    ]
    code, out, _ = gosta(*arguments, "--animate", file)
    assert (code, out.splitlines()[-1]) == (0, f"animation: {file}")
    assert file.read_bytes().startswith(b"GIF89a")
    code, _, err = gosta(*arguments, "--animate", tmp_path / "run.png")
    assert (code, err.count("\n")) == (2, 1)
