"""Carrying messages between neighbours: TCP with TLS, memory, and faults over either."""
