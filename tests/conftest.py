"""Settings for all tests: random tests draw the same examples on every machine."""

from __future__ import annotations

import hypothesis

hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100)
hypothesis.settings.load_profile("fixed")

collect_ignore = ["fake_node.py"]  # a program, not a module
