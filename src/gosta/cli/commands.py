"""Commands for typer, which reads options from signatures, with a shorter way to write them and groups of options.

``Annotated[int, "Number of nodes.", "-n"]`` is an option with a help text, and with further names if given. A parameter
whose type is a dataclass stands for the fields of the dataclass, each an option; the dataclass is built when the
command is called. In the help, these options stand together under its title.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
import typer.core
import typer.models

from gosta.cli.completion import completer
from gosta.runtime import interrupts

# What stands for the value of an option in the help; flags have none, and all other types are texts.
METAVARS = {
    "": (bool,),
    "NUMBER": (int, float, int | None, float | None),
    "PATH": (Path, Path | None),
}


def make_command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function with the options as typer takes them, which exits with code 130 after Ctrl-C."""
    parameters = inspect.signature(function, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: one.annotation
        for name, one in parameters.items()
        if dataclasses.is_dataclass(one.annotation)
    }

    @functools.wraps(function)
    def command(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(
                **{field.name: values.pop(field.name) for field in dataclasses.fields(group)}
            )
        handler = interrupts.raise_from_now_on()
        try:
            function(**values)
        except (KeyboardInterrupt, Exception) as error:
            if not interrupts.is_cause(error):
                raise
            print(interrupts.MESSAGE, file=sys.stderr)
            raise typer.Exit(interrupts.EXIT_CODE) from None
        finally:
            # commands ignore it while they save what an interruption left
            signal.signal(signal.SIGINT, handler)

    plain: list[inspect.Parameter] = []
    for name, one in parameters.items():
        plain += (
            _fields(groups[name])
            if name in groups
            else [_parameter(name, one.annotation, one.default)]
        )
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
            long = (
                []
                if any(each.startswith("--") for each in names)
                else [f"--{name.replace('_', '-')}"]
            )
            info = typer.Option(*long, *names, help=info)
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
    """A group of commands; in its help, the options that install completion in a shell are left out."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)
        for one in params:
            if one.name in ("install_completion", "show_completion"):
                one.hidden = True
        return params
