"""Private sums in simulations: errors of bins and noise, exchanges until every node has the
sums.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from commands import command

import gosta
from gosta.private.settings import PrivateSettings, suggested_bins
from gosta.runtime.arrays import Floats
from gosta.simulation import private
from gosta.sketches import Bins, make_layout


@pytest.mark.parametrize("name", ["complete", "cycle", "watts-strogatz", "two-cliques"])
def test_every_contribution_travels_to_every_node(name: str) -> None:
    graph = gosta.graphs.make(name, 12)
    found = private.spread_by_union(graph, 100, np.random.default_rng(0))
    assert found.exchanges >= 12 * math.log2(12) / 2 - 1  # of two nodes each
    assert found.bytes > 12 * 11 * 800
    assert private.spread_by_tree(graph, 100) == (22, 22 * 800)


def test_averaging_ends_near_the_total() -> None:
    graph, vectors = gosta.graphs.make("cycle", 8), np.random.default_rng(1).random((8, 3))
    total = vectors.sum(axis=0)
    checked = []

    def is_near(totals: Floats) -> bool:
        checked.append(totals)
        return bool(np.allclose(totals, total, rtol=0.01))

    found = private.spread_by_averaging(graph, vectors, is_near, np.random.default_rng(2))
    assert found.exchanges + 8 == len(checked)
    assert found.bytes == 48 * found.exchanges
    assert (
        private.spread_by_averaging(
            graph, vectors, lambda _: False, np.random.default_rng(2)
        ).exchanges
        == math.inf
    )


def test_counts_of_randomised_rows_are_not_biased() -> None:
    layout = make_layout("auc", Bins(bins=4), data=gosta.datasets.load("breast-cancer"))
    sums = np.array([30.0, 0, 5, 100, 60, 20, 1, 0])
    draws = private.draw_randomised_rows(layout, sums, 1.0, 4000, np.random.default_rng(3))
    assert draws.sum(axis=1) == pytest.approx(sums.sum())
    # six standard errors: eight counts, a false alarm is under one in ten million
    assert np.abs(draws.mean(axis=0) - sums).max() < 6 * draws.std(axis=0).max() / math.sqrt(4000)


def test_masks_with_shared_noise_are_the_best_choice() -> None:
    data = gosta.datasets.load("breast-cancer")
    layout = make_layout("auc", Bins(bins=16), data=data)
    sums = layout.sums(layout.encode(data), 24) / 2.0**24
    exact = gosta.exact("breast-cancer", "auc")
    assert isinstance(exact, float)
    found = private.errors_of_choices(layout, sums, exact, PrivateSettings(epsilon=2.0), 20, 100, 0)
    assert found[private.ROWS] > found[private.SITES] > 2 * found[private.SHARED]


def test_suggested_bins() -> None:
    assert suggested_bins(569, None) == suggested_bins(None, None) == 64
    assert [suggested_bins(n, 1.0) for n in (None, 10, 569, 50_000, 10**7)] == [16, 16, 16, 25, 64]


def test_run_private(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = command(capsys, monkeypatch)
    plot = tmp_path / "errors.png"
    options = "--nodes", "20", "--private", "--runs", "3", "--plot", str(plot)
    text = run("run", "breast-cancer", *options, "--epsilon", "1")[1]
    assert (
        "569 rows at 20 sites, watts-strogatz\n16 bins, 32 numbers, discrete Laplace noise" in text
    )
    assert "union of contributions" in text
    assert re.search(r"^  auc +0\.963.* [0-9.]+ % +[0-9.]+ % +[0-9.]+ %$", text, re.MULTILINE)
    assert plot.stat().st_size > 10_000
    found = json.loads(run("run", "breast-cancer", *options, "--bins", "128", "--json")[1])
    value = found["values"][0]
    assert value["low"] <= value["exact"] <= value["high"]
    assert value["exact"] == gosta.exact("breast-cancer", "auc")
    assert value["noise_error"] is None
    assert found["spreading"]["tree"]["exchanges"] == 38


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bins", "8"], "bins is for private sums; add --private"),
        (
            ["--private", "--protocol", "u2"],
            "protocol is for exchanges of rows; leave it out with --private",
        ),
        (["--private", "--statistic", "within-cluster-scatter"], "is not a function of sums"),
        (
            ["--private", "-s", "variance", "-c", "mean radius", "--epsilon", "1"],
            "delta = 0 suits statistics",
        ),
    ],
)
def test_options_that_do_not_fit(
    options: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, _, error = command(capsys, monkeypatch)("run", "breast-cancer", *options)
    assert code == 2
    assert message in error
