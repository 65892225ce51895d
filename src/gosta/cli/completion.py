"""Completion of names in the shell: statistics, protocols, graphs and data sets, beside files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path


def _statistics() -> Iterable[str]:
    from gosta.statistics import STATISTICS

    return STATISTICS


def _protocols() -> Iterable[str]:
    from gosta.protocols import PROTOCOLS

    return PROTOCOLS


def _graphs() -> Iterable[str]:
    from gosta.graphs import GRAPHS

    return GRAPHS


def _datasets() -> Iterable[str]:
    from gosta.datasets import DATASETS

    return DATASETS


# Parameters of commands, their names, and whether a file can be given instead.
NAMES: dict[str, tuple[Callable[[], Iterable[str]], bool]] = {
    "statistic": (_statistics, True),
    "protocol": (_protocols, False),
    "graph": (_graphs, True),
    "source": (_graphs, True),
    "data": (_datasets, True),
}


def completer(parameter: str) -> Callable[[str], list[str]] | None:
    """Return a function that completes a value of a parameter; None for parameters that take no names.

    Of several values separated by commas, it completes the last one.

    >>> completer("protocol")("gosta-async,tr")
    ['gosta-async,tracking']
    """
    if parameter not in NAMES:
        return None
    names, takes_files = NAMES[parameter]

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        found = [f"{before}{comma}{name}" for name in names() if name.startswith(last)]
        return found + (_files(incomplete) if takes_files else [])

    return complete


def _files(incomplete: str) -> list[str]:
    """Return the files and folders whose paths begin with a text."""
    folder, slash, start = incomplete.rpartition("/")
    there = Path(folder + slash)
    entries = sorted(there.iterdir()) if there.is_dir() else []
    names = [f"{one.name}/" if one.is_dir() else one.name for one in entries]
    return [
        f"{folder}{slash}{name}"
        for name in names
        if name.startswith(start) and (start or name[0] != ".")
    ]
