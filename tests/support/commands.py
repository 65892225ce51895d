"""Running the command line in the test process."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from gosta.cli.main import main


def command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs ``gosta`` and returns its exit code, standard output and standard
    error.
    """

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gosta", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else int(bool(exit_.code))
        return code, *capsys.readouterr()

    return call
