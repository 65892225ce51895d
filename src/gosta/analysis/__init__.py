"""Statistics of rows in one place: exact values, groups, and which statistics fit."""
