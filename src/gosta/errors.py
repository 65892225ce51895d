"""Exceptions: every error that gosta raises on purpose is a `GostaError` with a one-line message.

The message names the argument (or file), its value, and what to do. The command line prints it and
exits with code 2.
"""

from __future__ import annotations

import contextlib
import difflib
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

PACKAGE = Path(__file__).parent
MIN_PART = 3  # characters of a part of a name that suggests the name
MAX_NAMES = 20  # that a message lists


class GostaError(Exception):
    """Base class of all errors that gosta raises on purpose.

    Its message has parts. Who catches it can name the place, the statistic or the remedy in words
    of its own, and raise it again.

    Examples
    --------
    >>> import gosta
    >>> try:
    ...     gosta.exact([1.0, 2.0], "giny-index")
    ... except gosta.GostaError as error:
    ...     print(type(error).__name__, "-", error)
    InputError - unknown statistic 'giny-index'; did you mean 'gini-index'?
    >>> error = gosta.DataError("column 'age' holds dates", remedy="select other columns")
    >>> error.statistic = "variance"
    >>> print(error)
    variance: column 'age' holds dates; select other columns
    >>> import pickle
    >>> str(pickle.loads(pickle.dumps(error))) == str(error)
    True
    """

    reason: str  # what is wrong, and where
    remedy: str  # what to do; "" if the reason says so
    statistic: str  # that the error is about, as it was asked for; "" if it is about none
    place: str = ""  # the file or setting that the error is about; "" if the reason says so

    def __init__(self, reason: str, *, remedy: str = "", statistic: str = "") -> None:
        super().__init__(reason)
        self.reason, self.remedy, self.statistic = reason, remedy, statistic

    def __str__(self) -> str:
        parts = filter(None, [self.place, self.statistic, self.reason])
        text = ": ".join(parts) + (f"; {self.remedy}" if self.remedy else "")
        return " ".join(text.splitlines())

    def _render_traceback_(self) -> list[str]:
        """Return what notebooks show in place of a traceback: the message, and the user's line."""
        frames = traceback.extract_tb(self.__traceback__)
        inside = [PACKAGE in Path(frame.filename).parents for frame in frames]
        callers = frames[: inside.index(True)] if True in inside else []
        lines = [frame for frame in callers if "site-packages" not in frame.filename and frame.line]
        return [
            f"{type(self).__name__}: {self}",
            *(f"    line {frame.lineno}: {frame.line}" for frame in lines[-1:]),
        ]


class InputError(GostaError, ValueError):
    """An argument, option or file given by the user cannot be used."""


class DataError(InputError):
    """Rows, columns or values of the data cannot be used."""


class FormatError(DataError):
    """A file is written otherwise than it is read; a setting of its format can say so."""

    def __init__(
        self, reason: str, advice: str = "", setting: str = "", value: object = ""
    ) -> None:
        remedy = f"{advice} --{setting} {value} ({setting}={value!r} in gosta.datasets.load)"
        super().__init__(reason, remedy=remedy if setting else "")
        self.advice = advice  # such as "name its encoding, such as"
        self.setting, self.value = setting, value


class UnsupportedError(InputError):
    """An engine cannot simulate this; another one can."""


class NumericalError(GostaError, ArithmeticError):
    """A value does not exist or is not finite: a division by zero, an overflow."""


class NetworkError(GostaError):
    """A node, its journal or its network is in a state in which a request cannot be met."""


class ClusterError(GostaError):
    """A worker process or a compute cluster failed or cannot be reached."""


class MissingExtraError(GostaError, ImportError):
    """An optional dependency is not installed."""


@contextlib.contextmanager
def naming(statistic: str) -> Iterator[None]:
    """Within a block, errors are about a statistic with this title."""
    try:
        yield
    except GostaError as error:
        error.statistic = statistic
        raise


def unknown(
    kind: str, name: str, known: Iterable[str], listing: str = "", meant: Sequence[str] = ()
) -> InputError:
    """Return the error for an unknown name, with known ones that may be meant as a suggestion.

    `listing` is a command that lists all known names, for a list that is too long. `meant` are the
    suggestions, if they are found otherwise than by their letters.
    """
    names = list(known)
    near = list(meant) or difflib.get_close_matches(name, names, n=1)
    if not near and len(name) >= MIN_PART:
        near = [known_name for known_name in names if name.lower() in known_name.lower()][:3]
    guess = f"; there are: {shorten(names, MAX_NAMES) or 'none'}"
    if listing and len(names) > MAX_NAMES:
        guess += f"; {listing!r} lists them"
    if near:
        guess = f"; did you mean {' or '.join(map(repr, near))}?"
    return InputError(f"unknown {kind} {name!r}{guess}")


def shorten(names: Sequence[str], most: int = 6) -> str:
    """Return a comma-separated list for a message, truncated after `most` names."""
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")
