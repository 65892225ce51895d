"""Sections of how results were computed: methods, privacy, the items of TRIPOD+AI."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from gosta.reports import texts
from gosta.reports.blocks import Block, List, Section, Table, Text
from gosta.reports.tables import Found, percent

DEFAULT_BINS = 64  # of a private release that names none
# Of statistics, not told as settings: they follow from the dictionary and the bins.
HIDDEN_OPTIONS = ("levels", "cuts", "floor", "steps")


def methods(results: Mapping[str, Any], found: Sequence[Found]) -> Section:
    names = {one.name for one in found}
    level = results["study"].get("confidence_level", 0.95)
    dropped = results.get("incomplete_rows")
    rows = "Rows without a value in a column that plays a role are left out"
    rows += "." if not dropped else f": {dropped:,} of {results['rows'] + dropped:,}."
    intervals = (
        f"Confidence intervals are at {percent(level)}. They follow from the influence of each row "
        "on the statistic (DeLong's method for the AUC, Greenwood's formula for Kaplan and Meier's "
        "curve, the infinitesimal jackknife for others), on a scale, such as the logit, on which "
        "they stay within the statistic's bounds. Those of proportions are Wilson's; those of "
        "calibration errors come from 1,000 draws of the smooth curve's coefficients, and from 0 "
        "on where Wald's test does not reject perfect calibration. They were not adjusted for "
        "multiple comparisons."
    )
    p_values = (
        "P-values are two-sided, those of the tests that the intervals invert (Altman and Bland "
        "2011), so p < 0.05 where a 95 % interval excludes 0, and were not adjusted either."
    )
    is_private = results["how"]["mode"] != "one place"
    if is_private:
        intervals += texts.BRACKETS
        p_values += texts.P_VALUES_AND_BRACKETS
    settings = _settings(found)
    date = f"{datetime.fromisoformat(results['date']):%Y-%m-%d %H:%M} UTC"
    software = f"Computed with gosta {results['version']} on {date}."
    blocks: list[Block] = [Text(rows), Text(intervals)]
    if any(one.estimate.p_value is not None for one in found):
        blocks.append(Text(p_values))
    if any(one.estimate.axes and one.estimate.axes[0].startswith("time") for one in found):
        blocks.append(Text(texts.TIMES + texts.AT_RISK_BY_SUMS * is_private))
    if names & texts.OF_LOGITS:
        blocks.append(Text(texts.FLOOR))
    if settings:
        blocks.append(Text(f"Settings: {settings}."))
    blocks.append(Text(software))
    cited = [cited for about, cited in texts.REFERENCES if names & set(about)]
    if is_private:
        cited += texts.PRIVATE_REFERENCES[: 2 if results["how"].get("epsilon") else 1]
    blocks.append(List([*cited, texts.TRIPOD_REFERENCE]))
    return Section("Methods", blocks)


def _settings(found: Sequence[Found]) -> str:
    """Return the values of options; with the statistics that have them, where these differ."""
    by_option: dict[str, dict[str, list[str]]] = {}
    for one in (one for one in found if one.name != "numbers-at-risk"):
        for name, value in one.estimate.options.items():
            if name not in HIDDEN_OPTIONS and value not in (None, (), []):
                titles = by_option.setdefault(name, {}).setdefault(_listed(value), [])
                titles += [one.title] * (one.title not in titles)
    parts = []
    for name, by_value in sorted(by_option.items()):
        usual = max(by_value, key=lambda value: len(by_value[value]))
        parts.append(f"{name} {usual}")
        others = {value: titles for value, titles in by_value.items() if value != usual}
        parts += [f"{name} of {' and '.join(of)} {value}" for value, of in others.items()]
    return "; ".join(parts)


def _listed(value: Any) -> str:
    if not isinstance(value, list | tuple):
        return f"{value:g}" if isinstance(value, float) else str(value)
    parts = [_listed(each) for each in value]
    return ", ".join(parts if len(parts) <= 6 else [*parts[:2], "...", parts[-1]])


def privacy(results: Mapping[str, Any]) -> Section:
    how = results["how"]
    if how["mode"] == "one place":
        text = (
            "All rows were read in one place. The report has no rows, but values over few rows "
            "can tell of a person: look at small groups before it is published."
        )
        return Section("Privacy", [Text(text)])
    blocks: list[Block] = [
        Text(
            f"The rows stayed at the {how['sites']} sites. Each site counted its rows in bins and "
            "sent these sums hidden by masks that cancel in the total of all sites, so that only "
            "the total was seen. All statistics of this report are computed from that one total."
        )
    ]
    epsilon, delta = how.get("epsilon"), how.get("delta") or 0.0
    if epsilon:
        cost = f"epsilon = {epsilon:g}" + f", delta = {delta:g}" * bool(delta)
        text = (
            f"The sites added noise to the total: the release is differentially private with {cost}"
            " for all statistics together. Intervals include the error by noise. Brackets hold "
            "with high probability, not for certain. Numbers of rows are estimates, too, and "
            "differ between statistics."
        )
    else:
        text = (
            "No noise was added. The value over the rows lies for certain within the bracket of "
            "each value, which holds what is not known of rows in the same bin; where none is "
            "shown, it is narrower than the last digit. Groups of few rows and counts of few rows "
            "are left out, as each site's policy asks, and so are others from which they would "
            "follow. This is not done for the points of curves: that of a group, less that of all "
            "rows, can tell of few rows of the other groups. The members of the network know the "
            "whole total, and with it all counts."
        )
    blocks.append(Text(text))
    facts = {
        "participants": _listed(how.get("participants") or []),
        "left out": _listed(how.get("left_out") or []),
        "network": how.get("network"),
        "layout of the sums": _layout(how.get("layout")),
        "released": _time(how.get("release_time")),
        **_bins(results),
    }
    rows = [[name, str(value)] for name, value in facts.items() if value]
    blocks.append(Table("The release", ["", ""], rows))
    return Section("Privacy", blocks)


def _layout(layout: Mapping[str, Any] | None) -> str:
    if not layout:
        return ""
    return f"{layout['numbers']:,} numbers, fingerprint {layout['fingerprint']}"


def _bins(results: Mapping[str, Any]) -> dict[str, str]:
    """Return how many bins each column has."""
    settings, study, found = results["privacy"], results["study"], {}
    cut = {study.get("time"): "times and horizon"}
    cut |= dict.fromkeys(study.get("scores", []), "thresholds")
    way = "to hold equally many rows" if settings.get("find_edges") else "of equal width"
    for name, column in results["columns"].items():
        edges = (settings.get("edges") or {}).get(name)
        text = f"{len(edges) + 1} by the study's edges" if edges else ""
        text = text or f"{settings.get('bins', DEFAULT_BINS)} {way}"
        if name in cut:
            text += f", and an edge at each of the study's {cut[name]}"
        classes = column.get("classes")
        found[f"bins of {name}"] = f"{len(classes)} classes" if classes else text
    return found


def _time(seconds: float | None) -> str:
    """Return a time since 1970 as a date."""
    if seconds is None:
        return ""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def tripod(sections: Iterable[str]) -> Section:
    there = set(sections)
    rows = []
    for item in texts.TRIPOD:
        is_there = item.section in there
        where = f"section {item.section}" if is_there else "not in this report"
        if is_there and not item.is_whole:
            where = f"in part, section {item.section}"
        rows.append([item.number, item.about, where, "" if where.startswith("sec") else item.add])
    about = (
        "TRIPOD+AI asks authors who evaluate a prediction model for these items. This report has "
        "those that follow from data; the others have to be written by the authors."
    )
    heading = ["item", "about", "where", "to be added"]
    return Section("TRIPOD+AI", [Text(about), Table("Items of TRIPOD+AI", heading, rows)])
