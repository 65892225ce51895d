"""Where jobs are done: processes of this machine, a Dask cluster, a Ray cluster.

Each backend is a generator: from tasks, taken as there is room for them, to what they gave, as they finish. On the
clusters the libraries' own futures are used, not joblib's ways to them: those wait for ever for a task whose workers
die of it or cannot import it, and do the work in this process where a cluster has one core.
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
from typing import Any, NamedTuple

from gosta.errors import InputError

PACKAGE = "gosta"
CONNECT = 10  # seconds for finding a scheduler
PATIENCE = 60  # seconds for the first worker to be there
CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
GO_ON = "what is finished is kept, and the same command goes on"


class Task(NamedTuple):
    """A function to call with some arguments, and a number to know it by."""

    number: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Lost(NamedTuple):
    """In place of a result: why there will be none."""

    reason: str


DIED = Lost("every worker that tried it died, most likely for want of memory")
Done = Iterator[tuple[int, Any]]


def local(tasks: Iterator[Task], workers: int) -> Done:
    """Do tasks in processes of this machine; with one worker, in this one."""
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    parallel = Parallel(
        n_jobs=workers,
        backend="loky",
        return_as="generator_unordered",
        batch_size=1,  # each result comes as soon as there is one
        initializer=_leave_interrupts_to_the_parent,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about tasks given up after an interruption, and workers that had a rest
        with _children_without_interrupts():
            done = parallel(delayed(_numbered)(task) for task in tasks)
        try:
            yield from done
        except TerminatedWorkerError:
            raise InputError(
                f"a worker process died, most likely for want of memory; {GO_ON}, with less at a time: --workers 1"
            ) from None
        finally:
            done.close()


def _numbered(task: Task) -> tuple[int, Any]:
    return task.number, _result(task)


def _result(task: Task) -> Any:
    return task.function(*task.arguments)


@contextlib.contextmanager
def _children_without_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back while processes start: they inherit that, and are quiet even before they run code of ours."""
    if not hasattr(signal, "pthread_sigmask"):  # as on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def dask(tasks: Iterator[Task], scheduler: str) -> Done:
    """Do tasks on a Dask cluster; those of a worker that dies are done again by others."""
    try:
        from distributed import Client, KilledWorker, as_completed
    except ImportError:
        raise _missing("dask") from None
    try:
        client = Client(scheduler, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"scheduler = {scheduler!r}: no Dask scheduler answers there ({_line(error)})") from None
    for name in ("distributed.client", "distributed.batched"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters of it is told in one line
    with client:
        _check_workers(client, scheduler)
        under_way: dict[Any, Task] = {}
        finished = as_completed(loop=client.loop)

        def submit(task: Task) -> None:
            future = client.submit(_result, task, pure=False)
            under_way[future] = task
            finished.add(future)

        def collect() -> tuple[Task, Any]:
            future = next(finished)
            task = under_way.pop(future)
            try:
                return task, future.result()  # where its worker died since, this waits until it is done again
            except KilledWorker:
                return task, DIED
            except CANCELLED:
                gone = "the cluster gave up or went away"
                raise InputError(f"scheduler = {scheduler!r}: {gone}; {GO_ON}") from None
            except Exception as error:  # not the job's own: those come as results
                raise _unable("Dask", error) from None

        yield from _keep_busy(tasks, submit, collect, lambda: sum(client.nthreads().values()))


def _check_workers(client: Any, scheduler: str) -> None:
    """See that there are workers, and that they can do the jobs: one that cannot read a job ends, without a word."""
    try:
        theirs = client.submit(version, PACKAGE, pure=False).result(PATIENCE)  # some clusters start workers on demand
    except TimeoutError:
        there = f"no worker was there within {PATIENCE} seconds"
        raise InputError(f"scheduler = {scheduler!r}: {there}; start some: dask worker {scheduler}") from None
    except PackageNotFoundError as error:
        raise _unable("Dask", error) from None
    if theirs != version(PACKAGE):
        raise InputError(
            f"the Dask workers have {PACKAGE} {theirs}, here is {version(PACKAGE)}; install the same there"
        )


def ray(tasks: Iterator[Task], address: str | None) -> Done:
    """Do tasks on a Ray cluster, or on one of this machine's cores; those of a worker that dies are done again."""
    try:
        import ray
    except ImportError:
        raise _missing("ray") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, OSError, RuntimeError) as error:
        raise InputError(f"scheduler = {address!r}: no Ray cluster answers there ({_line(error)})") from None
    try:
        under_way: dict[Any, Task] = {}
        remote = ray.remote(max_retries=3)(_result)

        def submit(task: Task) -> None:
            under_way[remote.remote(task)] = task

        def collect() -> tuple[Task, Any]:
            (future,), _ = ray.wait(list(under_way), num_returns=1)
            task = under_way.pop(future)
            try:
                return task, ray.get(future)
            except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
                return task, DIED
            except ray.exceptions.RayError as error:
                raise _unable("Ray", error) from None

        yield from _keep_busy(tasks, submit, collect, lambda: int(ray.cluster_resources().get("CPU", 1)))
    finally:
        with contextlib.suppress(Exception):  # a cluster that is gone needs no farewell
            ray.shutdown()


def _keep_busy(
    tasks: Iterator[Task],
    submit: Callable[[Task], None],
    collect: Callable[[], tuple[Task, Any]],
    slots: Callable[[], int],
) -> Done:
    """Keep twice as many tasks under way as a cluster can do at a time, however it grows or shrinks.

    Where a task brings down worker after worker, those that waited behind it are suspected along with it. So suspects
    are tried once more, each alone.
    """
    suspects, under_way = [], 0
    while True:
        for task in itertools.islice(tasks, max(0, 2 * max(1, slots()) - under_way)):
            submit(task)
            under_way += 1
        if not under_way:
            break
        task, found = collect()
        under_way -= 1
        if found is DIED:
            suspects.append(task)
        else:
            yield task.number, found
    for task in suspects:
        submit(task)
        yield task.number, collect()[1]


def _missing(extra: str) -> InputError:
    return InputError(f"backend = {extra!r} needs a package that is not installed; pip install 'gosta[{extra}]'")


def _unable(cluster: str, error: BaseException) -> InputError:
    return InputError(f"the {cluster} workers cannot do the jobs ({_line(error)}); install the same gosta there")


def _line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {lines[-1].strip()[:200]}"
