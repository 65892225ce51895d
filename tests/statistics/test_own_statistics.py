"""Statistics defined by users: validation, options, compilation, caching, files."""

from __future__ import annotations

import datetime
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from oracle import by_definition

import gosta
from gosta.runtime import compiler
from gosta.statistics import STATISTICS, Statistic, statistic
from gosta.statistics.references import load_statistic

X = np.random.default_rng(0).normal(size=(30, 3))


@pytest.fixture(autouse=True)
def separate_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gosta.statistics.definition.STATISTICS", dict(STATISTICS))


def half(value: float) -> float:
    return value / 2


def huber(x: Any, y: Any, delta: float = 1.0) -> float:
    """Mean Huber loss."""
    total = 0.0
    for c in range(len(x)):
        gap = abs(x[c] - y[c])
        total += half(gap * gap) if gap < delta else delta * (gap - half(delta))
    return total


def test_options_and_helpers() -> None:
    made = gosta.statistic(name="huber")(huber)
    assert isinstance(made, Statistic)
    assert made.summary == "Mean Huber loss."
    assert made.options == {"delta": 1.0}
    for delta in (0.3, 2, np.float64(0.7)):
        wanted = by_definition(made, X, delta=delta)
        assert gosta.exact(X, "huber", delta=delta) == pytest.approx(wanted, rel=1e-12)
    with pytest.raises(gosta.InputError, match="delta = 'big' must be a number"):
        gosta.exact(X, made, delta="big")


def test_several_numbers_and_final() -> None:
    @gosta.statistic
    def two_moments(x: Any, y: Any) -> Any:
        gap = x[0] - y[0]
        return abs(gap), gap * gap

    got = np.asarray(gosta.exact(X[:, 0], two_moments))
    gaps = np.abs(X[:, 0][:, None] - X[:, 0])
    np.testing.assert_allclose(got, [gaps.sum() / 870, (gaps**2).sum() / 870], rtol=1e-12)
    ratio = gosta.statistic(name="ratio", final=lambda m: m[0] / math.sqrt(m[1]))(
        two_moments.kernel
    )
    assert gosta.exact(X[:, 0], ratio) == pytest.approx(got[0] / got[1] ** 0.5, rel=1e-12)
    with pytest.raises(gosta.InputError, match="has several values"):
        gosta.exact(X[:, 0], two_moments, interval=0.95)


def test_local_allows_order_to_matter() -> None:
    """The mean of squared centred ranks, from a kernel that is not symmetric."""
    made = gosta.statistic(name="rank-square", local=lambda h: (h[0] * h[0],))(
        lambda x, y: 1.0 * (x[0] > y[0])
    )
    wanted = by_definition(made, X[:, :1])
    assert gosta.exact(X[:, 0], made) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            lambda x, y: x[0] - y[0],
            r"own is not symmetric: the kernel is .* for rows \d+ and \d+, and",
        ),
        (
            lambda x, y: sum(a * b for a, b in zip(x, y, strict=True)),
            "own: the kernel cannot be compiled: ",
        ),
        (
            lambda x, y: datetime.timedelta(x[0] + y[0]).days,
            "own: the kernel cannot be compiled: .*timedelta",
        ),
        (
            lambda x, y: np.abs(x - y).sum(),
            r"own: the kernel fails with TypeError: .*; a kernel can use",
        ),
        (lambda x, y: {}[x[0]] + y[0], "own: the kernel fails with KeyError"),
        (lambda x, y: x[7] + y[7], "own: the kernel fails with IndexError"),
        (lambda x, y: undefined(x, y), "own: the kernel fails with NameError"),  # type: ignore[name-defined] # noqa: F821
        (lambda x, y: "text", "own: the kernel fails with ValueError"),
        (lambda x, y: np.inf if x[0] * y[0] > 0.5 else 1.0, "own: .*not finite, first for row"),
        (lambda x, y: (), "own: the kernel must always return the same count of numbers"),
        (
            lambda x, y: (1.0, 2.0) if x[0] * y[0] > 0 else (1.0,),
            "own: the kernel must always return the same count",
        ),
        (
            lambda x, y: countdown(x[0] + y[0]),
            "own: the kernel cannot be compiled: countdown calls itself",
        ),
    ],
)
def test_clear_messages(kernel: Callable[..., Any], message: str) -> None:
    with pytest.raises(gosta.GostaError, match=message) as caught:
        gosta.exact(X, gosta.statistic(name="own")(kernel))
    assert "\n" not in str(caught.value)


