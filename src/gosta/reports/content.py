"""The content of a report: which section says what of the results of a study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from gosta.errors import InputError, shorten
from gosta.measures.table_one import standardised_differences
from gosta.reports import texts
from gosta.reports.blocks import Block, Figures, List, Report, Section, Table, Text
from gosta.statistics.estimate import CURVE_DIGITS, Estimate
from gosta.statistics.heterogeneity import heterogeneity
from gosta.statistics.pictures import INTO, Picture, pictures
from gosta.views import numbers
from gosta.views.curves import STYLES

MOST_COLUMNS = 4  # of a table of points
TABLE_ONE = "table-one"
RECLASSIFICATION = ("net-reclassification", "integrated-discrimination")
DRAWN = {*STYLES, *INTO}  # curves that are pictures; others are tables of their points
MAIN = (
    "auc",
    "concordance-index",
    "calibration-slope",
    "observed-expected-ratio",
    "survival-observed-expected-ratio",
    "brier-score",
    "auc-difference",
    "concordance-difference",
)
BY_GROUP = (
    "auc",
    "concordance-index",
    "calibration-slope",
    "observed-expected-ratio",
    "survival-observed-expected-ratio",
)
CURVES_BY_GROUP = (
    "roc-curve",
    "calibration-curve",
    "smooth-calibration-curve",
    "kaplan-meier",
    "numbers-at-risk",
)
# The questions of a study, each a section.
SECTIONS = {
    "discrimination": "Discrimination",
    "calibration": "Calibration",
    "usefulness": "Usefulness",
    "survival": "Survival",
    "comparison": "Comparison of two models",
}


class Found(NamedTuple):
    """One statistic of a study."""

    question: str
    name: str  # of the statistic
    estimate: Estimate
    score: str  # its column of scores, or columns; "" if it has none

    @property
    def title(self) -> str:
        """Return its name in the words of the field."""
        return texts.TITLES.get(self.name, self.name.replace("-", " "))


def build(results: Mapping[str, Any]) -> Report:
    """Return the report of the contents of a results.json."""
    if not results.get("estimates"):
        raise InputError(
            "the results have no estimates: there is nothing to report",
            remedy="compute the study again: gosta study run, or gosta study collect",
        )
    scores = results["study"].get("scores", [])
    found = [_found(record, scores) for record in results["estimates"]]
    known = [one for one in found if one.estimate.value is not None]
    at_times = list(_at_times(known, results["study"].get("times") or ()))
    sections = [
        _study(results),
        _table_one(known),
        _main_results(known),
        _warnings(known),
        *(_question(question, title, [*known, *at_times]) for question, title in SECTIONS.items()),
        _subgroups(known),
        _without_value(found),
        _methods(results, known),
        _privacy(results),
    ]
    shown = [section for section in sections if section.blocks]
    shown.append(_tripod({section.title for section in shown}))
    return Report(results["study"].get("title") or "Validation study", _subtitle(results), shown)


def _found(record: Mapping[str, Any], scores: Sequence[str]) -> Found:
    estimate = Estimate.from_dict(record)
    columns = [name for name in estimate.columns if name in scores]
    joined = " less " if record["question"] == "comparison" else " and "
    return Found(record["question"], record["name"], estimate, joined.join(columns))


def _subtitle(results: Mapping[str, Any]) -> str:
    how = results["how"]
    rows = "about " * bool(how.get("epsilon")) + numbers.count(results["rows"], "row")
    where = "in one place" if how["mode"] == "one place" else "by private sums"
    sites = numbers.count(how.get("sites", 1), "file" if where == "in one place" else "site")
    return f"{rows} of {sites}, computed {where} on {results['date'][:10]}"


# --- the study and its tables


def _study(results: Mapping[str, Any]) -> Section:
    asked, how = results["study"], results["how"]
    questions = ", ".join(question.replace("-", " ") for question in asked["questions"])
    sentences = [f"The study asks about {questions}."]
    scores = asked.get("scores", [])
    if asked.get("label"):
        classes = results["columns"].get(asked["label"], {}).get("classes", [])
        positive = (
            f" ({classes[-1]}, against {', '.join(map(str, classes[:-1]))})" if classes else ""
        )
        sentences.append(f"The outcome is {asked['label']}{positive}.")
    if scores:
        one = "The score is" if len(scores) == 1 else "The scores are"
        sentences.append(f"{one} {' and '.join(scores)}.")
    if asked.get("time"):
        sentences.append(f"Times to an event are in {asked['time']}, events in {asked['event']}.")
    if asked.get("horizon") is not None:
        sentences.append(f"Scores predict an event before {asked['horizon']:g}.")
    if asked.get("groups"):
        sentences.append(f"Results are also given by {' and '.join(asked['groups'])}.")
    places = how.get("data") or how.get("participants") or []
    rows = f"{results['rows']:,} complete rows"
    if places:
        rows += f" of {', '.join(map(str, places))}"
    sentences.append(f"{rows[0].upper()}{rows[1:]}.")
    if results.get("incomplete_rows"):
        sentences.append(f"{results['incomplete_rows']:,} rows lack a value and are left out.")
    return Section("Study", [Text(" ".join(sentences)), _dictionary(results)])


def _dictionary(results: Mapping[str, Any]) -> Table:
    asked = results["study"]
    roles = {asked.get("label"): "outcome", asked.get("time"): "time", asked.get("event"): "event"}
    roles |= dict.fromkeys(asked.get("scores", []), "score")
    roles |= dict.fromkeys(asked.get("groups", []), "group")
    rows = []
    for name, column in results["columns"].items():
        values = ", ".join(map(str, column.get("classes", [])))
        if column.get("range"):
            values = numbers.interval(*column["range"])
        unit = column.get("unit", "")
        about = [name, roles.get(name, ""), f"{values} {unit}".strip()]
        rows.append([*about, column.get("description", "")])
    return _without_empty(Table("Columns", ["column", "role", "values", "description"], rows))


def _without_empty(table: Table) -> Table:
    """Leave out columns that have no content."""
    kept = [k for k in range(len(table.heading)) if any(row[k] for row in table.rows)]
    rows = [[row[k] for k in kept] for row in table.rows]
    return Table(table.caption, [table.heading[k] for k in kept], rows)


def _table_one(found: Sequence[Found]) -> Section:
    tables: list[Block] = [_characteristics(one.estimate) for one in found if one.name == TABLE_ONE]
    return Section("Table 1", tables)


def _characteristics(estimate: Estimate) -> Table:
    """Return Table 1: a column for all rows and for each group, and the largest difference."""
    parts = [part for part in (estimate, *estimate.groups) if part.value is not None]
    cells = [_described(part) for part in parts]
    rows = [[name, *(column.get(name, numbers.NONE) for column in cells)] for name in cells[0]]
    heading = ["", *(f"{part.group or 'all'}\nn = {part.n:,}" for part in parts)]
    caption = "Mean (standard deviation), median (quartiles), rows of a class (share)"
    groups = [part for part in parts if part.group is not None]
    if len(groups) > 1:
        differences = _standardised(groups)
        rows = [[*row, differences.get(row[0], "")] for row in rows]
        heading.append("difference\nstandardised")
    return Table(caption, heading, rows)


def _described(estimate: Estimate) -> dict[str, str]:
    """Return the lines of Table 1 of one group of rows."""
    values = dict(zip(estimate.labels, np.ravel(estimate.value).tolist(), strict=True))
    lines: dict[str, str] = {}
    for label, value in values.items():
        column, _, what = label.partition(": ")
        if what == "mean":
            lines[f"{column}, mean"] = _with_more(value, values[f"{column}: standard deviation"])
        elif what == "50 %":
            ends = (values[f"{column}: {quarter}"] for quarter in ("25 %", "75 %"))
            lines[f"{column}, median"] = _with_more(value, *ends)
        elif what == "missing":
            if value != 0:
                lines[f"{column}, missing"] = numbers.percent(value, ".1f")
        elif not what and np.isfinite(value):
            present = 1 - values[f"{label.rpartition(' = ')[0]}: missing"]
            lines[label] = f"{estimate.n * present * value:,.0f} ({numbers.percent(value, '.1f')})"
    return lines


def _with_more(value: float, *others: float) -> str:
    shown = " to ".join(numbers.short(other, value, *others) for other in others)
    return f"{numbers.short(value, *others)} ({shown})"


def _standardised(groups: Sequence[Estimate]) -> dict[str, str]:
    """Return the largest standardised difference of two groups, by line of Table 1."""
    found: dict[str, list[float]] = {}
    for one, other in combinations(groups, 2):
        pair = (np.ravel(part.value).tolist() for part in (one, other))
        with np.errstate(invalid="ignore"):  # shares beyond 0 and 1, by noise
            differences = standardised_differences(one.labels, *pair)
        for label, value in differences.items():
            if value is not None and np.isfinite(value):
                found.setdefault(label, []).append(abs(value))
    shown = {label: f"{max(values):.2f}" for label, values in found.items()}
    return {label if " = " in label else f"{label}, mean": text for label, text in shown.items()}


def _cells(estimate: Estimate) -> list[str]:
    """Return each value, with its interval, bracket and p-value in lines below."""
    values = np.ravel(np.asarray(estimate.value, dtype=np.float64))
    pairs = [] if estimate.level is None else [("", estimate.low, estimate.high)]
    if estimate.bracket is not None:
        pairs.append(("bracket ", *estimate.bracket))
    pairs = [(word, np.ravel(low), np.ravel(high)) for word, low, high in pairs]
    pairs = [pair for pair in pairs if len(pair[1]) == len(values)]
    p_values = () if estimate.p_value is None else np.ravel(estimate.p_value)
    cells = []
    for k, value in enumerate(values.tolist()):
        known = [(word, float(low[k]), float(high[k])) for word, low, high in pairs]
        ends = [end for _, *both in known for end in both if np.isfinite(end)]
        lines = [numbers.short(value, *ends)]
        for word, low, high in known:
            if np.isfinite([low, high]).all():
                shown = [numbers.short(end, value, *ends) for end in (low, high)]
                if set(shown) != {lines[0]}:  # otherwise it is exact as it is shown
                    lines.append(f"{word}{' to '.join(shown)}")
        if len(p_values) == len(values) and np.isfinite(p_values[k]):
            lines.append(f"p = {numbers.p_value(float(p_values[k]))}")
        cells.append("\n".join(lines))
    return cells


def _main_results(found: Sequence[Found]) -> Section:
    chosen = [one for one in found if one.name in MAIN]
    differences = [one for one in chosen if one.question == "comparison"]
    values = [one for one in chosen if one.question != "comparison"]
    return Section("Main results", [_values_table(part) for part in (values, differences) if part])


def _values_table(found: Sequence[Found], has_meanings: bool = False) -> Table:
    """Return a table of single values: a line for each statistic, a column for each score."""
    scores = list(dict.fromkeys(one.score for one in found))
    by_title: dict[str, dict[str, str]] = {}
    for one in found:
        title = _capital(one.title)
        if has_meanings and one.name in texts.MEANINGS:
            title += f"\n{texts.MEANINGS[one.name]}"
        by_title.setdefault(title, {})[one.score] = _cells(one.estimate)[0]
    rows = [[title, *(row.get(score, "") for score in scores)] for title, row in by_title.items()]
    heading = ["", *(score or "value" for score in scores)]
    what = "Differences" if found[0].question == "comparison" else "Values"
    return Table(_with_intervals(what, found), heading, rows)


def _with_intervals(what: str, found: Sequence[Found]) -> str:
    level = next((one.estimate.level for one in found if one.estimate.level is not None), None)
    return what if level is None else f"{what} with {_percent(level)} intervals"


def _percent(level: float) -> str:
    return numbers.percent(level, "g")


# --- questions


def _question(question: str, title: str, found: Sequence[Found]) -> Section:
    own = [one for one in found if one.question == question]
    blocks: list[Block] = []
    curves = [one for one in own if one.name in DRAWN and one.estimate.at is not None]
    shown = [one for one in _pictures(curves, found) if not one.has_groups]
    if shown:
        blocks.append(Figures(shown))
    singles = [one for one in own if np.ndim(one.estimate.value) == 0]
    if singles:
        blocks.append(_values_table(singles, has_meanings=True))
    if any(one.name in RECLASSIFICATION for one in own):
        blocks.append(Text(texts.RECLASSIFICATION_WARNING))
    several = [one for one in own if np.ndim(one.estimate.value)]
    blocks += _labelled([one for one in several if one.estimate.at is None])
    points = [one for one in several if one.estimate.at is not None and one.name not in DRAWN]
    blocks += _points(points)
    blocks += [_curve_table(one) for one in curves if one.name != "net-benefit-of-all"]
    return Section(title, blocks)


def _pictures(own: Sequence[Found], found: Sequence[Found]) -> list[Picture]:
    """Return the pictures of estimates, with titles in the words of the field."""
    others = [one.estimate for one in found if not any(one is other for other in own)]
    return [
        picture._replace(title=_picture_title(picture, own))
        for picture in pictures([one.estimate for one in own], others)
    ]


def _picture_title(picture: Picture, own: Sequence[Found]) -> str:
    """Return what is shown, by which groups, of which score if it is one of several, and n."""
    first = picture.estimates[0]
    (one,) = (one for one in own if one.estimate is first)
    words = STYLES[picture.kind].title if picture.kind in STYLES else _capital(one.title)
    if picture.has_groups:
        words += f" by {first.by}"
    drawn = {other.score for other in own if any(other.estimate is e for e in picture.estimates)}
    if one.score and len(drawn) < len({other.score for other in own if other.name == one.name}):
        words += f", {one.score}"
    return f"{words} (n = {first.n:,})"


def _at_times(found: Sequence[Found], times: Sequence[float]) -> Iterator[Found]:
    """Yield Kaplan and Meier's curve of all times of events at the times of the study."""
    for one in found:
        at = np.ravel(one.estimate.at) if one.name == "kaplan-meier" else np.zeros(0)
        wanted = np.array([time for time in times if len(at) and at[0] < time], dtype=np.float64)
        if len(wanted) and not np.array_equal(at, times):
            # By sums a value is that before its time; in one place it is that from an event on.
            is_before = one.estimate.labels[0].startswith("before")
            places = np.searchsorted(at, wanted, "right" if is_before else "left") - 1
            value, low, high = (
                np.ravel(part)[places] if np.size(part) == len(at) else part
                for part in (one.estimate.value, one.estimate.low, one.estimate.high)
            )
            bracket = one.estimate.bracket
            if bracket is not None:
                bracket = np.ravel(bracket[0])[places], np.ravel(bracket[1])[places]
            estimate = one.estimate._replace(
                at=wanted, value=value, low=low, high=high, bracket=bracket
            )
            yield one._replace(name="kaplan-meier-at-times", estimate=estimate)


