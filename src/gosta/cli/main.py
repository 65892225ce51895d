"""``gosta``: the commands, and the exit code when one of them fails."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from gosta.cli import audit, exact, graph, lists, network, nodes, reproduce, run, status, sweep, theory
from gosta.cli.commands import make_command
from gosta.cli.examples import epilog
from gosta.errors import GostaError

Commands = list[Callable[..., None]]
# Sections of the help, each with its commands.
COMMANDS: dict[str, Commands] = {
    "Compute and simulate": [run.run, exact.exact, graph.graph, theory.theory, sweep.sweep, reproduce.reproduce],
    "Real networks": [nodes.node, status.status, audit.replay],
    "Names that commands take": [lists.statistics, lists.protocols, lists.datasets],
}
NETWORK: Commands = [network.init, nodes.up, nodes.down, audit.verify, network.add, network.remove, network.certify]


def _print_version(wanted: bool) -> None:
    if wanted:
        import gosta

        print(gosta.__version__)
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")]


def _options(version: Version = False) -> None:
    pass


@functools.cache
def _app() -> typer.Typer:
    networks = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
    for function in NETWORK:
        networks.command(epilog=epilog(f"gosta network {function.__name__}"))(make_command(function))
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
        for function in commands:
            app.command(epilog=epilog(f"gosta {function.__name__}"), rich_help_panel=section)(make_command(function))
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
        return
    except GostaError as error:
        reason = str(error)
    except MemoryError:
        reason = "not enough memory; use fewer rows or columns"
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # no message at exit about the closed pipe
        sys.exit(141)
    except OSError as error:  # such as a full disk under the standard output
        reason = error.strerror or str(error)
    print(f"gosta: {reason}", file=sys.stderr)
    sys.exit(2)
