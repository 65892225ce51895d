"""Studies: a TOML file of lists, and one job for every combination of their values."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from gosta import datasets, graphs, protocols, statistics
from gosta.datasets.data import Data
from gosta.errors import InputError, unknown
from gosta.graphs import Graph
from gosta.simulation.trace import Spacing
from gosta.statistics import Statistic

FORMAT = "gosta sweep 2"  # changes when the same settings give other numbers or other columns
MAX_JOBS = 1_000_000
LARGEST = 2**53  # integers up to here are exact as floats


@dataclass(frozen=True)
class Job:
    """One combination of settings, from which its numbers follow; data, statistic, graph and protocol are names."""

    data: str
    statistic: str
    graph: str
    protocol: str
    n: int | None  # number of rows; None means all
    seed: int
    iterations: int | None  # without this and iterations_per_node, 100 a node
    runs: int
    checkpoints: int
    spacing: Spacing
    options: Mapping[str, Any]
    content: Mapping[str, str]  # digests of the user's files: when a file changes, its jobs are run again
    iterations_per_node: int | None = None
    columns: tuple[str, ...] | None = None
    label: str | None = None
    score: str | None = None
    drop_missing: bool = False

    @cached_property
    def key(self) -> str:
        """Digest of the settings, which is the same on every machine."""
        text = json.dumps([FORMAT, dataclasses.asdict(self)], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def __str__(self) -> str:
        size = "" if self.n is None else f", n = {self.n:,}"
        return f"{self.statistic} of {self.data}, {self.protocol} on {self.graph}{size}, seed {self.seed}"


class JobInputs(NamedTuple):
    """Data, statistic and graph of a job: built-in names, or values read from the user's files."""

    data: str | Data
    statistic: str | Statistic
    graph: str | Graph


@dataclass(frozen=True)
class Loaded:
    """Values read from the user's files, by the names in the study."""

    data: Mapping[str, Data] = field(default_factory=dict)
    statistic: Mapping[str, Statistic] = field(default_factory=dict)
    graph: Mapping[str, Graph] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """The jobs of a file, and the values they need from other files, which workers possibly cannot read."""

    path: Path
    jobs: list[Job]
    loaded: Loaded

    def inputs(self, job: Job) -> JobInputs:
        """Return the inputs of a job, as they are sent to a worker."""
        loaded = self.loaded
        return JobInputs(
            loaded.data.get(job.data, job.data),
            loaded.statistic.get(job.statistic, job.statistic),
            loaded.graph.get(job.graph, job.graph),
        )


class Key(NamedTuple):
    """Definition of a key of the file."""

    is_valid: Callable[[Any], bool]
    description: str
    is_list: bool = False  # whether a list of values is allowed, too
    default: Any = None


