"""Ctrl-C: it ends a command at any time with one line and exit code 130; work can defer it.
Signals that end what goes on until then.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

EXIT_CODE = 130
MESSAGE = "gosta: interrupted before there was a result"


def leave(*_: Any) -> None:
    """End the process at once: nothing has been computed that could be lost."""
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"{MESSAGE}\n".encode())
    os._exit(EXIT_CODE)


def leave_while_starting() -> None:
    """Let Ctrl-C end the process at once, unless it is ignored: imports cannot raise cleanly."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
        sys.unraisablehook = _report


def raise_from_now_on() -> Any:
    """Let Ctrl-C raise KeyboardInterrupt; return the handler to set at the end of the command."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not leave:
        return handler
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return signal.SIG_DFL


def forget() -> None:
    """Let the process end with its own exit code after a Ctrl-C that was handled.

    Python notes each KeyboardInterrupt that leaves a text run by `exec`, as dataclasses and named
    tuples are made by, and at its end kills itself by the signal, also if somebody caught it.
    Running another text takes the note back.
    """
    exec("")


@contextlib.contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Defer Ctrl-C within a block; yield a function that says whether it was pressed.

    Only the main thread, while nobody else handles that signal, can defer it.
    """
    pressed: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    is_ours = is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield lambda: bool(pressed)
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class Signals:
    """Signals that the main thread waits for.

    A handler runs in the middle of what the main thread does, so it must take no lock: setting a
    `threading.Event` can wait for ever for the `wait` that it interrupts.
    """

    def __init__(self) -> None:
        self._arrived = queue.SimpleQueue[int]()  # whose `put` takes no lock

    def handle(self, *numbers: signal.Signals) -> list[Any]:
        """Handle signals from now on; return their former handlers."""
        return [signal.signal(one, lambda number, _: self._arrived.put(number)) for one in numbers]

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a signal, and return whether one has come since the last one."""
        try:
            self._arrived.get(timeout=seconds)
        except queue.Empty:
            return False
        return True

    def clear(self) -> None:
        """Forget the signals that have come."""
        while self.wait(0):
            pass


@contextlib.contextmanager
def signals(*numbers: signal.Signals) -> Iterator[Signals]:
    """Handle signals within a block."""
    found = Signals()
    former = found.handle(*numbers)
    try:
        yield found
    finally:
        for number, handler in zip(numbers, former, strict=True):
            signal.signal(number, handler)


def is_cause(error: BaseException | None) -> bool:
    """Return whether an error was raised because of Ctrl-C, as by modules while imported."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ if error.__suppress_context__ else error.__context__
    return False


def _report(unraisable: sys.UnraisableHookArgs) -> None:
    """Leave where Python would ignore Ctrl-C: in callbacks and destructors."""
    if unraisable.exc_type is KeyboardInterrupt:
        leave()
    sys.__unraisablehook__(unraisable)
