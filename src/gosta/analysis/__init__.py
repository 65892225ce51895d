"""Statistics of rows in one place: exact values, groups of rows, and which statistics fit a table."""
