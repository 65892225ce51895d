"""A report as the pages of a PDF: texts, tables and pictures set one below the other on A4."""

from __future__ import annotations

import functools
import io
from typing import Any, NamedTuple

from gosta.reports.blocks import Block, Figures, List, Report, Section, Table, Text
from gosta.statistics.pictures import Picture
from gosta.views import plots

WIDTH, HEIGHT = 8.27, 11.69  # inches, A4
MARGIN = 0.8  # inches
POINTS = 72  # an inch
SIZE = 9.0  # points, of texts
TABLE_SIZE = 7.5  # points, in tables
LEAST_NAMES = 1.6  # inches of the first column of a table, which gives way to the others
LINE = 1.4  # distance of lines, in sizes of the text
SIDE_BEARING = 0.1  # of a word, in sizes of the text
GAP = 0.12  # inches between blocks, and between columns of a table
HEADING_SIZE = 1.4 * SIZE
MOST_KEPT = 2.5  # inches of a table that is not broken
KEPT_LINES = 2  # of a paragraph, and rows of a table, that stay with what is above
ROW_GAP = 0.06  # inches between the rows of a table
QUIET = "#555555"
# Inches around the axes of a picture, for its labels: left, right, below, above.
AROUND_CURVE = (0.65, 0.15, 0.5, 0.4)
BELOW_FOREST, ABOVE_FOREST = 0.35, 0.45
FOREST_GAP = 0.15  # inches between the axes of a forest plot and texts
FOREST_LINE = 0.2  # inches
LEAST_FOREST = 1.0  # inches of the axes of a forest plot that shares its line of the page
PICTURE_SIZE = 8.0  # points, of texts in pictures
FOREST_TEXT = PICTURE_SIZE * 0.833  # matplotlib's "small"


