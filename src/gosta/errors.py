"""The one exception for what a user can put right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class InputError(ValueError):
    """Input that cannot be used: one line naming the argument, the value and the way out."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.splitlines()))


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Say that a name is not known, and which known one is nearest to it."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else f"; there are: {shorten(names, 20) or 'none'}"
    return InputError(f"unknown {kind} {name!r}{guess}")


def shorten(names: Sequence[str], most: int = 6) -> str:
    """A list for a message, cut where it gets long."""
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")
