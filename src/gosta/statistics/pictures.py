"""Pictures of estimates: which belong into one, and what they are called.

A picture holds what is to be compared: the curves of several scores or groups, a decision curve
beside that of treating all, the values of groups.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gosta.errors import InputError
from gosta.runtime.arrays import Floats
from gosta.views import curves, numbers
from gosta.views.curves import STYLES, Curve, Line

if TYPE_CHECKING:
    from gosta.statistics.estimate import Estimate

CURVE_SIZE = (4.6, 4.0)  # inches
FOREST_WIDTH, FOREST_LINE, RISK_LINE = 4.6, 0.4, 0.16  # inches
TITLE_WIDTH = 44  # characters of a line
COLUMNS = 2  # pictures beside each other in a file
# Curves that are drawn into the picture of another statistic.
INTO = {
    "net-benefit-of-all": "net-benefit",
    "smooth-calibration-curve": "calibration-curve",
    "survival-smooth-calibration": "survival-calibration",
    "numbers-at-risk": "kaplan-meier",
}
BESIDE = ("net-benefit-of-all", "numbers-at-risk")  # of these, not drawn as curves of a score
AT_RISK = "numbers-at-risk"
MOST_AT_RISK = 6  # times at which numbers at risk are shown
# What a picture of a statistic needs besides.
COMPANIONS = {
    "net-benefit": "net-benefit-of-all",
    "precision-recall-curve": "net-benefit-of-all",  # which tells the prevalence
    "kaplan-meier": AT_RISK,
}
OF_SCORES = ("net-benefit", "precision-recall-curve")  # compared with what needs no score
WORDS = {  # in a legend
    "calibration-curve": "by bins",
    "smooth-calibration-curve": "smooth",
    "survival-calibration": "by bins",
    "survival-smooth-calibration": "smooth",
}
BINNED = ("calibration-curve", "survival-calibration")
# Values that say nothing, or are as they should be, in forest plots.
REFERENCES = dict.fromkeys(("auc", "concordance-index", "uno-concordance"), 0.5)
REFERENCES |= dict.fromkeys(
    (
        "calibration-slope",
        "observed-expected-ratio",
        "survival-calibration-slope",
        "survival-observed-expected-ratio",
    ),
    1.0,
)


class Picture(NamedTuple):
    """A picture of one or several estimates."""

    kind: str  # name of the statistic that it is about
    title: str
    estimates: tuple[Estimate, ...]  # drawn, each with its groups if `has_groups`
    has_groups: bool
    beside: tuple[Estimate, ...] = ()  # that help to draw, such as treating all

    @property
    def is_curve(self) -> bool:
        """Whether it shows curves; otherwise values under each other."""
        return self.estimates[0].at is not None

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches."""
        if not self.is_curve:
            return FOREST_WIDTH, 0.9 + FOREST_LINE * len(self.lines)
        return CURVE_SIZE[0], CURVE_SIZE[1] + self.risk_height

    @property
    def lines(self) -> list[Line]:
        """Values under each other."""
        first = self.estimates[0]
        if np.ndim(first.value) == 1:
            parts = zip(first.labels, first.value, first.low, first.high, strict=True)
            return [Line(name, value, low, high, first.size) for name, value, low, high in parts]
        lines = [_line(one, _label(one, self) or self.title) for one in _parts(self)]
        if self.has_groups:
            lines.append(_line(first, "all rows")._replace(is_summary=True))
        return lines

    @property
    def risk_height(self) -> float:
        """Inches that the numbers at risk take below the axis."""
        if not self.is_curve:
            return 0.0
        tables = sum(_at_risk(each, self) is not None for each in _parts(self))
        return RISK_LINE * (tables + (tables > 0))

    @property
    def description(self) -> str:
        """What is seen, for those who cannot see it."""
        if not self.is_curve:
            found = [f"{one.label} {numbers.short(one.value)}" for one in self.lines]
            return f"{self.title}: {', '.join(found)}"
        horizontal, vertical = self.estimates[0].axes or ("", "")
        found = []
        for part in _parts(self):
            known = np.flatnonzero(np.isfinite(np.ravel(part.value)))
            x, y = np.asarray(part.at)[known], np.ravel(part.value)[known]
            ends = [f"({numbers.short(x[k])}, {numbers.short(y[k])})" for k in (0, -1)]
            found.append(f"{_label(part, self)} from {ends[0]} to {ends[1]}".strip())
        return f"{self.title}, {vertical} over {horizontal}: {'; '.join(found)}"

    def draw(self, ax: Any) -> None:
        """Draw into an axes."""
        if self.is_curve:
            _draw_curves(self, ax)
        else:
            curves.draw_forest(ax, self.lines, REFERENCES.get(self.kind))
        ax.set_title(_wrapped(self.title), fontsize="medium")
        for text in ax.findobj(lambda artist: hasattr(artist, "set_parse_math")):
            text.set_parse_math(False)  # a name such as "$x^$" is no formula


