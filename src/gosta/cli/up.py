"""``gosta network up``: run all nodes of a network on this machine, and watch them."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gosta.cli import options, tables
from gosta.errors import InputError, shorten

if TYPE_CHECKING:
    from gosta.net.deploy.supervisor import View

EXAMPLES = """
[bold]Examples[/bold]

gosta network up my-network/

gosta network up my-network/ --until 1%

gosta network up my-network/ --for 60 --json
"""
DOWN_EXAMPLES = """
[bold]Examples[/bold]

gosta network down my-network/
"""
EVERY = 5.0  # seconds between two tables where there is no terminal


def up(
    folder: Annotated[Path, typer.Argument(help="The network's folder.")],
    seconds: Annotated[float | None, typer.Option("--for", help="Stop after so many seconds.")] = None,
    until: Annotated[str | None, typer.Option(help="Stop when every node thinks it is within this error: 1%.")] = None,
    as_json: options.Json = False,
) -> None:
    """Run all nodes of a network on this machine, each as a process, and watch them; Ctrl-C stops them all."""
    from gosta.net.deploy import supervisor as supervise

    if seconds is not None and not 0 < seconds < math.inf:
        raise InputError(f"for = {seconds!r} must be a positive number of seconds")
    error = None if until is None else options.fraction("until", until, "an error such as 1% or 0.01")
    with _Screen(quiet=as_json) as screen:
        views = supervise.up(folder, screen.show, seconds, error)
    if as_json:
        print("\n".join(map(record, views)))
        return
    print(tables.text(views), tables.summary(views, screen.passed), *tables.MEANING, sep="\n")
    print(f"all nodes are stopped; check what they did with: gosta network verify {shlex.quote(str(folder))}")


def down(folder: Annotated[Path, typer.Argument(help="The network's folder.")]) -> None:
    """Stop all nodes of a network that run on this machine, whoever started them."""
    from gosta.net.deploy import supervisor as supervise

    stopped = supervise.down(folder)
    print(f"{folder}: stopped {shorten(stopped, 12)}" if stopped else f"{folder}: no node was running")


def record(view: View) -> str:
    """A node as JSON."""
    import msgspec

    said = {} if view.status is None else msgspec.to_builtins(view.status)
    return msgspec.json.encode({"node": view.name, **said, "state": view.state, "restarts": view.restarts}).decode()


class _Screen:
    """A table that is kept up to date on a terminal, or printed now and then elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.passed, self._printed = quiet, 0.0, 0.0
        self._live: Any = None

    def __enter__(self) -> _Screen:
        if not self.quiet and sys.stdout.isatty():
            from rich.live import Live

            self._live = Live(auto_refresh=False, transient=True)
            self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.__exit__(None, None, None)

    def show(self, views: Sequence[View], passed: float) -> None:
        """Show how the nodes are."""
        self.passed = passed
        if self._live is not None:
            self._live.update(_drawn(views, passed, self._live.console.width), refresh=True)
        elif not self.quiet and passed - self._printed >= EVERY:
            self._printed = passed
            print(tables.text(views), tables.summary(views, passed), sep="\n", flush=True)


def _drawn(views: Sequence[View], passed: float, width: int) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    head, *rows = tables.fitting(views, width)
    table = Table(*head)
    for cells in rows:
        table.add_row(*map(Text, cells))
    lines = [tables.summary(views, passed), *tables.MEANING, "Ctrl-C stops all nodes"]
    return Group(table, Text(lines[0], style="bold"), *(Text(line, style="dim") for line in lines[1:]))
