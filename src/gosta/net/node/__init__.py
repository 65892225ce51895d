"""One node: its rows, its timers and connections, its status page, its process."""
