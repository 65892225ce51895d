"""A report as the pages of a PDF: texts, tables and pictures set one below the other on A4."""

from __future__ import annotations

import functools
import io
from typing import Any

from gosta.reports.blocks import Figures, List, Report, Section, Table, Text
from gosta.statistics.pictures import Picture
from gosta.views import plots

WIDTH, HEIGHT = 8.27, 11.69  # inches, A4
MARGIN = 0.8  # inches
POINTS = 72  # an inch
SIZE = 9.0  # points, of texts
LINE = 1.4  # distance of lines, in sizes of the text
SIDE_BEARING = 0.1  # of a word, in sizes of the text
GAP = 0.12  # inches between blocks, and between columns of a table
AFTER_HEADING = 1.5  # inches that a heading needs below it, so that it does not end a page
QUIET = "#555555"
# Inches around the axes of a picture, for its labels: left, right, below, above.
AROUND_CURVE = (0.65, 0.15, 0.5, 0.4)
AROUND_FOREST = (1.9, 1.7, 0.5, 0.4)
PICTURE_SIZE = 8.0  # points, of texts in pictures


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
    pages.keep(AFTER_HEADING + _first_height(section))
    _paragraph(pages, section.title, 1.4 * SIZE, weight="bold")
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


def _first_height(section: Section) -> float:
    """Return the inches that a section needs to begin, besides those of its heading."""
    first, *others = section.blocks
    if isinstance(first, Figures):
        return _row_height(_in_rows(first.pictures)[0])
    is_before_table = isinstance(first, Text) and bool(others) and isinstance(others[0], Table)
    return AFTER_HEADING * is_before_table


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


def _table(pages: _Pages, table: Table) -> None:
    size = SIZE - 1
    rows = [table.heading, *table.rows] if any(table.heading) else table.rows
    widths = _column_widths(rows, size)
    first = sum(max(c.count("\n") + 1 for c in row) for row in rows[:2]) * _line_height(size)
    pages.keep(AFTER_HEADING / 2 + first)
    _paragraph(pages, table.caption, SIZE, weight="bold")
    pages.skip(-GAP / 2)
    has_heading = any(table.heading)
    heading = [_cell(*cell, size, "bold") for cell in zip(table.heading, widths, strict=True)]
    for row in rows:
        weight = "bold" if row is table.heading else "normal"
        cells = [_cell(*cell, size, weight) for cell in zip(row, widths, strict=True)]
        if pages.keep(_height(cells, size)) and has_heading:
            _row(pages, heading, widths, size, "bold")
        _row(pages, cells, widths, size, weight)
    pages.skip(1.5 * GAP)


Cell = list[tuple[str, bool]]  # lines, and whether each is said of the value


def _height(cells: list[Cell], size: float) -> float:
    return _line_height(size) * max(map(len, cells)) + 0.06


def _row(pages: _Pages, cells: list[Cell], widths: list[float], size: float, weight: str) -> None:
    height = _height(cells, size)
    top, left = pages.reserve(height), MARGIN
    for lines, width in zip(cells, widths, strict=True):
        for k, (line, is_quiet) in enumerate(lines):
            look = {"color": QUIET} if is_quiet else {"color": "black", "weight": weight}
            pages.write(line, left, top + k * _line_height(size), size, **look)
        left += width + GAP
    pages.rule(top + height - 0.03, left - GAP - MARGIN)


def _cell(text: str, width: float, size: float, weight: str) -> Cell:
    """Return the lines of a cell that fit its width."""
    return [
        (line, k > 0)
        for k, part in enumerate(text.split("\n"))
        for line in _wrapped(part, size, width, weight)
    ]


def _column_widths(rows: list[list[str]], size: float) -> list[float]:
    """Return the width of each column in inches; the widest give way where all do not fit."""
    natural = [
        max(_width(line, size, "bold") for cell in column for line in cell.split("\n"))
        for column in zip(*rows, strict=True)
    ]
    room = WIDTH - 2 * MARGIN - GAP * (len(natural) - 1)
    most = max(natural)
    while sum(min(width, most) for width in natural) > room:
        most *= 0.97
    return [min(width, most) + 0.02 for width in natural]


def _figures(pages: _Pages, pictures: list[Picture]) -> None:
    for shown in _in_rows(pictures):
        width = _picture_width(shown[0])
        height = _row_height(shown)
        top = pages.reserve(height)
        for place, one in enumerate(shown):
            left, right, below, above = AROUND_CURVE if one.is_curve else AROUND_FOREST
            below += max(each.risk_height for each in shown)
            ax = pages.axes(
                MARGIN + place * width + left,
                top + above,
                width - left - right,
                height - below - above,
            )
            one.draw(ax)
        pages.skip(GAP)


def _picture_width(picture: Picture) -> float:
    """Return inches: a curve has half of the page."""
    return (WIDTH - 2 * MARGIN) / (2 if picture.is_curve else 1)


def _row_height(shown: list[Picture]) -> float:
    """Return the inches of pictures beside each other."""
    first = shown[0]
    return max(one.size[1] for one in shown) * min(_picture_width(first) / first.size[0], 1.0)


def _in_rows(pictures: list[Picture]) -> list[list[Picture]]:
    """Return pictures in rows: two curves beside each other, a forest plot alone."""
    curves = [picture for picture in pictures if picture.is_curve]
    forests = [picture for picture in pictures if not picture.is_curve]
    pairs = [curves[k : k + 2] for k in range(0, len(curves), 2)]
    return [*pairs, *([picture] for picture in forests)]
