"""Every command and program shown in README, CONTRIBUTING, SECURITY and docs is run, and its output
compared.

What a document shows is run in the order of the document, in a folder of its own with `FILES`. A
fenced block is

- ``console``: commands after ``$``, each with its output, in which ``...`` stands for anything.
  Seconds, ports and how far the nodes of a network have come are not compared. A command without
  output below it has to succeed; one whose output is ``gosta: ...`` has to fail. What runs until
  Ctrl-C is stopped where the document shows ``^C``, otherwise at its end: further commands run
  meanwhile.
- ``python``: a program, which has the names of those before it. Code cells of notebooks are run by
  `make docs`.
- ``toml sweep.toml``, a language and a name: the content of that file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from documents import FENCE, Block, Reader, agrees, blocks, commands
from typer.main import get_command

from gosta.cli.examples import EXAMPLES
from gosta.cli.main import _app
from gosta.statistics import STATISTICS

ROOT = Path(__file__).parents[2]
DOCUMENTS = {
    str(path.relative_to(ROOT)): blocks(path.read_text(encoding="utf-8"))
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    if not {"_build", "gallery"} & set(path.relative_to(ROOT).parts[:-1])
}
LANGUAGES = {"console", "python", "toml", "json", "text", "yaml"}
# Beginnings of the commands that are not run, with the reason.
NOT_RUN = {
    "make": "sets up an environment, or runs the tests",
    "pip": "needs a package index",
    "sudo": "changes the system",
    "journalctl": "needs systemd",
    "docker": "needs Docker; tests/system/test_containers.py runs the image",
    "gosta network sign net/ request.json "
    "--certificate": "needs an authority; tests/net/deploy/test_enrolment.py has one",
    "gosta sweep sweep.toml --engine gpu": "needs a GPU",
    "gosta sweep sweep.toml "
    "--backend": "needs a cluster; tests/experiments/test_sweep.py runs a small one",
}
# Documents in whose sentences `gosta ...` need not be a command, with the reason.
NO_COMMANDS = {
    "CHANGELOG.md": "names commands that are gone",
    "docs/reference/wire.md": "has greetings of nodes",
}
# Lines of the programs that are not run here, with the reason.
NOT_RUN_PROGRAMS = {
    'for line in open("audit.jsonl", encoding="utf-8"):': (
        "tests/net/audit/test_contribution_log.py runs it on several logs"
    ),
    "with Pool(2) as "
    "pool:": "belongs into a script; tests/system/test_pickling.py has such scripts",
}


def patients() -> None:
    """Make patients.csv by the first program of the tutorial about it."""
    block = next(
        block
        for block in DOCUMENTS["docs/tutorials/your-own-csv.md"]
        if block.language == "{code-cell}"
    )
    Reader().program(block.text, "patients.csv")


def hospitals() -> None:
    """Make north.csv and others by the programs of the tutorial about a regression model."""
    reader = Reader()
    for block in DOCUMENTS["docs/tutorials/regression-model.md"]:
        if block.language == "{code-cell}":
            reader.program(block.text, "regression-model.md")


# Files that documents use and do not make themselves.
FILES: dict[str, Callable[[], None]] = {"patients.csv": patients, "north.csv": hospitals}


def is_run(block: Block) -> bool:
    return block.language == "console" or (
        block.language == "python" and not block.file and not NOT_RUN_PROGRAMS.keys() & lines(block)
    )


def lines(block: Block) -> set[str]:
    return set(block.text.splitlines())


RUN = [name for name, found in DOCUMENTS.items() if any(is_run(block) for block in found)]


def reason_not_to_run(command: str) -> str | None:
    return next(
        (beginning for beginning in NOT_RUN if f"{command} ".startswith(f"{beginning} ")), None
    )


@pytest.fixture
def no_statistics_left() -> Iterator[None]:
    """Remove the statistics that a document defines, as the next one may use their names."""
    before = dict(STATISTICS)
    yield
    STATISTICS.clear()
    STATISTICS.update(before)


@pytest.mark.usefixtures("no_statistics_left")
@pytest.mark.parametrize("document", RUN)
def test_what_a_document_shows_works(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("GOSTA_PASSPHRASE", "of this test")
    shown = (ROOT / document).read_text(encoding="utf-8")
    for file, make in FILES.items():
        if file in shown:
            make()
    with Reader() as reader:
        for block in DOCUMENTS[document]:
            if block.file and not block.language.startswith("{"):
                (tmp_path / block.file).write_text(block.text)
            elif block.language == "console":
                for command in commands(block):
                    if reason_not_to_run(command.text) is None:
                        reader.type(command)
            elif is_run(block):
                reader.program(block.text, f"{document}, line {block.line}")


def test_every_block_has_a_language() -> None:
    wrong = [
        f"{document}, line {block.line}: {block.language!r}"
        for document, found in DOCUMENTS.items()
        for block in found
        if block.language not in LANGUAGES and not block.language.startswith("{")
    ]
    assert wrong == []


def test_no_reason_is_left_over() -> None:
    shown = [
        command.text
        for found in DOCUMENTS.values()
        for block in found
        if block.language == "console"
        for command in commands(block)
    ]
    assert {reason_not_to_run(command) for command in shown} - {None} == set(NOT_RUN)
    assert NOT_RUN_PROGRAMS.keys() <= set.union(
        *(lines(block) for found in DOCUMENTS.values() for block in found)
    )
    assert len(shown) > 60


def test_commands_in_sentences_exist() -> None:
    """Commands inside sentences are not run, but there are such commands, with such options."""
    app, wrong = get_command(_app()), []
    for document in DOCUMENTS.keys() - NO_COMMANDS.keys():
        text = FENCE.sub("", (ROOT / document).read_text(encoding="utf-8"))
        shown = re.findall(r"`gosta ([^`\n]+)`", text)
        wrong += [
            f"{document}: gosta {words}" for words in shown if unknown_words(app, words.split())
        ]
    assert wrong == []


def test_examples_in_the_help_exist() -> None:
    app = get_command(_app())
    examples = [shlex.split(line)[1:] for line in EXAMPLES.split("\n") if line]
    assert [words for words in examples if unknown_words(app, words)] == []


def unknown_words(command: Any, words: list[str]) -> list[str]:
    """Return the commands and options among these words that there are not."""
    while hasattr(command, "commands") and words and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    if hasattr(command, "commands") and command.name == "node":  # gosta node FOLDER
        command = command.commands["run"]
    known = {"-h", "--help", *(option for parameter in command.params for option in parameter.opts)}
    is_command = (
        not hasattr(command, "commands") or not words or words[0] in {*known, "...", "COMMAND"}
    )
    unknown = [
        word for word in words if re.match("--?[a-z]", word) and word.split("=")[0] not in known
    ]
    return unknown if is_command else [words[0], *unknown]


@pytest.mark.parametrize(
    ("shown", "output", "is_same"),
    [
        ("auc 0.5\n", "auc 0.5\n", True),
        ("auc 0.5\n", "auc 0.6\n", False),
        ("auc ...\n", "auc 0.6\nand more\n", True),
        ("after 3 s: 7\n", "after 12.5 s: 7\n", True),
        ("after 3 s: 7\n", "after 3 s: 8\n", False),
        ("  error  seconds\n  1 %  0.25\nend 1\n", "  error  seconds\n  1 %   10.4\nend 1\n", True),
        (
            "  error  seconds\n  1 %  0.25\nend 1\n",
            "  error  seconds\n  1 %   10.4\nend 2\n",
            False,
        ),
    ],
)
def test_outputs_are_compared(shown: str, output: str, is_same: bool) -> None:
    assert agrees(shown, output) == is_same
