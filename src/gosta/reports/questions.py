"""The section of a question: its pictures, and tables of all values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gosta.reports import texts
from gosta.reports.blocks import Block, Figures, Section, Table, Text
from gosta.reports.tables import Found, capital, value_cells, values_table, with_intervals
from gosta.statistics.estimate import CURVE_DIGITS, Estimate
from gosta.statistics.pictures import INTO, Picture, is_sampled, pictures
from gosta.views import numbers
from gosta.views.curves import STYLES

MOST_COLUMNS = 4  # of a table of points
AT_RISK_ROOM = 0.11  # between times of numbers at risk, relative to the last one
RECLASSIFICATION = ("net-reclassification", "integrated-discrimination")
DRAWN = {*STYLES, *INTO}  # curves that are pictures; others are tables of their points


def question_section(question: str, title: str, found: Sequence[Found]) -> Section:
    """Return all that was found for a question; other statistics can help to draw."""
    own = [one for one in found if one.question == question]
    blocks: list[Block] = []
    curves = [one for one in own if one.name in DRAWN and one.estimate.at is not None]
    shown = [one for one in titled_pictures(curves, found) if not one.has_groups]
    if shown:
        blocks.append(Figures(shown))
    singles = [one for one in own if one.estimate.at is None and np.ndim(one.estimate.value) == 0]
    if singles:
        blocks.append(values_table(singles, has_meanings=True))
    if any(one.name in RECLASSIFICATION for one in own):
        blocks.append(Text(texts.RECLASSIFICATION_WARNING))
    several = [one for one in own if not any(one is single for single in singles)]
    blocks += _labelled([one for one in several if one.estimate.at is None])
    points = [one for one in several if one.estimate.at is not None and one.name not in DRAWN]
    blocks += _points(points)
    blocks += [_curve_table(one) for one in curves if one.name != "net-benefit-of-all"]
    return Section(title, blocks)


def titled_pictures(own: Sequence[Found], found: Sequence[Found]) -> list[Picture]:
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
    words = STYLES[picture.kind].title if picture.kind in STYLES else capital(one.title)
    if picture.has_groups:
        words += f" by {first.by}"
    drawn = {other.score for other in own if any(other.estimate is e for e in picture.estimates)}
    if one.score and len(drawn) < len({other.score for other in own if other.name == one.name}):
        words += f", {one.score}"
    return f"{words} ({first.size})"


def curves_at_times(found: Sequence[Found], times: Sequence[float]) -> Iterator[Found]:
    """Yield Kaplan and Meier's curve of all times of events at the times of the study."""
    for one in found:
        at = np.ravel(one.estimate.at) if one.name == "kaplan-meier" else np.zeros(0)
        wanted = np.array([time for time in times if len(at) and at[0] < time], dtype=np.float64)
        if len(wanted) and not np.array_equal(at, times):
            # By sums a value is that before its time; in one place it is that from an event on.
            places = (
                np.searchsorted(at, wanted, "right" if is_sampled(one.estimate) else "left") - 1
            )
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


def readable_at_risk(one: Found, times: Sequence[float]) -> Found:
    """Return rows at risk at the times of the study, and at round ones far enough from others.

    So they can be written below a curve. Of the others, those known exactly are taken.
    """
    if one.name != "numbers-at-risk" or one.estimate.at is None:
        return one
    estimate, at = one.estimate, np.ravel(one.estimate.at)
    low, high = estimate.bracket or (estimate.value, estimate.value)
    is_exact = (np.ravel(high) - np.ravel(low) < 1).tolist()
    chosen = [float(time) for time in times if time in at]
    others = [time for time, exact in zip(at.tolist(), is_exact, strict=True) if exact]
    room = AT_RISK_ROOM * at[-1]
    for time in sorted(others, key=lambda time: (len(f"{time:g}".strip("0")), time)):
        if all(abs(time - other) >= room for other in (0.0, *chosen)):
            chosen.append(time)
    return one._replace(estimate=_at_times(estimate, sorted(chosen)))


def _at_times(estimate: Estimate, times: Sequence[float]) -> Estimate:
    """Return a curve, and those of its groups, at some of its points."""
    estimate = estimate._replace(
        groups=tuple(_at_times(group, times) for group in estimate.groups),
        groupings=tuple(_at_times(one, times) for one in estimate.groupings),
    )
    if estimate.at is None or estimate.value is None:
        return estimate
    kept = np.isin(np.ravel(estimate.at), times)
    bracket = estimate.bracket
    return estimate._replace(
        at=np.ravel(estimate.at)[kept],
        value=np.ravel(estimate.value)[kept],
        bracket=bracket and (np.ravel(bracket[0])[kept], np.ravel(bracket[1])[kept]),
        labels=tuple(
            label for label, is_kept in zip(estimate.labels, kept, strict=False) if is_kept
        ),
    )


def _labelled(found: Sequence[Found]) -> list[Block]:
    """Return a table of each statistic of several labelled values, a column for each score."""
    blocks: list[Block] = []
    for name in dict.fromkeys(one.name for one in found):
        members = [one for one in found if one.name == name]
        estimates = [one.estimate for one in members]
        columns = [dict(zip(each.labels, value_cells(each), strict=True)) for each in estimates]
        labels = list(dict.fromkeys(label for cells in columns for label in cells))
        rows = [[label, *(cells.get(label, "") for cells in columns)] for label in labels]
        heading = ["", *(one.score or "value" for one in members)]
        caption = with_intervals(capital(members[0].title), members)
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
    columns = [value_cells(one.estimate) for one in found]
    rows = [
        [numbers.number(point), *(cells[k] for cells in columns)] for k, point in enumerate(points)
    ]
    scores, names = ({getattr(one, key) for one in found} for key in ("score", "name"))
    if len(scores) == 1:
        heads = [capital(one.title) for one in found]
        caption = f"At each {axis}, {scores.pop()}".removesuffix(", ")
    elif len(names) == 1:
        heads = [one.score for one in found]
        caption = capital(found[0].title)
    else:
        heads = [one.heading for one in found]
        caption = f"At each {axis}"
    return Table(with_intervals(caption, found), [axis, *heads], rows)


def _curve_table(one: Found) -> Table:
    """Return the points of a curve that is a picture, too."""
    heading, *rows = one.estimate.table(digits=CURVE_DIGITS)
    when = ""
    if one.name == "kaplan-meier":
        when = " just before each time" if is_sampled(one.estimate) else " from each time on"
    return Table(f"{one.heading}{when}", heading, rows, is_detail=True)