def _wrapped(title: str) -> str:
    """Return a title in lines; the number of rows is not broken.

    >>> _wrapped("Calibration curve by sex, ward, model new (n = 894)")
    'Calibration curve by sex, ward, model new\\n(n = 894)'
    """
    if len(title) <= TITLE_WIDTH:
        return title
    what, mark, size = title.partition(" (n ")
    lines = textwrap.wrap(what, TITLE_WIDTH)
    if mark and len(lines[-1] + mark + size) <= TITLE_WIDTH:
        lines[-1] += mark + size
    elif mark:
        lines.append(mark.lstrip() + size)
    return "\n".join(lines)


def pictures(estimates: Sequence[Estimate], others: Sequence[Estimate] = ()) -> list[Picture]:
    """Return the pictures of estimates; those that none can show are left out.

    `others` are not drawn, but can help: the net benefit of all tells the prevalence.
    """
    by_kind: dict[str, list[Estimate]] = {}
    for estimate in estimates:
        if estimate.value is not None:
            name = _base(estimate)
            by_kind.setdefault(INTO.get(name, name), []).append(estimate)
    found: list[Picture] = []
    for kind, members in by_kind.items():
        needed = COMPANIONS.get(kind)
        beside = tuple(
            one for one in (*estimates, *others) if _base(one) == needed and one.value is not None
        )
        found += _of_kind(kind, members, beside)
    return found


def _of_kind(kind: str, members: list[Estimate], beside: tuple[Estimate, ...]) -> list[Picture]:
    own = [one for one in members if _base(one) not in BESIDE]
    if not own:
        own, beside = members, ()
    drawn = [one for one in own if one.at is not None]
    if drawn:
        title = STYLES[kind].title if kind in STYLES else kind
        found = []
        for members in _apart(kind, drawn):
            name = f"{title}{_of_columns(members[0]) * (len(members) < len(drawn))}"
            name += f" ({members[0].size})"
            found.append(Picture(kind, name, tuple(members), False, beside))
        for one in drawn:
            if any(group.value is not None for group in one.groups):
                by = f"{title} by {one.by}{_of_columns(one)}"
                found.append(Picture(kind, by, (one,), True, beside))
        return found
    return _of_values(kind, own)


def _of_values(kind: str, own: list[Estimate]) -> list[Picture]:
    """Return pictures of values under each other: of all scores, of groups, of several values."""
    single = [one for one in own if np.ndim(one.value) == 0 and one.level is not None]
    grouped = [one for one in single if one.by is not None]
    several = [
        one for one in own if np.ndim(one.value) == 1 and np.size(one.low) == np.size(one.value)
    ]
    of_all = [Picture(kind, kind, tuple(single), False)] if len(single) > len(grouped) else []
    return [
        *of_all,
        *(Picture(kind, f"{kind} by {one.by}{_of_columns(one)}", (one,), True) for one in grouped),
        *(Picture(kind, f"{kind}{_of_columns(one)}", (one,), False) for one in several),
    ]


def _apart(kind: str, drawn: list[Estimate]) -> list[list[Estimate]]:
    """Return the curves of each picture: those of calibration are too many for one."""
    if kind not in STYLES or not STYLES[kind].has_histogram:
        return [drawn]
    by_columns: dict[str, list[Estimate]] = {}
    for one in drawn:
        by_columns.setdefault(_of_columns(one), []).append(one)
    return list(by_columns.values())


