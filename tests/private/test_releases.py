"""Releases of private sums with all sites in one process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sketch_cases import COLUMNS, OPTIONS

import gosta
from gosta.errors import InputError
from gosta.private import Policy, masks
from gosta.private.noise import NO_NOISE, choose_noise, open_totals, site_vector
from gosta.private.releases import release_rows
from gosta.private.settings import PrivateSettings
from gosta.runtime.arrays import Floats, Words
from gosta.sketches import SKETCHES, Bins, Sketch, make_layout

Table = dict[str, list[float]]


def scores(n: int, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    died = rng.random(n) < 0.4
    risk = np.clip(rng.normal(0.45 + 0.2 * died, 0.15), 0, 1)
    return {
        "risk": risk.tolist(),
        "died": died.astype(float).tolist(),
        "sex": (rng.random(n) < 0.5).tolist(),
    }


def split(table: Table, sites: int) -> list[Table]:
    return [{name: values[k::sites] for name, values in table.items()} for k in range(sites)]


ASKED: dict[str, Any] = {
    "score": "risk",
    "label": "died",
    "classes": [0, 1],
    "ranges": {"risk": (0.0, 1.0)},
}


def any_data(n: int, made: type[Sketch]) -> gosta.Data:
    """Return rows with a column for every role that a sketch can have; predicted risks for some."""
    rng = np.random.default_rng(5)
    is_share = "risk" in made.encode.__name__
    roles = dict.fromkeys(role for made in SKETCHES.values() for role in made.roles)
    columns: dict[str, Floats] = {
        role: rng.random(n) * (1 if is_share and role != "time" else 10)
        for role in roles or ["value"]
    }
    columns |= {
        name: np.floor(rng.random(n) + share) for name, share in (("event", 0.7), ("group", 0.4))
    }
    columns["second"] = rng.random(n)
    data: gosta.Data = gosta.datasets.load(
        {name: values.tolist() for name, values in columns.items()}
    )
    return data


@pytest.mark.parametrize("name", SKETCHES)
def test_totals_are_the_plain_sums_bit_for_bit(name: str) -> None:
    made = SKETCHES[name]
    data = any_data(100, made)
    layout = make_layout(
        name,
        Bins(bins=6),
        columns=COLUMNS.get(name, made.roles) or ("value",),
        label="group",
        data=data,
        options=OPTIONS.get(name, {}),
    )
    x = layout.encode(data)
    rows = dict(zip("abcdefg", np.array_split(x, [10, 11, 30, 60, 60, 90]), strict=True))
    rng = np.random.default_rng(6)
    keys = {site: rng.bytes(32) for site in rows}
    public = {site: masks.public_key(key) for site, key in keys.items()}
    sent = {
        site: site_vector(layout, own, NO_NOISE)
        + masks.mask(layout.size, site, keys[site], public, b"1")
        for site, own in rows.items()
    }
    exact, totals = open_totals(sent.values(), NO_NOISE)
    assert np.array_equal(exact.view(np.uint64), layout.sums(x, NO_NOISE.bits))
    assert layout.is_plausible(totals, 0.0)
    missing_one = open_totals(list(sent.values())[1:], NO_NOISE)[1]
    assert not layout.is_plausible(missing_one, 0.0)


@pytest.mark.parametrize("name", SKETCHES)
@pytest.mark.parametrize("strata", [{}, {"event": (0.0, 1.0)}])
def test_replacing_a_row_moves_sums_no_more_than_noise_is_made_for(
    name: str, strata: dict[str, Any]
) -> None:
    made = SKETCHES[name]
    data = any_data(60, made)
    is_share = "risk" in made.encode.__name__
    # Some rows are beyond, and count as the ends.
    ranges = {"time": (1.0, 8.0), "": (0.0, 1.0) if is_share else (2.0, 8.0)}
    bins = Bins(bins=6, ranges=ranges, strata=strata)
    layout = make_layout(
        name,
        bins,
        columns=COLUMNS.get(name, made.roles) or ("value",),
        label="group",
        data=data,
        options=OPTIONS.get(name, {}),
    )
    x = layout.encode(data)
    for bits in (24, *((0, 5) if layout.are_counts else ())):
        sums = np.array([layout.sums(row[None], bits) for row in x]).view(np.int64) / 2.0**bits
        moves = sums[:, None] - sums[None]
        assert sums.min() >= 0
        assert np.abs(moves).sum(axis=2).max() <= 2 * layout.features_per_row
        assert (moves**2).sum(axis=2).max() <= layout.squared_change * (1 + 1e-6)
        if layout.are_counts:
            assert set(np.unique(sums)) <= {0.0, 1.0}


def test_value_bracket_and_participants() -> None:
    table = scores(400)
    found = gosta.private.release(split(table, 5), "auc", bins=256, **ASKED)
    exact = gosta.exact(table, "auc", score="risk", label="died")
    assert found.bracket[0] <= exact <= found.bracket[1]
    assert found.value == pytest.approx(exact, abs=0.005)
    assert (found.epsilon, found.delta, found.bytes_per_site) == (None, 0.0, 8 * 512)
    assert found.participants == tuple(f"site-{k}" for k in range(5))
    assert found.interval is not None
    pooled = gosta.exact(table, "auc", score="risk", label="died", interval=0.95)
    assert found.interval == pytest.approx((pooled.low, pooled.high), abs=0.005)
    assert repr(found).startswith("Release(auc 0.8")
    assert "bracket" in found._repr_html_()


def test_curves_have_labels_and_brackets_of_all_values() -> None:
    found = gosta.private.release(split(scores(400), 4), "quantiles:risk", **ASKED)
    assert found.labels[0] == found.results[0].labels[0] != ""
    assert (
        len(found.labels)
        == len(found.bracket[0])
        == len(found.bracket[1])
        == len(found.results[0].value)
        > 1
    )
    estimate = gosta.exact(scores(400), "quantiles", columns="risk", bins=64)
    assert estimate.labels == found.labels
    noisy = gosta.private.release(
        split(scores(400), 4), "auc", bins=8, epsilon=4.0, seed=1, **ASKED
    )
    assert repr(noisy).startswith("Release(auc about ")
    assert "bracket" not in repr(noisy)


def test_names_statistics_and_strata() -> None:
    table = scores(300)
    sites = dict(zip(["north", "south", "west"], split(table, 3), strict=True))
    found = gosta.private.release(
        sites, "auc,variance:risk", strata={"sex": [False, True]}, **ASKED
    )
    assert found.participants == ("north", "south", "west")
    kinds = [(one.statistic, one.stratum) for one in found.results]
    assert kinds == [
        (s, t) for s in ("auc", "variance:risk") for t in ("", "sex = False", "sex = True")
    ]


def test_noise_is_that_of_epsilon() -> None:
    sites = split(scores(500), 5)
    plain = gosta.private.release(sites, "auc", bins=8, **ASKED)
    noisy = [
        gosta.private.release(sites, "auc", bins=8, epsilon=1.0, seed=k, **ASKED) for k in range(60)
    ]
    assert (
        noisy[0].totals.tolist()
        == gosta.private.release(sites, "auc", bins=8, epsilon=1.0, seed=0, **ASKED).totals.tolist()
    )
    assert (noisy[0].epsilon, noisy[0].delta) == (1.0, 0.0)
    errors: Floats = np.concatenate([one.totals - plain.totals for one in noisy])
    noise = choose_noise(PrivateSettings(epsilon=1.0), plain.layout, 5)
    # 960 numbers of excess kurtosis below 5: six standard errors are 0.5, a false alarm is under
    # one in a million.
    assert errors.var() == pytest.approx(noise.variance, rel=0.5)
    assert noisy[0].interval is not None
    assert plain.interval is not None
    assert np.ptp(noisy[0].interval) > np.ptp(plain.interval)


def test_edges_found_first_share_the_budget() -> None:
    found = gosta.private.release(
        split(scores(500), 5), "auc", bins=8, find_edges=True, epsilon=2.0, seed=1, **ASKED
    )
    assert found.epsilon == 2.0
    assert found.layout.bins == 8
    assert found.bytes_per_site > 8 * found.layout.size


def test_policy_of_the_sites() -> None:
    sites = {"a": scores(5), "b": scores(30, 1), "c": scores(30, 2), "d": scores(30, 3)}
    found = gosta.private.release(sites, "auc", policy=Policy(), **ASKED)
    assert found.participants == ("b", "c", "d")
    with pytest.raises(
        InputError, match="suppressed by policy: 3 sites, 4 needed; a: 5 rows, 10 needed"
    ):
        gosta.private.release(sites, "auc", policy=Policy(min_sites=4), **ASKED)
    with pytest.raises(InputError, match="0 sites, 3 needed; a: the statistic auc is not allowed"):
        gosta.private.release(sites, "auc", policy=Policy(statistics=("variance",)), **ASKED)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ranges": {}}, "range of 'risk' is missing"),
        ({"epsilon": -1.0}, "epsilon = -1.0 must be a positive number"),
        ({"epsilon": 1.0, "colluding": 3}, "colluding = 3 of 3 participants"),
        ({"score": "nothing", "ranges": {"": (0, 1)}}, "unknown column"),
        ({"classes": []}, "declare all classes"),
        ({"strata": "sex"}, "strata = 'sex' must be a mapping of columns to their values, such as"),
        ({"policy": "x"}, "policy = 'x' must be a gosta.private.Policy"),
        ({"ranges": {"risk": 5}}, "ranges = {'risk': 5} must be a mapping of columns"),
        ({"ranges": {"risk": (0, 1, 2)}}, "range of 'risk' = .* must be two numbers"),
        ({"edges": {"risk": ["a"]}}, "edges of 'risk' = .* must be numbers"),
        ({"interval": 95}, "interval = 95 must be a level between 0 and 1"),
        ({"bins": 8.5}, "bins = 8.5 must be a whole number"),
        ({"classes": 2}, "classes = 2 must be a list"),
    ],
)
def test_wrong_arguments(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        gosta.private.release(split(scores(60), 3), "auc", **(ASKED | changes))


def test_no_sites() -> None:
    with pytest.raises(InputError, match="sites is empty"):
        gosta.private.release([], "auc", **ASKED)
    with pytest.raises(InputError, match="sites = 5 must be a list of tables, one for each site"):
        gosta.private.release(5, "auc", **ASKED)  # type: ignore[arg-type]


def test_a_total_that_cannot_be_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here one site's masks do not cancel."""
    layout = make_layout(
        "auc",
        PrivateSettings(ranges={"risk": (0.0, 1.0)}),
        score="risk",
        label="died",
        classes=[0, 1],
    )
    data = replace(gosta.datasets.load(scores(60)), is_partial=True)
    real = masks.mask

    def wrong(size: int, name: str, key: bytes, keys: dict[str, bytes], context: bytes) -> Words:
        return real(size, name, key, keys, b"another epoch" if name == "b" else context)

    rows = dict.fromkeys("abc", layout.encode(data))
    assert release_rows(layout, rows, PrivateSettings()).results[0].has_value
    monkeypatch.setattr(masks, "mask", wrong)
    with pytest.raises(gosta.NumericalError, match="cannot be a sum over rows"):
        release_rows(layout, rows, PrivateSettings())
