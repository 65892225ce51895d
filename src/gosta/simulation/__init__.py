"""Simulation: engines that run a protocol on a graph, and the trace a run leaves."""
