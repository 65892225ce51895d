"""The experiments of the paper: every table and figure, every claim, and one figure of our own."""
