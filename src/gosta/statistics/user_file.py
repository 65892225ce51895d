"""Statistics of a user's own, in a file."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from gosta.errors import InputError
from gosta.statistics import find
from gosta.statistics.definition import Statistic


def load_statistic(text: str, folder: Path | None = None) -> Statistic:
    """A statistic by name; FILE.py:NAME runs the file first, from a folder if one is given."""
    parts = split_reference(text)
    if parts is None:
        return find(text)
    file = parts[0] if folder is None else folder / parts[0]
    if not file.is_file():
        raise InputError(f"statistic = {text!r}: no such file: {file}")
    sys.path.insert(0, str(file.parent))  # as python FILE.py has it
    try:
        runpy.run_path(str(file))
    except (Exception, SystemExit) as error:  # whatever a user's file may do
        raise InputError(f"statistic = {text!r}: {file} fails with {type(error).__name__}: {error}") from error
    return find(parts[1])


def split_reference(text: str) -> tuple[Path, str] | None:
    """The file and the name in FILE.py:NAME; None for a plain name."""
    file, colon, name = text.rpartition(":")
    return (Path(file), name) if colon and file.endswith(".py") else None
