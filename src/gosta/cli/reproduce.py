"""``gosta reproduce``: the paper's tables and figures, and a check of each claim."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gosta.cli import options
from gosta.errors import InputError

RUNS = 50  # the paper's


def reproduce(
    cluster: options.Cluster,
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PART]...",
            help="table1, figure2, figure3a, figure3b, figure4, figure5, figure6; or all.",
        ),
    ] = None,
    runs: options.Runs = RUNS,
    seed: options.Seed = 0,
    data: Annotated[
        str | None,
        "Replaces both data sets of the paper: a name from 'gosta datasets', or a file with two "
        "classes in a column called label.",
    ] = None,
    out: Annotated[
        Path | None,
        "Folder of figures, tables, results.md, results.json and all curves; by default results.",
    ] = None,
) -> None:
    """Regenerate every table and figure of the paper, and check every claim it makes about them.

    figure6 is not in the paper: it compares carried-means, the default protocol, with all others.

    Finished simulations are not repeated: after an interruption, run the same command again.
    """
    from gosta.experiments.paper import reproduce as paper
    from gosta.experiments.run import run_jobs

    names = paper.select(parts or [])
    plan = paper.make_plan(runs, seed, data)
    folder = out or _folder(runs, seed, data)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"out = {str(folder)!r} cannot be a folder: {error.strerror or error}"
        ) from error
    numpy_seconds = paper.numpy_seconds_per_iteration(plan)
    print(f"data: {paper.describe_data(plan)}\n", flush=True)
    done = []
    try:
        for part in paper.reproduce(plan, names, folder, partial(run_jobs, **vars(cluster))):
            done.append(part)
            print(part, flush=True)
    except KeyboardInterrupt:
        kept = f"finished parts are kept in {folder}"
        print(
            f"gosta: interrupted; {kept}; run the same command again to continue", file=sys.stderr
        )
        raise typer.Exit(130) from None
    paper.write(plan, done, list(paper.EXPERIMENTS), numpy_seconds, folder)
    claims = [claim for part in done for claim in part.findings.claims]
    total, seconds = sum(part.iterations for part in done), sum(part.seconds for part in done)
    agree = paper.count_agreeing([(claim.is_ours, claim.agrees) for claim in claims])
    print(f"{agree}; {total:,} iterations, {seconds:.0f} s")
    if total:
        hours = f"{total * numpy_seconds / 3600:.1f} hours for all"
        took = f"{1e6 * numpy_seconds:.0f} µs an iteration, {hours}"
        print(f"with numpy, all nodes at every tick: {took}")
    print(f"written: {folder / 'results.md'}, {folder / 'results.json'}, tables, figures")


def _folder(runs: int, seed: int, data: str | None) -> Path:
    """Return the default folder; other runs, seeds and data have another one."""
    named = [Path(data).stem] if data else []
    named += [f"{runs}-runs"] * (runs != RUNS) + [f"seed-{seed}"] * (seed != 0)
    return Path("-".join(["results", *named]))
