"""Shared services: array types, caches, files, extras, memory and cores, progress bars, compilation."""
