"""Live pages for browsers: one front end (``static/``) for two sources, a network of nodes and a simulation.

The sources are in the rooms that know them: `gosta.net.watch` and `gosta.simulation.live`.
"""
