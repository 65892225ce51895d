"""Rules of the repository: directions of imports, public names, and documents that agree with the code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import gosta
from gosta.significance import TESTS
from gosta.sketches import SKETCHES
from gosta.statistics import STATISTICS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gosta"

# From the bottom up: a room imports only rooms named before it.
GROUND = ["errors", "runtime", "views", "pages"]
FIRST = [
    *GROUND,
    "faults",
    "datasets",
    "graphs",
    "statistics",
    "sketches",
    "significance",
    "protocols",
]
ROOMS = [
    *FIRST,
    "estimation",
    "theory",
    "schedule",
    "private",
    "net",
    "simulation",
    "experiments",
    "cli",
]
# Inside net, from the bottom up.
NET = [
    "addresses",
    "limits",
    "config",
    "members",
    "agreements",
    "transport",
    "protocol",
    "storage",
    "node",
    "deploy",
    "audit",
    "watch",
]
APART = {"net", "simulation"}  # neither imports the other


def room(module: str) -> str:
    return module.split(".")[1] if module.count(".") else ""


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith("gosta.")}


def test_imports_go_down_only() -> None:
    checked = 0
    for path in SOURCE.rglob("*.py"):
        inside = path.relative_to(SOURCE).with_suffix("").parts[0]
        if inside in ("__init__", "__main__"):
            continue
        for name in imported(path):
            assert ROOMS.index(room(name)) <= ROOMS.index(inside), (
                f"{path.name} ({inside}) imports {name}"
            )
            assert room(name) == inside or not {room(name), inside} <= APART, (
                f"{path.name} ({inside}) imports {name}"
            )
            checked += 1
    assert checked > 1000


def test_imports_inside_net_go_down_only() -> None:
    for path in (SOURCE / "net").rglob("*.py"):
        inside = path.relative_to(SOURCE / "net").with_suffix("").parts[0]
        for name in imported(path):
            if room(name) == "net" and inside != "__init__":
                folder = name.split(".")[2]
                assert NET.index(folder) <= NET.index(inside), (
                    f"{path.name} ({inside}) imports {name}"
                )


def test_reading_rows_does_not_import_the_protocol() -> None:
    code = "import sys, gosta.net.node.rows; print([m for m in sys.modules if m.startswith('gosta.net.protocol')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def imported_at_start(body: list[ast.stmt], modules: set[str]) -> Iterator[str]:
    """Yield the modules that are imported when a module is: not inside functions, nor for type checking."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in modules else node.module for name in full)
        elif isinstance(
            node, ast.If | ast.Try | ast.With | ast.ClassDef
        ) and "TYPE_CHECKING" not in ast.dump(node):
            yield from imported_at_start(node.body, modules)


def test_no_import_cycles() -> None:
    paths = {
        path.relative_to(SOURCE.parent).with_suffix("").parts: path for path in SOURCE.rglob("*.py")
    }
    trees = {
        ".".join(parts).removesuffix(".__init__"): ast.parse(path.read_text())
        for parts, path in paths.items()
    }
    graph = {
        name: set(imported_at_start(tree.body, set(trees))) & set(trees) - {name}
        for name, tree in trees.items()
    }
    assert sum(map(len, graph.values())) > 200
    list(TopologicalSorter(graph).static_order())  # raises CycleError


def test_public_names() -> None:
    errors = [
        "ClusterError",
        "DataError",
        "GostaError",
        "InputError",
        "MissingExtraError",
        "NetworkError",
    ]
    classes = [
        *errors,
        "NumericalError",
        "Data",
        "Estimate",
        "Graph",
        "Interrupted",
        "Protocol",
        "Statistic",
        "Trace",
    ]
    classes += ["HypothesisTest", "SweepResult", "UnsupportedError"]
    modules = [
        "datasets",
        "engines",
        "graphs",
        "net",
        "private",
        "protocols",
        "statistics",
        "theory",
    ]
    assert gosta.__all__ == sorted(
        [*classes, *modules, "exact", "resume", "simulate", "statistic", "sweep", "test"]
    )
    for name in gosta.__all__:
        assert getattr(gosta, name) is not None
    assert not hasattr(gosta, "nothing_of_the_kind")


def test_version_and_changelog_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.findall(r"^## (.+)$", changelog, re.M)[0] == "Unreleased"
    assert project["version"] in changelog
    assert gosta.__version__ == project["version"]
    assert f"version: {project['version']}" in (ROOT / "CITATION.cff").read_text()


def test_every_statistic_and_data_set_is_documented() -> None:
    statistics, datasets = (
        (ROOT / "docs" / "reference" / f"{name}.md").read_text()
        for name in ("statistics", "datasets")
    )
    built_in = [s.name for s in STATISTICS.values() if s.kernel.__module__.startswith("gosta.")]
    assert [name for name in built_in if f"`{name}`" not in statistics] == []
    assert [name for name in SKETCHES if f"`{name}`" not in statistics] == []
    assert [
        name
        for name in TESTS
        if f"`{name}`" not in (ROOT / "docs" / "reference" / "tests.md").read_text()
    ] == []
    assert [name for name in gosta.datasets.DATASETS if f"`{name}`" not in datasets] == []
