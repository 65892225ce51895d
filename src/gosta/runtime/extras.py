"""Optional dependencies: imported on first use, with a message that says what to install."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from gosta.errors import MissingExtraError
from gosta.runtime.interrupts import deferred_interrupt

# The modules that a whole room of the package needs, by the extra in pyproject.toml with them.
MODULES = {
    "sim": ("numba", "scipy", "pandas", "xarray", "h5netcdf", "joblib"),
    "plot": ("matplotlib",),
    "video": ("av",),
    "data": ("pyarrow",),
    "paper": ("numba", "scipy", "pandas", "xarray", "joblib", "pyamg", "matplotlib", "pyarrow"),
}


def is_installed(module: str) -> bool:
    """Return whether a top-level module can be imported, without importing it."""
    return importlib.util.find_spec(module) is not None


def require_extra(*extras: str, purpose: str) -> None:
    """Raise an error if some extras are not installed; nothing is imported.

    >>> require_extra("sim", "plot", purpose="drawing")
    """
    absent = {
        extra: [name for name in MODULES[extra] if not is_installed(name)] for extra in extras
    }
    needed = [extra for extra in extras if absent[extra]]
    if needed:
        raise missing(absent[needed[0]][0], ",".join(needed), purpose)


def require(module: str, extra: str, purpose: str) -> Any:
    """Import an optional module, or raise an error that names the extra to install.

    >>> require("json", "all", "reading JSON").loads("[1]")
    [1]
    >>> require("no_module", "plot", "drawing")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    gosta.errors.MissingExtraError: drawing needs the package 'no_module'; ...
    """
    try:
        # Compiled modules ignore exceptions while they are initialised.
        with deferred_interrupt() as is_interrupted:
            imported = importlib.import_module(module)
        if is_interrupted():
            raise KeyboardInterrupt
        return imported
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise missing(module, extra, purpose) from None


def missing(module: str, extra: str, purpose: str) -> MissingExtraError:
    """Return the error for a module that is not installed."""
    package = module.partition(".")[0]
    return MissingExtraError(
        f"{purpose} needs the package {package!r}; install it with: pip install 'gosta[{extra}]'"
    )
