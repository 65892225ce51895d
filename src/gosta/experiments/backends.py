"""Backends that compute tasks: processes of this machine, a Dask cluster, a Ray cluster.

Each backend is a generator that takes tasks as it has room for them and yields their results as
they finish. On the clusters it uses the libraries' own futures instead of joblib's adapters: those
wait forever for a task that kills its workers or that workers cannot import, and compute in this
process where a cluster has one core.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import itertools
import logging
import signal
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Generic, NamedTuple, TypeVar

from gosta.errors import ClusterError
from gosta.runtime.extras import require

PACKAGE = "gosta"
CONNECT_TIMEOUT_SECONDS = 10  # for finding a scheduler
WORKER_TIMEOUT_SECONDS = 60  # for the first worker to start: some clusters start workers on demand
MAX_RETRIES = 3  # of a task whose worker died, on Ray
CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
CONTINUE = "finished jobs are kept; run the same command again to continue"

Result = TypeVar("Result")


class Task(NamedTuple, Generic[Result]):
    """A function to call, which can be pickled, and a number that identifies it."""

    number: int
    work: Callable[[], Result]


class Failure(NamedTuple):
    """The reason why a task has no result."""

    reason: str


WORKER_DIED = Failure("every worker that tried it died, most likely for lack of memory")
Results = Iterator[tuple[int, Result | Failure]]


def run_local(tasks: Iterator[Task[Result]], workers: int) -> Results[Result]:
    """Compute tasks in processes of this machine; with one worker, in this process."""
    joblib = require("joblib", "sim", "running many simulations")
    loky = require("joblib.externals.loky.process_executor", "sim", "running many simulations")
    parallel = joblib.Parallel(
        n_jobs=workers,
        backend="loky",
        return_as="generator_unordered",
        batch_size=1,  # so that each result is returned as soon as it exists
        initializer=_ignore_interrupts,
    )
    with warnings.catch_warnings():
        # Loky warns of tasks abandoned after an interruption, and of idle workers.
        warnings.simplefilter("ignore")
        with _children_without_interrupts():
            results = parallel(joblib.delayed(_compute_numbered)(task) for task in tasks)
        try:
            yield from results
        except loky.TerminatedWorkerError:
            raise ClusterError(
                f"a worker process died, most likely for lack of memory; {CONTINUE}, with fewer at "
                "once: --workers 1"
            ) from None
        finally:
            results.close()


def _compute_numbered(task: Task[Result]) -> tuple[int, Result]:
    return task.number, task.work()


def _compute(task: Task[Result]) -> Result:
    return task.work()


@contextlib.contextmanager
def _children_without_interrupts() -> Iterator[None]:
    """Block Ctrl-C while processes start, so that it does not interrupt their imports."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_on_dask(tasks: Iterator[Task[Result]], scheduler: str) -> Results[Result]:
    """Compute tasks on a Dask cluster; tasks of a worker that dies are computed by others."""
    distributed = require("distributed", "dask", "backend = 'dask'")
    try:
        client = distributed.Client(
            scheduler, timeout=CONNECT_TIMEOUT_SECONDS, set_as_default=False
        )
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(
            f"scheduler = {scheduler!r}: no Dask scheduler answers there ({_line(error)})"
        ) from None
    for name in ("distributed.client", "distributed.batched"):
        # Errors are reported in one line instead.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with client:
        _check_workers(client, scheduler)
        pending: dict[Any, Task[Result]] = {}
        finished = distributed.as_completed(loop=client.loop)

        def submit(task: Task[Result]) -> None:
            future = client.submit(_compute, task, pure=False)
            pending[future] = task
            finished.add(future)

        def collect() -> tuple[Task[Result], Result | Failure]:
            future = next(finished)
            task = pending.pop(future)
            try:
                # If its worker died since, this waits until the task is computed again.
                return (task, future.result())
            except distributed.KilledWorker:
                return task, WORKER_DIED
            except CANCELLED:
                raise ClusterError(
                    f"scheduler = {scheduler!r}: the connection was lost; {CONTINUE}"
                ) from None
            except Exception as error:  # errors of tasks are returned as failures
                raise _unusable("Dask", error) from None

        yield from _keep_busy(tasks, submit, collect, lambda: sum(client.nthreads().values()))


def _check_workers(client: Any, scheduler: str) -> None:
    """Check the gosta of workers: one that cannot unpickle a task dies without a message."""
    try:
        theirs = client.submit(version, PACKAGE, pure=False).result(WORKER_TIMEOUT_SECONDS)
    except TimeoutError:
        missing = f"no worker started within {WORKER_TIMEOUT_SECONDS} seconds"
        raise ClusterError(
            f"scheduler = {scheduler!r}: {missing}; start some: dask worker {scheduler}"
        ) from None
    except PackageNotFoundError as error:
        raise _unusable("Dask", error) from None
    if theirs != version(PACKAGE):
        raise ClusterError(
            f"the Dask workers have {PACKAGE} {theirs}, here is {version(PACKAGE)}; install the "
            "same version there"
        )


def run_on_ray(tasks: Iterator[Task[Result]], address: str | None) -> Results[Result]:
    """Compute tasks on a Ray cluster, or on one of this machine's cores, with retries."""
    ray = require("ray", "ray", "backend = 'ray'")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, OSError, RuntimeError) as error:
        raise ClusterError(
            f"scheduler = {address!r}: no Ray cluster answers there ({_line(error)})"
        ) from None
    try:
        pending: dict[Any, Task[Result]] = {}
        remote = ray.remote(max_retries=MAX_RETRIES)(_compute)

        def submit(task: Task[Result]) -> None:
            pending[remote.remote(task)] = task

        def collect() -> tuple[Task[Result], Result | Failure]:
            (future,), _ = ray.wait(list(pending), num_returns=1)
            task = pending.pop(future)
            try:
                return task, ray.get(future)
            except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
                return task, WORKER_DIED
            except ray.exceptions.RayError as error:
                raise _unusable("Ray", error) from None

        yield from _keep_busy(
            tasks, submit, collect, lambda: int(ray.cluster_resources().get("CPU", 1))
        )
    finally:
        with contextlib.suppress(Exception):  # the cluster can be gone
            ray.shutdown()


def _keep_busy(
    tasks: Iterator[Task[Result]],
    submit: Callable[[Task[Result]], None],
    collect: Callable[[], tuple[Task[Result], Result | Failure]],
    slots: Callable[[], int],
) -> Results[Result]:
    """Keep twice as many tasks pending as a cluster can compute at once.

    The cluster can grow and shrink meanwhile.

    Where a task kills worker after worker, those that waited behind it are reported dead along with
    it. So such tasks are tried once more, each alone.
    """
    suspects, pending = [], 0
    while True:
        for task in itertools.islice(tasks, max(0, 2 * max(1, slots()) - pending)):
            submit(task)
            pending += 1
        if not pending:
            break
        task, result = collect()
        pending -= 1
        if result is WORKER_DIED:
            suspects.append(task)
        else:
            yield task.number, result
    for task in suspects:
        submit(task)
        yield task.number, collect()[1]


def _unusable(cluster: str, error: BaseException) -> ClusterError:
    return ClusterError(
        f"the {cluster} workers cannot run the jobs ({_line(error)}); install the same gosta there"
    )


def _line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {lines[-1].strip()[:200]}"
