"""HTML pages and tables without scripts, fonts or anything else from another server."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
{refresh}<title>{title}</title>
<style>
body {{
  font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem
}}
:root {{ color-scheme: light dark }}
table {{ border-collapse: collapse; width: 100%; margin-bottom: 2rem }}
td, th {{
  text-align: left; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid #8884; font-weight: normal
}}
th {{ color: #777 }}
td {{ font-variant-numeric: tabular-nums; overflow-wrap: anywhere }}
</style>
<h1>{title}</h1>
{body}</html>
"""


def page(title: str, body: str, refresh_seconds: int | None = None) -> str:
    """Return a page with a heading, which browsers reload at an interval; `body` is HTML."""
    refresh = ""
    if refresh_seconds is not None:
        refresh = f'<meta http-equiv="refresh" content="{refresh_seconds}">\n'
    return PAGE.format(refresh=refresh, title=escape(title), body=body)


def table(
    rows: Iterable[Sequence[str]],
    heading: bool = False,
    caption: str = "",
    titles: Mapping[str, str] | None = None,
) -> str:
    """Return a table whose first column, and first row if it is a heading, are header cells.

    `titles` are texts that browsers show when the pointer is over a row, by its first cell.

    >>> table([("state", "a < b")], caption="node-1")
    '<table>\\n<caption>node-1</caption>\\n<tr><th>state</th><td>a &lt; b</td></tr>\\n</table>\\n'
    """
    lines = [f"<caption>{escape(caption)}</caption>"] if caption else []
    for number, (first, *others) in enumerate(rows):
        tag = "th" if heading and number == 0 else "td"
        cells = "".join(f"<{tag}>{escape(text)}</{tag}>" for text in others)
        title = (titles or {}).get(first, "")
        start = f'<tr title="{escape(title)}">' if title else "<tr>"
        lines.append(f"{start}<th>{escape(first)}</th>{cells}</tr>")
    return "\n".join(["<table>", *lines, "</table>\n"])


def sparkline(
    title: str, x: Iterable[float], y: Iterable[float], width: int = 240, height: int = 48
) -> str:
    """Return a small line chart as SVG, with y on a logarithmic scale; empty without two points.

    >>> sparkline("error", [1, 2, 3], [1.0, 0.1, 0.01], 102, 42).count("polyline")
    1
    """
    points = [
        (float(a), math.log(b)) for a, b in zip(x, y, strict=True) if b > 0 and math.isfinite(b)
    ]
    if len(points) < 2:
        return ""
    (left, *_, right), (low, *_, high) = (sorted(values) for values in zip(*points, strict=True))
    across, up = (width - 2) / (right - left or 1.0), (height - 2) / (high - low or 1.0)
    line = " ".join(f"{1 + (a - left) * across:.1f},{1 + (high - b) * up:.1f}" for a, b in points)
    drawn = f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    size = f'width="{width}" height="{height}"'
    shown = f'<svg {size} role="img" aria-label="{escape(title)}">{drawn}</svg>'
    return f"<div>{escape(title)}<br>{shown}</div>\n"
