"""Engines: what carries out the exchanges of a simulation."""
