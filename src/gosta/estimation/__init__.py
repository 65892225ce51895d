"""What is estimated, over which rows, and what happens when two nodes exchange."""