def _labelled(found: Sequence[Found]) -> list[Block]:
    """Return a table of each statistic of several labelled values, a column for each score."""
    blocks: list[Block] = []
    for name in dict.fromkeys(one.name for one in found):
        members = [one for one in found if one.name == name]
        columns = [dict(zip(one.estimate.labels, _cells(one.estimate), strict=True))
                   for one in members]  # fmt: skip
        labels = list(dict.fromkeys(label for cells in columns for label in cells))
        rows = [[label, *(cells.get(label, "") for cells in columns)] for label in labels]
        heading = ["", *(one.score or "value" for one in members)]
        caption = _with_intervals(_capital(members[0].title), members)
        blocks.append(Table(caption, heading, rows))
    return blocks


def _points(found: Sequence[Found]) -> list[Block]:
    """Return tables of values at the same points, a column for each statistic."""
    by_points: dict[tuple[str, tuple[float, ...]], list[Found]] = {}
    for one in found:
        points = tuple(np.ravel(one.estimate.at).tolist())
        by_points.setdefault(((one.estimate.axes or ("at", ""))[0], points), []).append(one)
    blocks: list[Block] = []
    for (axis, points), members in by_points.items():
        scores = dict.fromkeys(one.score for one in members)
        parts = [members]
        if len(members) > MOST_COLUMNS:
            parts = [[one for one in members if one.score == score] for score in scores]
        blocks += [_points_table(axis, points, part) for part in parts]
    return blocks


