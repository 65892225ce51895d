"""The protocol between neighbours: messages, records and the state machine of one node.

No sockets, clocks or files.
"""
