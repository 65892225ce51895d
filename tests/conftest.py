"""Settings for all tests: random tests draw the same examples on every machine."""

from __future__ import annotations

import signal

import hypothesis

hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100)
hypothesis.settings.load_profile("fixed")

# A job in the background of a script is started deaf to Ctrl-C, and so would be all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