def _points_table(axis: str, points: Sequence[float], found: Sequence[Found]) -> Table:
    columns = [_cells(one.estimate) for one in found]
    rows = [
        [numbers.number(point), *(cells[k] for cells in columns)] for k, point in enumerate(points)
    ]
    scores, names = ({getattr(one, key) for one in found} for key in ("score", "name"))
    if len(scores) == 1:
        heads = [_capital(one.title) for one in found]
        caption = f"At each {axis}, {scores.pop()}".removesuffix(", ")
    elif len(names) == 1:
        heads, caption = [one.score for one in found], f"{_capital(found[0].title)}"
    else:
        heads = [f"{_capital(one.title)}, {one.score}".removesuffix(", ") for one in found]
        caption = f"At each {axis}"
    return Table(_with_intervals(caption, found), [axis, *heads], rows)


def _curve_table(one: Found) -> Table:
    """Return the points of a curve that is a picture, too."""
    heading, *rows = one.estimate.table(digits=CURVE_DIGITS)
    return Table(f"{_capital(one.title)}{f', {one.score}' * bool(one.score)}", heading, rows, True)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _subgroups(found: Sequence[Found]) -> Section:
    grouped = [one for one in found if one.estimate.by is not None]
    chosen = [one for one in grouped if one.name in BY_GROUP and np.ndim(one.estimate.value) == 0]
    names = {one.name for one in grouped}
    left_out = "calibration-curve" if "smooth-calibration-curve" in names else ""
    drawn = [one for one in grouped if one.name in CURVES_BY_GROUP and one.name != left_out]
    blocks: list[Block] = _groups_tables(chosen) if chosen else []
    shown = [one for one in _pictures([*chosen, *drawn], found) if one.has_groups]
    return Section("Subgroups", [*blocks, Figures(shown)] if shown else blocks)


