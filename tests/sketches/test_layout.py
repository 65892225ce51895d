"""Layouts: strata, several statistics, two rounds, settings that cannot be used."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gosta
from gosta.datasets import Data, load
from gosta.errors import DataError, InputError
from gosta.private.settings import PrivateSettings, check_settings
from gosta.runtime.arrays import Floats
from gosta.sketches import Bins, Layout, make_layout
from gosta.sketches.comparison import compare
from gosta.sketches.estimates import estimates_of
from gosta.sketches.layout import BITS
from gosta.statistics.estimate import Estimate

RISK: dict[str, Any] = {"score": "risk", "label": "died", "classes": (0, 1)}


def table(n: int = 400, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    died = rng.integers(0, 2, n)
    sex, ward = np.array(["f", "m"])[rng.integers(0, 2, n)], rng.integers(1, 4, n)
    columns = {
        "risk": np.clip(rng.normal(0.4, 0.15, n) + 0.1 * died, 0, 1),
        "died": died,
        "sex": sex,
        "ward": ward,
    }
    return load(columns | {"age": rng.integers(20, 90, n), "income": rng.lognormal(3, 1, n)})


def totals_of(layout: Layout, x: Floats) -> Floats:
    return np.asarray(layout.sums(x) / 2.0**BITS)


@pytest.mark.parametrize(
    ("groups", "sums", "strata"),
    [
        (("sex", "ward"), 2 + 3, 5),
        (("sex", "sex+ward"), 6, 2 + 6),
        (("ward+sex", "ward", "sex"), 6, 6 + 3 + 2),
    ],
)
def test_columns_of_strata_can_be_alone_and_combined(
    groups: tuple[str, ...], sums: int, strata: int
) -> None:
    data = table()
    levels: dict[str, tuple[Any, ...]] = {"sex": ("f", "m"), "ward": (1, 2, 3)}
    settings = PrivateSettings(bins=16, ranges={"": (0, 1)}, strata=levels, groups=groups)
    layout = make_layout("auc", settings, **RISK)
    x = layout.encode(data)
    assert (layout.size, layout.width, len(layout.strata)) == (sums * 32, 4, strata)
    assert layout.features_per_row == (2 if groups == ("sex", "ward") else 1)
    assert layout.is_plausible(totals_of(layout, x), 0.0)
    results = layout.results(totals_of(layout, x), level=0.95)
    for result, rows in zip(results, layout.rows_by_stratum(x), strict=True):
        chosen = np.ones(400, dtype=bool)
        for column, _, value in (part.partition(" = ") for part in result.stratum.split(", ")):
            chosen &= not column or data.columns[column].astype(str) == value
        assert result.rows == chosen.sum() == len(rows)
        alone = make_layout("auc", Bins(16, {"": (0, 1)}), **RISK)
        own = alone.results(totals_of(alone, alone.encode(data.take(chosen))), level=0.95)[0]
        assert result == own._replace(stratum=result.stratum)
    (estimate,) = estimates_of(results, 0.95)
    assert [one.by for one in estimate.grouped] == [one.replace("+", ", ") for one in groups]
    assert [len(one.groups) for one in estimate.grouped] == [
        {"sex": 2, "ward": 3}.get(one, 6) for one in groups
    ]
    shown = Estimate.from_dict(estimate.to_dict())
    assert shown.to_dict() == estimate.to_dict()
    for one in estimate.grouped:
        assert len(one.differences) == len(one.groups) - 1
        assert one.heterogeneity is not None
    noisy = layout.results(totals_of(layout, x), noise_variance=0.5)
    names = ["", *layout.strata]
    for name, result in zip(names, noisy, strict=True):
        terms = layout.terms[", ".join(part.partition(" = ")[0] for part in name.split(", "))]
        own_totals = totals_of(alone, alone.encode(data))
        if not name:
            assert result == alone.results(own_totals, noise_variance=0.5 * terms)[0]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (("sex", "age"), "'age' is not in strata"),
        (("sex", "sex"), "give each column or combination once"),
        (("sex+ward", "ward+sex"), "give each column or combination once"),
    ],
)
def test_groups_that_are_refused(groups: tuple[str, ...], message: str) -> None:
    levels: dict[str, tuple[Any, ...]] = {"sex": ("f", "m"), "ward": (1, 2, 3)}
    with pytest.raises(InputError, match=message):
        check_settings(PrivateSettings(strata=levels, groups=groups))


def test_strata_and_all_rows_from_one_vector() -> None:
    data = table()
    settings = PrivateSettings(
        bins=64, ranges={"": (0, 1)}, strata={"sex": ("f", "m"), "ward": (1, 2, 3)}
    )
    layout = make_layout("auc", settings, **RISK)
    x = layout.encode(data)
    assert (layout.size, layout.width, layout.features_per_row) == (6 * 128, 4, 1)
    assert layout.columns == ("risk", "died", "sex", "ward")
    assert layout.strata[:4] == (
        "sex = f, ward = 1",
        "sex = f, ward = 2",
        "sex = f, ward = 3",
        "sex = m, ward = 1",
    )
    results = layout.results(totals_of(layout, x), noise_variance=0.0, level=0.95)
    assert [r.stratum for r in results] == ["", *layout.strata]
    alone, total = (
        make_layout("auc", Bins(64, {"": (0, 1)}), **RISK),
        totals_of(layout, x).reshape(6, 128).sum(axis=0),
    )
    assert results[0] == alone.results(total, level=0.95)[0]
    # All rows are a sum of six totals, each with its noise.
    assert (
        layout.results(totals_of(layout, x), noise_variance=2.0)[0]
        == alone.results(total, noise_variance=12.0)[0]
    )
    for result, sex, ward in zip(results[1:], "fffmmm", [1, 2, 3] * 2, strict=True):
        part = (data.columns["sex"] == sex) & (data.columns["ward"] == ward)
        rows = {name: column[part] for name, column in data.columns.items()}
        value = gosta.exact(rows, "auc", score="risk", label="died")
        assert result.low[0] <= value <= result.high[0]
        assert result.rows == part.sum()
    with pytest.raises(
        DataError, match=r"column 'sex' has the value 'm' .* none of those declared"
    ):
        make_layout("auc", Bins(4, {"": (0, 1)}, strata={"sex": ("f",)}), **RISK).encode(data)


def test_statistics_that_have_the_same_sums_share_them() -> None:
    ranges = {"risk": (0.0, 1.0), "age": (0, 110), "income": (0, 500)}
    alone = make_layout("auc", Bins(32, ranges), **RISK)
    names = "auc,mann-whitney,roc-curve,gini-index:income,lorenz-curve:income,kendall-tau:age+risk"
    layout = make_layout(names, Bins(32, ranges), **RISK)
    assert layout.size == 64 + (2 + 96) + 32 * 32
    assert layout.features_per_row == 1 + 3 + 1
    assert not layout.are_counts
    assert alone.are_counts
    data = table()
    x = layout.encode(data)
    assert x.shape == (400, layout.width)
    results = layout.results(totals_of(layout, x))
    assert [r.statistic for r in results] == names.split(",")
    exact = [
        gosta.exact(data, "auc", score="risk", label="died"),
        gosta.exact(data, "gini-index", columns="income"),
    ]
    for result, value in zip([results[0], results[3]], exact, strict=True):
        assert result.low[0] <= value <= result.high[0]
    assert results[3].clipped == (data.columns["income"] > 500).sum()
    described = layout.describe()
    assert described["statistics"] == names.replace(",", ", ")
    assert described["ranges"] == "risk 0 to 1, income 0 to 500, age 0 to 110"
    assert described["numbers"] == f"{layout.size:,}; a row adds to 5 of them"


def test_fingerprint_is_of_all_that_sums_depend_on() -> None:
    base: dict[str, Any] = {"statistics": "auc", "settings": Bins(32, {"risk": (0, 1)}), **RISK}
    changes: list[dict[str, Any]] = [
        {}, {"statistics": "mann-whitney"}, {"classes": (1, 0)},
        {"settings": Bins(33, {"risk": (0, 1)})}, {"settings": Bins(32, {"risk": (0, 2)})},
        {"settings": Bins(32, {"risk": (0, 1)}, find_edges=True)},
        {"settings": Bins(32, {"risk": (0, 1)}, strata={"sex": ("f", "m")})}, {"label": "dead"},
        {"settings": Bins(32, {"risk": (0, 1)}, find_edges=True, strata={"sex": ("f", "m")})},
        {"settings": Bins(32, {"risk": (0, 1)}, {"risk": (0.5,)})}, {"options": {"positive": 0}},
    ]  # fmt: skip
    layouts = [make_layout(**(base | change)) for change in changes]
    assert len({layout.fingerprint for layout in layouts}) == len(layouts) == len(set(layouts))
    assert make_layout(**base) == layouts[0]
    assert all(len(layout.fingerprint) == 16 for layout in layouts)


def test_blocks_are_named_by_what_their_sums_depend_on() -> None:
    def blocks(names: str, bins: int = 32, **changes: Any) -> tuple[str, ...]:
        settings = Bins(
            bins, {"": (0, 1)}, find_edges="edges" in changes, strata=changes.pop("strata", {})
        )
        changes.pop("edges", None)
        return make_layout(names, settings, **(RISK | changes)).blocks

    auc = blocks("auc")
    assert (
        auc
        == blocks("auc:risk")
        == blocks("auc,auc")
        == blocks("mann-whitney")
        == blocks("roc-curve,auc")
    )
    assert blocks("variance:age,auc") == (*blocks("variance:age"), *auc)
    assert blocks("variance:age") == blocks("variance:age", label=None, classes=())
    others = [
        blocks("auc", 33),
        blocks("auc", classes=(1, 0)),
        blocks("auc", label="dead"),
        blocks("auc:age"),
    ]
    others += [blocks("auc", options={"positive": 0}), blocks("auc", strata={"sex": ("f", "m")})]
    others += [blocks("auc", strata={"sex": ("m", "f")}), blocks("auc", edges=True)]
    assert len({auc, *others}) == 9
    assert all(len(block) == 1 and len(block[0]) == 16 for block in others)


def test_features_of_rows_in_blocks_add_up_to_the_sums() -> None:
    settings = Bins(8, {"risk": (0, 1), "age": (0, 100)}, strata={"sex": ("f", "m")})
    layout = make_layout("auc,gini-index:age,variance:age,lorenz-curve:age", settings, **RISK)
    x = np.repeat(layout.encode(table(5000)), 2, axis=0)
    sums, found = [], dict(layout.block_features(x))
    assert tuple(found) == layout.blocks
    for features, part in zip(found.values(), layout.parts, strict=False):
        places, values = features.reshape(len(x), 2, -1).swapaxes(0, 1)
        assert places.shape == (len(x), part.sketch.features_per_row)
        sums.append(np.zeros(2 * part.sketch.size, dtype=np.int64))
        np.add.at(sums[-1], places.ravel(), values.ravel())
    np.testing.assert_array_equal(np.concatenate(sums), layout.sums(x).view(np.int64))
    x[:, 0] = np.minimum(np.floor(x[:, 0] * 8), 7)  # of a score only the bin matters
    rows = np.hstack([features for _, features in layout.block_features(x / [8, 1, 1, 1, 1])])
    assert len({row.tobytes() for row in rows}) == len(np.unique(x, axis=0))


def test_exact_refuses_strata() -> None:
    with pytest.raises(
        InputError, match=r"by=COLUMN; for results of sums use gosta.private.release"
    ):
        gosta.exact(table(), "auc", score="risk", label="died", bins=8, strata=["sex"])


def test_edges_that_a_first_sum_finds() -> None:
    data = table(2000)
    for names in ("gini-index:income", "auc,gini-index:income", "kendall-tau:age+income"):
        settings = Bins(16, {"risk": (0, 1), "age": (0, 110), "income": (0, 1000)}, find_edges=True)
        first, final = (
            make_layout(names, one, **RISK)
            for one in (settings, settings._replace(find_edges=False))
        )
        described = {
            key: text
            for key, text in first.describe().items()
            if key not in ("rounds", "numbers", "layout")
        }
        assert described.items() <= final.describe().items()
        assert first.numbers == f"{first.size:,}, then at most {final.size:,}"
        x = first.encode(data)
        assert first.are_counts
        assert first.is_plausible(totals_of(first, x), 0.0)
        # Any noise that is rounded away leaves the edges as they are, to the last bit.
        second = first.following(totals_of(first, x))
        again = first.following(totals_of(first, x) + 1e-9)
        assert second is not None
        assert second == again
        assert second.following(totals_of(second, x)) is None
        assert (second.width, second.columns, second.bins) == (first.width, first.columns, 16)
        np.testing.assert_array_equal(second.encode(data), x)
        equal = make_layout(names, settings._replace(find_edges=False), **RISK)
        widths = [
            float(np.subtract(r.high, r.low)[0]) for layout in (second, equal)
            for r in layout.results(totals_of(layout, x))[-1:]
        ]  # fmt: skip
        assert widths[0] < widths[1]
        ages = second.sketches[-1].axes[0]
    assert ages.column == "age"
    counts = np.histogram(data.columns["age"], [0, *ages.edges, np.inf])[0]
    assert len(counts) == 16
    assert counts.max() < 2 * 2000 / 16


def test_rows_that_miss_a_value_are_left_out_of_all_statistics() -> None:
    data = table(50)
    columns = {name: column.astype(object) for name, column in data.columns.items()}
    columns["age"][3] = None
    columns["risk"][4] = None
    columns["died"][5] = None
    columns["sex"][6] = None
    holes = replace(data, columns=columns, drop_missing=True)
    settings = Bins(8, {"risk": (0, 1), "age": (0, 110)}, strata={"sex": ("f", "m")})
    layout = make_layout("auc,variance:age", settings, **RISK)
    assert len(layout.encode(holes)) == 46
    results = layout.results(totals_of(layout, layout.encode(holes)))
    assert [r.rows for r in results if not r.stratum] == [46, 46]
    with pytest.raises(DataError, match="missing"):
        layout.encode(replace(holes, drop_missing=False))


def test_small_bins_are_merged_in_curves_and_small_groups_have_no_value() -> None:
    data = table(60)
    settings = Bins(64, {"risk": (0, 1), "age": (0, 110)}, strata={"ward": (1, 2, 3, 4)})
    layout = make_layout("auc,variance:age,quantiles:age", settings, **RISK)
    x = layout.encode(data)
    plain, merged = (layout.results(totals_of(layout, x), min_cell) for min_cell in (0, 5))
    assert merged[0] == plain[0]  # one number shows no bins
    curves = [
        next(r for r in results if r.statistic == "quantiles:age") for results in (plain, merged)
    ]
    age = data.columns["age"]
    counts = [
        [((age >= a) & (age < b)).sum() for a, b in zip(c.low, c.high, strict=True)] for c in curves
    ]
    assert min(counts[0]) < 5
    assert min(counts[1]) >= 5
    exact = gosta.exact(data, "quantiles", columns="age")
    assert np.all(np.array(curves[1].low) <= exact)
    assert np.all(np.array(curves[1].high) >= exact)
    empty = [r for r in merged if r.stratum == "ward = 4"]
    assert [(r.has_value, r.value, r.low, r.rows) for r in empty] == [(False, (), (), 0.0)] * 3
    few = x[(x[:, -1] != 0) | (np.cumsum(x[:, -1] == 0) <= 4)]
    small = [
        r for r in layout.results(totals_of(layout, few), min_cell=5) if r.stratum == "ward = 1"
    ]
    assert [(r.has_value, r.rows) for r in small] == [(False, None)] * 3
    assert {r.why for r in small} == {"fewer than 5 rows in all or in a class"}


def test_a_hidden_stratum_does_not_follow_from_the_others() -> None:
    settings = Bins(8, {"age": (20, 50)}, strata={"ward": (1, 2, 3, 4)})
    layout = make_layout("variance:age,quantiles:age", settings)
    for sizes, shown in (
        ((3, 20, 9, 40), "24"),
        ((1, 1, 9, 40), "4"),
        ((0, 20, 9, 40), "234"),
        ((4, 4, 9, 40), "34"),
    ):
        ward = np.repeat([1, 2, 3, 4], sizes)
        x = layout.encode(load({"age": np.linspace(30, 51.0, len(ward)), "ward": ward}))
        results = layout.results(totals_of(layout, x), min_cell=5)
        for first in (results[:5], results[5:]):
            assert [r.stratum[-1:] for r in first if r.has_value] == ["", *shown]
            assert not any(r.rows for r in first if not r.has_value)
            withheld = [r.why for r in first if r.rows is None]
            hidden = [
                size for k, size in zip("1234", sizes, strict=True) if size and k not in shown
            ]
            assert len(withheld) == len(hidden)
            follows = sum(size >= 5 for size in hidden)
            assert withheld.count("another group would follow from it") == follows
            # Values beyond the range: how many is not shown if they are few, and the bracket is not
            # for them.
            assert first[0].clipped == 5 != (x[:, 0] > 50).sum() > 0
            assert [r.is_certified for r in first if r.has_value] == [
                r.clipped == 0 for r in first if r.has_value
            ]


def test_random_numbers_are_not_plausible() -> None:
    rng = np.random.default_rng(0)
    for names in (
        "auc",
        "variance:age",
        "gini-index:age",
        "mean-pairwise-distance:age+risk",
        "auc,variance:age",
    ):
        layout = make_layout(names, Bins(16, {"risk": (0, 1), "age": (0, 110)}), **RISK)
        totals = totals_of(layout, layout.encode(table()))
        assert layout.is_plausible(totals, 0.0)
        assert layout.is_plausible(totals + rng.normal(size=layout.size), 6.0)
        wrapped = rng.integers(-(2**63), 2**63, size=layout.size) / 2.0**BITS
        assert not layout.is_plausible(wrapped, 6.0)
        assert not layout.is_plausible(totals - totals.max() - 1.0, 0.0)
        assert not layout.is_plausible(np.full(layout.size, np.nan), 0.0)
    more = totals.copy()
    more[3] += 50  # rows that only one of two statistics counts
    assert not layout.is_plausible(more, 0.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"statistics": "distance-correlation"}, "not a function of sums.*use kendall-tau"),
        (
            {"statistics": "mine.py:huber"},
            "statistic = 'mine.py:huber' is not a function of sums.*those with one: gini",
        ),
        ({"statistics": " "}, "statistic is empty"),
        ({"settings": Bins(8)}, r"range of 'risk' is missing: declare it \(--range risk=0:1\)"),
        ({"settings": Bins(8, {"risk": (1, 0)})}, "range of 'risk' = 1:0: the first must be less"),
        ({"settings": Bins(8, {"": (0, 1)}, {"risk": (0.5, 0.2)})}, "in increasing order"),
        ({"settings": Bins(8, {"": (0, 1)}, {"risk": (0.5, 2)})}, "must lie within its range 0:1"),
        (
            {"settings": Bins(8, {"": (0, 1)}, strata={"sex": ()})},
            "declare its values for all sites",
        ),
        ({"settings": Bins(0, {"": (0, 1)})}, "bins = 0 must be at least 1"),
        (
            {"settings": Bins(72_000, {"": (0, 1)})},
            r"144,000 sums, at most 131,072 are possible; .*--bins 65536",
        ),
        ({"score": None}, "score is missing"),
        ({"label": None}, "label is missing"),
        ({"classes": ()}, r"declare all classes in order \(--classes"),
        ({"options": {"bandwith": 3}}, "has no option 'bandwith'; options are: positive"),
        ({"statistics": "mmd:age+risk"}, "bandwidth is missing"),
        ({"statistics": "mean-pairwise-distance"}, "columns are missing"),
        ({"statistics": "kendall-tau:risk"}, "needs 2, for first, second"),
        (
            {"statistics": "kendall-tau:risk+age", "options": {"variant": "c"}},
            "variant = 'c' must be 'a' or 'b'",
        ),
        (
            {"statistics": "gini-index:risk", "settings": Bins(8, {"": (-1, 1)})},
            "must not be negative",
        ),
        (
            {"statistics": "squared-scatter:risk", "settings": Bins(8, {"": (0, 1e200)})},
            "squares are too large",
        ),
        (
            {"statistics": "squared-scatter:risk", "options": {"centroids": "class-means"}},
            "depends on all rows",
        ),
    ],
)
def test_settings_that_cannot_be_used(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_layout(**({"statistics": "auc", "settings": Bins(8, {"": (0, 1)}), **RISK} | changes))


def test_exact_with_bins() -> None:
    data = table()
    strata = compare(
        data, "quantiles:age,lorenz-curve:age", Bins(4, strata={"sex": ("f", "m", "x")})
    )
    assert [value is None for value in strata.exact] == [False, False, False, True] * 2
    estimate = gosta.exact(data, "auc", score="risk", label="died", bins=256, interval=0.9)
    assert estimate.bracket is not None
    value = gosta.exact(data, "auc", score="risk", label="died")
    assert estimate.bracket[0] <= value <= estimate.bracket[1]
    assert estimate.value == pytest.approx(value, abs=1e-3)
    assert estimate.low < value < estimate.high
    assert "bracket" in estimate._repr_html_()
    curve = gosta.exact(data, "roc-curve", score="risk", label="died", bins=64, find_edges=True)
    assert len(np.asarray(curve.value)) == 11
    edges = gosta.exact(
        data, "quantiles", columns="age", edges={"age": [30, 50, 70]}, ranges={"age": (0, 100)}
    )
    assert edges.bracket is not None
    assert np.all(edges.bracket[0] <= gosta.exact(data, "quantiles", columns="age"))
    tau = gosta.exact(data, "kendall-tau", columns=["age", "risk"], variant="b", bins=32)
    assert tau.value == pytest.approx(
        gosta.exact(data, "kendall-tau", columns=["age", "risk"], variant="b"), abs=0.05
    )
    centroids = [[20.0], [80.0]]
    near = gosta.exact(data, "squared-scatter", columns="age", centroids=centroids, bins=2)
    scatter = gosta.exact(data, "squared-scatter", columns="age", centroids=centroids)
    assert near.value == pytest.approx(scatter, rel=1e-5)
    with pytest.raises(
        InputError, match="normalisation = 'V': from sums auc has that of textbooks"
    ):
        gosta.exact(data, "auc", score="risk", label="died", bins=8, normalisation="V")
    estimate = gosta.exact(data, "quantiles", columns="age", interval=0.95)
    assert (estimate.low <= estimate.value).all()
    assert (estimate.value <= estimate.high).all()
