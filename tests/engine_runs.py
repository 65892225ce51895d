"""Engines on given edges."""

from __future__ import annotations

from typing import Any

from gosta.runtime.arrays import Floats
from gosta.schedule import FixedSchedule
from gosta.simulation.engines.engine import Batch


def advance(engine: Any, batch: Batch[Any], edges: Any, edge_shares: Floats | None = None) -> None:
    """Carry out the exchanges of given edges in the only run of a batch."""
    draws = engine.setting.protocol.draws
    schedule = FixedSchedule(engine.setting.graph, edges, edge_shares, batch.iteration * draws)
    last = batch.iteration + len(edges) // draws
    engine.advance_run(batch, 0, schedule, batch.iteration, last)
    batch.iteration = last
