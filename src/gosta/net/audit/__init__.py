"""Checking the journals of a stopped network, and what left a site."""
