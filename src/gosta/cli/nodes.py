"""``gosta node run``, ``gosta network up``, ``down`` and ``epoch``, ``gosta watch``: run nodes, and watch them."""

from __future__ import annotations

import contextlib
import math
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gosta.cli import options
from gosta.cli import status as shown
from gosta.errors import GostaError, InputError, shorten

if TYPE_CHECKING:
    import socket

    from gosta.net.deploy.query import View

PAGE_ADDRESS = "127.0.0.1:7399"  # below the ports of nodes, which begin at 7400
PRINT_SECONDS = 5.0  # between two tables where the output is no terminal


def run(
    folder: Annotated[
        Path,
        typer.Argument(
            help="The node's folder: node.toml, data, key.pem, members.json and others."
        ),
    ],
) -> None:
    """Run one node of a network until SIGTERM or Ctrl-C; a restarted node continues from its journal."""
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
    seconds: Annotated[float | None, "Stop after so many seconds.", "--for"] = None,
    until: Annotated[str | None, "Stop when every node expects at most this error: 1%."] = None,
    as_json: options.Json = False,
    page: Annotated[bool, "Serve a live page of the network."] = False,
    page_address: Annotated[
        str | None, f"Where: host:port, by default {PAGE_ADDRESS}, or another free port."
    ] = None,
) -> None:
    """Run all nodes of a network on this machine, each as a process, and show their status; Ctrl-C stops them all."""
    from gosta.net.deploy import supervisor

    if seconds is not None and not 0 < seconds < math.inf:
        raise InputError(f"for = {seconds!r} must be a positive number of seconds")
    live = None if as_json or not sys.stdout.isatty() else _live()
    elapsed_seconds = printed_at = 0.0

    def show(views: Sequence[View], now: float) -> None:
        nonlocal elapsed_seconds, printed_at
        elapsed_seconds = now
        show_page(views)
        if live is not None:
            live.update(_text(views, now, live.console.width, url, folder), refresh=True)
        elif not as_json and now - printed_at >= PRINT_SECONDS:
            printed_at = now
            print(
                shown.table(views, folder=folder), shown.summary(views, now), sep="\n", flush=True
            )

    with contextlib.ExitStack() as stack:
        show_page: Callable[[Sequence[View]], None] = _no_page
        url = ""
        if page or page_address is not None:
            show_page, url = stack.enter_context(_page_beside(folder, page_address))
            print(f"live page: {url}", file=sys.stderr if as_json else sys.stdout, flush=True)
        if live is not None:
            stack.enter_context(live)
        views = supervisor.up(
            folder, show, seconds, options.fraction("until", until, options.ERROR)
        )
    if as_json:
        print("\n".join(map(shown.record, views)))
        return
    print(
        shown.table(views, folder=folder),
        shown.summary(views, elapsed_seconds),
        *shown.explanation(views),
        sep="\n",
    )
    print(
        f"all nodes are stopped; check their journals with: gosta network verify {shlex.quote(str(folder))}"
    )


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
    """Start a new epoch now: a running node on this machine starts it, and all nodes of the network follow.

    Of private sums with noise, each site spends the epsilon of one more release, unless rows and sites are as before.
    """
    from gosta.net.deploy import supervisor

    name, number = supervisor.start_epoch(folder)
    print(f"{name} started epoch {number}; the other nodes follow")


def watch(
    folder: Annotated[Path, typer.Argument(help="A network's folder, or a node's.")],
    address: Annotated[
        str | None, f"Where: host:port, by default {PAGE_ADDRESS}, or another free port."
    ] = None,
    open_: Annotated[bool, "Open it in a browser.", "--open"] = False,
) -> None:
    """Serve a live page of nodes that are running: map, estimates, who is missing, rejections, log; until Ctrl-C."""
    import asyncio

    from gosta.net.deploy.query import Poller
    from gosta.net.watch import serve

    if not folder.is_dir():
        raise InputError(f"no such folder: {folder}")
    poller = Poller(folder.resolve())
    listener, host = listen(address, "address")
    print(
        f"{folder}: live page at {serve.url(listener)} (Ctrl-C ends it; the nodes go on)",
        flush=True,
    )
    if open_:
        import webbrowser

        webbrowser.open(serve.url(listener))
    asyncio.run(serve.watch(poller, listener, host))


def listen(address: str | None, option: str) -> tuple[socket.socket, str]:
    """Return a socket for a page, and the host in its address."""
    from gosta.net.addresses import is_loopback, parse
    from gosta.net.watch import serve

    place = address or PAGE_ADDRESS
    listener, host = serve.listen(place, option, or_any_port=address is None), parse(place).host
    if not is_loopback(host):
        print(
            "gosta: the page has no password: whoever can connect to it can read it",
            file=sys.stderr,
        )
    return listener, host


def _no_page(_: Sequence[View]) -> None:
    pass


@contextlib.contextmanager
def _page_beside(
    folder: Path, address: str | None
) -> Iterator[tuple[Callable[[Sequence[View]], None], str]]:
    from gosta.net.watch import serve

    listener, host = listen(address, "page-address")
    with serve.serve_beside(folder.resolve(), listener, host) as show:
        yield show, serve.url(listener)


def _live() -> Any:
    from rich.live import Live

    return Live(auto_refresh=False, transient=True)


def _text(views: Sequence[View], elapsed_seconds: float, width: int, url: str, folder: Path) -> Any:
    from rich.text import Text

    heading, *rows = shown.table(views, width, folder).splitlines(keepends=True)
    summary = f"\n{shown.summary(views, elapsed_seconds)}\n"
    page = [f"live page: {url}"] if url else []
    explanation = "\n".join([*shown.explanation(views), *page, "Ctrl-C stops all nodes"])
    return Text.assemble((heading, "bold"), *rows, (summary, "bold"), (explanation, "dim"))
