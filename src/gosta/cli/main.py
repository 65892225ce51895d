"""``gosta``: the commands, and the exit code when one of them fails."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from gosta.cli import exact, graph, lists, network, node, replay, reproduce, run, status, sweep, theory, up, verify
from gosta.cli.groups import expand_groups
from gosta.errors import GostaError

# Sections of the help, each with its commands: name, function, examples.
COMMANDS: dict[str, list[tuple[str, Callable[..., None], str]]] = {
    "Compute and simulate": [
        ("run", run.run, run.EXAMPLES),
        ("exact", exact.exact, exact.EXAMPLES),
        ("graph", graph.graph, graph.EXAMPLES),
        ("theory", theory.theory, theory.EXAMPLES),
        ("sweep", sweep.sweep, sweep.EXAMPLES),
        ("reproduce", reproduce.reproduce, reproduce.EXAMPLES),
    ],
    "Real networks": [
        ("node", node.node, node.EXAMPLES),
        ("status", status.status, status.EXAMPLES),
        ("replay", replay.replay, replay.EXAMPLES),
    ],
    "Names that commands take": [
        ("statistics", lists.statistics, ""),
        ("protocols", lists.protocols, ""),
        ("datasets", lists.datasets, ""),
    ],
}
NETWORK_COMMANDS: list[tuple[str, Callable[..., None], str]] = [
    ("init", network.init, network.INIT_EXAMPLES),
    ("up", up.up, up.EXAMPLES),
    ("down", up.down, up.DOWN_EXAMPLES),
    ("verify", verify.verify, verify.EXAMPLES),
    ("add", network.add, network.ADD_EXAMPLES),
    ("remove", network.remove, network.REMOVE_EXAMPLES),
    ("certify", network.certify, network.CERTIFY_EXAMPLES),
]


def _command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function for typer, with option groups expanded, that exits with code 130 after Ctrl-C."""
    command = expand_groups(function)

    @functools.wraps(command)
    def interruptible(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            print("gosta: interrupted before there was a result", file=sys.stderr)
            raise typer.Exit(130) from None

    return interruptible


def _epilog(examples: str) -> str:
    """Return lines of examples as paragraphs, which is how the help shows them on lines of their own."""
    title = ["[bold]Examples[/bold]"] if examples and not examples.startswith("\n[bold]") else []
    return "\n\n".join([*title, *examples.split("\n")[1:]])


def _version(wanted: bool) -> None:
    if wanted:
        import gosta

        print(gosta.__version__)
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@functools.cache
def _app() -> typer.Typer:
    networks = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
    for name, function, examples in NETWORK_COMMANDS:
        networks.command(name, epilog=_epilog(examples))(_command(function))
    app = typer.Typer(
        name="gosta",
        help="Pairwise statistics (AUC, Gini, Kendall's tau, ...) of data that cannot be collected in one place.",
        epilog="Begin with: gosta run",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=_options,
    )
    for section, commands in COMMANDS.items():
        for name, function, examples in commands:
            app.command(name, epilog=_epilog(examples), rich_help_panel=section)(_command(function))
    app.add_typer(
        networks,
        name="network",
        help="Create a network of real nodes, run it on this machine, change it.",
        epilog="Begin with: gosta network init my-network/ --data breast-cancer",
        rich_help_panel="Real networks",
    )
    return app


def main() -> None:
    """Run a command; exit with one line and code 2 for errors that a user can correct, 130 for Ctrl-C."""
    try:
        _app()()
    except GostaError as error:
        print(f"gosta: {error}", file=sys.stderr)
        sys.exit(2)
    except MemoryError:
        print("gosta: not enough memory; use fewer rows or columns", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # no message at exit about the closed pipe
        sys.exit(141)
    except OSError as error:  # such as a full disk under the standard output
        print(f"gosta: {error.strerror or error}", file=sys.stderr)
        sys.exit(2)
