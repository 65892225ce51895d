"""Sums over the rows of all sites, of which no site shows its own: masks, noise, budgets, policies."""
