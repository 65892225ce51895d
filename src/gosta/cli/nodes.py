"""Commands that run and watch nodes: node run, network up, network down, epoch and watch."""

from __future__ import annotations

import contextlib
import math
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gosta.cli import options
from gosta.errors import GostaError, InputError, shorten

if TYPE_CHECKING:
    from gosta.net.deploy.query import View

PRINT_SECONDS = 5.0  # between two tables where the output is no terminal


def run(
    folder: Annotated[
        Path,
        typer.Argument(
            help="The node's folder: node.toml, data, key.pem, members.json and others."
        ),
    ],
) -> None:
    """Run one node of a network until SIGTERM or Ctrl-C.

    A restarted node continues from its journal.
    """
    from gosta.net.node import service

    try:
        service.run(folder)
    except GostaError as error:
        if sys.stderr.isatty():
            raise
        service.make_logger(folder.name, sys.stderr)("cannot run", reason=str(error))
        raise typer.Exit(2) from None


def up(
    folder: options.NetworkFolder,
    seconds: Annotated[float | None, "Stop after this time in seconds.", "--for"] = None,
    until: Annotated[str | None, "Stop when every node expects at most this error: 1%."] = None,
    as_json: options.Json = False,
    page: Annotated[bool, "Serve a live page of the network."] = False,
    page_address: options.PageAddress = None,
) -> None:
    """Run all nodes of a network on this machine, each as a process, and show their status.

    Ctrl-C stops them all.
    """
    from gosta.net.addresses import page_url
    from gosta.net.deploy import supervisor
    from gosta.net.watch import overview, serve

    if seconds is not None and not 0 < seconds < math.inf:
        raise InputError(f"for = {seconds!r} must be a positive number of seconds")
    live = None if as_json or not sys.stdout.isatty() else _live()
    elapsed_seconds = printed_at = 0.0
    pages: list[Callable[[Sequence[View]], None]] = []
    url = ""

    def show(views: Sequence[View], now: float) -> None:
        nonlocal elapsed_seconds, printed_at
        elapsed_seconds = now
        for show_page in pages:
            show_page(views)
        if live is not None:
            live.update(_text(views, now, live.console.width, url, folder), refresh=True)
        elif not as_json and now - printed_at >= PRINT_SECONDS:
            printed_at = now
            table = overview.table(views, folder=folder)
            print(table, overview.summary(views, now), sep="\n", flush=True)

    with contextlib.ExitStack() as stack:
        if page or page_address is not None:
            listener, host = options.listen_for_page(page_address, "page-address")
            url = page_url(listener)
            pages.append(stack.enter_context(serve.serve_beside(folder.resolve(), listener, host)))
            print(f"live page: {url}", file=sys.stderr if as_json else sys.stdout, flush=True)
        if live is not None:
            stack.enter_context(live)
        views = supervisor.up(
            folder, show, seconds, options.fraction("until", until, options.ERROR)
        )
    if as_json:
        print("\n".join(map(overview.record, views)))
        return
    print(
        overview.table(views, folder=folder),
        overview.summary(views, elapsed_seconds),
        *overview.explanation(views),
        sep="\n",
    )
    verify = f"gosta network verify {shlex.quote(str(folder))}"
    print(f"all nodes are stopped; check their journals with: {verify}")


def down(folder: options.NetworkFolder) -> None:
    """Stop all nodes of a network that run on this machine, whichever command started them."""
    from gosta.net.deploy import supervisor

    stopped = supervisor.down(folder)
    print(
        f"{folder}: stopped {shorten(stopped, 12)}" if stopped else f"{folder}: no node was running"
    )


def epoch(
    folder: Annotated[Path, typer.Argument(help="The network's folder, or that of one node.")],
) -> None:
    """Start a new epoch now: a running node on this machine starts it, and all nodes follow.

    Of private sums with noise, each site spends the epsilon of one more release, unless rows and
    sites are as before.
    """
    from gosta.net.deploy import supervisor

    name, number = supervisor.start_epoch(folder)
    print(f"{name} started epoch {number}; the other nodes follow")


def watch(
    folder: Annotated[Path, typer.Argument(help="A network's folder, or a node's.")],
    address: options.PageAddress = None,
    open_: Annotated[bool, "Open it in a browser.", "--open"] = False,
) -> None:
    """Serve a live page of nodes that are running, until Ctrl-C.

    It shows a map, estimates, who is missing, rejections and the log.
    """
    import asyncio

    from gosta.net.addresses import page_url
    from gosta.net.deploy.query import Poller
    from gosta.net.watch import serve

    if not folder.is_dir():
        raise InputError(f"no such folder: {folder}")
    poller = Poller(folder.resolve())
    listener, host = options.listen_for_page(address, "address")
    url = page_url(listener)
    print(f"{folder}: live page at {url} (Ctrl-C ends it; the nodes go on)", flush=True)
    if open_:
        import webbrowser

        webbrowser.open(url)
    asyncio.run(serve.watch(poller, listener, host))


def _live() -> Any:
    from rich.live import Live

    return Live(auto_refresh=False, transient=True)


def _text(views: Sequence[View], elapsed_seconds: float, width: int, url: str, folder: Path) -> Any:
    from rich.text import Text

    from gosta.net.watch import overview

    heading, *rows = overview.table(views, width, folder).splitlines(keepends=True)
    summary = f"\n{overview.summary(views, elapsed_seconds)}\n"
    page = [f"live page: {url}"] if url else []
    explanation = "\n".join([*overview.explanation(views), *page, "Ctrl-C stops all nodes"])
    return Text.assemble((heading, "bold"), *rows, (summary, "bold"), (explanation, "dim"))
