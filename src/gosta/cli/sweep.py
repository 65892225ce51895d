"""``gosta sweep``: a grid of simulations, on all cores or on a cluster."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from gosta.cli import options
from gosta.errors import InputError
from gosta.runtime.extras import require_extra


def sweep(
    plan: Annotated[
        Path,
        typer.Argument(metavar="SWEEP", help="A TOML file of lists: data, statistic, graph, ..."),
    ],
    cluster: options.Cluster,
    out: Annotated[
        Path | None,
        "Folder of the results, a Parquet data set; by default SWEEP-results beside the file.",
    ] = None,
    plot: options.Plot = None,
    against: Annotated[
        str | None,
        "Axis of the plot: iterations, or a number that is swept, such as n; by default the "
        "latter.",
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Simulate every combination of a sweep's lists: data, statistics, graphs and others.

    Finished jobs are not repeated: after an interruption, or with a longer list, run the same
    command again.
    """
    folder = out or plan.parent / f"{plan.stem or 'sweep'}-results"
    if not folder.is_dir():
        options.check_writable("out", folder)
    picture = options.choose_picture(plot, folder.with_name(f"{folder.name}.png"), as_json)
    require_extra("sim", *["plot"] * (picture is not None), "data", purpose="gosta sweep")
    options.check_picture("plot", picture)
    from gosta.experiments.jobs import read
    from gosta.experiments.panels import choose_axis, draw
    from gosta.experiments.run import run_jobs
    from gosta.experiments.sweep import SweepResult
    from gosta.views import plots

    chosen = read(plan)
    choose_axis(chosen, against)  # raises an error before anything is computed
    outcome = run_jobs(chosen, folder, **vars(cluster))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not cut off the report
    frame = outcome.results.frame(chosen.jobs)
    result = SweepResult(chosen, frame, outcome.failed)
    if as_json:
        print("\n".join(map(json.dumps, result.records)), flush=True)
    elif result.records:
        print(result, flush=True)
    done, jobs = len(result.records) - len(outcome.failed), len(chosen.jobs)
    if outcome.interrupted:
        kept = f"{done} of {jobs} jobs are finished and kept in {folder}"
        print(
            f"gosta: interrupted; {kept}; run the same command again to continue", file=sys.stderr
        )
        raise typer.Exit(130)
    if not done:
        raise InputError(
            f"{plan}: none of its {jobs} jobs could be computed; see the reasons above"
        )
    if picture is not None:
        plots.save(draw(frame, plan.stem, chosen, against)[0, 0].figure, picture)
    if not as_json:
        shown = f"; plot: {picture}" if picture else ""
        before = f" ({outcome.finished_before} of them earlier)" if outcome.finished_before else ""
        print(f"{done} of {jobs} jobs finished{before}: {folder}{shown}")
    if outcome.failed:
        raise typer.Exit(1)
