"""A report as one page of HTML that loads nothing, in light and dark, for screens and paper."""

from __future__ import annotations

import io
import re
from html import escape

from gosta.reports.blocks import Block, Figures, List, Report, Section, Table, Text
from gosta.statistics.pictures import Picture
from gosta.views import plots

STYLE = """
:root { color-scheme: light dark; --line: #8886; --quiet: #595959; --link: #0059a8 }
@media (prefers-color-scheme: dark) { :root { --quiet: #b4b4b4; --link: #7db8f0 } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 64rem;
  padding: 1rem 1rem 4rem }
h1 { line-height: 1.2; margin-bottom: .2rem }
h2 { border-top: 1px solid var(--line); margin-top: 2.5rem; padding-top: 1rem }
p, li { max-width: 46rem; overflow-wrap: anywhere }
a { color: var(--link) }
.quiet, caption, small, summary { color: var(--quiet) }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0 }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start }
figure { flex: 1 1 24rem; margin: 0; max-width: 30rem; min-width: 0 }
figure svg { display: block; height: auto; width: 100% }
figure svg text { fill: currentColor; font-family: system-ui, sans-serif !important }
.table { margin: 1rem 0; overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
caption { font-weight: 600; padding-bottom: .3rem; text-align: left }
th, td { border-bottom: 1px solid var(--line); padding: .25rem 1.2rem .25rem 0; text-align: left;
  vertical-align: top }
th { font-weight: 600 }
tbody th { font-weight: normal; max-width: 22rem; min-width: 6rem }
small { display: block; font-weight: normal }
td small:not(.long) { white-space: nowrap }
small.beside { display: inline-block }
summary { cursor: pointer }
@media (prefers-color-scheme: dark) { figure svg { filter: brightness(1.3) } }
@media (max-width: 30rem) {
  th, td { padding-right: .7rem }
  figure { flex-basis: 100% }
  .stacked thead { display: none }
  .stacked, .stacked :is(caption, tbody, tr, th, td) { display: block; max-width: none }
  .stacked tbody th { border: 0; font-weight: 600; padding-top: .8rem }
  .stacked td { border: 0; column-gap: .8rem; display: grid; padding-left: 1rem;
    grid-template-columns: minmax(0, 2fr) minmax(0, 3fr) }
  .stacked td:empty { display: none }
  .stacked td::before { color: var(--quiet); content: attr(data-column) }
  .stacked tbody th::before { content: attr(data-column) " "; float: left; margin-right: .3em }
  td small, td small:not(.long) { white-space: normal }
  .stacked tr { border-bottom: 1px solid var(--line) }
}
@media print {
  body { font-size: 10pt; max-width: none } nav, details { display: none }
  figure, tr { break-inside: avoid } h2 { break-after: avoid }
}
"""
UNSTACKED = 3  # columns of plain texts that fit a phone; others stand below each other there
LONG = 40  # characters of a line that may be broken
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p class="quiet">{subtitle}</p>
</header>
<nav aria-label="Contents"><ul>
{contents}
</ul></nav>
<main>
{sections}</main>
</body>
</html>
"""


def render(report: Report) -> str:
    """Return the page."""
    contents = "\n".join(
        f'<li><a href="#{section.anchor}">{escape(section.title)}</a></li>'
        for section in report.sections
    )
    return PAGE.format(
        title=escape(report.title),
        subtitle=escape(report.subtitle),
        style=STYLE,
        contents=contents,
        sections="".join(map(_section, report.sections)),
    )


def _section(section: Section) -> str:
    anchor, body = section.anchor, "".join(map(_block, section.blocks))
    heading = f'<h2 id="{anchor}">{escape(section.title)}</h2>'
    return f'<section aria-labelledby="{anchor}">\n{heading}\n{body}</section>\n'


def _block(block: Block) -> str:
    match block:
        case Text(text):
            return f"<p>{escape(text)}</p>\n"
        case List(items):
            return "<ul>\n" + "".join(f"<li>{escape(item)}</li>\n" for item in items) + "</ul>\n"
        case Figures(shown):
            return f'<div class="figures">\n{"".join(map(_figure, shown))}</div>\n'
        case Table():
            return _table(block)


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{_cell(text)}</th>' for text in table.heading)
    names = [f' data-column="{escape(text.partition(chr(10))[0])}"' for text in table.heading]
    has_head = any(table.heading)
    is_stacked = has_head and (len(names) > UNSTACKED or _has_notes(table))
    first, *others = names if is_stacked else [""] * len(names)
    lines = [
        f'<tr><th scope="row"{first}>{_cell(row[0])}</th>'
        + "".join(f"<td{n}>{_cell(text)}</td>" for n, text in zip(others, row[1:], strict=True))
        + "</tr>"
        for row in table.rows
    ]
    start = '<table class="stacked">' if is_stacked else "<table>"
    parts = [
        f"{start}\n<caption>{escape(table.caption)}</caption>",
        f"<thead><tr>{head}</tr></thead>" if has_head else "",
        "<tbody>",
        *lines,
        "</tbody>\n</table>",
    ]
    region = f'<div class="table" role="region" tabindex="0" aria-label="{escape(table.caption)}">'
    shown = f"{region}\n" + "\n".join(filter(None, parts)) + "\n</div>\n"
    if not table.is_detail:
        return shown
    return f"<details>\n<summary>{escape(table.caption)}: numbers</summary>\n{shown}</details>\n"


def _has_notes(table: Table) -> bool:
    """Return whether there is more than one line in a cell beside the names of the lines."""
    return any("\n" in cell for row in table.rows for cell in row[1:])


def _cell(text: str) -> str:
    """Return a cell; lines after the first are small, one in parentheses stands beside it."""
    if not text:
        return ""
    first, *others = text.split("\n")
    parts = [escape(first)]
    for line in others:
        place = ' class="beside"' if line.startswith("(") else ""
        place = ' class="long"' if len(line) > LONG else place
        parts.append(f"<small{place}>{escape(line)}</small>")
    return f"<div>{' '.join(parts)}</div>"


def _figure(picture: Picture) -> str:
    return f"<figure>\n{_drawn(picture)}\n</figure>\n"


def _drawn(picture: Picture) -> str:
    """Return a picture as SVG whose texts and axes have the colour of the page."""
    rc = {"svg.fonttype": "none", "svg.hashsalt": picture.title}
    figure, content = plots.new_figure(*picture.size), io.StringIO()
    with plots.matplotlib("style").context(rc):
        picture.draw(figure.add_subplot())
        undated = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(content, format="svg", transparent=True, metadata=undated)
    svg = content.getvalue()
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
    svg = re.sub(r'(<g) id="[^"]*"', r"\1", svg)  # several pictures have the same
    svg = re.sub(r'<svg[^>]*?(viewBox="[^"]*")[^>]*>', rf"<svg \1{_described(picture)}>", svg)
    return svg.replace("#000000", "currentColor")


def _described(picture: Picture) -> str:
    return f' role="img" aria-label="{escape(picture.description)}"'.replace("\\", "\\\\")
