"""What the package needs of the machine: caches, memory and cores, progress bars, compilation."""
