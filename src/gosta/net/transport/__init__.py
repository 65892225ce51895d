"""How messages travel: TCP, TLS, memory, and faults over any of them."""