def test_names_are_unique() -> None:
    with pytest.raises(gosta.InputError, match="already a statistic called 'auc'"):
        gosta.statistic(name="auc")(huber)
    first = statistic(name="mine")(lambda x, y: 0.0)
    assert gosta.exact(X, "mine") == 0.0
    statistic(name="mine")(lambda x, y: 1.0)  # as when a notebook's cell runs again
    assert (gosta.exact(X, "mine"), gosta.exact(X, first)) == (1.0, 0.0)
    with pytest.raises(
        gosta.InputError,
        match="'power' needs a number as default, not None; a kernel takes two or three",
    ):
        statistic(name="no-default")(lambda x, y, z, power: 0.0)
    with pytest.raises(
        gosta.InputError, match="a parameter without default, power, is a third row"
    ):
        gosta.exact(X, statistic(name="no-number")(lambda x, y, power: abs(x[0] - y[0]) ** power))


def countdown(value: float) -> float:
    return 0.0 if value < 1 else countdown(value - 1)


def test_options_are_passed_by_name() -> None:
    made = statistic(name="two-options")(lambda x, y, a=1.0, b=10.0: a * abs(x[0] - y[0]) + b)
    assert gosta.exact([0.0, 1.0, 3.0], made, b=100.0) == 102.0
    assert gosta.exact([0.0, 1.0, 3.0], made, b=100.0, a=2.0) == 104.0


SCALE = 1.0


def scaled_by_a_global(x: Any, y: Any) -> Any:
    return SCALE * abs(x[0] - y[0])


def test_a_changed_global_changes_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    made = statistic(name="scaled-by-a-global")(scaled_by_a_global)
    assert gosta.exact([0.0, 1.0, 3.0], made) == 2.0
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 5.0)
    assert gosta.exact([0.0, 1.0, 3.0], made) == 10.0


def test_modules_have_no_fingerprint() -> None:
    settings = ModuleType("settings")
    settings.scale = 3.0  # type: ignore[attr-defined]
    with pytest.raises(compiler.UnstableContentError):
        compiler.fingerprint(lambda x: settings.scale * x)


def test_fingerprint_depends_on_the_functions_called() -> None:
    def first(v: float) -> float:
        return abs(v)

    def second(v: float) -> float:
        return v * v

    def kernel(third: Callable[[float], float]) -> Callable[..., float]:
        return lambda x, y: first(x[0] - y[0]) + second(x[0] - y[0]) + third(x[0] - y[0])

    assert compiler.fingerprint(kernel(first)) != compiler.fingerprint(kernel(second))


def test_an_index_out_of_range_in_any_row_is_an_error() -> None:
    x = np.append(np.random.default_rng(0).uniform(0, 2.5, 1000), 3.0)
    made = statistic(name="too-far")(
        lambda x, y: x[int(x[0] > 2.9) * 10**6] + y[int(y[0] > 2.9) * 10**6]
    )
    with pytest.raises(gosta.InputError, match="too-far: the kernel fails with IndexError"):
        gosta.exact(x, made)


def test_pairs_of_a_row_with_itself_are_evaluated_only_for_v() -> None:
    made = statistic(name="inverse")(lambda x, y: 1.0 / abs(x[0] - y[0]))
    assert gosta.exact([0.0, 1.0, 3.0], made) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    with pytest.raises(gosta.InputError, match="inverse: the kernel fails with ZeroDivisionError"):
        gosta.exact([0.0, 1.0, 3.0], made, normalisation="V")


def test_local_and_final_that_accept_numbers_only() -> None:
    made = statistic(
        name="roots", local=lambda h: math.sqrt(h[0]), final=lambda m: math.sqrt(m[0])
    )(lambda x, y: abs(x[0] - y[0]))
    assert gosta.exact(X, made) == pytest.approx(by_definition(made, X), rel=1e-12)
    assert gosta.exact(X, made, interval=0.9).standard_error > 0
    broken = statistic(name="broken", final=lambda m: m["a"])(lambda x, y: 0.0)
    with pytest.raises(gosta.InputError, match="broken: final fails with TypeError"):
        gosta.exact(X, broken)
    flat = statistic(name="flat", encode=lambda data: np.zeros(3))(lambda x, y: 0.0)
    with pytest.raises(gosta.InputError, match=r"flat: encode returns an array of shape \(3,\)"):
        gosta.exact(X, flat)


