"""``gosta status``: the status of a node, or of all nodes of a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gosta.cli import options
from gosta.errors import InputError


def status(
    folder: Annotated[Path, typer.Argument(help="A node's folder, or a network's.")],
    has_all: Annotated[
        bool, typer.Option("--all", help="Show curves and groups also of more than 8 statistics.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Show the status of a node: estimate, neighbours, events; or of all nodes of a network."""
    from gosta.net.deploy.network import is_network
    from gosta.net.deploy.query import View, read_status, view_network
    from gosta.net.watch import overview

    if is_network(folder):
        views = view_network(folder)
        if as_json:
            print("\n".join(map(overview.record, views)))
        elif not views:
            print(f"{folder}: no site is a member yet; 'gosta network sign' makes them members")
        else:
            table = overview.table(views, folder=folder)
            print(table, overview.summary(views), *overview.explanation(views), sep="\n")
    elif folder.is_dir():
        found = read_status(folder)
        if as_json:
            print(overview.record(View(found.node, found.state, 0, found)))
        else:
            print(overview.node_text(found, folder, has_all))
    else:
        raise InputError(f"no such folder: {folder}")
