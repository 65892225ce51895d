"""Signals for which the main thread waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from gosta.runtime import interrupts

NOTICED = 500
MAX_SENT = 1_000_000
WAITING = f"""
import signal
import sys

from gosta.runtime import interrupts

with interrupts.signals(signal.SIGUSR1) as signals:
    print("ready", flush=True)
    for _ in range({NOTICED}):
        signals.wait()
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    print("noticed", flush=True)
    sys.stdin.read()
"""


def test_signals_that_interrupt_the_wait_for_them_are_noticed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.set_blocking(process.stdout.fileno(), False)
        noticed = ""
        for _ in range(MAX_SENT):  # while it waits, and while it begins and ends to do so
            os.kill(process.pid, signal.SIGUSR1)
            if noticed := process.stdout.readline():
                break
        if not noticed:
            process.kill()
        assert noticed == "noticed\n"


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