def draw_all(estimates: Sequence[Estimate], new_figure: Any) -> Any:
    """Return a figure with all pictures of estimates; `new_figure` takes width and height."""
    shown = pictures(estimates)
    if not shown:
        raise nothing_to_draw(estimates[0])
    across = min(COLUMNS, len(shown))
    rows = [shown[k : k + across] for k in range(0, len(shown), across)]
    heights = [max(one.size[1] for one in row) for row in rows]
    width = max(sum(one.size[0] for one in row) for row in rows)
    figure = new_figure(width, sum(heights))
    grid = figure.add_gridspec(len(rows), across, height_ratios=heights)
    for k, picture in enumerate(shown):
        picture.draw(figure.add_subplot(grid[k // across, k % across]))
    return figure


def draw_one(estimate: Estimate, ax: Any) -> None:
    """Draw one estimate, with its groups if it has some."""
    shown = pictures([estimate])
    if not shown:
        raise nothing_to_draw(estimate)
    shown[-1].draw(ax)


def nothing_to_draw(estimate: Estimate) -> InputError:
    """Return the error that an estimate is neither a curve nor a value with an interval."""
    what = f"{estimate.statistic} has no picture: it is no curve, and has no interval"
    return InputError(what, remedy="ask for one: --interval 95% (interval=0.95)")


def _base(estimate: Estimate) -> str:
    """Return the name of the statistic, without columns and weights.

    >>> from gosta.statistics.estimate import Estimate
    >>> _base(Estimate(0.8, statistic="auc@w:risk"))
    'auc'
    """
    return estimate.statistic.partition(":")[0].partition("@")[0]


def _of_columns(estimate: Estimate) -> str:
    columns = estimate.statistic.partition(":")[2]
    return f", {columns}" if columns else ""


def _label(estimate: Estimate, picture: Picture) -> str:
    """Return what tells an estimate from the others of a picture."""
    if picture.has_groups:
        return f"{estimate.group}"
    columns = _columns(estimate)
    own = [name for name in columns if any(name not in _columns(one) for one in picture.estimates)]
    names = {_base(one) for one in picture.estimates}
    words = [WORDS.get(_base(estimate), _base(estimate))] * (len(names) > 1) + own
    return " ".join(words) or ("score" if picture.kind in OF_SCORES else "")


def _columns(estimate: Estimate) -> list[str]:
    return [name for name in estimate.statistic.partition(":")[2].split("+") if name]


def _parts(picture: Picture) -> list[Estimate]:
    """Return the estimates whose values are drawn."""
    if not picture.has_groups:
        return list(picture.estimates)
    return [one for one in picture.estimates[0].groups if one.value is not None]


def _line(estimate: Estimate, label: str) -> Line:
    low, high = (np.nan if end is None else float(end) for end in (estimate.low, estimate.high))
    return Line(label, float(estimate.value), low, high, estimate.size)


def _draw_curves(picture: Picture, ax: Any) -> None:
    drawn = [
        _curve(one, _label(one, picture))._replace(at_risk=_at_risk(one, picture))
        for one in _parts(picture)
    ]
    others = [_curve(one, "all") for one in picture.beside if _base(one) == "net-benefit-of-all"]
    line = 0.0 if picture.kind == "net-benefit" else None
    if picture.kind == "precision-recall-curve" and others:
        line, others = _prevalence(others[0]), []
    axes, level = picture.estimates[0].axes or ("", ""), picture.estimates[0].level
    curves.draw_curves(ax, picture.kind, drawn, axes, line, others[:1], level)


def _at_risk(estimate: Estimate, picture: Picture) -> tuple[Floats, list[str]] | None:
    """Return times from 0 on, and how many rows are at risk then.

    They are from beside, or at some of the points.
    """
    times, texts = np.zeros(0), list[str]()
    for one in picture.beside:
        for part in (one, *one.groups):
            if part.group == estimate.group and part.value is not None and _base(one) == AT_RISK:
                times, texts = _array(part.at), _counts_at_risk(part)
    if not len(times) and estimate.counts is not None and _base(estimate) == "kaplan-meier":
        x, counts = _array(estimate.at), _array(estimate.counts)
        chosen = np.unique(np.searchsorted(x, np.linspace(x[0], x[-1], MOST_AT_RISK)))
        times, texts = x[chosen], [numbers.count(count) for count in counts[chosen].tolist()]
    if not len(times):
        return None
    if times[0] > 0:
        whole = numbers.about_count(estimate.n, estimate.n_error)
        times, texts = np.append(0.0, times), [whole, *texts]
    return times, texts


def _counts_at_risk(estimate: Estimate) -> list[str]:
    """Return numbers of rows at risk, with a sign before those that are not known exactly."""
    values = _array(estimate.value)
    low, high = map(_array, estimate.bracket or (values, values))
    signs = [numbers.ABOUT if gap >= 1 else "" for gap in (high - low).tolist()]
    texts = [
        numbers.count(value) if np.isfinite(value) else numbers.NONE for value in values.tolist()
    ]
    return [sign * (text != numbers.NONE) + text for sign, text in zip(signs, texts, strict=True)]


def _prevalence(treat_all: Curve) -> float:
    """Return the share of positive rows: the net benefit of all at t is p − (1 − p)·t/(1 − t)."""
    t, benefit = float(treat_all.x[0]), float(treat_all.y[0])
    return benefit * (1 - t) + t


def _curve(estimate: Estimate, label: str) -> Curve:
    y, low, high = (_array(part) for part in (estimate.value, estimate.low, estimate.high))
    has_interval = len(low) == len(high) == len(y) and estimate.level is not None
    bracket, counts = estimate.bracket, estimate.counts
    return Curve(
        _array(estimate.at),
        y,
        label,
        low if has_interval else None,
        high if has_interval else None,
        None if bracket is None else (_array(bracket[0]), _array(bracket[1])),
        None if counts is None else _array(counts),
        is_binned=_base(estimate) in BINNED,
        is_sampled=is_sampled(estimate),
    )


def is_sampled(estimate: Estimate) -> bool:
    """Return whether a curve of steps is known at its points only, and not at every step."""
    return bool(estimate.labels) and "before" in estimate.labels[0]


def _array(values: Any) -> Floats:
    return np.ravel(np.asarray(values, dtype=np.float64))
