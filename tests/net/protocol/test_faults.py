"""Real nodes and journals in virtual time, under thousands of seeded schedules of faults."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from fault_schedules import make_schedule, run_schedule
from virtual_network import Fault

from gosta.errors import GostaError

SCHEDULES = int(os.environ.get("GOSTA_SCHEDULES", "200"))


def shrink(faults: list[Fault], fails: Callable[[list[Fault]], bool]) -> list[Fault]:
    """Leave out one fault after the other as long as the schedule still fails."""
    index = 0
    while index < len(faults):
        fewer = faults[:index] + faults[index + 1 :]
        if fails(fewer):
            faults = fewer
        else:
            index += 1
    return faults


def find_error(graph: str, faults: list[Fault], seed: int) -> Exception | None:
    try:
        run_schedule(graph, faults, seed)
    except (AssertionError, GostaError) as error:
        return error
    return None


@pytest.mark.parametrize("block", range(20))
def test_nothing_is_lost_or_duplicated_under_faults(block: int) -> None:
    """Every visitor exists once at all times, no node is stuck, and a replay leads to the same
    states.
    """
    for seed in range(block * SCHEDULES // 20, (block + 1) * SCHEDULES // 20):
        graph, faults = make_schedule(seed)
        error = find_error(graph, faults, seed)
        if error is not None:
            few = shrink(faults, lambda some: find_error(graph, some, seed) is not None)  # noqa: B023
            pytest.fail(
                f"seed {seed} on {graph}: {error or 'AssertionError'}; shortest schedule: {few}"
            )


@pytest.mark.parametrize("kind", ["crash before write", "crash after write"])
@pytest.mark.parametrize("name", ["node-0", "node-1"])
def test_a_crash_at_each_write(kind: str, name: str) -> None:
    """The end of a path and its middle, at each of their first writes in turn."""
    for write in range(1, 61):
        error = find_error("path", [Fault(kind, write, name)], write)
        assert error is None, f"{kind} {write} of {name}: {error}"
