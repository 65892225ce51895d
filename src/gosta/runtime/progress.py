"""A progress bar, on a terminal or in a notebook, that appears only for work that takes long."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from html import escape
from typing import Any

DELAY_SECONDS = 2.0  # before a bar appears
NOTEBOOK_SECONDS = 0.25  # between two updates in a notebook, which stores and sends each
_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Show no bars within a block: for work that is part of something with a bar of its own."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


@contextlib.contextmanager
def bar(
    title: str, total: float | None, delay_seconds: float = DELAY_SECONDS, unit: str = ""
) -> Iterator[Callable[[float], None]]:
    """Yield a thread-safe function to call with each amount of work done.

    A bar appears after a delay, and goes when all is done. Without a total it only moves. With a
    unit, it shows how many units are done in a second.
    """
    delay_seconds = float("inf") if _silent.get() else delay_seconds
    start, done, lock = time.monotonic(), 0.0, threading.Lock()
    with contextlib.ExitStack() as stack:
        show: Callable[[float], None] | None = (
            _open(stack, title, total, unit, start) if delay_seconds <= 0 else None
        )

        def advance(amount: float) -> None:
            nonlocal done, show
            with lock:
                done += amount
                if show is None and time.monotonic() - start > delay_seconds:
                    show = _open(stack, title, total, unit, start)
                if show is not None:
                    show(done)

        yield advance


def _in_notebook() -> bool:
    """Return whether the output goes to cells of a notebook: whether an IPython kernel runs."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def _open(
    stack: contextlib.ExitStack, title: str, total: float | None, unit: str, start: float
) -> Callable[[float], None]:
    """Show a bar until the stack is closed; return a function to call with all work done."""
    if _in_notebook():
        return stack.enter_context(_notebook_bar(title, total, unit, start))
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    name, rate = TextColumn("{task.description}"), TextColumn("{task.fields[rate]}")
    columns = name, BarColumn(), TaskProgressColumn(), rate, TimeRemainingColumn()
    shown = stack.enter_context(
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    )
    task = shown.add_task(title, total=total, rate="")

    def show(done: float) -> None:
        shown.update(task, completed=done, rate=_rate(done, start, unit))

    return show


def _rate(done: float, start: float, unit: str) -> str:
    return f"{done / max(time.monotonic() - start, 1e-9) / 1e6:.1f} M {unit}/s" if unit else ""


@contextlib.contextmanager
def _notebook_bar(
    title: str, total: float | None, unit: str, start: float
) -> Iterator[Callable[[float], None]]:
    """Show a bar in the output of a notebook's cell, without widgets; remove it in the end."""
    from IPython.display import display  # a notebook has it

    last = time.monotonic()
    empty = _bundle(title, "", total, 0.0)
    handle: Any = display(empty, raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def show(done: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= NOTEBOOK_SECONDS:
            last = now
            left = f"{(total - done) * (now - start) / done:.0f} s left" if total and done else ""
            text = ", ".join(filter(None, (_rate(done, start, unit), left)))
            handle.update(_bundle(title, text, total, done), raw=True)

    try:
        yield show
    finally:
        handle.update({"text/plain": "", "text/html": ""}, raw=True)


def _bundle(title: str, text: str, total: float | None, done: float) -> dict[str, str]:
    """Return a bar as HTML, and as plain text for places that do not show it."""
    share = f"{100 * min(1.0, done / total):.0f} %" if total else ""
    # without a value, browsers let the bar move
    value = f' max="{total}" value="{done}"' if total else ""
    return {
        "text/plain": " ".join(filter(None, (title, share, text))),
        "text/html": f"{escape(title)} <progress{value}></progress> {share} {escape(text)}",
    }