def test_rounding_is_not_asymmetry() -> None:
    made = statistic(name="rounded")(
        lambda x, y: (x[0] + 0.1 + y[0]) - (y[0] + 0.1 + x[0]) + 1e3 * abs(x[0] - y[0])
    )
    assert gosta.exact(X, made) > 0


@pytest.mark.parametrize("kernel", [max, "text", object(), gosta.InputError])
def test_kernels_that_are_not_functions(kernel: Any) -> None:
    with pytest.raises(gosta.InputError, match="must be a plain function"):
        gosta.statistic(name="none")(kernel)


def scaled(factor: float) -> Callable[..., float]:
    return lambda x, y: factor * abs(x[0] - y[0])


def test_fingerprint_depends_on_content_only() -> None:
    same = [compiler.fingerprint(scaled(2.0)) for _ in range(2)]
    assert same[0] == same[1]
    assert compiler.fingerprint(scaled(3.0)) != same[0]
    assert compiler.fingerprint(huber) != compiler.fingerprint(half)
    table = np.arange(3.0)
    assert compiler.fingerprint(lambda x: table[0]) != compiler.fingerprint(lambda x: X[0])
    with pytest.raises(compiler.UnstableContentError):
        compiler.fingerprint(object())


def test_closures_that_differ_are_compiled_separately() -> None:
    values = [
        gosta.exact(X[:, 0], gosta.statistic(name="scaled")(scaled(f))) for f in (1.0, 2.0, 5.0)
    ]
    np.testing.assert_allclose(np.array(values) / values[0], [1, 2, 5])


SCRIPT = """
import sys
import gosta, numpy as np
from gosta.runtime import compiler
@gosta.statistic(name="cubed")
def cubed(x, y):
    return abs(x[0] - y[0]) ** {power}
print(gosta.exact(np.arange(4.0), cubed))
loops = next(iter(compiler._loaded.values()), None)
print(sum(loops.symmetric.stats.cache_hits.values()) if loops else "unsaved")
"""


def run(script: str, tmp_path: Path, cache: Path) -> list[str]:
    file = tmp_path / "script.py"
    file.write_text(script)
    done = subprocess.run(
        [sys.executable, file],
        capture_output=True,
        text=True,
        check=True,
        env={"GOSTA_CACHE_DIR": str(cache), "PATH": "", "HOME": str(tmp_path)},
    )
    return done.stdout.split()


