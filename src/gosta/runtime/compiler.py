"""Compilation of plain functions by numba, with machine code cached between runs.

numba caches compiled loops on disk only for a function that is defined in a file and does not take
other functions as arguments. So a loop is text; ``specialise`` writes it to a file in the user's
cache folder, named after a digest of everything it depends on, and defines the functions it calls
as globals.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import sys
import threading
import types
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gosta.errors import InputError
from gosta.runtime import extras
from gosta.runtime.files import cache_folder, write_atomically

Function = Callable[..., Any]

MAX_PLAIN_STEPS = 1 << 23  # steps that plain Python runs in about half a minute

# Modules that compiled code depends on besides its own text: the one that it imports, and this one.
MODULES = Path(__file__).with_name("observation.py"), Path(__file__)


class UnstableContentError(Exception):
    """A function refers to an object without a fingerprint: its machine code cannot be cached."""


def specialise(
    text: str,
    functions: Mapping[str, Function],
    trial: Callable[[Any], object],
    is_unchecked: bool = False,
) -> types.ModuleType:
    """Return a module made from text, with its functions and the given ones, as globals, compiled.

    Unchecked text must neither make arrays nor divide by zero: it is compiled without counting
    references to arrays and without checks of divisors, which take more time than an exchange of
    two nodes. The given functions are checked.

    Machine code is cached on disk unless a function has no fingerprint or the disk is not writable.
    `trial` calls the functions that will be needed, on no data, which compiles or loads them.
    Cached code that cannot be loaded is deleted.
    """
    _require_compiler()
    try:
        key = fingerprint(text, functions, [file.read_text(encoding="utf-8") for file in MODULES])
    except UnstableContentError:
        key = ""
    with _lock:
        module = _loaded.get(key)
        if module is None:
            file = _write_text(text, key) if key else None
            module = _run(text, functions, file, is_unchecked)
            if file:
                try:
                    trial(module)
                # Damaged files and full disks can raise anything; errors of the kernel recur.
                except Exception:
                    _delete_cached(file)
                    module = _run(text, functions, None, is_unchecked)
            if key:
                _loaded[key] = module
        trial(module)
    return module


_lock = threading.RLock()  # several threads of a process run simulations
_loaded: dict[str, types.ModuleType] = {}


def _run(
    text: str, functions: Mapping[str, Function], file: Path | None, is_unchecked: bool
) -> types.ModuleType:
    numba = extras.require("numba", "fast", "compiling a kernel")
    module = types.ModuleType(f"gosta_{file.stem}" if file else "gosta_unsaved")
    module.__file__ = str(file or "<gosta>")
    if file:
        # numba looks modules up by name when it loads cached code
        sys.modules[module.__name__] = module
    exec(compile(text, module.__file__, "exec"), vars(module))
    for name, value in list(vars(module).items()):
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
            flags = {"_nrt": False, "error_model": "numpy"} if is_unchecked else {}
            setattr(
                module,
                name,
                numba.njit(value, nogil=True, forceinline=True, cache=file is not None, **flags),
            )
    vars(module).update({name: _compile(f) for name, f in functions.items()})
    return module


def _write_text(text: str, key: str) -> Path | None:
    """Write text to a file of the cache unless it is there; None if the cache is not writable."""
    folder = cache_folder("compiled")
    file = folder / f"{key[:32]}.py"
    try:
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(file, text)
    except (OSError, UnicodeDecodeError, InputError):
        return None
    return file


def _delete_cached(file: Path) -> None:
    for kept in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        with contextlib.suppress(OSError):
            kept.unlink()


def _is_switched_off() -> bool:
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def _require_compiler() -> None:
    if _is_switched_off():
        reason = "NUMBA_DISABLE_JIT is set, which switches off the compiler that is needed here"
        raise InputError(reason, remedy="unset it")


def is_available(steps: float, purpose: str) -> bool:
    """Return whether numba is installed; an error if not and plain Python would take too long.

    `steps` is the number of kernel evaluations, or steps of similar cost, that the caller is going
    to run.
    """
    if extras.is_installed("numba") and not _is_switched_off():
        return True
    if steps > MAX_PLAIN_STEPS:
        _require_compiler()
        raise extras.missing(
            "numba", "fast", f"{purpose} takes {steps:.1g} steps, too many for plain Python, so it"
        )
    return False


def interpret(text: str, functions: Mapping[str, Function]) -> types.ModuleType:
    """Return a module made from text, as `specialise` does, in plain Python, without numba."""
    module = types.ModuleType("gosta_interpreted")
    module.__file__ = "<gosta>"
    exec(compile(text, "<gosta>", "exec"), vars(module))
    vars(module).update(functions)
    return module


_compiled: dict[str, Any] = {}


def _compile(function: Any, callers: tuple[Any, ...] = ()) -> Any:
    """Compile a plain function with the plain functions it calls; return anything else as it is."""
    numba = extras.require("numba", "fast", "compiling a kernel")
    if not _is_plain(function):
        return function
    if function in callers:
        raise InputError(
            f"{function.__name__} calls itself, which cannot be compiled; write it as a loop"
        )
    try:
        key = fingerprint(function)
        # The same object is another function if a global that it uses has changed.
        if key in _compiled:
            return _compiled[key]
    except UnstableContentError:
        key = uuid.uuid4().hex
    callers = (*callers, function)
    names = {name: _compile(value, callers) for name, value in _used_globals(function).items()}
    names["__name__"] = __name__
    cells = tuple(
        types.CellType(_compile(cell.cell_contents, callers)) for cell in function.__closure__ or ()
    )
    copy = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, cells
    )
    # Cached code refers to functions by name alone, so functions that differ must not share one.
    copy.__qualname__ = f"{function.__name__}{_suffix(key)}"
    _compiled[key] = numba.njit(copy, forceinline=True, error_model="python")
    return _compiled[key]


def _suffix(key: str) -> str:
    return f"_{key[:16]}"


def is_named(function: Function, message: str) -> bool:
    """Return whether a message of the compiler names a function that was given to `specialise`."""
    try:
        return _suffix(fingerprint(function)) in message
    except UnstableContentError:
        return False


def fingerprint(*parts: Any) -> str:
    """Return a digest of the content of texts, numbers and functions, the same in every process.

    Functions are hashed by their code and the objects they refer to, not by their place in a file.
    """
    digest = hashlib.sha256()
    for part in parts:
        _feed(digest.update, part, {})
    return digest.hexdigest()


def _feed(update: Callable[[bytes], None], part: Any, seen: dict[int, int]) -> None:
    def feed(*inner: Any) -> None:
        for inner_part in inner:
            _feed(update, inner_part, seen)

    update(f"<{type(part).__name__}>".encode())
    if part is None or isinstance(part, bool | int | float | complex | str | bytes):
        update(repr(part).encode())
    elif isinstance(part, tuple | list | frozenset):
        feed(len(part), *(sorted(part, key=repr) if isinstance(part, frozenset) else part))
    elif isinstance(part, Mapping):
        feed(len(part), *(item for pair in sorted(part.items()) for item in pair))
    elif isinstance(part, types.ModuleType) and part.__name__ in _STABLE:
        feed(part.__name__)
    elif isinstance(part, types.CodeType):
        feed(
            part.co_code,
            part.co_consts,
            part.co_names,
            part.co_varnames,
            part.co_freevars,
            part.co_argcount,
        )
    elif _is_plain(part):
        if id(part) in seen:
            return feed(seen[id(part)])
        seen[id(part)] = len(seen)
        cells = [cell.cell_contents for cell in part.__closure__ or ()]
        feed(part.__code__, part.__defaults__, cells, _used_globals(part))
    elif isinstance(getattr(part, "py_func", None), types.FunctionType):  # compiled by the user
        feed(part.py_func)
    elif isinstance(part, type) and issubclass(part, tuple) and hasattr(part, "_fields"):
        feed(part.__name__, part._fields)
    elif isinstance(part, np.ndarray) and part.dtype.kind in "biuf":
        feed(part.shape, part.dtype.str, part.tobytes())
    elif isinstance(part, np.generic):
        feed(part.item())
    elif dataclasses.is_dataclass(part) and not isinstance(part, type):
        feed(*(getattr(part, field.name) for field in dataclasses.fields(part)))
    elif getattr(part, "__module__", None) in _STABLE and hasattr(part, "__qualname__"):
        feed(part.__module__, part.__qualname__)
    else:
        raise UnstableContentError(f"{part!r} has no content that could be fingerprinted")
    return None


_STABLE = {"builtins", "math", "cmath", "numpy", "numpy.linalg"}


def _is_plain(value: Any) -> bool:
    package = (getattr(value, "__module__", None) or "").partition(".")[0]
    return isinstance(value, types.FunctionType) and package not in ("numpy", "numba")


def _used_globals(function: types.FunctionType) -> dict[str, Any]:
    names: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return {
        name: function.__globals__[name] for name in sorted(names) if name in function.__globals__
    }
