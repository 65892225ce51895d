"""``gosta status``: how a node is, or all of a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gosta.cli import options, tables
from gosta.errors import InputError

if TYPE_CHECKING:
    from gosta.net.status import Status

EXAMPLES = """
[bold]Examples[/bold]

gosta status my-network/node-3

gosta status my-network/

gosta status my-network/ --json
"""


def status(
    folder: Annotated[Path, typer.Argument(help="A node's folder, or a network's.")],
    as_json: options.Json = False,
) -> None:
    """Say how a node is: what it knows, whom it meets, what it refused; or all nodes of a network in a table."""
    from concurrent.futures import ThreadPoolExecutor

    from gosta.cli.up import record
    from gosta.net.folders import overview
    from gosta.net.supervise import View

    if not (folder / "network.toml").exists():
        if not folder.is_dir():
            raise InputError(f"no such folder: {folder}")
        found = _ask(folder)
        print(record(View(found.node, found.state, 0, found)) if as_json else "\n".join(_lines(found)))
        return
    names = list(overview(folder).nodes)

    def view(name: str) -> View:
        try:
            found = _ask(folder / name)
        except InputError:
            return View(name, "no answer" if (folder / name).is_dir() else "not on this machine", 0, None)
        return View(name, found.state, 0, found)

    with ThreadPoolExecutor(32) as pool:
        views = list(pool.map(view, names))
    if as_json:
        print("\n".join(map(record, views)))
    else:
        print(tables.text(views), tables.summary(views, None), *tables.MEANING, sep="\n")


def _ask(folder: Path) -> Status:
    """A node's status from its page; where it does not answer, from its journal."""
    from gosta.net.ask import ask
    from gosta.net.files import read_node

    page = read_node(folder / "node.toml").node.status
    found = ask(page) if page else None
    if found is not None:
        return found
    from gosta.net.service import status_from_journal

    return status_from_journal(folder)


def _lines(status: Status) -> Iterator[str]:
    """A node, for a person."""
    up = "" if status.uptime is None else f" for {options.count(status.uptime)} s"
    yield f"{status.node} of network {status.network}: {status.state}{up}"
    old = f", of epoch {status.estimate_epoch}" * (status.estimate_epoch != status.epoch)
    yield f"  {status.statistic:<12}{tables.number(status.estimate)}{old}"
    if status.low is not None and status.level is not None:
        yield f"  {f'{100 * status.level:g} %':<12}{tables.interval(status)}"
    if status.expected_error is not None:
        yield f"  {'error':<12}about {tables.share(status.expected_error)}, as the node sees it"
    met = f"{status.rows_met:,} rows of {status.nodes_met:,} nodes, {status.rows:,} of them its own"
    yield f"  {'knows':<12}{met}"
    yield f"  {'epoch':<12}{status.epoch}, {status.exchanges:,} exchanges in it, by {status.protocol}"
    if status.doubt is not None:
        yield f"  {'in doubt':<12}whether {status.doubt.to} took an offer, since {status.doubt.since:.1f} s"
    for neighbour in status.neighbours:
        state = "connected" if neighbour.connected else "not connected"
        silent = "" if neighbour.silent is None else f", heard {neighbour.silent:.1f} s ago"
        differs = "" if neighbour.differs is None else f", its estimate differs by {tables.share(neighbour.differs)}"
        yield f"  {neighbour.name:<12}{state}, {neighbour.meetings:,} exchanges{silent}{differs}"
    for name, count in status.counts.items():
        yield f"  {name:<24}{count:,}"
