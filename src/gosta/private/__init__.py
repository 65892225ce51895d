"""Sums over the rows of all sites, of which no site shows its own: masks, noise, budgets, policies.

>>> import gosta
>>> sites = [{"age": [31, 42]}, {"age": [65]}]
>>> gosta.private.release(sites, "variance", columns="age", ranges={"age": (0, 128)})
Release(variance 301, bracket 300.998 to 301.002, interval 93.3257 to 970.804, sites 2)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gosta.private.fits import fit as fit
    from gosta.private.policy import Policy as Policy
    from gosta.private.releases import Release as Release
    from gosta.private.releases import release as release

# The module that defines each public name; imported on first use, since a node needs only parts.
_HOME = {"Policy": "policy", "Release": "releases", "fit": "fits", "release": "releases"}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'gosta.private' has no attribute {name!r}")
    return getattr(importlib.import_module(f"gosta.private.{_HOME[name]}"), name)
