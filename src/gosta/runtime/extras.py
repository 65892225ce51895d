"""Optional dependencies: imported on first use, with a message that says what to install."""

from __future__ import annotations

import importlib
from typing import Any

from gosta.errors import MissingExtraError


def require(module: str, extra: str, purpose: str) -> Any:
    """Import an optional module, or raise an error that names the extra to install.

    >>> require("json", "all", "reading JSON").loads("[1]")
    [1]
    >>> require("no_module", "plot", "drawing")
    Traceback (most recent call last):
    gosta.errors.MissingExtraError: drawing needs the package 'no_module'; install it with: pip install 'gosta[plot]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs the package {package!r}; install it with: pip install 'gosta[{extra}]'"
        ) from None
