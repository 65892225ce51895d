"""A running node: its process, its status, its data."""
