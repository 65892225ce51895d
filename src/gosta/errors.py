"""Exceptions: every error that gosta raises on purpose is a `GostaError` with a one-line message.

The message names the argument (or file), its value, and what to do. The command line prints it and exits with code 2.
"""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path

PACKAGE = Path(__file__).parent


class GostaError(Exception):
    """Base class of all errors that gosta raises on purpose.

    Examples
    --------
    >>> import gosta
    >>> try:
    ...     gosta.exact([1.0, 2.0], "giny-index")
    ... except gosta.GostaError as error:
    ...     print(type(error).__name__, "-", error)
    InputError - unknown statistic 'giny-index'; did you mean 'gini-index'?
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.splitlines()))

    def _render_traceback_(self) -> list[str]:
        """Return what IPython and notebooks show in place of a traceback: the message, and the user's line of code."""
        frames = traceback.extract_tb(self.__traceback__)
        inside = [PACKAGE in Path(frame.filename).parents for frame in frames]
        callers = frames[: inside.index(True)] if True in inside else []
        own = [frame for frame in callers if "site-packages" not in frame.filename and frame.line]
        return [f"{type(self).__name__}: {self}", *(f"    line {frame.lineno}: {frame.line}" for frame in own[-1:])]


class InputError(GostaError, ValueError):
    """An argument, option or file given by the user cannot be used."""


class DataError(InputError):
    """Rows, columns or values of the data cannot be used."""


class UnsupportedError(InputError):
    """An engine cannot simulate this; another one can."""


class NumericalError(GostaError, ArithmeticError):
    """A value does not exist or is not finite: a division by zero, an overflow."""


class NetworkError(GostaError):
    """A node, its journal or its network is in a state in which the request cannot be carried out."""


class ClusterError(GostaError):
    """A worker process or a compute cluster failed or cannot be reached."""


class MissingExtraError(GostaError, ImportError):
    """An optional dependency is not installed."""


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for a name that is not among the known ones, with the closest known name as a suggestion."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else f"; there are: {shorten(names, 20) or 'none'}"
    return InputError(f"unknown {kind} {name!r}{guess}")


def shorten(names: Sequence[str], most: int = 6) -> str:
    """Return a comma-separated list for a message, truncated after `most` names."""
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")
