"""The live page of a network: moments of its nodes, the last lines of their logs, serving it."""
