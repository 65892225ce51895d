"""The one exception for what a user can put right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Input that cannot be used: one line naming the argument, the value and the way out."""


def unknown(kind: str, name: str, known: Iterable[str], hint: str = "") -> InputError:
    """Say that a name is not known, and which known one is nearest to it."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(names) or 'none'}"
    return InputError(f"unknown {kind} {name!r}{guess}{hint}")
