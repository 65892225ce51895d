"""Statistics whose kernel takes three rows: all triples, a sample of them, and why nodes cannot."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from commands import command

import gosta
from gosta.errors import GostaError, InputError
from gosta.estimation.estimand import Estimand
from gosta.runtime import extras
from gosta.statistics import STATISTICS, Statistic, triples

X = np.round(np.random.default_rng(0).gamma(2, 1, (40, 2)), 2)
TIGHT = 1e-10


@pytest.fixture(autouse=True)
def separate_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gosta.statistics.definition.STATISTICS", dict(STATISTICS))


def third_moment(x: Any, y: Any, z: Any, divisor: float = 6.0) -> float:
    """Third central moment, an unbiased estimate."""
    product: float = (x[0] + y[0] - 2 * z[0]) * (y[0] + z[0] - 2 * x[0]) * (z[0] + x[0] - 2 * y[0])
    return -product / divisor


def area(x: Any, y: Any, z: Any) -> tuple[float, float]:
    """Area of a triangle, and whether it is large."""
    twice = abs((y[0] - x[0]) * (z[1] - x[1]) - (z[0] - x[0]) * (y[1] - x[1]))
    return 0.5 * twice, 1.0 * (twice > 1.0)


@pytest.fixture
def skew() -> Statistic:
    return gosta.statistic(name="third-moment")(third_moment)


def test_value_and_interval_are_those_of_scipy(skew: Statistic) -> None:
    v = X[:, 0]
    assert (skew.degree, skew.options, skew.summary) == (
        3,
        {"divisor": 6.0},
        "Third central moment, an unbiased estimate.",
    )
    for n in (3, 4, 40):
        assert gosta.exact(v[:n], skew) == pytest.approx(scipy.stats.kstat(v[:n], 3), rel=TIGHT)
    estimate = gosta.exact(v, "third-moment", interval=0.9)
    without = np.array([scipy.stats.kstat(np.delete(v, i), 3) for i in range(40)])
    assert estimate.standard_error == pytest.approx(
        np.sqrt(39 / 40 * ((without - without.mean()) ** 2).sum()), rel=1e-8
    )
    assert estimate.low < estimate.value < estimate.high


def test_several_numbers_final_weights_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    made = gosta.statistic(name="mean-area", final=lambda m: m[0] / m[1])(area)
    weights = np.random.default_rng(1).gamma(1, 1, 40)
    index = np.array(list(combinations(range(40), 3)))
    values = np.array([area(*X[triple]) for triple in index])
    plain, products = values.mean(axis=0), weights[index].prod(axis=1)
    weighted = (products[:, None] * values).sum(axis=0)
    for block in (triples.TRIPLES_PER_BLOCK, 500):
        monkeypatch.setattr(triples, "TRIPLES_PER_BLOCK", block)
        assert gosta.exact(X, made) == pytest.approx(plain[0] / plain[1], rel=TIGHT)
        assert gosta.exact(X, made, weights=weights) == pytest.approx(
            weighted[0] / weighted[1], rel=TIGHT
        )
    compiled = gosta.exact(X[:20], made, interval=0.9)
    monkeypatch.setattr(extras, "is_installed", lambda module: module != "numba")
    assert gosta.exact(X[:20], made, interval=0.9)[:5] == pytest.approx(compiled[:5], rel=TIGHT)
    assert gosta.exact(X, made) == pytest.approx(plain[0] / plain[1], rel=TIGHT)


def test_sample(skew: Statistic) -> None:
    """Values are within 5 standard errors of those over all triples: false alarms below 1e-6."""
    v = np.random.default_rng(2).gamma(2, 1, 300)
    exact = gosta.exact(v, skew, interval=0.95)
    sampled = gosta.exact(v, skew, sample=50_000, seed=3)
    assert sampled.value == pytest.approx(exact.value, abs=5 * sampled.standard_error)
    assert sampled == gosta.exact(v, skew, sample=50_000, seed=3)
    others = [gosta.exact(v, skew, sample=2_000, seed=seed) for seed in range(60)]
    spread = np.std([one.value for one in others], ddof=1)  # of 60 values: right to 9 %
    assert spread == pytest.approx(np.mean([one.standard_error for one in others]), rel=0.45)
    population = gosta.exact(v, skew, sample=50_000, seed=3, interval=0.95)
    assert population.standard_error == pytest.approx(exact.standard_error, rel=0.15)
    table = gosta.exact({"v": v, "g": np.arange(300) % 2}, skew, columns="v", by="g", sample=1_000)
    assert table["group"].tolist()[2:] == [
        "all rows",
        "1 less 0",
        "mean of groups",
        "random-effects mean",
    ]


def test_errors(skew: Statistic) -> None:
    def rejected(message: str, *given: Any, **more: Any) -> None:
        with pytest.raises(GostaError, match=message):
            gosta.exact(*given, **more)

    rejected("needs at least three rows, there are 2", [1.0, 2.0], skew)
    rejected("an interval needs at least four rows", [1.0, 2.0, 4.0], skew, interval=0.9)
    rejected(
        r"1.3e\+12 triples, which take .* hours or more; compute a random sample",
        np.zeros(20_000),
        skew,
    )
    rejected(
        "normalisation = 'V': third-moment is a mean over triples of different rows",
        X[:, 0],
        skew,
        normalisation="V",
    )
    rejected("sample = 1000: variance is computed over all pairs", X[:, 0], "variance", sample=1000)
    rejected("sample = 5 must be a whole number, 100 or more", X[:, 0], skew, sample=5)
    rejected("seed = -1 must be", X[:, 0], skew, sample=500, seed=-1)
    first = gosta.statistic(name="first")(lambda x, y, z: x[0])
    rejected("first is not symmetric: the kernel is .* in another order", X, first)
    wild = gosta.statistic(name="wild")(lambda x, y, z: (int(x[0]) + int(y[0]) + int(z[0])) ** 40)
    rejected("compiled than in Python", X * 1000, wild)
    fails = gosta.statistic(name="fails")(lambda x, y, z: x[5] + y[5] + z[5])
    rejected("fails: the kernel fails with IndexError", X, fails)
    with pytest.raises(InputError, match="own: a kernel of three rows has no local; leave it out"):
        gosta.statistic(name="own", local=lambda h: h)(third_moment)


def test_nodes_say_why_they_cannot(skew: Statistic) -> None:
    why = (
        "third-moment has a kernel of three rows, and in an exchange a node's rows meet those of "
        "one other"
    )
    with pytest.raises(InputError, match=why):
        Estimand(skew, X[:, :1])
    with pytest.raises(InputError, match=why):
        gosta.simulate(X[:, 0], skew)


def test_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = command(capsys, monkeypatch)
    file = tmp_path / "mine.py"
    text = "def spread(x, y, z):\n    return max(x[0], y[0], z[0]) - min(x[0], y[0], z[0])\n"
    file.write_text(f"import gosta\n\n@gosta.statistic\n{text}")
    np.save(tmp_path / "rows.npy", X[:, 0])
    arguments = "exact", tmp_path / "rows.npy", "-s", f"{file}:spread"
    wanted = np.mean([np.ptp(X[list(triple), 0]) for triple in combinations(range(40), 3)])
    code, out, _ = run(*arguments)
    assert (code, "40 rows, 9,880 triples" in out) == (0, True)
    assert json.loads(run(*arguments, "--json")[1])["value"] == pytest.approx(wanted, rel=TIGHT)
    out = run(*arguments, "--sample", "1000", "--seed", "1")[1]
    assert "(95 % interval for all triples), standard error" in out
    assert "1,000 of 9,880 triples" in out
    assert run("run", tmp_path / "rows.npy", "-s", f"{file}:spread")[0] == 2
