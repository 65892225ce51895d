"""Compilation for a GPU by numba-cuda: arithmetic is rounded as on the CPU.

Machine code is cached on disk.

As in `gosta.runtime.compiler`, a loop is text that is written to a file in the user's cache folder,
named after a digest of everything it depends on; numba-cuda caches the machine code of functions
that are defined in a file.

numba's simulator of a GPU (NUMBA_ENABLE_CUDASIM=1) runs the same text in plain Python.
"""

from __future__ import annotations

import contextlib
import dis
import sys
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gosta.errors import InputError, UnsupportedError
from gosta.runtime import compiler, extras

# Modules that compiled code depends on besides its own text.
MODULES = *compiler.MODULES, Path(__file__), Path(__file__).with_name("intrinsics.py")
OTHERWISE = "use engine='compiled'"
SIMULATED_THREADS = 8

_lock = threading.RLock()
_loaded: dict[str, types.ModuleType] = {}


def cuda() -> Any:
    """Import numba.cuda as numba-cuda has it, or raise an error that says what to install."""
    if not extras.is_installed("numba_cuda"):
        raise extras.missing("numba_cuda", "gpu", "engine 'gpu'")
    has_no_row_stack = not hasattr(np, "row_stack")
    if has_no_row_stack:  # numpy 2.5 has dropped a name that numba-cuda 0.30 refers to
        np.row_stack = np.vstack  # noqa: NPY201
    try:
        from numba import cuda
        from numba.cuda.core import config
        from numba.cuda.np import arrayobj  # noqa: F401
    finally:
        if has_no_row_stack:
            del np.row_stack  # noqa: NPY201
    config.CUDA_LOW_OCCUPANCY_WARNINGS = False  # a few runs do not fill a GPU
    return cuda


def is_simulated() -> bool:
    """Return whether numba simulates a GPU."""
    import numba

    return bool(numba.config.ENABLE_CUDASIM)


def require_gpu() -> None:
    """Raise an error that says what is missing unless there is a GPU that can be used."""
    module = cuda()
    if is_simulated():
        return
    from numba.cuda.cudadrv import driver, nvvm

    try:
        module.current_context()
    except Exception as error:  # the driver can fail in many ways
        text = " ".join((driver.driver.initialization_error or str(error)).split())
        reason = text.partition(". ")[0].rstrip(".:")
        raise InputError(
            f"engine 'gpu' found no NVIDIA GPU that can be used ({reason}); {OTHERWISE}"
        ) from error
    if not nvvm.is_available():
        raise InputError(
            "engine 'gpu' needs the CUDA toolkit; install it with: pip install 'gosta[gpu]'"
        )


def require_memory(size: int, purpose: str, remedy: str) -> None:
    """Raise an error if some work needs more bytes of the GPU's memory than are free now."""
    free = free_memory()
    if size > free:
        need = (
            f"{purpose} needs {size / 2**30:.1f} GiB of GPU memory and {free / 2**30:.1f} GiB are "
            "free"
        )
        raise InputError(f"{need}; {remedy}, or {OTHERWISE}")


def free_memory() -> int:
    """Return how many bytes of the GPU's memory are free."""
    return 1 << 30 if is_simulated() else int(cuda().current_context().get_memory_info().free)


def max_shared_bytes() -> int:
    """Return the largest shared memory that a block of threads can have."""
    reserved = 1 << 10  # by the system, and for a few numbers of the loops
    if is_simulated():
        return (48 << 10) - reserved
    return int(cuda().get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) - reserved


def cache_bytes() -> int:
    """Return the size of the cache that all multiprocessors share."""
    return 400 if is_simulated() else int(cuda().get_current_device().L2_CACHE_SIZE)


@contextlib.contextmanager
def _unfused() -> Iterator[None]:
    """Compile without contraction: a * b + c is rounded twice, as on the CPU.

    NVVM fuses by default, and numba-cuda has no option against it. Without link-time optimisation
    (lto=False) what is left to the assembler has its rounding written out, and it fuses nothing.
    """
    from numba.cuda.cudadrv import nvvm

    with _lock:
        original = nvvm.compile_ir
        nvvm.compile_ir = lambda code, **options: original(code, **{"fma": False, **options})
        try:
            yield
        finally:
            nvvm.compile_ir = original


