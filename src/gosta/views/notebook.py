"""HTML of objects in notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def definition_table(title: str, rows: Mapping[str, str]) -> str:
    """Return a small table of names and values under a title, for a method ``_repr_html_``.

    >>> definition_table("Graph: a < b", {"nodes": "2"})
    '<table><caption>Graph: a &lt; b</caption><tr><th>nodes</th><td>2</td></tr></table>'
    """
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows.items())
    return f"<table><caption>{escape(title)}</caption>{cells}</table>"
