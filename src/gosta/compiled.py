"""Compiling plain functions, and keeping the machine code between runs.

numba finds compiled loops on disk again only for a function that stands in a file of its own and does not
take other functions as arguments. So a loop is a text; ``specialise`` writes it to a file in the user's
cache folder, named after all that goes into it, and gives it the functions it calls as globals.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import sys
import tempfile
import types
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

Function = Callable[..., Any]


class UnknowableError(Exception):
    """A function refers to something whose content cannot be told, so its code cannot be kept."""


def specialise(text: str, functions: Mapping[str, Function]) -> types.ModuleType:
    """The functions of a module's text, compiled, with the given functions, compiled too, among its globals.

    Machine code is kept on disk unless a function depends on something unknowable or the disk cannot be written.
    """
    try:
        key = fingerprint(text, functions)
    except UnknowableError:
        return _run(text, functions, None)
    if key not in _loaded:
        _loaded[key] = _run(text, functions, _written(text, key))
    return _loaded[key]


_loaded: dict[str, types.ModuleType] = {}


def _run(text: str, functions: Mapping[str, Function], file: Path | None) -> types.ModuleType:
    import numba

    module = types.ModuleType(f"gosta_{file.stem}" if file else "gosta_unsaved")
    if file:
        sys.modules[module.__name__] = module  # numba looks modules up by name when it loads kept code
    exec(compile(text, str(file or "<gosta>"), "exec"), vars(module))
    for name, value in list(vars(module).items()):
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
            setattr(module, name, numba.njit(value, nogil=True, cache=file is not None))
    vars(module).update({name: compile_plain(f) for name, f in functions.items()})
    return module


def _written(text: str, key: str) -> Path | None:
    """The text in a file of its own, written whole or not at all, so that two processes may do it at once."""
    folder = Path(os.environ.get("GOSTA_CACHE_DIR") or platformdirs.user_cache_dir("gosta")) / "compiled"
    file = folder / f"{key[:32]}.py"
    try:
        if not file.exists():
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as draft:
                draft.write(text)
            Path(draft.name).replace(file)
    except OSError:
        return None
    return file


@functools.cache
def compile_plain(function: Function) -> Any:
    """Compile a plain function together with the plain functions it calls."""
    import numba

    if not isinstance(function, types.FunctionType):
        return function
    names = {
        name: compile_plain(value) if _is_plain(value) else value for name, value in _used_globals(function).items()
    }
    cells = tuple(
        types.CellType(compile_plain(cell.cell_contents) if _is_plain(cell.cell_contents) else cell.cell_contents)
        for cell in function.__closure__ or ()
    )
    names["__name__"] = __name__
    copy = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)
    # Kept code finds functions by name alone, so functions that differ must not share one.
    copy.__qualname__ = f"{function.__name__}_{_content_or_chance(function)[:16]}"
    return numba.njit(copy)


def _content_or_chance(function: Function) -> str:
    try:
        return fingerprint(function)
    except UnknowableError:
        return uuid.uuid4().hex


def fingerprint(*parts: Any) -> str:
    """A name for the content of texts, numbers and functions, the same in every process.

    Functions count by their code and by what they refer to, not by where they stand.
    """
    digest = hashlib.sha256()
    for part in parts:
        _feed(digest.update, part, set())
    return digest.hexdigest()


def _feed(update: Callable[[bytes], None], part: Any, seen: set[int]) -> None:
    def feed(*inner: Any) -> None:
        for one in inner:
            _feed(update, one, seen)

    update(f"<{type(part).__name__}>".encode())
    if part is None or isinstance(part, bool | int | float | complex | str | bytes):
        update(repr(part).encode())
    elif isinstance(part, tuple | list | frozenset):
        feed(len(part), *(sorted(part, key=repr) if isinstance(part, frozenset) else part))
    elif isinstance(part, Mapping):
        feed(len(part), *(item for pair in sorted(part.items()) for item in pair))
    elif isinstance(part, types.ModuleType):
        feed(part.__name__)
    elif isinstance(part, types.CodeType):
        feed(part.co_code, part.co_consts, part.co_names, part.co_varnames, part.co_freevars, part.co_argcount)
    elif _is_plain(part):
        if id(part) in seen:
            return
        seen.add(id(part))
        cells = [cell.cell_contents for cell in part.__closure__ or ()]
        feed(part.__code__, part.__defaults__, cells, _used_globals(part))
    elif isinstance(part, np.ndarray) and part.dtype.kind in "biuf":
        feed(part.shape, part.dtype.str, part.tobytes())
    elif isinstance(part, np.generic):
        feed(part.item())
    elif dataclasses.is_dataclass(part) and not isinstance(part, type):
        feed(*(getattr(part, field.name) for field in dataclasses.fields(part)))
    elif getattr(part, "__module__", None) in _STABLE and hasattr(part, "__qualname__"):
        feed(part.__module__, part.__qualname__)
    else:
        raise UnknowableError(f"{part!r} has no content that could be told")


_STABLE = {"builtins", "math", "numpy", "numpy.linalg"}


def _is_plain(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and value.__module__.partition(".")[0] not in {
        "numpy",
        "numba",
    }


def _used_globals(function: types.FunctionType) -> dict[str, Any]:
    names: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}
