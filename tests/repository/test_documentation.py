"""The documents: every public name has a page and a complete docstring, every link leads
somewhere.
"""

from __future__ import annotations

import inspect
import re
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.append(str(DOCS / "_tools"))

import built_links  # noqa: E402
import generated_pages  # noqa: E402
from public_names import fields, public_names  # noqa: E402

GENERATED = ("_build", "examples", "gallery", "reference/api/names")
PAGES = [
    page
    for page in sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), ROOT / "operations" / "README.md"])
    if page.exists() and not any(page.is_relative_to(DOCS / folder) for folder in GENERATED)
]


def listed_names() -> set[str]:
    """Return the names that docs/reference/api/ has a page for."""
    found = set()
    for page in (DOCS / "reference" / "api").glob("*.md"):
        text = page.read_text()
        found |= set(re.findall(r"\{py:data\} (\S+)", text))
        for block in re.findall(r"```\{eval-rst\}\n(.*?)```", text, re.S):
            (module,) = re.findall(r"currentmodule:: (\S+)", block)
            found |= {f"{module}.{name}" for name in re.findall(r"^   (\w+)$", block, re.M)}
    return found


def test_every_public_name_has_a_page() -> None:
    assert listed_names() == set(public_names())


def sections(value: object) -> set[str]:
    return set(re.findall(r"^(\w[\w ]*)\n-{4,}$", inspect.getdoc(value) or "", re.M))


def missing_sections(value: object) -> list[str]:
    """Return the sections that the docstring of a public function or class lacks."""
    needed = ["Examples"]
    if inspect.isfunction(value):
        signature = inspect.signature(value)
        needed += ["Parameters"] * bool(signature.parameters)
        needed += ["Returns"] * (signature.return_annotation not in (None, "None"))
    elif not isinstance(value, type) or issubclass(value, Exception):
        needed = []
    return [section for section in needed if section not in sections(value)]


@pytest.mark.parametrize("name", public_names())
def test_docstrings_are_complete(name: str) -> None:
    value = public_names()[name]
    assert missing_sections(value) == []
    if isinstance(value, type):
        text = inspect.getdoc(value) or ""
        without = [
            field
            for field, one in fields(value).items()
            if not one.comment and f"\n{field}\n" not in text
        ]
        assert without == [], "fields need a comment beside them, or a line under Attributes"
    if isinstance(value, type) or inspect.isfunction(value):
        first = (inspect.getdoc(value) or "").partition("\n")[0]
        assert first.endswith("."), "the first line is a sentence"


def test_missing_sections_are_found() -> None:
    def without(x: int) -> int:
        """Return a number.

        Examples
        --------
        """
        return x

    assert missing_sections(without) == ["Parameters", "Returns"]
    assert fields(type("Bare", (), {"__module__": "elsewhere"})) == {}


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors that a forge makes of the headings of a page."""
    text = re.sub(r"^(```|~~~).*?^\1$", "", page.read_text(), flags=re.M | re.S)
    titles = re.findall(r"^#+ +(.+?)\s*$", text, re.M)
    slugs = [
        re.sub(r"[^\w\- ]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", title).lower()).replace(" ", "-")
        for title in titles
    ]
    return {*slugs, *(f"{slug}-{k}" for slug in set(slugs) for k in range(1, slugs.count(slug)))}


def broken_links(page: Path) -> list[str]:
    text = re.sub(r"^(```|~~~).*?^\1$", "", page.read_text(), flags=re.M | re.S)
    broken = []
    for address in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        path, _, anchor = unquote(address).partition("#")
        if re.match(r"\w+:", address):
            continue
        target = (page.parent / path).resolve() if path else page
        if path in GENERATED_PAGES:
            continue
        if not target.exists() or (
            anchor and target.suffix == ".md" and anchor not in anchors(target)
        ):
            broken.append(address)
    return broken


GENERATED_PAGES = {"examples/index.rst"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_images_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_documents_that_are_named_exist() -> None:
    """Also where they are no links: in comments, docstrings and messages."""
    files = [
        *PAGES,
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "tests").glob("*.py"),
        ROOT / "Makefile",
    ]
    named = {
        (file.name, name)
        for file in files
        for name in re.findall(r"\bdocs/[\w/-]+\.md\b", file.read_text())
    }
    assert len(named) > 20
    assert [(file, name) for file, name in sorted(named) if not (ROOT / name).exists()] == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One `two`\n[a](#one-two) [b](#three) ![c](none.png) `[d](e)` [f](https://example.org)\n"
    )
    assert broken_links(page) == ["#three", "none.png"]


def test_images_of_documents_are_small() -> None:
    gallery = list((DOCS / "images" / "gallery").glob("*.png"))
    assert len(gallery) == 6
    assert [image.name for image in gallery if image.stat().st_size > 100_000] == []


def test_built_pages_are_checked(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there"></a> <a href="b.html#gone"></a> <a href="c.html"></a> <img '
        'src="none.png">'
        '<script src="https://cdn.example/x.js"></script> <a href="https://example.org"></a>'
    )
    (tmp_path / "b.html").write_text('<p id="there"></p>')
    assert built_links.problems(tmp_path, ["a", "b"]) == [
        "a.html refers to b.html#gone, which has no such anchor",
        "a.html refers to c.html, which is not there",
        "a.html loads https://cdn.example/x.js",
        "a.html refers to none.png, which is not there",
    ]


def test_the_command_line_page_has_every_command_with_its_options() -> None:
    text = generated_pages.command_line()
    for title in ("## gosta run", "## gosta exact", "### gosta network init", "### gosta node run"):
        assert f"{title}\n" in text
    assert "`-p, --protocol" in text
    assert "gosta network sign my-network/" in text


def test_the_glossary_is_read_as_one() -> None:
    page = generated_pages.as_glossary((DOCS / "reference" / "glossary.md").read_text())
    assert "\nvisitor\n  The travelling observation" in page
    assert "|" not in page.partition("{glossary}")[2].replace("| ", "")