def test_compiled_code_is_cached_by_source(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert run(SCRIPT.format(power=3), tmp_path, cache) == [str(23 / 3), "0"]
    assert run("\n\n" + SCRIPT.format(power=3), tmp_path, cache) == [str(23 / 3), "1"]
    assert run(SCRIPT.format(power=2), tmp_path, cache) == [str(10 / 3), "0"]


def test_damaged_cache_files_are_replaced(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    wanted = str(23 / 3)
    assert run(SCRIPT.format(power=3), tmp_path, cache)[0] == wanted
    for damage in (b"", b"garbage"):
        for kept in (cache / "compiled" / "__pycache__").iterdir():
            kept.write_bytes(damage)
        assert run(SCRIPT.format(power=3), tmp_path, cache)[0] == wanted
    for kept in (cache / "compiled").glob("*.py"):
        kept.write_text("damaged")
    assert run(SCRIPT.format(power=3), tmp_path, cache)[0] == wanted


def test_cache_folder_that_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    value, _ = run(SCRIPT.format(power=3), tmp_path, tmp_path / "file")
    assert float(value) == pytest.approx(23 / 3)


def test_a_keyword_that_is_an_option_and_a_parameter_is_an_error() -> None:
    made = statistic(name="two-names")(
        lambda x, y, seed=1.0, interval=0.0, power=1.0: seed + interval + power
    )
    assert gosta.exact(X, made) == 2.0
    assert gosta.exact(X, made, power=5.0) == 6.0
    assert gosta.exact(X, made, options={"seed": 2.0, "interval": 3.0}, power=5.0) == 10.0
    other = statistic(name="a-parameter-of-simulate")(lambda x, y, graph=1.0: graph)
    assert gosta.exact(X, other, graph=3.0) == 3.0  # exact has no parameter of this name
    with pytest.raises(
        gosta.InputError, match=r"interval is an option of two-names .*options={'interval': ...}"
    ):
        gosta.exact(X, made, interval=0.9)
    with pytest.raises(
        gosta.NumericalError, match="two-names has no interval here: every row contributes the same"
    ):
        gosta.exact(X, made, interval=0.9, options={"interval": 3.0})
    with pytest.raises(gosta.InputError, match="seed is an option of two-names"):
        gosta.simulate(X, made, graph="complete", seed=3, runs=1, iterations=10)
    trace = gosta.simulate(
        X, made, graph="complete", seed=3, runs=1, iterations=10, options={"seed": 2.0}
    )
    assert trace.info.seed == 3
    assert trace.target == pytest.approx(3.0)
    with pytest.raises(gosta.InputError, match="option 'power' is given twice"):
        gosta.exact(X, made, options={"power": 2.0}, power=3.0)


COUNTING = """
import sys
import gosta
from beside import scale
from pathlib import Path
runs = Path(__file__).with_name("runs.txt")
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
@gosta.statistic(name="counted")
def counted(x, y):
    return {factor} * scale(abs(x[0] - y[0]))
"""


def test_a_file_runs_once_per_content(tmp_path: Path) -> None:
    file, runs, path = tmp_path / "mine.py", tmp_path / "runs.txt", list(sys.path)
    (tmp_path / "beside.py").write_text("def scale(value): return 2 * value")
    file.write_text(COUNTING.format(factor=1))
    first = load_statistic(f"{file}:counted")
    assert load_statistic("mine.py:counted", tmp_path) is first
    assert (runs.read_text(), sys.path) == ("x", path)
    assert gosta.exact([0.0, 1.0, 3.0], first) == 4.0
    file.write_text(COUNTING.format(factor=10))
    assert gosta.exact([0.0, 1.0, 3.0], load_statistic(f"{file}:counted")) == 40.0
    assert (runs.read_text(), sys.path) == ("xx", path)
    file.write_text("raise ValueError('no')")
    with pytest.raises(gosta.InputError, match=r"mine\.py fails with ValueError: no"):
        load_statistic(f"{file}:counted")
    assert sys.path == path
    sys.modules.pop("beside")


def test_printed_forms() -> None:
    made = gosta.statistic(name="a<b")(huber)
    assert repr(made) == "Statistic('a<b', delta=1.0)"
    data = gosta.datasets.load({"a": [1.0, 2.0], "label": [0, 1]})
    graph, estimate = gosta.graphs.complete(3), gosta.Estimate(0.5, 0.4, 0.6, 0.05, 0.95)
    shown: dict[str, Any] = {
        "a&lt;b": made,
        "Graph: complete": graph,
        "0.4 to 0.6": estimate,
        "<td>label</td>": data,
    }
    for text, value in shown.items():
        html = value._repr_html_()
        assert text in html
        assert html.startswith("<table>")
        assert "0x" not in repr(value)


def test_overflow_of_few_rows_is_found() -> None:
    cube = statistic(name="cube")(lambda x, y: (int(x[0]) * int(y[0])) ** 3)
    square = statistic(name="square")(lambda x, y: (int(x[0]) - int(y[0])) ** 2)
    rows = np.resize(np.arange(1.0, 10.0), 5000)
    for made, largest in ((cube, 3e6), (square, 5e9)):
        with pytest.raises(
            gosta.InputError, match="whole numbers beyond 2\\^63 overflow when compiled"
        ):
            gosta.exact(np.append(rows, largest), made)


def test_an_unknown_name_of_a_file_lists_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "some.py"
    file.write_text("import gosta\n\n@gosta.statistic\ndef one_of_some(x, y):\n    return 1.0\n")
    for _ in range(2):
        with pytest.raises(
            gosta.InputError,
            match=r"unknown statistic of .*some.py 'other'; there are: one-of-some",
        ):
            load_statistic(f"{file}:other")
    assert load_statistic(f"{file}:one-of-some@w").weights == "w"