class Kernel:
    """A function that all threads of a GPU run."""

    def __init__(self, function: Callable[..., None], is_cached: bool) -> None:
        self.function = function
        options = {} if is_simulated() else {"lto": False, "cache": is_cached}
        self._dispatcher = cuda().jit(function, **options)
        self._shared_bytes = 0

    def launch(
        self, blocks: int, threads: int, stream: Any, shared_bytes: int, *arguments: Any
    ) -> None:
        """Start the function on some blocks of threads."""
        if is_simulated():
            self._dispatcher[blocks, threads, 0, shared_bytes](*arguments)
            return
        with _unfused():
            if shared_bytes > self._shared_bytes:  # more than 48 KiB have to be allowed
                self._allow(shared_bytes, arguments)
            self._dispatcher[blocks, threads, stream, shared_bytes](*arguments)

    def prepare(self, arguments: tuple[Any, ...]) -> None:
        """Compile the function, or load it from disk, for arguments of the same types."""
        if not is_simulated():
            self._compiled(arguments)

    def max_threads(self, arguments: tuple[Any, ...]) -> int:
        """Return how many threads of a block there are registers for."""
        return (
            SIMULATED_THREADS
            if is_simulated()
            else int(self._compiled(arguments).max_threads_per_block)
        )

    def max_blocks(self, threads: int, arguments: tuple[Any, ...]) -> int:
        """Return how many blocks of threads can run at a time."""
        return (
            1
            if is_simulated()
            else int(self._compiled(arguments).max_cooperative_grid_blocks(threads))
        )

    def _compiled(self, arguments: tuple[Any, ...]) -> Any:
        with _unfused():
            return self._dispatcher.compile(
                tuple(self._dispatcher.typeof_pyval(argument) for argument in arguments)
            )

    def _allow(self, shared_bytes: int, arguments: tuple[Any, ...]) -> None:
        from numba.cuda.cudadrv.driver import binding, driver

        function = self._compiled(arguments)._codelibrary.get_cufunc()
        attribute = binding.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.cuKernelSetAttribute(attribute, shared_bytes, function.handle, function.device.id)
        self._shared_bytes = shared_bytes

    def ptx(self, signature: Any) -> str:
        """Return the assembly for a signature, which needs no GPU."""
        with _unfused():
            return str(cuda().compile_ptx(self.function, signature, cc=(9, 0))[0])


def check_functions(*functions: Any) -> None:
    """Raise an error for functions that raise.

    A thread that left would leave its exchange undone.
    """
    checked, unchecked = list[types.FunctionType](), list(functions)
    while unchecked:
        function = unchecked.pop()
        if isinstance(function, types.FunctionType) and function not in checked:
            checked.append(function)
            if any(
                step.opname in ("RAISE_VARARGS", "RERAISE")
                for step in dis.get_instructions(function)
            ):
                raise UnsupportedError(
                    f"{function.__name__} raises or asserts, which it cannot on a GPU; {OTHERWISE}"
                )
            unchecked += [cell.cell_contents for cell in function.__closure__ or ()]
            unchecked += compiler._used_globals(function).values()


def specialise(
    text: str, functions: Mapping[str, Any], kernels: tuple[str, ...]
) -> types.ModuleType:
    """Return a module made from text, with `kernels` and what they call compiled for the GPU.

    Functions that raise are an error.
    """
    try:
        key = compiler.fingerprint(
            text, functions, [file.read_text(encoding="utf-8") for file in MODULES]
        )
    except compiler.UnstableContentError:
        key = ""
    with _lock:
        if key and key in _loaded:
            return _loaded[key]
        file = compiler._write_text(text, key) if key and not is_simulated() else None
        module = _run(text, functions, kernels, file)
        if key:
            _loaded[key] = module
    return module


def _run(
    text: str, functions: Mapping[str, Any], kernels: tuple[str, ...], file: Path | None
) -> types.ModuleType:
    import numba

    module = types.ModuleType(f"gosta_{file.stem}" if file else "gosta_gpu")
    module.__file__ = str(file or "<gosta>")
    if file:
        sys.modules[module.__name__] = module
    exec(compile(text, module.__file__, "exec"), vars(module))
    defined = {name: value for name, value in vars(module).items() if _is_defined_in(module, value)}
    if is_simulated():
        from gosta.simulation.engines.gpu import simulated

        replaced = {name: getattr(simulated, name) for name in simulated.__all__}
        vars(module).update(
            {name: _with_globals(function, replaced) for name, function in functions.items()}
        )
        vars(module).update(replaced)
        exec(simulated.TAKE, vars(module))
    else:
        from gosta.simulation.engines.gpu import intrinsics  # noqa: F401

        vars(module).update(
            {name: numba.njit(value) for name, value in defined.items() if name not in kernels}
        )
        vars(module).update(
            {name: compiler._compile(function) for name, function in functions.items()}
        )
    vars(module).update(
        {name: Kernel(defined[name], is_cached=file is not None) for name in kernels}
    )
    return module


def _is_defined_in(module: types.ModuleType, value: Any) -> bool:
    return isinstance(value, types.FunctionType) and value.__module__ == module.__name__


def _with_globals(function: Any, replaced: Mapping[str, Any]) -> Any:
    """Return a copy of a function that sees other globals."""
    if not isinstance(function, types.FunctionType):
        return function
    names = {**function.__globals__, **replaced}
    return types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )


def description() -> str:
    """Return the name of the GPU and the version of its driver."""
    if is_simulated():
        return "GPU simulated by numba"
    from numba.cuda.cudadrv import driver

    device = cuda().get_current_device()
    name = device.name.decode() if isinstance(device.name, bytes) else device.name
    version = driver.driver.get_version()
    return (
        f"{name}, {device.MULTIPROCESSOR_COUNT} multiprocessors, CUDA {'.'.join(map(str, version))}"
    )
