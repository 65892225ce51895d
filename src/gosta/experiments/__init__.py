"""Many simulations at once: sweeps of the user, and the experiments of the paper."""