def _integer(least: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _section(value: Any) -> bool:
    return isinstance(value, dict)


KEYS = {
    "data": Key(_text, "a name from 'gosta datasets' or a file", True),
    "statistic": Key(_text, "a name from 'gosta statistics' or FILE.py:NAME", True),
    "graph": Key(_text, "a family of graphs or an edge-list file", True, ["watts-strogatz"]),
    "protocol": Key(_text, "a name from 'gosta protocols'", True, [protocols.DEFAULT]),
    "n": Key(_integer(2), "a whole number of rows, 2 or more", True, [None]),
    "seed": Key(_integer(0), "a whole number, not negative", True, [0]),
    "seeds": Key(_integer(1), "a number of seeds: a whole number, 1 or more"),
    "iterations": Key(_integer(1), "a whole number, 1 or more"),
    "iterations_per_node": Key(_integer(1), "a whole number, 1 or more"),
    "runs": Key(_integer(1), "a whole number, 1 or more", default=10),
    "checkpoints": Key(_integer(1), "a whole number, 1 or more", default=100),
    "spacing": Key(lambda value: value in ("linear", "log"), '"linear" or "log"', default="linear"),
    "columns": Key(_text, "the name of a column", True),
    "label": Key(_text, "the name of a column"),
    "score": Key(_text, "the name of a column"),
    "drop_missing": Key(lambda value: isinstance(value, bool), "true or false", default=False),
    "options": Key(_section, "options of the statistics, in a section [options]", default={}),
}
EXCLUSIVE = [("iterations", "iterations_per_node"), ("seed", "seeds")]
AXES = ("data", "statistic", "graph", "protocol", "n", "seed")


def read(path: str | Path, find: Callable[[str], Statistic] = statistics.find) -> Study:
    """Read a study and check every name in it.

    Parameters
    ----------
    path
        A TOML file; files that it names are relative to its folder.
    find
        Function that returns a statistic for its name in the study.
    """
    path = Path(path)
    settings = _validate(path, _parse(path))
    axes: dict[str, Any] = {name: settings[name] for name in AXES}
    if (count := math.prod(map(len, axes.values()))) > MAX_JOBS:
        raise InputError(f"{path}: {count:,} jobs are more than {MAX_JOBS:,}; split the study into several files")
    files: dict[tuple[str, str], Path] = {}
    data: dict[str, Data] = {}
    chosen: dict[str, Statistic] = {}
    networks: dict[str, Graph] = {}
    for name in axes["data"]:
        with _errors_name(path, "data"):
            if file := _file(path.parent, name, "data set", datasets.DATASETS):
                files["data", name], data[name] = file, datasets.load(file)
    for name in axes["graph"]:
        with _errors_name(path, "graph"):
            if file := _file(path.parent, name, "graph", graphs.GRAPHS):
                files["graph", name], networks[name] = file, graphs.load(file)
    for name in axes["statistic"]:
        with _errors_name(path, "statistic"):
            file_name, _, inside = name.rpartition(":")
            if file_name.endswith(".py"):
                files["statistic", name] = path.parent / file_name
                chosen[name] = find(f"{path.parent / file_name}:{inside}")
            else:
                find(name)
    for name in axes["protocol"]:
        with _errors_name(path, "protocol"):
            protocols.find(name)
    digests = {key: hashlib.sha256(file.read_bytes()).hexdigest() for key, file in files.items()}
    options = _options(path, settings["options"], {name: chosen.get(name) for name in axes["statistic"]})
    rest = {field.name: settings.get(field.name) for field in dataclasses.fields(Job) if field.name not in axes}
    rest["columns"] = tuple(rest["columns"]) if rest["columns"] else None
    jobs = []
    for values in itertools.product(*axes.values()):
        at = dict(zip(axes, values, strict=True))
        content = {name: digests[name, at[name]] for name in at if (name, at[name]) in digests}
        jobs.append(Job(**{**rest, **at, "options": options[at["statistic"]], "content": content}))
    return Study(path, jobs, Loaded(data, chosen, networks))


def _parse(path: Path) -> dict[str, Any]:
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


def _validate(path: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Check the value of every key, add defaults, and put single values of keys that allow lists into lists."""
    for name, value in given.items():
        if name not in KEYS:
            raise InputError(f"{path}: {unknown('key', name, KEYS)}")
        key = KEYS[name]
        values = value if key.is_list and isinstance(value, list) else [value]
        for one in values:
            if not key.is_valid(one):
                more = ", or a list of such" if key.is_list else ""
                raise InputError(f"{path}: {name} = {_toml(one)} must be {key.description}{more}")
        if not values:
            raise InputError(f"{path}: {name} = [] is empty; give {key.description}")
        given[name] = list(dict.fromkeys(values)) if key.is_list else value
    for one, other in EXCLUSIVE:
        if one in given and other in given:
            raise InputError(f"{path}: {one} and {other} exclude each other; give one of them")
    for name in ("data", "statistic"):
        if name not in given:
            raise InputError(f"{path}: {name} is missing; give {KEYS[name].description}")
    if "seeds" in given:
        given["seed"] = range(given.pop("seeds"))
    return {name: key.default for name, key in KEYS.items()} | given


def _toml(value: Any) -> str:
    return "true" if value is True else "false" if value is False else repr(value)


@contextmanager
def _errors_name(path: Path, key: str) -> Iterator[None]:
    """Add the file and the key to the message of an error."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {key}: {error}") from None


def _file(folder: Path, name: str, kind: str, registry: Collection[str]) -> Path | None:
    """Return the file that a name refers to; None if it is a built-in name."""
    if name in registry:
        return None
    file = folder / name
    if not file.suffix and not file.is_file():
        raise unknown(f"{kind} or file", name, registry)
    return file


def _options(path: Path, given: dict[str, Any], chosen: Mapping[str, Statistic | None]) -> dict[str, dict[str, Any]]:
    """Return the options of each statistic; reject an option that no statistic has."""
    known = {name: (own or statistics.find(name)).options for name, own in chosen.items()}
    for option in given:
        if not any(option in names for names in known.values()):
            raise InputError(f"{path}: options: {unknown('option', option, sorted(set().union(*known.values())))}")
    return {name: {k: v for k, v in given.items() if k in names} for name, names in known.items()}
