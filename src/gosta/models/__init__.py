"""Regression models: coefficients that follow from sums over rows, round by round."""
