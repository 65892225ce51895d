"""Setting up and running a whole network: plans, folders, certificates, processes."""