class _Pages:
    """The pages so far, and where the next text begins."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._figure: Any = None
        self._top = 0.0  # inches below the upper edge, where the page is free
        self._count = 0  # pages that are finished

    def new_page(self) -> None:
        """Finish the page, and begin another."""
        self.finish()
        self._figure = plots.matplotlib("figure").Figure(figsize=(WIDTH, HEIGHT))
        self._top = MARGIN

    def finish(self) -> None:
        """Write the last page."""
        if self._figure is not None:
            self._count += 1
            middle = {"ha": "center", "color": QUIET}
            self.write(str(self._count), WIDTH / 2, HEIGHT - MARGIN / 2, SIZE - 1, **middle)
            self._file.savefig(self._figure)

    def reserve(self, height: float) -> float:
        """Return where a block of a height begins, on a new page if this one has too little."""
        if self._figure is None or self._top + height > HEIGHT - MARGIN:
            self.new_page()
        top = self._top
        self._top += height
        return top

    def keep(self, height: float) -> bool:
        """Begin a new page if this one has too little room, and return whether it did."""
        is_full = self._figure is not None and self._top + height > HEIGHT - MARGIN
        if is_full:
            self.new_page()
        return is_full

    def skip(self, height: float) -> None:
        """Leave space."""
        self._top += height

    def write(self, text: str, x: float, top: float, size: float, **look: Any) -> None:
        """Write a line of text at a place, in inches from the upper left corner."""
        self._figure.text(x / WIDTH, 1 - top / HEIGHT, text, size=size, va="top", **look)

    def rule(self, top: float, width: float) -> None:
        """Draw a thin line from the margin."""
        ends = [MARGIN / WIDTH, (MARGIN + width) / WIDTH]
        look = {"color": "0.75", "linewidth": 0.5}
        line = plots.matplotlib("lines").Line2D(ends, [1 - top / HEIGHT] * 2, **look)
        self._figure.add_artist(line)

    def axes(self, left: float, top: float, width: float, height: float) -> Any:
        """Return axes with these edges, in inches from the upper left corner."""
        place = (left / WIDTH, 1 - (top + height) / HEIGHT, width / WIDTH, height / HEIGHT)
        return self._figure.add_axes(place)


def render(report: Report) -> bytes:
    """Return the contents of the PDF."""
    content = io.BytesIO()
    pdf = plots.matplotlib("backends.backend_pdf").PdfPages
    looks = {"font.size": PICTURE_SIZE, "pdf.fonttype": 42, "text.parse_math": False}
    about = {"Title": report.title, "CreationDate": None}
    with plots.matplotlib("style").context(looks), pdf(content, metadata=about) as file:
        pages = _Pages(file)
        _paragraph(pages, report.title, 2 * SIZE, weight="bold")
        _paragraph(pages, report.subtitle, SIZE, color=QUIET)
        for section in report.sections:
            _section(pages, section)
        pages.finish()
    return content.getvalue()


def _section(pages: _Pages, section: Section) -> None:
    pages.skip(2 * GAP)
    pages.keep(_line_height(HEADING_SIZE) + GAP + _least_height(section.blocks))
    _paragraph(pages, section.title, HEADING_SIZE, weight="bold")
    for block in section.blocks:
        match block:
            case Text(text):
                _paragraph(pages, text, SIZE)
            case List(items):
                for item in items:
                    _paragraph(pages, item, SIZE, mark="\u2022")
            case Figures(pictures):
                _figures(pages, pictures)
            case Table(is_detail=False):
                _table(pages, block)


def _least_height(blocks: list[Block]) -> float:
    """Return the inches that the beginning of blocks needs, so that it stays with a heading."""
    match blocks[0]:
        case Figures(shown):
            return _row_height(_in_rows(shown)[0])
        case Table():
            return _Set.of(blocks[0]).least_height
        case Text(text) if len(blocks) > 1 and isinstance(blocks[1], Table):
            lines = len(_wrapped(text, SIZE, WIDTH - 2 * MARGIN))
            return lines * _line_height(SIZE) + GAP + _least_height(blocks[1:])
        case _:
            return KEPT_LINES * _line_height(SIZE)


def _paragraph(pages: _Pages, text: str, size: float, mark: str = "", **look: Any) -> None:
    indent = 0.15 if mark else 0.0
    for k, line in enumerate(_wrapped(text, size, WIDTH - 2 * MARGIN - indent, **look)):
        top = pages.reserve(_line_height(size))
        if mark and k == 0:
            pages.write(mark, MARGIN, top, size)
        pages.write(line, MARGIN + indent, top, size, **look)
    pages.skip(GAP)


def _line_height(size: float) -> float:
    return LINE * size / POINTS


@functools.lru_cache(maxsize=10_000)
def _width(text: str, size: float, weight: str = "normal") -> float:
    """Return the width of a text in inches."""
    if not text.strip():
        return 0.3 * size * len(text) / POINTS
    path, font = plots.matplotlib("textpath").TextPath, plots.matplotlib("font_manager")
    prop = font.FontProperties(weight=weight)
    width = path((0, 0), text, size=size, prop=prop).get_extents().width
    return float(width + SIDE_BEARING * size) / POINTS


def _wrapped(text: str, size: float, width: float, weight: str = "normal", **_: Any) -> list[str]:
    """Return the lines of a text that fit a width; a longer word has a line of its own."""
    lines, used, space = [""], 0.0, 0.35 * size / POINTS
    for word in text.split():
        needed = _width(word, size, weight)
        if lines[-1] and used + space + needed > width:
            lines.append("")
            used = 0.0
        used += needed + space * bool(lines[-1])
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


Cell = list[tuple[str, bool]]  # lines, and whether each is said of the value


class _Set(NamedTuple):
    """A table set in lines."""

    caption: list[str]
    widths: list[float]  # of the columns, in inches
    heading: list[Cell]  # empty if there is none
    rows: list[list[Cell]]

    @classmethod
    def of(cls, table: Table) -> _Set:
        """Set a table, with intervals beside their values if all columns fit then."""
        texts = [table.heading, *table.rows] if any(table.heading) else table.rows
        room = WIDTH - 2 * MARGIN
        beside = [[cell.replace("\n(", " (") for cell in row] for row in texts]
        names, *others = _natural_widths(beside)
        needed = min(names, LEAST_NAMES) + sum(others) + GAP * len(others)
        texts = beside if needed <= room else texts
        widths = _column_widths(texts)
        weights = ["bold"] * (len(texts) - len(table.rows)) + ["normal"] * len(table.rows)
        rows = [
            [_cell(text, width, weight) for text, width in zip(row, widths, strict=True)]
            for row, weight in zip(texts, weights, strict=True)
        ]
        heading = rows.pop(0) if any(table.heading) else []
        return cls(_wrapped(table.caption, SIZE, room, "bold"), widths, heading, rows)

    @property
    def least_height(self) -> float:
        """Inches that have to be on one page: the caption and a few rows, or all of a small one."""
        caption = len(self.caption) * _line_height(SIZE) + GAP / 2
        heights = [_height(row) for row in [self.heading, *self.rows]]
        whole = caption + sum(heights)
        return whole if whole <= MOST_KEPT else caption + sum(heights[: 1 + KEPT_LINES])


def _table(pages: _Pages, table: Table) -> None:
    made = _Set.of(table)
    pages.keep(made.least_height)
    _paragraph(pages, table.caption, SIZE, weight="bold")
    pages.skip(-GAP / 2)
    if made.heading:
        _row(pages, made.heading, made.widths, "bold")
    for k, row in enumerate(made.rows):
        is_near_end = k + KEPT_LINES == len(made.rows)
        kept = made.rows[k:] if is_near_end else [row]
        if pages.keep(sum(map(_height, kept))) and made.heading:
            _row(pages, made.heading, made.widths, "bold")
        _row(pages, row, made.widths, "normal")
    pages.skip(1.5 * GAP)


def _height(cells: list[Cell]) -> float:
    return _line_height(TABLE_SIZE) * max(map(len, cells)) + ROW_GAP if cells else 0.0


def _row(pages: _Pages, cells: list[Cell], widths: list[float], weight: str) -> None:
    height = _height(cells)
    top, left = pages.reserve(height), MARGIN
    for lines, width in zip(cells, widths, strict=True):
        for k, (line, is_quiet) in enumerate(lines):
            look = {"color": QUIET} if is_quiet else {"color": "black", "weight": weight}
            pages.write(line, left, top + k * _line_height(TABLE_SIZE), TABLE_SIZE, **look)
        left += width + GAP
    pages.rule(top + height - ROW_GAP / 2, left - GAP - MARGIN)


def _cell(text: str, width: float, weight: str) -> Cell:
    """Return the lines of a cell that fit its width."""
    return [
        (line, k > 0)
        for k, part in enumerate(text.split("\n"))
        for line in _wrapped(part, TABLE_SIZE, width, weight)
    ]


def _natural_widths(rows: list[list[str]]) -> list[float]:
    """Return the width in inches of each column whose lines are not broken."""
    return [
        max(_width(line, TABLE_SIZE, "bold") for cell in column for line in cell.split("\n"))
        for column in zip(*rows, strict=True)
    ]


def _column_widths(rows: list[list[str]]) -> list[float]:
    """Return the width of each column in inches; the widest give way where all do not fit."""
    natural = _natural_widths(rows)
    room = WIDTH - 2 * MARGIN - GAP * (len(natural) - 1)
    most = max(natural)
    while sum(min(width, most) for width in natural) > room:
        most *= 0.97
    return [min(width, most) + 0.02 for width in natural]


def _figures(pages: _Pages, pictures: list[Picture]) -> None:
    for shown in _in_rows(pictures):
        height = _row_height(shown)
        top = pages.reserve(height)
        width = (WIDTH - 2 * MARGIN) / (2 if _fits_half(shown[0]) else 1)
        for place, one in enumerate(shown):
            left, right, below, above = _around(one)
            if one.is_curve:
                below += max(each.risk_height for each in shown)
            ax = pages.axes(
                MARGIN + place * width + left,
                top + above,
                width - left - right,
                height - below - above if one.is_curve else FOREST_LINE * len(one.lines),
            )
            one.draw(ax)
        pages.skip(GAP)


def _around(picture: Picture) -> tuple[float, float, float, float]:
    """Return the inches left, right, below and above of the axes of a picture."""
    if picture.is_curve:
        return AROUND_CURVE
    left, right = (
        max(_width(text, FOREST_TEXT) for text in texts) + FOREST_GAP
        for texts in ([line.name for line in picture.lines], [line.text for line in picture.lines])
    )
    return left, right, BELOW_FOREST, ABOVE_FOREST


def _fits_half(picture: Picture) -> bool:
    """Return whether a picture can have half of the page: a curve, or a plot of short texts."""
    left, right, *_ = _around(picture)
    return picture.is_curve or left + right + LEAST_FOREST <= WIDTH / 2 - MARGIN


def _row_height(shown: list[Picture]) -> float:
    """Return the inches of pictures beside each other."""
    if shown[0].is_curve:
        scale = (WIDTH / 2 - MARGIN) / shown[0].size[0]
        return max(one.size[1] for one in shown) * scale
    return ABOVE_FOREST + BELOW_FOREST + FOREST_LINE * max(len(one.lines) for one in shown)


def _in_rows(pictures: list[Picture]) -> list[list[Picture]]:
    """Return pictures in rows: two of a kind beside each other, if they can have half of a page."""
    rows: list[list[Picture]] = []
    for picture in pictures:
        last = rows[-1] if rows else []
        is_alike = len(last) == 1 and last[0].is_curve == picture.is_curve
        if is_alike and _fits_half(last[0]) and _fits_half(picture):
            last.append(picture)
        else:
            rows.append([picture])
    return rows
