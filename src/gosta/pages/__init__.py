"""Live pages for browsers: one front end (``static/``) for networks and simulations.

The sources are in the rooms that know them: `gosta.net.watch` and `gosta.simulation.live`.
"""
