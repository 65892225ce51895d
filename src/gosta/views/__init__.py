"""Presentation: number formats, terminal tables, HTML, plots."""
