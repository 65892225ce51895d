"""Dual averaging by gossip, synchronous: every node takes a step at every tick."""

from __future__ import annotations

from gosta.protocols.dual_averaging import KEEPS, State, init, meet, read, tell
from gosta.protocols.protocol import Protocol

SUMMARY = "As dual-averaging, but every node folds in the gradient of own x visitor at every tick."
protocol = Protocol(
    "dual-averaging-sync", SUMMARY, KEEPS, State, init, tell, meet, read, every_node=True
)
