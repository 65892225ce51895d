"""Checks of a whole network after the fact."""
