"""``gosta``: the commands, and the exit code when one of them fails."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from gosta.cli import (
    audit,
    check,
    enrolment,
    exact,
    fit,
    graph,
    listings,
    network,
    nodes,
    predict,
    report,
    reproduce,
    run,
    status,
    study,
    sweep,
    test,
    theory,
)
from gosta.cli.commands import Command, Group, make_command
from gosta.cli.examples import epilog
from gosta.errors import GostaError
from gosta.views import terminal

Commands = list[Callable[..., None]]
# Sections of the help, each with its commands.
COMMANDS: dict[str, Commands] = {
    "Compute and simulate": [
        run.run,
        exact.exact,
        test.test,
        fit.fit,
        predict.predict,
        graph.graph,
        theory.theory,
        sweep.sweep,
        report.report,
        reproduce.reproduce,
    ],
    "Real networks": [check.check, status.status, nodes.watch, audit.audit, audit.replay],
    "Names that commands take": [listings.statistics, listings.protocols, listings.datasets],
}
NODE: Commands = [nodes.run, enrolment.request, enrolment.join, enrolment.accept, enrolment.leave]
NETWORK: Commands = [
    network.init,
    nodes.up,
    nodes.down,
    nodes.epoch,
    audit.verify,
    network.add,
    network.remove,
]
STUDY: Commands = [study.example, study.init, study.check, study.run, study.collect]
NETWORK += [network.agree, network.certify, network.sign, network.rotate_authority]


def _print_version(wanted: bool) -> None:
    if wanted:
        import gosta

        print(gosta.__version__)
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version", callback=_print_version, is_eager=True, help="Print the version.", metavar=""
    ),
]


def _options(version: Version = False) -> None:
    pass


class NodeGroup(Group):
    """Commands of one node; ``gosta node FOLDER`` stands for ``gosta node run FOLDER``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_folder = bool(args) and not args[0].startswith("-") and args[0] not in self.commands
        return super().parse_args(ctx, ["run", *args] if is_folder else args)


def _group(name: str, commands: Commands, cls: type[Group] = Group) -> typer.Typer:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", cls=cls)
    for function in commands:
        command = function.__name__.replace("_", "-")
        group.command(command, cls=Command, epilog=epilog(f"gosta {name} {command}"))(
            make_command(function)
        )
    return group


@functools.cache
def _app() -> typer.Typer:
    app = typer.Typer(
        name="gosta",
        help="Pairwise statistics (AUC, Gini, Kendall's tau, ...) of data that cannot be collected "
        "in one place.",
        epilog="Begin with: gosta run",
        no_args_is_help=True,
        cls=Group,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=_options,
    )
    for section, commands in COMMANDS.items():
        for function in commands:
            text = epilog(f"gosta {function.__name__}")
            app.command(cls=Command, epilog=text, rich_help_panel=section)(make_command(function))
    app.add_typer(
        _group("node", NODE, NodeGroup),
        name="node",
        help="Run one node of a network: gosta node FOLDER; enrol a site, or leave.",
        epilog="Begin with: gosta node my-network/node-3/",
        rich_help_panel="Real networks",
    )
    app.add_typer(
        _group("network", NETWORK),
        name="network",
        help="Create a network of real nodes, run it on this machine, change it.",
        epilog="Begin with: gosta network init my-network/ --data breast-cancer",
        rich_help_panel="Real networks",
    )
    app.add_typer(
        _group("study", STUDY),
        name="study",
        help="A validation study: questions about scores, all statistics in one release.",
        epilog="Begin with: gosta study init my-study/ --data patients.csv",
        rich_help_panel="Compute and simulate",
    )
    return app


def main() -> None:
    """Run a command; exit with one line and code 2 for a user's errors, with 130 for Ctrl-C."""
    terminal.replace_unknown_characters()
    try:
        _app()(prog_name="gosta")
        return
    except GostaError as error:
        reason = str(error)
    except MemoryError:
        reason = "not enough memory; use fewer rows or columns"
    except BrokenPipeError:
        # no message at exit about the closed pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:  # such as a full disk under the standard output
        reason = error.strerror or str(error)
        reason = f"{error.filename}: {reason}" if error.filename else reason
    print(f"gosta: {reason}", file=sys.stderr)
    sys.exit(2)
