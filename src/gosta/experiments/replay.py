"""The meetings of a real network once more, in the simulator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gosta.net.audit.verify import Journals
from gosta.simulation.engines.sites import Sites


class Replayed(NamedTuple):
    """How many meetings there were, and the nodes whose states are not those of the simulator, bit for bit."""

    meetings: int
    nodes: int
    differ: list[str]


def replay(journals: Journals) -> Replayed:
    """Let the nodes of a simulation meet as those of a network did, and compare what both keep."""
    names = list(journals.peers)
    meetings = journals.meetings()
    edges = np.array([[names.index(m.begun_by), names.index(m.other)] for m in meetings]).reshape(-1, 2)
    engine = Sites(journals.problem, journals.protocol, names)
    arrays = engine.start()
    engine.advance(arrays, edges, 0, np.array([m.pace for m in meetings] or [1.0]))
    behind = {m.begun_by for m in meetings if m.first is None}
    sites = {site.name: site for site in arrays["sites"] if site.name not in behind}
    differ = [name for name, site in sites.items() if site.memory() != journals.peers[name].site.memory()]
    return Replayed(len(meetings), len(sites), differ)
