"""Messages to a service manager, as systemd defines them (sd_notify): the node is ready, runs, or is about to stop.

They go to the socket that NOTIFY_SOCKET names. They are sent from the node's event loop, so that a node that hangs
sends none, and a manager with a watchdog (WatchdogSec) starts it anew.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable

from gosta.net.node.base import Log
from gosta.net.node.status import Status

SOCKET_VARIABLE = "NOTIFY_SOCKET"


class Notifier:
    """Tells the service manager, if there is one, of a node; `poll` is to be called every second."""

    def __init__(self, status: Callable[[], Status], log: Log) -> None:
        self._status, self._log = status, log
        address = os.environ.get(SOCKET_VARIABLE, "")
        self._address = (
            f"\0{address[1:]}" if address.startswith("@") else address
        )  # abstract, or a path
        self._has_failed = False

    def ready(self) -> None:
        self._send_state("READY=1")

    def poll(self) -> None:
        self._send_state("WATCHDOG=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def _send_state(self, message: str) -> None:
        if self._address:
            now = self._status()
            sites = f"{now.sites_seen} of {now.sites or now.sites_seen} sites"
            self._send(f"{message}\nSTATUS={now.state}, {sites}, epoch {now.epoch}")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        try:
            with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as manager:
                manager.setblocking(False)
                manager.connect(self._address)
                manager.send(message.encode())
        except BlockingIOError:
            pass  # the manager is busy: the next message comes in a second
        except OSError as error:
            if not self._has_failed:
                self._has_failed = True
                self._log("service manager does not answer", reason=error.strerror or str(error))
