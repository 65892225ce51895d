"""Running the commands and programs that a document shows, as a reader would who types them in
order.
"""

from __future__ import annotations

import contextlib
import doctest
import functools
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import ports
from processes import GOSTA, POLL_SECONDS, WAIT_SECONDS

from gosta.cli.main import main

FENCE = re.compile(
    r"^(?P<fence> *`{3,})(?P<info>[^`\n]*)\n(?P<text>.*?)^(?P=fence) *$", re.MULTILINE | re.DOTALL
)
# These run until Ctrl-C.
ENDLESS = re.compile(
    r"gosta (network up|watch|run .*--live|node)(?! (request|join|accept) )(?!.* "
    r"--(until|for|help) )"
)
CHECKER = doctest.OutputChecker()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A fenced block: the number of its first line, its language, the file that it is (or nothing),
    and its text.
    """

    line: int
    language: str
    file: str
    text: str


class Endless(NamedTuple):
    """A process that runs until Ctrl-C, and the file of its output."""

    process: subprocess.Popen[bytes]
    log: IO[str]


class Command(NamedTuple):
    """A command, the output shown below it, and whether the reader then types Ctrl-C."""

    text: str
    output: str
    is_interrupted: bool


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a document."""
    found = []
    for match in FENCE.finditer(text):
        language, _, file = match["info"].strip().partition(" ")
        found.append(Block(text.count("\n", 0, match.start()) + 1, language, file, match["text"]))
    return found


def commands(block: Block) -> Iterator[Command]:
    """Return the commands of a console block: lines that begin with ``$``, each with the output
    that follows it.
    """
    joined = block.text.replace("\\\n", " ")
    assert joined.startswith("$ "), (
        f"line {block.line}: a console block begins with a command, '$ ...'"
    )
    for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        output, interrupt, rest = output.partition("^C\n")
        assert not rest.strip(), f"line {block.line}: nothing follows ^C but the next command"
        yield Command(
            " ".join(shlex.split(command, comments=True, posix=False)), output, bool(interrupt)
        )


# What differs from run to run: seconds, ports, and how far the nodes of a network have come.
VARYING = {
    r"\b\d+(\.\d+)? s\b": "# s",
    r":\d{4,5}\b": ":port",
    r"^(node +state .* exchanges) .*": r"\1",
    r"^(node-\d+ +\w+ +\d+ +\d+ of \d+) +[\d,]+ +1  .*": r"\1",
    r"^mean estimate 0.9[567]\d*, nodes differ from it by at most \S+ %": "mean estimate",
}


def comparable(output: str) -> str:
    """Return an output without what differs from run to run."""
    for pattern, replacement in VARYING.items():
        output = re.sub(pattern, replacement, output, flags=re.MULTILINE)
    lines, is_timed = [], False
    for line in output.splitlines():
        is_timed = line.endswith("seconds") or (is_timed and line.startswith(" "))
        lines.append(re.sub(r"[\d.]+$", "#", line) if is_timed else line)
    return "\n".join(lines) + "\n"


def agrees(shown: str, output: str, is_part: bool = False) -> bool:
    """Return whether an output, or a part of it, is as a document shows it, where ``...`` stands
    for anything.
    """
    wanted = f"...{comparable(shown).rstrip()}..." if is_part else comparable(shown)
    return not shown or CHECKER.check_output(wanted, comparable(output), FLAGS)


@functools.cache
def first_port() -> int:
    """Return the first of the ports that stand for 7400 and the following."""
    return ports.free(120)


class Reader:
    """One who reads a document and does what it shows, in the current folder."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "document"}
        self.port = first_port()
        self.endless: list[Endless] = []

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self.endless:
            interrupt(*one)

    def program(self, source: str, where: str) -> None:
        """Run a program, with the names of those before it."""
        exec(compile(source, where, "exec"), self.names)

    def type(self, command: Command) -> None:
        """Run a command and compare its output; one that runs until Ctrl-C goes on while further
        commands are run.
        """
        text = self.adapted(command.text)
        if ENDLESS.match(text + " "):
            self.endless.append(start(text))
            await_output(command, *self.endless[-1])
            if command.is_interrupted:
                interrupt(*self.endless.pop())
            return
        code, output = run(text)
        end = time.monotonic() + WAIT_SECONDS
        while (
            text.startswith("gosta status")
            and not agrees(command.output, output)
            and time.monotonic() < end
        ):
            time.sleep(POLL_SECONDS)
            # as a reader does, who waits for what a command before has changed
            code, output = run(text)
        finds_errors = re.search("^error  ", command.output, re.MULTILINE) is not None
        expected = 2 if command.output.startswith("gosta: ") else int(finds_errors)
        assert code == expected, f"$ {command.text}\n{output}exit code {code}"
        # every five seconds; documents show the last one
        prints_tables = text.startswith("gosta network up")
        assert agrees(command.output, output, is_part=prints_tables), (
            f"$ {command.text}\n{output}\nis shown as\n{command.output}"
        )

    def adapted(self, text: str) -> str:
        """Return a command with ports of this test, as others may be in use, and with the answer to
        its question.
        """
        text = re.sub(r":74(\d\d)\b", lambda match: f":{self.port + int(match[1])}", text)
        if text.startswith("gosta network init") and "--enrol" not in text:
            text += f" --port {self.port}"
            self.port += 20
        return (
            f"{text} --yes" if text.startswith(("gosta network sign", "gosta node join")) else text
        )


def run(text: str) -> tuple[int, str]:
    """Return the exit code and the output of a command: of gosta in this process, which saves its
    start.
    """
    words = shlex.split(text)
    if words[0] != "gosta" or any(re.fullmatch(r"[|;&<>]+", word) for word in words):
        done = subprocess.run(
            ["bash", "-c", text],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(),
        )
        return done.returncode, done.stdout
    before, code = sys.argv, 0
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.redirect_stderr(shown):
        sys.argv = words
        try:
            main()
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else int(bool(exit_.code))
        finally:
            sys.argv = before
    return code, shown.getvalue()


def environment() -> dict[str, str]:
    """Return the environment of a shell that finds this Python's programs."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def start(text: str) -> Endless:
    """Start a command of gosta that runs until Ctrl-C."""
    log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
    command = [*GOSTA, *shlex.split(text)[1:]]
    return Endless(
        subprocess.Popen(
            command, stdout=log, stderr=log, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        ),
        log,
    )


def await_output(command: Command, process: subprocess.Popen[bytes], log: IO[str]) -> None:
    """Wait until the output contains what the document shows; without anything shown, until there
    is some.
    """
    output, end = "", time.monotonic() + WAIT_SECONDS
    while not output or not agrees(command.output, output, is_part=True):
        assert process.poll() is None, f"$ {command.text}\n{output}ended"
        assert time.monotonic() < end, (
            f"$ {command.text}\n{output[-2000:]}\nis shown as\n{command.output}"
        )
        time.sleep(POLL_SECONDS)
        log.seek(0)
        output = log.read()


def interrupt(process: subprocess.Popen[bytes], log: IO[str]) -> None:
    """Stop a command as Ctrl-C does; code 130 says that it came while the command was starting."""
    with log:
        process.send_signal(signal.SIGINT)
        code = process.wait(WAIT_SECONDS)
        log.seek(0)
        assert code in (0, 130), f"{log.read()[-2000:]}exit code {code} after Ctrl-C"
