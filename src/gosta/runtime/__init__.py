"""Shared services: array types, files, extras, memory and cores, progress bars, compilation."""
