"""Groups of options that several commands share: dataclasses whose fields become options of the command line.

Typer reads a command's options from its signature. A command declares one parameter for a group; `expand_groups`
replaces it by the group's fields, each an option (or argument) annotated for typer, and builds the group when the
command is called. In the help, the options of a group stand together under its title.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Annotated, Any, get_args, get_type_hints


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with each parameter that is a dataclass replaced by the fields of the dataclass."""
    parameters = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in parameters.items()
        if dataclasses.is_dataclass(parameter.annotation)
    }

    @functools.wraps(command)
    def expanded(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in dataclasses.fields(group)})
        command(**values)

    plain: list[inspect.Parameter] = []
    for parameter in parameters.values():
        plain += _fields(groups[parameter.name]) if parameter.name in groups else [parameter]
    keyword_only = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in plain]
    expanded.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in plain}
    return expanded


def _fields(group: Any) -> Iterator[inspect.Parameter]:
    """Yield a parameter for each field, shown in the help under the group's title."""
    hints = get_type_hints(group, include_extras=True)
    for field in dataclasses.fields(group):
        kind, info = get_args(hints[field.name])
        info = copy.copy(info)
        info.rich_help_panel = group.TITLE
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=Annotated[kind, info]
        )
