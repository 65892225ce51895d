"""Setting up a network: plans, folders, certificates, supervision."""