def _groups_tables(found: Sequence[Found]) -> list[Block]:
    """Return the values of all groups, and their differences from the largest one."""
    values = [
        {group.group: group for group in one.estimate.groups if group.value is not None}
        for one in found
    ]
    gaps = [{gap.group: gap for gap in one.estimate.differences} for one in found]
    of_values, of_gaps = (_group_columns(parts) for parts in (values, gaps))
    if len(of_values[0]) > 2:
        of_values[0].append("p of all\nCochran's Q")
        for cells, one in zip(of_values[1], found, strict=True):
            cells.append(_p_of_all(one))
    parts = [("Values of groups", *of_values), ("Differences between groups", *of_gaps)]
    if len(of_values[0]) + len(of_gaps[0]) <= MOST_COLUMNS:
        rows = [[*one, *other] for one, other in zip(of_values[1], of_gaps[1], strict=True)]
        parts = [("Values of groups", [*of_values[0], *of_gaps[0]], rows)]
    titles = [f"{_capital(one.title)}, {one.score}".removesuffix(", ") for one in found]
    return [
        Table(
            _with_intervals(caption, found),
            ["", *heading],
            [[title, *cells] for title, cells in zip(titles, rows, strict=True)],
        )
        for caption, heading, rows in parts
        if heading
    ]


