"""Experiments of the paper: every table and figure, every claim, and one figure of our own."""

from gosta.runtime.extras import require_extra

require_extra("paper", purpose="reproducing the paper")
