"""Notebooks: what cells show, executed by a real IPython kernel."""

from __future__ import annotations

from typing import Any

import nbclient
import nbformat
import numpy as np
import pytest

import gosta
from gosta.errors import InputError
from gosta.views import html


class Notebook:
    """A notebook whose cells were executed, in order."""

    def __init__(self, *cells: str) -> None:
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        client = nbclient.NotebookClient(
            made, timeout=300, allow_errors=True, kernel_name="python3"
        )
        client.execute()
        self.outputs: list[Any] = [cell.outputs for cell in made.cells]

    def texts(self, cell: int, kind: str = "text/plain") -> list[str]:
        """Return the contents of one kind in a cell's outputs."""
        return [
            output.data[kind] for output in self.outputs[cell] if kind in output.get("data", {})
        ]

    def pictures(self, cell: int) -> int:
        """Return how many pictures a cell shows."""
        return len(self.texts(cell, "image/png"))


PLOTS = (
    """import gosta
trace = gosta.simulate("iris", "variance", protocol="gosta-async", runs=2, iterations=1000)
trace.plot()""",
    "for label in ('one', 'two'): trace.plot(label=label)",
    """import matplotlib.pyplot as plt
figure, ax = plt.subplots()
trace.plot(ax=ax) is ax""",
    """%matplotlib inline
trace.plot();""",
    "trace",
    """def mine(name):
    return gosta.exact("iris", name)

mine("varianc")""",
    """import threading, os, signal
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
gosta.simulate("iris", "variance", protocol="gosta-async", runs=2, iterations=10**11)""",
    """import sys, time
from concurrent.futures import ThreadPoolExecutor
from IPython.display import DisplayHandle
from gosta.runtime import progress
updates, update = [], DisplayHandle.update
def note(self, shown, **rest):
    updates.append(shown)
    update(self, shown, **rest)
DisplayHandle.update = note
def work(_):
    time.sleep(0.3)
    advance(1)
with progress.bar("2 < 3 jobs", 3, delay_seconds=0) as advance, ThreadPoolExecutor(1) as pool:
    list(pool.map(work, range(3)))
print([shown["text/plain"].partition(" %")[0] for shown in updates])
print("&lt;" in updates[0]["text/html"])""",
    """with progress.bar("short work", 3) as advance:
    advance(3)""",
    """@gosta.statistic(name="notebook-gap")
def gap(x, y):
    return abs(x[0] - y[0])
n = [20, 30, 40]
result = gosta.sweep("iris", "notebook-gap", protocol="gosta-async", n=n, runs=1, workers=2)
result.plot();""",
    "result",
)  # fmt: skip


def test_cells_show_pictures_progress_and_short_errors() -> None:
    book = Notebook(*PLOTS)
    assert book.texts(0)[0].startswith("<Axes:")
    assert [book.pictures(cell) for cell in range(5)] == [1, 2, 1, 1, 0]
    assert book.texts(2)[0] == "True"
    (table,) = book.texts(4, "text/html")
    assert "<caption>Trace</caption>" in table
    assert "<svg" in table
    assert all(name in table for name in ("exact value", "estimate, mean", "nodes", "rows"))
    (error,) = book.outputs[5]
    message, line = "\n".join(error.traceback).splitlines()
    assert message == "InputError: unknown statistic 'varianc'; did you mean 'variance'?"
    assert line == '    line 2: return gosta.exact("iris", name)'
    (interrupted,) = [output for output in book.outputs[6] if output.output_type == "error"]
    assert "".join(interrupted.traceback).endswith(
        "the simulation was interrupted before the first checkpoint"
    )
    bar, printed = book.outputs[7]
    assert bar.data == {"text/plain": "", "text/html": ""}
    assert printed.text == "['2 < 3 jobs 33', '2 < 3 jobs 67', '2 < 3 jobs 100', '']\nTrue\n"
    assert book.outputs[8] == []
    assert book.outputs[9][0].data == {"text/plain": "", "text/html": ""}  # where the bar was
    assert book.pictures(9) == 1
    assert "<caption>Sweep: data iris, statistic notebook-gap" in book.texts(10, "text/html")[0]


def test_interrupted_simulations_say_whether_there_are_checkpoints() -> None:
    trace = gosta.simulate("iris", "variance", protocol="gosta-async", runs=1, iterations=100)
    assert (
        "sys.last_value.trace holds the checkpoints reached"
        in gosta.Interrupted(trace)._render_traceback_()[0]
    )
    trace.data["mean"][:] = np.nan
    assert "before the first checkpoint" in gosta.Interrupted(trace)._render_traceback_()[0]
    with pytest.raises(InputError, match="no checkpoint was reached: there is nothing to draw"):
        trace.plot()


def test_estimate_is_a_number() -> None:
    estimate = gosta.exact("breast-cancer", "auc", interval=0.95)
    assert float(estimate) == estimate.value
    assert (f"{estimate:.3f}", round(estimate, 3), f"{estimate}") == (
        "0.963",
        0.963,
        repr(estimate),
    )
    with pytest.raises(TypeError, match=r"this estimate has 2 values; take one of estimate.value"):
        float(estimate._replace(value=np.array([1.0, 2.0])))


def test_errors_outside_of_notebooks_have_tracebacks() -> None:
    with pytest.raises(InputError) as caught:
        gosta.exact("iris", "varianc")
    assert len(caught.traceback) > 2
    assert InputError("a\nb")._render_traceback_() == ["InputError: a b"]


@pytest.mark.parametrize(
    ("made", "caption"),
    [
        (lambda: gosta.graphs.torus(3, 4), "Graph: torus 3 x 4"),
        (lambda: gosta.statistics.find("auc"), "Statistic: auc"),
        (lambda: gosta.exact("breast-cancer", "auc", bins=16), "Estimate"),
        (lambda: gosta.theory.predict("torus", "gosta-async", n=64), "Prediction"),
        (lambda: gosta.theory.bottleneck("two-cliques", n=64), "Bottleneck"),
        (lambda: gosta.Data("<b>", {"<i>": np.arange(3.0)}), "Data: &lt;b&gt;"),
        (lambda: gosta.protocols.find("u2"), "Protocol: u2"),
    ],
)
def test_results_are_tables(made: Any, caption: str) -> None:
    shown = made()._repr_html_()
    assert shown.startswith(f"<table>\n<caption>{caption}</caption>\n<tr><th>")
    assert "<i>" not in shown


def test_sparklines_leave_out_what_has_no_logarithm() -> None:
    drawn = html.sparkline("error", [1, 2, 3, 4], [1.0, 0.0, float("nan"), 0.1], 102, 42)
    assert 'points="1.0,1.0 101.0,41.0"' in drawn
    assert html.sparkline("error", [1, 2], [1.0, 0.0]) == ""
    assert html.sparkline("error", [1, 2], [1.0, 1.0]).count("1.0,1.0") == 1