def _group_columns(
    parts: Sequence[Mapping[str | None, Estimate]],
) -> tuple[list[str], list[list[str]]]:
    """Return the heading of each group's column, and the cells of each line."""
    sizes = {name: group.n for groups in parts for name, group in groups.items()}
    heading = [f"{name}\nn = {n:,}" for name, n in sizes.items()]
    cells = [
        [_cells(groups[name])[0] if name in groups else numbers.NONE for name in sizes]
        for groups in parts
    ]
    return heading, cells


def _p_of_all(one: Found) -> str:
    usable = [
        group
        for group in one.estimate.groups
        if np.ndim(group.value) == 0 and group.value is not None and group.standard_error > 0
    ]
    values, errors = ([float(getattr(g, k)) for g in usable] for k in ("value", "standard_error"))
    compared = heterogeneity(values, errors)
    return numbers.NONE if compared is None else numbers.p_value(compared.p_value)


def _warnings(found: Sequence[Found]) -> Section:
    """Return what to have a look at, each once; that of NRI and IDI stands beside them."""
    by_text: dict[str, list[str]] = {}
    for one in found:
        for warning in one.estimate.warnings if one.name not in RECLASSIFICATION else ():
            text = warning.removeprefix(f"{one.estimate.statistic}: ")
            by_text.setdefault(text, []).append(one.estimate.statistic)
    items = [f"{shorten(titles)}: {text}" for text, titles in by_text.items()]
    return Section("Warnings", [List(items)] if items else [])


