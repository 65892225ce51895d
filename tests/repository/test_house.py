"""Rules of the repository: directions of imports, public names, and documents that agree with the
code.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import networkx as nx

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
    "datasets",
    "graphs",
    "schedule",
    "statistics",
    "measures",
    "sketches",
    "models",
    "analysis",
    "significance",
    "reports",
    "protocols",
]
ROOMS = [*FIRST, "estimation", "theory", "private", "net", "simulation", "experiments"]
ROOMS += ["studies", "cli"]
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
# Modules in the longest chain of imports, one importing the next.
MAX_CHAIN = 20
# Folders of tests that mirror no room: see CONTRIBUTING.md.
BESIDE_ROOMS = {"contract", "repository", "support", "system"}


def room(module: str) -> str:
    return module.split(".")[1] if module.count(".") else ""


def imported(tree: ast.AST) -> set[str]:
    """Return the full names that a module imports from this package."""
    found = set()
    for node in ast.walk(tree):
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
        for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
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
        for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
            if room(name) == "net" and inside != "__init__":
                folder = name.split(".")[2]
                assert NET.index(folder) <= NET.index(inside), (
                    f"{path.name} ({inside}) imports {name}"
                )


def test_reading_rows_does_not_import_the_protocol() -> None:
    code = (
        "import sys, gosta.net.node.rows; "
        "print([m for m in sys.modules if m.startswith('gosta.net.protocol')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


class _WithoutTyping(ast.NodeTransformer):
    """Leave out what is imported for type checkers only."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if "TYPE_CHECKING" in ast.dump(node.test) else self.generic_visit(node)


def import_graph() -> nx.DiGraph:
    """Return which module imports which, at the start or inside a function."""
    modules = {
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for path in SOURCE.rglob("*.py")
    }
    graph = nx.DiGraph()
    graph.add_nodes_from(modules)
    for module, path in modules.items():
        for name in imported(_WithoutTyping().visit(ast.parse(path.read_text(encoding="utf-8")))):
            target = name if name in modules else name.rpartition(".")[0]
            if target in modules and target != module:
                graph.add_edge(module, target)
    return graph


def test_no_import_cycles() -> None:
    graph = import_graph()
    assert graph.number_of_edges() > 1000
    cycles = [each for each in nx.strongly_connected_components(graph) if len(each) > 1]
    assert [sorted(each) for each in cycles] == []


def test_chains_of_imports_are_short() -> None:
    chain = nx.dag_longest_path(nx.condensation(import_graph()))
    assert len(chain) <= MAX_CHAIN


def test_tests_lie_as_the_rooms_do() -> None:
    tests = ROOT / "tests"
    for path in tests.rglob("test_*.py"):
        folder = path.parent.relative_to(tests)
        assert folder.parts[0] in BESIDE_ROOMS or (SOURCE / folder).is_dir(), path


def test_the_page_of_the_design_names_files_that_exist() -> None:
    text = (ROOT / "docs" / "explanation" / "design.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_/]+/[a-z_*]+\.(?:py|js))`", text))
    assert len(named) > 30
    places = [ROOT, SOURCE]
    assert [name for name in named if not any(list(place.glob(name)) for place in places)] == []


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
        "Fit",
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
        "models",
        "net",
        "private",
        "protocols",
        "statistics",
        "theory",
    ]
    functions = ["exact", "fit", "resume", "simulate", "statistic", "sweep", "test"]
    assert gosta.__all__ == sorted([*classes, *modules, *functions])
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
