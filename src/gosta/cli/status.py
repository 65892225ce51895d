"""``gosta status``: how a node is, or all of a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gosta.cli import options, tables
from gosta.errors import InputError

if TYPE_CHECKING:
    from gosta.net.deploy.supervisor import View
    from gosta.net.node.status import Status

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
    from gosta.net.config import NETWORK
    from gosta.net.deploy.folders import overview
    from gosta.net.deploy.supervisor import View

    if not (folder / NETWORK).exists():
        if not folder.is_dir():
            raise InputError(f"no such folder: {folder}")
        found = _answer(folder) or _journal(folder)
        print(record(View(found.node, found.state, 0, found)) if as_json else "\n".join(_lines(found)))
        return
    names = list(overview(folder).nodes)
    with ThreadPoolExecutor(32) as pool:
        answers = dict(zip(names, pool.map(_answer, [folder / name for name in names]), strict=True))
    views = [_view(folder / name, found) for name, found in answers.items()]
    if as_json:
        print("\n".join(map(record, views)))
    else:
        print(tables.text(views), tables.summary(views, None), *tables.MEANING, sep="\n")


def _answer(folder: Path) -> Status | None:
    """What a node says on its page."""
    from gosta.net.config import NODE, read_node
    from gosta.net.deploy.ask import ask

    try:
        return ask(read_node(folder / NODE))
    except InputError:
        return None


def _view(folder: Path, found: Status | None) -> View:
    """A node that answered, or as its journal has it."""
    from gosta.net.deploy.supervisor import View

    try:
        found = found or _journal(folder)
    except InputError:
        return View(folder.name, "no answer" if folder.is_dir() else "not on this machine", 0, None)
    return View(folder.name, found.state, 0, found)


def _journal(folder: Path) -> Status:
    from gosta.net.deploy.folders import running
    from gosta.net.node.service import status_from_journal

    if running(folder):
        raise InputError(f"{folder}: the node runs, but does not answer, or has no status page in its node.toml")
    return status_from_journal(folder)


def _lines(status: Status) -> Iterator[str]:
    """A node, for a person."""
    up = "" if status.uptime is None else f" for {options.count(status.uptime)} s"
    yield f"{status.node} of network {status.network}: {status.state}{up}"
    old = f", of epoch {status.estimate_epoch}" * (status.estimate_epoch != status.epoch)
    yield f"  {status.statistic:<11} {tables.number(status.estimate)}{old}"
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
        state += f", but they disagree about the {neighbour.disagrees}" * bool(neighbour.disagrees)
        silent = "" if neighbour.silent is None else f", heard {neighbour.silent:.1f} s ago"
        differs = "" if neighbour.differs is None else f", its estimate differs by {tables.share(neighbour.differs)}"
        yield f"  {neighbour.name:<11} {state}, {neighbour.meetings:,} exchanges{silent}{differs}"
    for name, count in status.counts.items():
        yield f"  {name:<23} {count:,}"
