"""Nodes of a real network: processes that exchange messages with their neighbours and estimate a
statistic.

Imports go in one direction, enforced by tests/repository/test_house.py; each folder may import
those before it:

addresses, limits, config: names and addresses of nodes, bounds on numbers, node.toml and
network.toml. members: the signed list of a network's members, and their signatures. transport:
carries whole messages between neighbours: TCP with TLS, memory, and faults over either. protocol:
messages, records and `Peer`, the state machine of one node; no socket, no clock, no file. storage:
the journal, an SQLite file of records. node: one process: its rows, its timers and connections, its
status page. deploy: folders, certificates and processes of a whole network. audit: checks a stopped
network's journals against each other and recomputes its exchanges.
"""
