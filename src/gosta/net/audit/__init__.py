"""Checking the journals of a stopped network: consistency, estimates, and the same exchanges computed again."""
