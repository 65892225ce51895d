"""Many simulations at once: studies of the user, and the experiments of the paper."""
