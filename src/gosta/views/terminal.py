"""Text in columns for the terminal."""

from __future__ import annotations

import codecs
import io
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence

MAX_WIDTH = 110  # characters up to which running text is easy to read
MIN_WIDTH = 40
# What is printed for characters that the terminal's encoding lacks; for others a question mark.
PLAIN = {
    "·": "*",
    "×": "x",
    "−": "-",
    "–": "-",
    "—": "-",
    "µ": "u",
    "≤": "<=",
    "≥": ">=",
    "…": "...",
    "²": "2",
}


def replace_unknown_characters() -> None:
    """Print something else for characters that the standard streams' encoding lacks."""
    codecs.register_error("gosta.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="gosta.plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Return a text for characters that cannot be encoded, and where to go on."""
    assert isinstance(error, UnicodeEncodeError)
    characters = error.object[error.start : error.end]
    return "".join(PLAIN.get(character, "?") for character in characters), error.end


def columns(rows: Sequence[Sequence[str]], right: Collection[int] = (), indent: int = 2) -> str:
    """Align cells in columns: to the left, or to the right for the columns with these indices.

    >>> print(columns([["n", "error"], ["1,000", "5 %"]], right=[1]))
      n      error
      1,000    5 %
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = column_widths(rows)
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((" " * indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the number of characters of each column."""
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def definitions(entries: Iterable[tuple[str, str]], indent: int = 2, wrap: bool = False) -> str:
    """Align names and their values or explanations; `wrap` breaks long lines.

    >>> print(definitions([("nodes", "1,000"), ("spectral gap", "0.5")]))
      nodes         1,000
      spectral gap  0.5
    """
    entries = [(printable(name), printable(text)) for name, text in entries]
    margin = max((len(name) for name, _ in entries), default=0) + 2
    width = max(MIN_WIDTH, min(MAX_WIDTH, shutil.get_terminal_size().columns) - margin - indent)
    lines = []
    for name, text in entries:
        parts = (textwrap.wrap(text, width, break_on_hyphens=False) or [""]) if wrap else [text]
        names = [name, *[""] * (len(parts) - 1)]
        lines += [
            " " * indent + head.ljust(margin) + part
            for head, part in zip(names, parts, strict=True)
        ]
    return "\n".join(lines)


def printable(text: str) -> str:
    r"""Return a text without control characters, which could take over the terminal.

    >>> printable("node-1\x1b[2J")
    'node-1?[2J'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def drop_columns(
    rows: Sequence[Sequence[str]], dispensable: Iterable[str], width: int | None
) -> list[list[str]]:
    """Leave out columns, named in the first row, in the given order until the others fit a width.

    By default the width is that of the terminal, without a limit where output goes to a file.
    """
    width = width or (shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize)
    kept = [list(row) for row in rows]
    for name in dispensable:
        if sum(column_widths(kept)) + 2 * len(kept[0]) <= width:
            break
        place = kept[0].index(name)
        kept = [row[:place] + row[place + 1 :] for row in kept]
    return kept
