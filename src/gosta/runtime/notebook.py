"""Whether the code runs in a notebook."""

from __future__ import annotations

import sys


def in_notebook() -> bool:
    """Return whether the output goes to cells of a notebook: whether an IPython kernel runs, not a terminal."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and hasattr(shell, "kernel")
