"""The real thing: nodes that talk to their neighbours over a network."""
