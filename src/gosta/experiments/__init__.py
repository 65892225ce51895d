"""Many simulations at once: studies of one's own."""
