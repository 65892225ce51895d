"""Settings for all tests: random tests draw the same examples on every machine."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis
import pytest
from commands import command

hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100)
hypothesis.settings.load_profile("fixed")

collect_ignore = ["fake_node.py"]  # a program, not a module


@pytest.fixture
def gosta_(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Run ``gosta`` in the test's process."""
    return command(capsys, monkeypatch)
