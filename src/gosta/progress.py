"""A progress bar for work that takes long, and only then."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

PATIENCE = 2.0  # seconds before a bar appears


@contextlib.contextmanager
def bar(title: str, total: float) -> Iterator[Callable[[float], None]]:
    """Yield a function to call with each piece of work done; a bar appears on a terminal after two seconds."""
    start, done = time.monotonic(), 0.0
    with contextlib.ExitStack() as stack:
        show: Callable[[float], None] | None = None

        def advance(piece: float) -> None:
            nonlocal done, show
            done += piece
            if show is None and time.monotonic() - start > PATIENCE:
                show = _open(stack, title, total)
            if show is not None:
                show(done)

        yield advance


def _open(stack: contextlib.ExitStack, title: str, total: float) -> Callable[[float], None]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    shown = stack.enter_context(Progress(*columns, console=console, transient=True, disable=not console.is_terminal))
    task = shown.add_task(title, total=total)
    return lambda done: shown.update(task, completed=done)
