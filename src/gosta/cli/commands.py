"""Commands for typer, which reads options from signatures: a shorter way to write them, and groups.

``Annotated[int, "Number of nodes.", "-n"]`` is an option with a help text and, if given, further
names. A parameter whose type is a dataclass stands for the fields of the dataclass, each an option;
the dataclass is built when the command is called. In the help, these options stand together under
its title. In the shell, names of statistics, protocols, graphs and data sets are completed.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import inspect
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
import typer.core
import typer.models

from gosta.runtime import interrupts

# What stands for the value of an option in the help; flags have none, other types are texts.
METAVARS = {
    "": (bool,),
    "NUMBER": (int, float, int | None, float | None),
    "PATH": (Path, Path | None),
}
# Parameters that are completed, with the registry of their names; a file can be given instead,
# except for a protocol.
COMPLETED = {
    "statistic": ("gosta.statistics", "STATISTICS"),
    "protocol": ("gosta.protocols", "PROTOCOLS"),
    "model": ("gosta.models", "MODELS"),
    "graph": ("gosta.graphs", "GRAPHS"),
    "source": ("gosta.graphs", "GRAPHS"),
    "data": ("gosta.datasets", "DATASETS"),
}


def make_command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command with options as typer takes them; it exits with code 130 after Ctrl-C."""
    parameters = inspect.signature(function, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in parameters.items()
        if dataclasses.is_dataclass(parameter.annotation)
    }

    @functools.wraps(function)
    def command(**values: Any) -> None:
        for name, group in groups.items():
            names = [field.name for field in dataclasses.fields(group)]
            values[name] = group(**{field: values.pop(field) for field in names})
        handler = interrupts.raise_from_now_on()
        try:
            function(**values)
        except (KeyboardInterrupt, Exception) as error:
            if not interrupts.is_cause(error):
                raise
            print(interrupts.MESSAGE, file=sys.stderr)
            raise typer.Exit(interrupts.EXIT_CODE) from None
        finally:
            # Commands ignore the signal while they save what an interruption left.
            signal.signal(signal.SIGINT, handler)
            interrupts.forget()

    plain: list[inspect.Parameter] = []
    for name, parameter in parameters.items():
        if name in groups:
            plain += _fields(groups[name])
        else:
            plain.append(_parameter(name, parameter.annotation, parameter.default))
    command.__signature__ = inspect.Signature(plain)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in plain}
    return command


def _fields(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in dataclasses.fields(group):
        yield _parameter(field.name, hints[field.name], field.default, group.TITLE)


def _parameter(
    name: str, annotation: Any, default: Any, title: str | None = None
) -> inspect.Parameter:
    if hasattr(annotation, "__metadata__"):
        kind, info, *names = get_args(annotation)
        if isinstance(info, str):
            if not any(alias.startswith("--") for alias in names):
                names = [f"--{name.replace('_', '-')}", *names]
            info = typer.Option(*names, help=info)
        info = copy.copy(info)
        info.rich_help_panel, info.autocompletion = title, completer(name)
        if info.metavar is None and isinstance(info, typer.models.OptionInfo):
            info.metavar = next((word for word, kinds in METAVARS.items() if kind in kinds), "TEXT")
        annotation = Annotated[kind, info]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


class _PlainHelpOption:
    """The option --help, without a type in the help."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
        return option


class Command(_PlainHelpOption, typer.core.TyperCommand):
    """A command."""


class Group(_PlainHelpOption, typer.core.TyperGroup):
    """A group of commands; its help leaves out the options that install completion."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)
        for param in params:
            if param.name in ("install_completion", "show_completion"):
                param.hidden = True
        return params


def completer(parameter: str) -> Callable[[str], list[str]] | None:
    """Return a function that completes a value of a parameter; None for parameters without names.

    Of several values separated by commas, it completes the last one.

    >>> completer("protocol")("gosta-async,tr")
    ['gosta-async,tracking']
    """
    if parameter not in COMPLETED:
        return None
    module, registry = COMPLETED[parameter]

    def complete(incomplete: str) -> list[str]:
        names = getattr(importlib.import_module(module), registry)
        before, comma, last = incomplete.rpartition(",")
        found = [f"{before}{comma}{name}" for name in names if name.startswith(last)]
        return found if parameter == "protocol" else found + _complete_path(incomplete)

    return complete


def _complete_path(incomplete: str) -> list[str]:
    """Return the files and folders whose paths begin with a text."""
    folder, slash, start = incomplete.rpartition("/")
    path = Path(folder + slash)
    entries = sorted(path.iterdir()) if path.is_dir() else []
    names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries]
    return [
        f"{folder}{slash}{name}"
        for name in names
        if name.startswith(start) and (start or name[0] != ".")
    ]
