"""A node's journal on disk."""
