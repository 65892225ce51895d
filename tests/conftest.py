"""Settings for all tests: random tests draw the same examples on every machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import hypothesis
import pytest
from commands import command

hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100)
hypothesis.settings.load_profile("fixed")

# tests send it, and background jobs of shells ignore it
signal.signal(signal.SIGINT, signal.default_int_handler)

# Hundreds of processes are started: they load the compiled modules of the first one.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

collect_ignore = ["support/fake_node.py", "support/simulated_gpu.py"]  # programs, not modules


@pytest.fixture
def gosta_(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Run ``gosta`` in the test's process."""
    return command(capsys, monkeypatch)
