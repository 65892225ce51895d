"""Validation studies: one file says what is asked of which columns, and all of it is one release.

``study.toml`` holds a dictionary of columns, questions, thresholds, groups and the settings of
privacy. Its statistics are computed over files in one place, or by a network of private sums; both
give the same ``results.json``.
"""
