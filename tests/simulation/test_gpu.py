"""The GPU engine without a GPU: simulated, compiled to assembly, and what it says where it cannot
run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gosta
from gosta.errors import GostaError, InputError
from gosta.runtime import extras
from gosta.simulation.engines.gpu import device

needs_numba_cuda = pytest.mark.skipif(
    not extras.is_installed("numba_cuda"), reason="numba-cuda is not installed"
)
COMPILED = "use engine='compiled'"


@needs_numba_cuda
@pytest.mark.parametrize(
    "check", ["protocols", "statistics", "traces", "draws", "guards", "assembly"]
)
def test_without_a_gpu(check: str) -> None:
    script = Path(__file__).parents[1] / "support" / "simulated_gpu.py"
    done = subprocess.run(
        [sys.executable, str(script), check], capture_output=True, text=True, check=False
    )
    assert done.stdout == "ok\n", done.stderr


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "is_installed", lambda name: name != "numba_cuda")
    with pytest.raises(GostaError) as caught:
        gosta.simulate("iris", "gini-mean-difference", iterations=10, runs=1, engine="gpu")
    wanted = (
        "engine 'gpu' needs the package 'numba_cuda'; install it with: pip install 'gosta[gpu]'"
    )
    assert str(caught.value) == wanted


@needs_numba_cuda
def test_missing_gpu_is_one_line(gosta_: Callable[..., tuple[int, str, str]]) -> None:
    try:
        device.require_gpu()
    except InputError:
        code, _, error = gosta_(
            "run",
            "iris",
            "--statistic",
            "gini-mean-difference",
            "--iterations",
            "10",
            "--engine",
            "gpu",
        )
        assert code == 2
        assert error.count("\n") == 1
        assert "engine 'gpu' found no NVIDIA GPU that can be used (" in error
        assert error.endswith(f"); {COMPILED}\n")
    else:
        pytest.skip("there is a GPU")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"nodes": 10}, "nodes with several rows"),
        ({"interval": 0.95}, "intervals"),
        ({"protocol": "flooding"}, "protocol flooding"),
        ({"loss": 0.1}, "faults"),
        ({"graph": "cycle,star@5"}, "graphs that change"),
        ({"statistic": "spearman-rho"}, "spearman-rho, which needs the mean of each row"),
    ],
)
def test_unsupported_simulations_are_named(
    arguments: dict[str, Any], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "require_gpu", lambda: None)
    columns = ["sepal length", "sepal width"] if "statistic" in arguments else None
    options = {
        "statistic": "gini-mean-difference",
        "columns": columns,
        "runs": 1,
        "iterations": 10,
        **arguments,
    }
    with pytest.raises(gosta.UnsupportedError) as caught:
        gosta.simulate("iris", engine="gpu", **options)
    assert str(caught.value) == f"engine 'gpu' does not support {what}; {COMPILED}"
