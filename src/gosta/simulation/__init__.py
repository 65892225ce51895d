"""Simulation: engines that run a protocol on a graph, and the trace a run leaves."""

from gosta.runtime.extras import require_extra

require_extra("sim", purpose="simulation")
