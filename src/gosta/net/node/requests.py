"""Requests of the operator to a running node for a new epoch: files in its folder.

The node answers a file with another. Whoever can write to a node's folder can do everything in its
name already, so that requests need no other permission, no port and no password.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import time
from pathlib import Path

import msgspec

from gosta.errors import InputError, NetworkError
from gosta.net.node.contact import Log
from gosta.net.node.node import Node
from gosta.runtime.files import write_atomically

REQUEST_FILE, ANSWER_FILE = "epoch-request", "epoch-answer"
MAX_BYTES = 4096  # of either file
ID_BYTES = 8  # of a request, drawn at random and written in hexadecimal digits
POLL_SECONDS = 0.05  # between two looks of the operator's command at the answer
TIMEOUT_SECONDS = 10.0  # of that command; a node looks for requests every second


class Answer(msgspec.Struct, frozen=True):
    """The answer to a request."""

    id: str  # of the request
    epoch: int  # that the node is in
    refusal: str = ""  # why it started none; empty: it did


class RequestWatcher:
    """Starts epochs of a running node on request."""

    def __init__(self, node: Node, folder: Path, log: Log) -> None:
        self._node, self._folder, self._log = node, folder, log
        with contextlib.suppress(OSError):
            (folder / REQUEST_FILE).unlink(missing_ok=True)  # from when nobody could answer it

    def poll(self) -> None:
        """Answer a request if there is one."""
        path = self._folder / REQUEST_FILE
        try:
            content = _read(path)
            path.unlink()  # first, so that no request counts twice
        except OSError:
            return
        if re.fullmatch(rb"[0-9a-f]{%d}" % (2 * ID_BYTES), content):
            refusal = self._node.request_epoch()
            if refusal:
                self._log("request refused", reason=refusal)
            answer = Answer(content.decode(), self._node.peer.epoch, refusal)
            try:
                write_atomically(self._folder / ANSWER_FILE, msgspec.json.encode(answer))
            except InputError as error:
                self._log("request not answered", reason=str(error))


def request_epoch(folder: Path, name: str) -> int:
    """Ask the running node in a folder to start an epoch, and return its number.

    Raises `NetworkError` if the node refuses, or does not answer.
    """
    request, answer = folder / REQUEST_FILE, folder / ANSWER_FILE
    id = secrets.token_hex(ID_BYTES)
    write_atomically(request, id)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    try:
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, msgspec.DecodeError):
                content = msgspec.json.decode(_read(answer), type=Answer)
                if content.id == id:
                    answer.unlink()
                    if content.refusal:
                        raise NetworkError(f"{name} starts no epoch now: {content.refusal}")
                    return content.epoch
            time.sleep(POLL_SECONDS)
    finally:
        request.unlink(missing_ok=True)
    raise NetworkError(
        f"{name} runs, but does not answer within {TIMEOUT_SECONDS:g} s; see its log"
    )


def _read(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):  # a pipe would have no end
            raise OSError(f"{path} is not a file")
        return file.read(MAX_BYTES)