def _without_value(found: Sequence[Found]) -> Section:
    items = [
        f"{one.estimate.statistic}: {one.estimate.reason}"
        for one in found
        if one.estimate.value is None
    ]
    return Section("Statistics without a value", [List(items)] if items else [])


# --- methods, privacy, checklist


def _methods(results: Mapping[str, Any], found: Sequence[Found]) -> Section:
    names = {one.name for one in found}
    level = results["study"].get("confidence_level", 0.95)
    dropped = results.get("incomplete_rows")
    rows = "Rows without a value in a column that plays a role are left out"
    rows += "." if not dropped else f": {dropped:,} of {results['rows'] + dropped:,}."
    intervals = (
        f"Intervals are at {_percent(level)}, for the population of which the rows are a sample: "
        "from the influence of each row on the value (DeLong for the AUC, Greenwood for Kaplan and "
        "Meier's curve, the infinitesimal jackknife for others), on a scale on which they stay "
        "within the statistic's bounds; Wilson's for shares; by 1,000 bootstrap samples where no "
        "such formula is known. They are not corrected for the number of statistics."
    )
    p_values = "P-values are two-sided, from the standard error of the difference."
    options = sorted({_options_of(one) for one in found} - {""})
    software = f"Computed with gosta {results['version']} on {results['date']}."
    blocks: list[Block] = [Text(rows), Text(intervals)]
    if any(one.estimate.p_value is not None for one in found):
        blocks.append(Text(p_values))
    if options:
        blocks.append(Text(f"Settings: {'; '.join(options)}."))
    blocks.append(Text(software))
    cited = [cited for about, cited in texts.REFERENCES if names & set(about)]
    if results["how"]["mode"] != "one place":
        cited += texts.PRIVATE_REFERENCES[: 2 if results["how"].get("epsilon") else 1]
    blocks.append(List([*cited, texts.TRIPOD_REFERENCE]))
    return Section("Methods", blocks)


def _options_of(one: Found) -> str:
    shown = {k: v for k, v in one.estimate.options.items() if k not in ("levels", "cuts")}
    parts = [f"{name} {_listed(value)}" for name, value in shown.items() if value not in (None, ())]
    return f"{one.title}: {', '.join(parts)}" if parts else ""


def _listed(value: Any) -> str:
    if not isinstance(value, list | tuple):
        return f"{value:g}" if isinstance(value, float) else str(value)
    texts_ = [_listed(each) for each in value]
    return ", ".join(texts_ if len(texts_) <= 6 else [*texts_[:2], "...", texts_[-1]])


def _privacy(results: Mapping[str, Any]) -> Section:
    how, privacy = results["how"], results["privacy"]
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
            "shown, it is as narrow as the digits. Each site's policy hides counts of few rows."
        )
    blocks.append(Text(text))
    facts = {
        "participants": _listed(how.get("participants") or []),
        "left out": _listed(how.get("left_out") or []),
        "network": how.get("network"),
        "layout of the sums": how.get("layout"),
        "released": _time(how.get("release_time")),
        "bins of each column": privacy.get("bins", 64),
    }
    rows = [[name, str(value)] for name, value in facts.items() if value]
    blocks.append(Table("The release", ["", ""], rows))
    return Section("Privacy", blocks)


def _time(seconds: float | None) -> str:
    """Return a time since 1970 as a date."""
    if seconds is None:
        return ""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _tripod(sections: Iterable[str]) -> Section:
    there = set(sections)
    rows = []
    for item in texts.TRIPOD:
        is_there = item.section in there
        where = f"section {item.section}" if is_there else "not in this report"
        if is_there and not item.is_whole:
            where = f"in part, section {item.section}"
        rows.append([item.number, item.about, where, item.add])
    about = (
        "TRIPOD+AI asks authors who evaluate a prediction model for these items. This report has "
        "those that follow from data; the others have to be written by the authors."
    )
    heading = ["item", "about", "where", "to be added"]
    return Section("TRIPOD+AI", [Text(about), Table("Items of TRIPOD+AI", heading, rows)])
