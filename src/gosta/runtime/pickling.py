"""Pickling of objects that consist of functions, such as a user's own statistics and protocols.

pickle stores a function as its name and its module's, which another process imports. That fails for
functions of a notebook, of a script and inside functions. Objects that have such functions are
stored by value, by cloudpickle, so that process pools, joblib and Dask take them, wherever they
were defined.
"""

from __future__ import annotations

import functools
import pickle
import sys
from collections.abc import Callable
from typing import Any

from gosta.runtime.extras import require


def find_attribute(module: str, name: str) -> object:
    """Return what an imported module calls by a name, such as "Outer.inner"; None: nothing."""
    return functools.reduce(
        lambda found, part: getattr(found, part, None), name.split("."), sys.modules.get(module)
    )


def is_importable(function: Any) -> bool:
    """Return whether another process finds a function or a class by its name."""
    name = getattr(function, "__qualname__", "")
    return (
        function.__module__ != "__main__" and find_attribute(function.__module__, name) is function
    )


def by_value(instance: object) -> tuple[Callable[[bytes], object], tuple[bytes]]:
    """Return what `__reduce__` has to return for an instance whose functions are stored with it."""
    cloudpickle = require("cloudpickle", "sim", "pickling functions of your own")
    return _restore, (cloudpickle.dumps((type(instance), vars(instance))),)


def _restore(content: bytes) -> object:
    kind, state = pickle.loads(content)
    made: object = object.__new__(kind)
    vars(made).update(state)
    return made
