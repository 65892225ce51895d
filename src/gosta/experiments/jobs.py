"""Sweeps: lists of settings, and one job for every combination of their values.

They come from a TOML file or from Python.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from gosta import datasets, graphs, protocols, statistics
from gosta.errors import InputError, unknown
from gosta.estimation.placement import DEALS
from gosta.experiments.content import digest, with_key
from gosta.graphs.changing import REPEAT, is_changing, parse_changing
from gosta.statistics.references import load_statistic, split_reference
from gosta.views.numbers import NONE, percent

FORMAT = "gosta sweep 4"  # changes when the same settings give other numbers or other columns
MAX_JOBS = 1_000_000
LARGEST = 2**53  # integers up to here are exact as floats
ALMOST_ONE = 1 - 2**-53


class Key(NamedTuple):
    """Definition of a setting."""

    is_valid: Callable[[Any], bool]
    description: str
    column: str | None = None  # pyarrow's type of its column in the results; None: there is none
    is_axis: bool = False  # whether it can be swept: a list of values makes a job for each
    default: Any = None  # of an axis, its only value
    is_share: bool = False  # whether it is written in per cent


def _integer(least: int) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST
    )


def _number(least: float, most: float) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
    )


def _share(value: Any) -> bool:
    return isinstance(value, float) and 0 < value < 1


def _iterations(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_integer(0), value))


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


COUNT = "a whole number, 1 or more"
COLUMN = "the name of a column"
# Every setting that a sweep knows, in the order of the columns of its results. Those that
# `gosta.simulate` has are given to it under their names.
KEYS = {
    "data": Key(_text, "a name from 'gosta datasets' or a file", "string", True),
    "statistic": Key(_text, "a name from 'gosta statistics' or FILE.py:NAME", "string", True),
    "graph": Key(
        _text,
        "a family of graphs, such as torus or watts-strogatz:k=8, or an edge-list file",
        "string",
        True,
    ),
    "protocol": Key(_text, "a name from 'gosta protocols'", "string", True, protocols.DEFAULT),
    "n": Key(_integer(2), "a whole number of rows, 2 or more", "int64", True),
    "nodes": Key(_integer(2), "a whole number of nodes, 2 or more", "int64", True),
    "by": Key(
        lambda value: isinstance(value, str),
        f'{COLUMN}, or "" for rows at random nodes',
        "string",
        True,
    ),
    "deal": Key(
        lambda value: value in list(DEALS),
        " or ".join(f'"{name}"' for name in DEALS),
        "string",
        True,
    ),
    "homophily": Key(
        _number(0, 1), "a share of the nodes, from 0 to 1", "float64", True, is_share=True
    ),
    "loss": Key(
        _number(0, ALMOST_ONE), "a probability below 1, such as 0.1", "float64", True, is_share=True
    ),
    "away": Key(
        _number(0, ALMOST_ONE),
        "a share of the nodes below 1, such as 0.05",
        "float64",
        True,
        is_share=True,
    ),
    "away_for": Key(_number(1, LARGEST), "a number of exchanges, 1 or more", "float64", True),
    "until": Key(
        _share, "a relative error between 0 and 1, such as 0.01", "float64", True, is_share=True
    ),
    "interval": Key(
        _share, "a confidence level between 0 and 1, such as 0.95", "float64", True, is_share=True
    ),
    "seed": Key(_integer(0), "a whole number, not negative", "int64", True, 0),
    "seeds": Key(_integer(1), f"a number of seeds: {COUNT}"),
    "iterations": Key(_integer(1), COUNT, "int64"),
    "iterations_per_node": Key(_integer(1), COUNT),
    "runs": Key(_integer(1), COUNT, "int64", default=10),
    "checkpoints": Key(_integer(1), COUNT, "int64", default=100),
    "spacing": Key(
        lambda value: value in ("linear", "log"), '"linear" or "log"', "string", default="linear"
    ),
    "partition": Key(_iterations, "two iterations, [FROM, TO]", "string"),
    "columns": Key(
        lambda value: _text(value) or _texts(value), f"{COLUMN}, or a list of such", "string"
    ),
    "label": Key(_text, COLUMN, "string"),
    "score": Key(_text, COLUMN, "string"),
    "time": Key(_text, COLUMN, "string"),
    "event": Key(_text, COLUMN, "string"),
    "drop_missing": Key(
        lambda value: isinstance(value, bool), "true or false", "bool_", default=False
    ),
    "options": Key(
        lambda value: isinstance(value, dict), "options of the statistics", "string", default={}
    ),
}
AXES = tuple(name for name, key in KEYS.items() if key.is_axis)
# Axes whose values are names of something that has to be loaded.
NAMED = ("data", "statistic", "graph", "protocol")
EXCLUSIVE = [("iterations", "iterations_per_node"), ("seed", "seeds")]


def _texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_text, value))


def describe(settings: Mapping[str, Any]) -> str:
    """Return a combination of settings in words, for messages."""
    protocol = settings["protocol"] + (f" on {settings['graph']}" if settings["graph"] else "")
    others = [
        name for name in AXES if name not in (*NAMED, "seed") and settings.get(name) is not None
    ]
    parts = [f"{name} = {setting_text(name, settings[name])}" for name in others] + [
        f"seed {settings['seed']}"
    ]
    return ", ".join([f"{settings['statistic']} of {settings['data']}", protocol, *parts])


def setting_text(name: str, value: Any) -> str:
    """Return the value of a setting in words; None is a setting that is not set.

    >>> setting_text("n", 1000), setting_text("loss", 0.1), setting_text("by", None)
    ('1,000', '10 %', '-')
    """
    if value is None or isinstance(value, str):
        return value or NONE
    return (
        percent(value, "g")
        if KEYS[name].is_share
        else f"{int(value):,}"
        if value == int(value)
        else f"{value:g}"
    )


@dataclass(frozen=True)
class Job:
    """One combination of settings, from which its numbers follow."""

    # Values by the names of `KEYS`. Data, statistic, graph and protocol are names. None: not set.
    settings: Mapping[str, Any]
    # Digests of what the user's names stand for: when a file changes, its jobs run again.
    content: Mapping[str, str]

    def __getitem__(self, name: str) -> Any:
        return self.settings.get(name)

    @cached_property
    def key(self) -> str:
        """Digest of the settings that are set, the same on every machine."""
        chosen = {name: value for name, value in self.settings.items() if value is not None}
        text = json.dumps([FORMAT, chosen, dict(self.content)], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def __str__(self) -> str:
        return describe(self.settings)


# Values of `NAMED` by setting and name, where workers possibly cannot load them.
Loaded = Mapping[tuple[str, str], Any]


@dataclass(frozen=True)
class Sweep:
    """Jobs, and what they need from files or from memory, which workers possibly cannot read."""

    jobs: Sequence[Job]
    loaded: Loaded

    def inputs(self, job: Job) -> dict[str, Any]:
        """Return what a worker gets: data, statistic, graph and protocol, by name or as values."""
        return {name: self.loaded.get((name, job[name]), job[name]) for name in NAMED}

    @cached_property
    def swept(self) -> list[str]:
        """The axes along which jobs differ."""
        return [name for name in AXES if len({job[name] for job in self.jobs}) > 1]


class Source(NamedTuple):
    """Where settings come from."""

    where: str = ""  # begin of messages, such as "sweep.toml: "
    folder: Path = Path()  # that files are relative to


def read(path: str | Path) -> Sweep:
    """Read a sweep from a TOML file, and check every name in it."""
    path = Path(path)
    return make_sweep(_parse(path), Source(f"{path}: ", path.parent))


def make_sweep(plain: Mapping[str, Any], source: Source, values: Loaded | None = None) -> Sweep:
    """Make the jobs of all combinations of settings, and check every name.

    `values` are the values of names that are neither built in nor files.
    """
    settings = _validate(dict(plain), source)
    axes = {name: settings[name] for name in AXES}
    if (count := math.prod(map(len, axes.values()))) > MAX_JOBS:
        raise InputError(
            f"{source.where}{count:,} jobs are more than {MAX_JOBS:,}; split the sweep into several"
        )
    loaded, digests = dict(values or {}), dict[tuple[str, str], str]()
    for at in [(key, name) for key in NAMED for name in axes[key] if name is not None]:
        if at not in loaded:
            with _errors_name(source, at[0]):
                file, value = LOADERS[at[0]](at[1], source.folder)
            if value is not None:
                loaded[at] = value
            if file is not None:
                digests[at] = hashlib.sha256(file.read_bytes()).hexdigest()
    digests |= {at: digest(value) for at, value in loaded.items() if at not in digests}
    options = _options(
        source,
        settings["options"],
        {name: loaded.get(("statistic", name)) for name in axes["statistic"]},
    )
    rest = {name: value for name, value in settings.items() if name not in (*axes, "seeds")}
    jobs = []
    for combination in itertools.product(*axes.values()):
        chosen = dict(zip(axes, combination, strict=True))
        content = {
            name: digests[name, chosen[name]] for name in NAMED if (name, chosen[name]) in digests
        }
        jobs.append(Job({**chosen, **rest, "options": options[chosen["statistic"]]}, content))
    return Sweep(jobs, loaded)


def _load_data(name: str, folder: Path) -> tuple[Path | None, Any]:
    """Return the file that a name refers to and its content; twice None if it is built in."""
    file = _file(folder, name, "data set", datasets.DATASETS)
    return (file, datasets.load(file)) if file else (None, None)


def _load_graph(name: str, folder: Path) -> tuple[Path | None, Any]:
    if is_changing(name):
        parts = [
            (graph, graph if graph == REPEAT else _load_graph(graph, folder)[1], at)
            for graph, at in parse_changing(name)
        ]
        has_files = any(loaded not in (None, REPEAT) for _, loaded, _ in parts)
        return None, [(loaded or graph, at) for graph, loaded, at in parts] if has_files else None
    if graphs.is_family(name):
        graphs.parse_family(name)  # raises an error for wrong parameters
        return None, None
    file = _file(folder, name, "graph", graphs.GRAPHS)
    return file, graphs.load(file)


def _load_statistic(name: str, folder: Path) -> tuple[Path | None, Any]:
    if "," in name:
        raise InputError(f"{name!r}: a job is of one statistic; give a list of several")
    reference, statistic = split_reference(name), load_statistic(name, folder)
    return (
        (folder / reference[0], statistic)
        if reference
        else (None, None if statistic.is_built_in else statistic)
    )


def _load_protocol(name: str, _: Path) -> tuple[Path | None, Any]:
    protocols.find(name)
    return None, None


LOADERS = {
    "data": _load_data,
    "statistic": _load_statistic,
    "graph": _load_graph,
    "protocol": _load_protocol,
}


def _file(folder: Path, name: str, kind: str, registry: Collection[str]) -> Path | None:
    """Return the file that a name refers to; None if it is a built-in name."""
    if name in registry:
        return None
    file = folder / name
    if not file.suffix and not file.is_file():
        raise unknown(f"{kind} or file", name.partition(":")[0], registry)
    return file


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
        raise InputError(
            f'{path} is not TOML: {error}; a line is like graph = ["torus", "complete"]'
        ) from error


def _validate(settings: dict[str, Any], source: Source) -> dict[str, Any]:
    """Check every value, add defaults, and make the values of each axis a list."""
    for name, value in settings.items():
        if name not in KEYS:
            raise InputError(f"{source.where}{_unknown_key(name, value)}")
        key = KEYS[name]
        values = value if key.is_axis and isinstance(value, list) else [value]
        for each in values:
            if not key.is_valid(each):
                more = ", or a list of such" if key.is_axis else ""
                raise InputError(
                    f"{source.where}{name} = {_toml(each)} must be {key.description}{more}"
                )
        if not values:
            raise InputError(f"{source.where}{name} = [] is empty; give {key.description}")
        settings[name] = list(dict.fromkeys(values)) if key.is_axis else value
    for first, second in EXCLUSIVE:
        if first in settings and second in settings:
            raise InputError(
                f"{source.where}{first} and {second} exclude each other; give one of them"
            )
    for name in ("data", "statistic"):
        if name not in settings:
            raise InputError(f"{source.where}{name} is missing; give {KEYS[name].description}")
    if "seeds" in settings:
        settings["seed"] = range(settings.pop("seeds"))
    if "by" in settings:
        settings["by"] = [column or None for column in settings["by"]]
    if isinstance(settings.get("columns"), str):
        settings["columns"] = [settings["columns"]]
    return {
        name: [key.default] if key.is_axis else key.default for name, key in KEYS.items()
    } | settings


def _unknown_key(name: str, value: Any) -> InputError:
    """Return the error for an unknown key; parameters of graphs belong into their names."""
    families = [key for key, family in graphs.GRAPHS.items() if name in family.parameters]
    if not families:
        return unknown("key", name, KEYS)
    shown = ", ".join(
        f'"{families[0]}:{name}={each}"' for each in (value if isinstance(value, list) else [value])
    )
    subject = f"{name} is a parameter of {' and '.join(families)}"
    return InputError(f"unknown key {name!r}; {subject}: write graph = [{shown}]")


def _toml(value: Any) -> str:
    return "true" if value is True else "false" if value is False else repr(value)


@contextmanager
def _errors_name(source: Source, key: str) -> Iterator[None]:
    """Add the file and the key to the message of an error."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{source.where}{with_key(key, error)}") from None


def _options(
    source: Source, options: Mapping[str, Any], loaded: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the options of each statistic; reject an option that no statistic has."""
    known = {name: (value or statistics.find(name)).options for name, value in loaded.items()}
    for option in options:
        if not any(option in names for names in known.values()):
            names = sorted(set().union(*known.values()))
            raise InputError(f"{source.where}options: {unknown('option', option, names)}")
    return {name: {k: v for k, v in options.items() if k in names} for name, names in known.items()}
