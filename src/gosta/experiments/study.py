"""A study: a TOML file of lists, and the jobs that follow from it, one for every combination."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from gosta import datasets, graphs, protocols, statistics
from gosta.errors import InputError, unknown
from gosta.statistics import Statistic

FORMAT = "gosta sweep 1"  # another one where the same settings give other numbers or other columns
MOST_JOBS = 1_000_000
LARGEST = 2**53


@dataclass(frozen=True)
class Job:
    """One combination: all that its numbers follow from.

    Attributes
    ----------
    data, statistic, graph, protocol
        As the study names them.
    n
        Rows asked for; None means all.
    iterations, iterations_per_node
        At most one of them; without both, 100 a node.
    content
        For what lies in files of the user, their digests: when a file changes, the job is another one.
    """

    data: str
    statistic: str
    graph: str
    protocol: str
    n: int | None
    seed: int
    iterations: int | None
    iterations_per_node: int | None
    runs: int
    checkpoints: int
    spacing: str
    columns: tuple[str, ...] | None
    label: str | None
    score: str | None
    drop_missing: bool
    options: Mapping[str, Any]
    content: Mapping[str, str]

    @cached_property
    def key(self) -> str:
        """A name for the settings, the same on every machine."""
        text = json.dumps([FORMAT, dataclasses.asdict(self)], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def __str__(self) -> str:
        size = "" if self.n is None else f", n = {self.n:,}"
        return f"{self.statistic} of {self.data}, {self.protocol} on {self.graph}{size}, seed {self.seed}"


@dataclass(frozen=True)
class Study:
    """The jobs of a file, and what they need of the user's other files.

    Workers may have no access to those files, so data, graphs and statistics read from them are kept in `own`, by axis
    and name, and travel with the job.
    """

    path: Path
    jobs: list[Job]
    own: Mapping[tuple[str, str], Any]

    def subject(self, job: Job) -> tuple[Any, Any, Any]:
        """Data, statistic and graph of a job: names, or what was read from files."""
        named = {"data": job.data, "statistic": job.statistic, "graph": job.graph}
        data, statistic, graph = (self.own.get(item, item[1]) for item in named.items())
        return data, statistic, graph


class Key(NamedTuple):
    """What may stand behind a key of the file."""

    fits: Callable[[Any], bool]
    words: str
    several: bool = False


def _whole(least: int, most: int = LARGEST) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


KEYS = {
    "data": Key(_text, "a name from 'gosta datasets' or a file", True),
    "statistic": Key(_text, "a name from 'gosta statistics' or FILE.py:NAME", True),
    "graph": Key(_text, "a family of graphs or an edge-list file", True),
    "protocol": Key(_text, "a name from 'gosta protocols'", True),
    "n": Key(_whole(2), "a whole number of rows, 2 or more", True),
    "seed": Key(_whole(0), "a whole number, not negative", True),
    "seeds": Key(_whole(1), "how many seeds: a whole number, 1 or more"),
    "iterations": Key(_whole(1), "a whole number, 1 or more"),
    "iterations_per_node": Key(_whole(1), "a whole number, 1 or more"),
    "runs": Key(_whole(1), "a whole number, 1 or more"),
    "checkpoints": Key(_whole(1), "a whole number, 1 or more"),
    "spacing": Key(lambda value: value in ("linear", "log"), '"linear" or "log"'),
    "columns": Key(_text, "the name of a column", True),
    "label": Key(_text, "the name of a column"),
    "score": Key(_text, "the name of a column"),
    "drop_missing": Key(lambda value: isinstance(value, bool), "true or false"),
    "options": Key(lambda value: isinstance(value, dict), "a table of options of the statistics: [options]"),
}
DEFAULTS: dict[str, Any] = {
    "graph": ["watts-strogatz"],
    "protocol": ["tracking"],
    "n": [None],
    "seed": [0],
    "runs": 10,
    "checkpoints": 100,
    "spacing": "linear",
    "drop_missing": False,
    "options": {},
}
NEITHER = [("iterations", "iterations_per_node"), ("seed", "seeds")]


def read(path: str | Path, find: Callable[[str], Statistic] = statistics.find) -> Study:
    """Read a study and check every name in it, before any work is done.

    Parameters
    ----------
    path
        A TOML file; files that it names are looked for beside it.
    find
        How a statistic is had from what the study calls it.
    """
    path = Path(path)
    given = _checked(path, _parsed(path))
    axes: dict[str, Any] = {name: given[name] for name in ("data", "statistic", "graph", "protocol", "n", "seed")}
    if (count := math.prod(map(len, axes.values()))) > MOST_JOBS:
        raise InputError(f"{path}: {count:,} jobs are more than {MOST_JOBS:,}; split the study into several files")
    own, digests = _subjects(path, axes, find)
    for name in axes["protocol"]:
        _blame(path, "protocol", partial(protocols.find, name))
    options = _options(path, given["options"], {name: own.get(("statistic", name)) for name in axes["statistic"]})
    rest = {field.name: given.get(field.name) for field in dataclasses.fields(Job) if field.name not in axes}
    rest["columns"] = tuple(rest["columns"]) if rest["columns"] else None
    jobs = []
    for values in itertools.product(*axes.values()):
        at = dict(zip(axes, values, strict=True))
        content = {name: digests[name, at[name]] for name in at if (name, at[name]) in digests}
        jobs.append(Job(**{**rest, **at, "options": options[at["statistic"]], "content": content}))
    return Study(path, jobs, own)


def _parsed(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"{path} is not a file" if path.exists() else f"no such file: {path}")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {path}: it is not text in UTF-8") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f'{path} is not TOML: {error}; a line is like graph = ["torus", "complete"]') from error


def _checked(path: Path, given: dict[str, Any]) -> dict[str, Any]:
    """What the file says, each thing of its kind, with defaults; lists where there may be several."""
    for name, value in given.items():
        if name not in KEYS:
            raise InputError(f"{path}: {unknown('key', name, KEYS)}")
        key = KEYS[name]
        values = value if key.several and isinstance(value, list) else [value]
        for one in values:
            if not key.fits(one):
                more = ", or a list of such" if key.several else ""
                raise InputError(f"{path}: {name} = {_shown(one)} must be {key.words}{more}")
        if not values:
            raise InputError(f"{path}: {name} = [] is empty; give {key.words}")
        given[name] = list(dict.fromkeys(values)) if key.several else value
    for one, other in NEITHER:
        if one in given and other in given:
            raise InputError(f"{path}: {one} and {other} say the same thing twice; give one of them")
    for name in ("data", "statistic"):
        if name not in given:
            raise InputError(f"{path}: {name} is missing; give {KEYS[name].words}")
    if "seeds" in given:
        given["seed"] = range(given.pop("seeds"))
    return DEFAULTS | given


def _shown(value: Any) -> str:
    return "true" if value is True else "false" if value is False else repr(value)


def _blame(path: Path, key: str, work: Callable[[], Any]) -> Any:
    """Do something with a value of the file; what is wrong with it is wrong in that file."""
    try:
        return work()
    except InputError as error:
        raise InputError(f"{path}: {key}: {error}") from None


def _subjects(
    path: Path, axes: Mapping[str, Any], find: Callable[[str], Statistic]
) -> tuple[dict[tuple[str, str], Any], dict[tuple[str, str], str]]:
    """What has no built-in name, read from files beside the study, and the digests of those files."""
    own: dict[tuple[str, str], Any] = {}
    digests: dict[tuple[str, str], str] = {}
    for axis, load in (("data", _data), ("graph", _graph), ("statistic", _statistic(find))):
        for name in axes[axis]:
            found = _blame(path, axis, partial(load, path.parent, name))
            if found is not None:
                file, own[axis, name] = found
                with file.open("rb") as content:
                    digests[axis, name] = hashlib.file_digest(content, "sha256").hexdigest()
    return own, digests


def _data(folder: Path, name: str) -> tuple[Path, Any] | None:
    if name in datasets.DATASETS:
        return None
    file = folder / name
    if not file.suffix and not file.exists():
        raise unknown("data set or file", name, datasets.DATASETS)
    return file, datasets.load(file)


def _graph(folder: Path, name: str) -> tuple[Path, Any] | None:
    if name in graphs.GRAPHS:
        return None
    file = folder / name
    if not file.is_file() and not file.suffix:
        raise unknown("graph or file", name, graphs.GRAPHS)
    return file, graphs.load(file)


def _statistic(find: Callable[[str], Statistic]) -> Callable[[Path, str], tuple[Path, Any] | None]:
    def load(folder: Path, name: str) -> tuple[Path, Any] | None:
        file, _, inside = name.rpartition(":")
        if not file.endswith(".py"):
            find(name)
            return None
        return folder / file, find(f"{folder / file}:{inside}")

    return load


def _options(path: Path, given: dict[str, Any], chosen: Mapping[str, Statistic | None]) -> dict[str, dict[str, Any]]:
    """The options of each statistic: those that it has; each must be one of some statistic's."""
    known = {name: (own or statistics.find(name)).options for name, own in chosen.items()}
    for option in given:
        if not any(option in has for has in known.values()):
            raise InputError(f"{path}: options: {unknown('option', option, sorted(set().union(*known.values())))}")
    return {name: {k: v for k, v in given.items() if k in has} for name, has in known.items()}
