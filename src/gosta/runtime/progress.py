"""A progress bar that appears only for work that takes long."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

DELAY_SECONDS = 2.0  # before a bar appears
_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Show no bars within a block: for work that is part of something larger, which has its own bar."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


@contextlib.contextmanager
def bar(
    title: str, total: float | None, delay_seconds: float = DELAY_SECONDS, unit: str = ""
) -> Iterator[Callable[[float], None]]:
    """Yield a function to call with each amount of work done; a bar appears on a terminal after a delay.

    Without a total the bar only moves. With a unit, it shows how many units are done in a second. The function is
    thread-safe.
    """
    delay_seconds = float("inf") if _silent.get() else delay_seconds
    start, done, lock = time.monotonic(), 0.0, threading.Lock()
    with contextlib.ExitStack() as stack:
        show: Callable[[float], None] | None = _open(stack, title, total, unit) if delay_seconds <= 0 else None

        def advance(amount: float) -> None:
            nonlocal done, show
            with lock:
                done += amount
                if show is None and time.monotonic() - start > delay_seconds:
                    show = _open(stack, title, total, unit)
                if show is not None:
                    show(done)

        yield advance


def _open(stack: contextlib.ExitStack, title: str, total: float | None, unit: str) -> Callable[[float], None]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console, start = Console(stderr=True), time.monotonic()
    name, rate = TextColumn("{task.description}"), TextColumn("{task.fields[rate]}")
    columns = name, BarColumn(), TaskProgressColumn(), rate, TimeRemainingColumn()
    shown = stack.enter_context(Progress(*columns, console=console, transient=True, disable=not console.is_terminal))
    task = shown.add_task(title, total=total, rate="")

    def show(done: float) -> None:
        speed = done / max(time.monotonic() - start, 1e-9) / 1e6
        shown.update(task, completed=done, rate=f"{speed:.1f} M {unit}/s" if unit else "")

    return show
