"""Ctrl-C in commands, and signals for which the main thread waits."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from gosta.runtime import interrupts

WAITING = """
import signal
import sys

from gosta.runtime import interrupts

def interrupt(*_):  # before each line of Python code that `wait` runs
    signal.raise_signal(signal.SIGUSR1)
    return interrupt

signal.alarm(60)  # ends this process if it waits for ever
with interrupts.signals(signal.SIGUSR1) as signals:
    sys.settrace(interrupt)
    has_come = signals.wait(0.1)
    sys.settrace(None)
print(has_come)
"""

COMMAND = """
import signal
import sys

from gosta.cli.commands import make_command
from gosta.runtime import interrupts

def command() -> None:
    exec("signal.raise_signal(signal.SIGINT)")

interrupts.leave_while_starting()
try:
    make_command(command)()
except Exception as error:  # as typer does
    sys.exit(error.exit_code)
"""


def test_ctrl_c_in_a_text_that_python_runs_ends_a_command_with_its_exit_code(
    tmp_path: Path,
) -> None:
    (tmp_path / "interrupted.py").write_text(COMMAND)
    process = subprocess.run(
        [sys.executable, "-m", "interrupted"], capture_output=True, text=True, cwd=tmp_path
    )
    assert (process.returncode, process.stderr) == (130, f"{interrupts.MESSAGE}\n")


def test_signals_that_interrupt_the_wait_for_them_are_noticed() -> None:
    process = subprocess.run([sys.executable, "-c", WAITING], capture_output=True, text=True)
    assert (process.returncode, process.stdout, process.stderr) == (0, "True\n", "")


def test_signals_are_counted_cleared_and_handled_within_the_block_only() -> None:
    former = signal.getsignal(signal.SIGUSR1)
    with interrupts.signals(signal.SIGUSR1) as signals:
        assert not signals.wait(0)
        for _ in range(2):
            signal.raise_signal(signal.SIGUSR1)
        assert signals.wait()
        assert signals.wait(0)
        assert not signals.wait(0)
        signal.raise_signal(signal.SIGUSR1)
        signals.clear()
        assert not signals.wait(0)
    assert signal.getsignal(signal.SIGUSR1) is former
