"""Pictures of estimates: curves with their bands, forest plots, and files of them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gosta
from gosta.analysis.computation import compute
from gosta.errors import InputError
from gosta.statistics.pictures import pictures
from gosta.views import curves, plots

AXES = ("false positive rate", "true positive rate")


Command = Callable[..., tuple[int, str, str]]


def axes() -> Any:
    return plots.new_figure(4, 4).add_subplot()


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def roc(**others: Any) -> gosta.Estimate:
    x = np.array([0.2, 0.1, 0.5])
    found = gosta.Estimate(
        x**0.5, x, x**0.25, statistic="roc-curve", n=50, at=x, axes=AXES, level=0.95
    )
    return found._replace(**others)


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    risk = rng.uniform(size=200)
    died = np.where(rng.uniform(size=200) < risk, "yes", "no")
    lines = [f"{r:.4f},{d},{'fm'[k % 2]}" for k, (r, d) in enumerate(zip(risk, died, strict=True))]
    file = tmp_path / "patients.csv"
    file.write_text("\n".join(["risk,died,sex", *lines]))
    return file


def test_a_roc_curve_has_its_ends_band_and_diagonal() -> None:
    ax = axes()
    assert roc().plot(ax) is ax
    line = ax.lines[0]
    np.testing.assert_allclose(line.get_xdata(), [0, 0.1, 0.2, 0.5, 1])
    np.testing.assert_allclose(line.get_ydata(), np.sqrt([0, 0.1, 0.2, 0.5, 1]))
    assert (ax.get_xlabel(), ax.get_ylabel()) == AXES
    assert legend(ax) == ["chance", "95 % interval"]
    assert ax.get_title() == "ROC curve (n = 50)"


def test_points_without_a_value_are_left_out() -> None:
    ax = axes()
    roc(value=np.array([0.4, np.nan, 0.9])).plot(ax)
    assert len(ax.lines[0].get_xdata()) == 4


def test_a_bracket_is_a_band_of_its_own() -> None:
    ax = axes()
    roc(level=None, bracket=(np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.6, 0.7]))).plot(ax)
    assert legend(ax) == ["chance", "bracket"]


def test_curves_of_groups_are_drawn_into_one_picture() -> None:
    groups = (roc(group="f"), roc(group="m"), gosta.Estimate(None, group="none"))
    ax = axes()
    roc(by="sex", groups=groups).plot(ax)
    assert ax.get_title() == "ROC curve by sex"
    assert legend(ax)[:2] == ["f", "m"]


def test_kaplan_meier_curves_say_how_many_are_at_risk() -> None:
    x, counts = np.array([1.0, 4.0, 6.0]), np.array([10.0, 5.0, 2.0])
    ax = axes()
    gosta.Estimate(
        np.array([0.9, 0.7, 0.3]),
        statistic="kaplan-meier",
        n=12,
        at=x,
        axes=("time", "S"),
        counts=counts,
    ).plot(ax)
    line = ax.lines[0]
    assert line.get_drawstyle() == "steps-post"
    assert (line.get_xdata()[0], line.get_ydata()[0]) == (0, 1)
    assert texts(ax) == ["at risk", "12", "10", "5", "2"]
    own = gosta.Estimate(x, statistic="kaplan-meier:t+e", n=70, at=x)
    bracket = (np.array([10.0, 38, np.nan]), np.array([10.0, 41, np.nan]))
    left = np.array([10, 40, np.nan])
    risk = gosta.Estimate(left, statistic="numbers-at-risk:t+e", at=x, bracket=bracket)
    (picture,) = pictures([own, risk])
    picture.draw(ax := axes())
    assert texts(ax) == ["at risk", "70", "10", "\N{ALMOST EQUAL TO}40", "-"]


def test_calibration_curves_have_a_histogram() -> None:
    x = np.array([0.1, 0.2, 0.3])
    ax = axes()
    gosta.Estimate(
        x, statistic="calibration-curve", at=x, axes=("risk", "share"), counts=np.array([5, 7, 2])
    ).plot(ax)
    (bars,) = ax.child_axes
    assert [bar.get_height() for bar in bars.patches] == [5, 7, 2]
    assert legend(ax) == ["bins of rows", "ideal", "number of rows"]


def test_decision_curves_are_shown_against_all_and_none() -> None:
    t = np.array([0.1, 0.5])
    own = gosta.Estimate(np.array([0.3, 0.1]), statistic="net-benefit", at=t, axes=("t", "b"))
    every = own._replace(value=0.4 - 0.6 * t / (1 - t), statistic="net-benefit-of-all")
    (picture,) = pictures([own, every])
    ax = axes()
    picture.draw(ax)
    assert legend(ax) == ["score", "all", "none"]
    precision = own._replace(statistic="precision-recall-curve")
    (picture,) = pictures([precision], [every])
    picture.draw(ax := axes())
    assert legend(ax) == ["score", "prevalence 0.4"]


def test_values_of_groups_are_a_forest_plot() -> None:
    groups = tuple(
        gosta.Estimate(0.7, 0.6, 0.8, level=0.95, group=name, n=9) for name in ("f", "m")
    )
    whole = gosta.Estimate(
        0.75, 0.7, 0.8, level=0.95, statistic="auc:risk", by="sex", groups=groups, n=18
    )
    ax = axes()
    whole.plot(ax)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["f\n(n = 9)", "m\n(n = 9)", "all rows\n(n = 18)"]
    assert texts(ax)[-1] == "0.750 (0.700 to 0.800)"
    assert ax.get_title() == "auc by sex, risk"
    (picture,) = pictures([whole])
    assert picture.description == "auc by sex, risk: f 0.700, m 0.700, all rows 0.750"


def test_a_data_frame_of_groups_can_be_drawn(patients: Path) -> None:
    frame = gosta.exact(str(patients), "auc", score="risk", label="died", by="sex")
    gosta.Estimate.from_dict(frame.attrs["estimates"][0]).plot(ax := axes())
    assert ax.get_title() == "auc by sex"
    assert len(ax.get_yticklabels()) == 3


def test_several_scores_share_a_picture() -> None:
    auc = gosta.Estimate(0.7, 0.6, 0.8, level=0.9, statistic="auc:a")
    picture, second = pictures([roc(statistic="roc-curve:a"), roc(statistic="roc-curve:b"), auc])
    picture.draw(ax := axes())
    assert legend(ax)[:2] == ["a", "b"]
    assert not second.is_curve


def test_labelled_values_with_intervals_are_a_forest_plot() -> None:
    value = np.array([0.1, 0.2])
    one = gosta.Estimate(value, value - 1, value + 1, level=0.9, labels=("ICI", "E50"))
    one.plot(ax := axes())
    assert [label.get_text()[:3] for label in ax.get_yticklabels()] == ["ICI", "E50"]


def test_groups_without_a_value_have_no_picture() -> None:
    table = gosta.datasets.load({"risk": [0.1, 0.4, 0.6, 0.9] * 3, "died": [0, 1, 0, 1] * 3})
    data, groups = table.select(score="risk", label="died"), [0, 1, 1, 0] * 3
    (curve,) = compute(data, ["roc-curve"], by=groups, interval=0.95)
    assert [one.has_groups for one in pictures([curve])] == [False, True]
    none = tuple(group._replace(value=None) for group in curve.groups)
    assert [one.has_groups for one in pictures([curve._replace(groups=none)])] == [False]


@pytest.mark.parametrize("name", ["$x^$ {", "$$", "a_1^2"])
def test_names_of_columns_are_no_formulas(name: str) -> None:
    scores = {name: [0.1, 0.4, 0.6, 0.9], "old": [0.2, 0.4, 0.3, 0.9], "died": [0, 1, 0, 1]}
    table = gosta.datasets.load(scores).select(label="died")
    found = compute(table, [f"roc-curve:{name}", "roc-curve:old"], interval=0.95)
    figure = plots.new_figure(4, 4)
    (picture,) = pictures(found)
    picture.draw(figure.add_subplot())
    figure.savefig(io.BytesIO())
    assert name in [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(InputError, match="auc has no picture: it is no curve, and has no interval"):
        gosta.Estimate(0.7, statistic="auc").plot(axes())


def test_long_curves_are_drawn_by_so_many_points_as_can_be_seen() -> None:
    x = np.linspace(0, 1, 100_000)
    curves.draw_curves(ax := axes(), "other", [curves.Curve(x, x)], ("x", "y"))
    assert len(ax.lines[0].get_xdata()) == curves.MOST_DRAWN


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_command_writes_a_picture(patients: Path, ending: str, gosta_: Command) -> None:
    file = patients.with_suffix(f".{ending}")
    what = ["-s", "auc,roc-curve", "--score", "risk", "--label", "died", "--by", "sex"]
    shown = gosta_("exact", patients, *what, "--plot", file)
    assert shown[0] == 0, shown
    assert f"plot: {file}" in shown[1]
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert file.read_bytes().startswith(start)


def test_curves_are_short_tables(patients: Path, gosta_: Command) -> None:
    data = {"value": np.random.default_rng(1).normal(size=500)}
    found = gosta.exact(data, "quantiles", parts=200, interval=0.9)
    lines = found.text().splitlines()
    assert lines[1].split("  ")[1:4] != []
    assert "11 of 199 points (--json: all; --plot draws them)" in found.text()
    assert max(map(len, lines)) <= 80
    assert len(lines) < 20
    assert repr(found) == "Estimate(quantiles: 199 points, value, at, low, high)"
    assert found._repr_html_().count("<tr>") == 12
    what = ["-s", "net-benefit", "--score", "risk", "--label", "died"]
    summed = gosta_("exact", patients, *what, "--bins", "64", "--interval", "95%")[1].splitlines()
    assert sum(line.startswith("  net-benefit ") for line in summed) == 11
    assert max(map(len, summed)) <= 100
    whole = gosta_("exact", patients, "-s", "quantiles:risk,variance:risk")[1]
    assert "9 points (--json)" in whole


def test_estimates_are_read_back_from_json() -> None:
    found = gosta.exact("breast-cancer", "roc-curve", interval=0.95)
    record = json.loads(json.dumps(found.to_dict()))
    again = gosta.Estimate.from_dict(record)
    assert again.to_dict() == found.to_dict()
    np.testing.assert_array_equal(again.at, found.at)
    grouped = roc(by="sex", groups=(roc(group="f"),), bracket=(np.zeros(3), np.ones(3)))
    again = gosta.Estimate.from_dict(json.loads(json.dumps(grouped.to_dict())))
    assert again.to_dict() == grouped.to_dict()
    assert again.groups[0].axes == AXES
    missing = gosta.Estimate.from_dict(roc(value=np.array([0.4, np.nan, 0.9])).to_dict())
    assert np.isnan(missing.value).tolist() == [False, True, False]


def test_the_time_axis_has_round_times_beside_those_of_the_risk_table() -> None:
    ax = axes()
    x = np.linspace(50, 700, 20)
    at_risk = (np.array([180.0, 365.0]), ["90", "40"])
    curve = curves.Curve(x, 1 - x / 1000, at_risk=at_risk)
    curves.draw_curves(ax, "kaplan-meier", [curve], ("time", "share without an event"))
    ticks = ax.get_xticks()
    assert {180.0, 365.0} < set(ticks)
    assert len(ticks) >= 4
    assert np.diff(ticks).min() > 0.05 * ticks[-1]


def test_a_bracket_that_is_nowhere_known_is_not_in_the_legend() -> None:
    ax = axes()
    x = np.linspace(0, 1, 5)
    unknown = np.full(5, np.nan)
    curve = curves.Curve(x, x, "risk", bracket=(unknown, unknown))
    curves.draw_curves(ax, "roc-curve", [curve], AXES)
    assert legend(ax) == ["risk", "chance"]
