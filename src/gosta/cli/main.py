"""``gosta``: the commands, and what happens when one cannot do its work."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from gosta.cli import exact, graph, lists, network, node, replay, reproduce, run, status, sweep, theory, up, verify
from gosta.errors import GostaError

app = typer.Typer(
    name="gosta",
    help="Pairwise statistics (AUC, Gini, Kendall's tau, ...) of data that nobody may collect in one place.",
    epilog="Begin with: gosta run",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            print("gosta: interrupted before there was a result", file=sys.stderr)
            raise typer.Exit(130) from None

    return wrapped


app.command("run", epilog=run.EXAMPLES)(_interruptible(run.run))
app.command("reproduce", epilog=reproduce.EXAMPLES)(_interruptible(reproduce.reproduce))
app.command("sweep", epilog=sweep.EXAMPLES)(_interruptible(sweep.sweep))
app.command("exact", epilog=exact.EXAMPLES)(_interruptible(exact.exact))
app.command("graph", epilog=graph.EXAMPLES)(_interruptible(graph.graph))
app.command("theory", epilog=theory.EXAMPLES)(_interruptible(theory.theory))
networks = typer.Typer(
    help="Make a network of real nodes, run it on this machine, change it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.add_typer(networks, name="network", epilog="Begin with: gosta network init my-network/ --data breast-cancer")
networks.command("init", epilog=network.INIT_EXAMPLES)(_interruptible(network.init))
networks.command("up", epilog=up.EXAMPLES)(_interruptible(up.up))
networks.command("down", epilog=up.DOWN_EXAMPLES)(_interruptible(up.down))
networks.command("verify", epilog=verify.EXAMPLES)(_interruptible(verify.verify))
networks.command("add", epilog=network.ADD_EXAMPLES)(_interruptible(network.add))
networks.command("certify", epilog=network.CERTIFY_EXAMPLES)(_interruptible(network.certify))
networks.command("forget", epilog=network.FORGET_EXAMPLES)(_interruptible(network.forget))
app.command("node", epilog=node.EXAMPLES)(_interruptible(node.node))
app.command("status", epilog=status.EXAMPLES)(_interruptible(status.status))
app.command("replay", epilog=replay.EXAMPLES)(_interruptible(replay.replay))
app.command("protocols")(lists.protocols)
app.command("statistics")(lists.statistics)
app.command("datasets")(lists.datasets)


def _version(wanted: bool) -> None:
    if wanted:
        import gosta

        print(gosta.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run a command; one line and exit code 2 for what the user can mend, 130 for Ctrl-C."""
    try:
        app()
    except GostaError as error:
        print(f"gosta: {error}", file=sys.stderr)
        sys.exit(2)
    except MemoryError:
        print("gosta: not enough memory; take fewer rows or columns", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left; say nothing at exit
        sys.exit(141)
    except OSError as error:  # such as a full disk under the standard output
        print(f"gosta: {error.strerror or error}", file=sys.stderr)
        sys.exit(2)
