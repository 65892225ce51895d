"""The protocol between neighbours: messages, records and the state machine of one node; no sockets, clocks or files."""
