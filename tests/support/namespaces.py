"""Network namespaces on one machine: sites that reach each other only where there is a wire."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

CLONE_NEWNET = 0x40000000
Result = TypeVar("Result")


class Namespaces:
    """Namespaces whose names begin with the number of this process, and wires between them."""

    def __init__(self, *names: str) -> None:
        self.names, self._wires = {name: f"gosta-{os.getpid()}-{name}" for name in names}, 0

    def ip(self, name: str, *arguments: str) -> None:
        command = ["ip", "-n", self.names[name], *arguments]
        subprocess.run(command, check=True, capture_output=True, text=True)

    def wire(self, name: str, address: str, to: str, to_address: str = "") -> None:
        """Join two namespaces; without an address, the other end is a port of the bridge there."""
        self._wires += 1
        here, there = f"eth{self._wires}", f"wire{self._wires}"
        self.ip(
            name,
            "link",
            "add",
            here,
            "type",
            "veth",
            "peer",
            "name",
            there,
            "netns",
            self.names[to],
        )
        self.ip(name, "address", "add", address, "dev", here)
        if to_address:
            self.ip(to, "address", "add", to_address, "dev", there)
        else:
            self.ip(to, "link", "set", there, "master", "bridge")
        for place, end in ((name, here), (to, there)):
            self.ip(place, "link", "set", end, "up")

    def command(self, name: str, *command: str) -> list[str]:
        """Return a command that runs in a namespace."""
        return ["ip", "netns", "exec", self.names[name], *command]

    def call(self, name: str, function: Callable[..., Result], *arguments: object) -> Result:
        """Return what a function returns in a namespace, in a thread of its own."""

        def enter() -> None:
            with Path(f"/run/netns/{self.names[name]}").open() as file:
                if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")

        with ThreadPoolExecutor(1, initializer=enter) as thread:
            return thread.submit(function, *arguments).result()


@contextlib.contextmanager
def namespaces(*names: str) -> Iterator[Namespaces]:
    """Make namespaces, and delete them at the end; skip the test where that is not possible."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root, and the command ip (iproute2)")
    made = Namespaces(*names)
    try:
        try:
            for name in names:
                subprocess.run(
                    ["ip", "netns", "add", made.names[name]],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                made.ip(name, "link", "set", "lo", "up")
            for kind in ("bridge", "veth"):  # some sandboxes have namespaces without them
                made.ip(names[0], "link", "add", f"trial-{kind}", "type", kind)
                made.ip(names[0], "link", "delete", f"trial-{kind}")
            made.call(names[0], os.getpid)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")
        except BrokenExecutor:
            pytest.skip("network namespaces cannot be entered here")
        yield made
    finally:
        for name in made.names.values():
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
