"""``gosta run``: simulate protocols on a network."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from gosta.cli import options, run_summary
from gosta.cli.faults import Faults, Placement
from gosta.cli.live import WatchedRun
from gosta.cli.private import run_private
from gosta.errors import InputError
from gosta.runtime.extras import require_extra

if TYPE_CHECKING:
    from gosta.datasets import Data
    from gosta.simulation.trace import Trace


@dataclass(frozen=True)
class Simulation(options.Simulation):
    """Options of a simulation that `gosta theory` does not have."""

    graph: Annotated[
        str | None,
        "A family of graphs ('gosta graph --help'), or an edge-list file; by default watts-strogatz, complete for "
        "fewer than 6 nodes. It may change: cycle,complete@20000 draws edges from the complete graph from iteration "
        "20,000 on.",
        "-g",
    ] = None
    checkpoints: Annotated[int, "How often estimates are recorded."] = 100
    log: Annotated[bool, "Space checkpoints logarithmically, and draw a logarithmic axis."] = False
    until: Annotated[
        str | None,
        "Stop when most nodes, judging by their own estimates, are within this error: 1%.",
    ] = None
    interval: options.Interval = None
    engine: Annotated[str, "compiled; gpu; or reference (plain Python, slow)."] = "compiled"


@dataclass(frozen=True)
class Output:
    """What is saved and drawn."""

    TITLE: ClassVar = "Output"
    out: Annotated[Path | None, "Save the trace: a .nc file, one for each protocol."] = None
    resume: Annotated[
        Path | None, "Continue a saved trace, with its data and settings; --iterations extends it."
    ] = None
    plot: options.Plot = None
    against: Annotated[str, "Axis of the plot: iterations or units (numbers sent)."] = "iterations"
    bound: Annotated[
        bool, "Also draw theory: the predicted error; expectation and bound where they are known."
    ] = False
    report: Annotated[
        Path | None, "Write a page of the first run, .html, that plays it; one for each protocol."
    ] = None
    live: Annotated[
        bool, "Simulate one run at a pace that you can follow, on a page for your browser."
    ] = False
    open_: Annotated[bool, "Open that page in a browser.", "--open"] = False
    animate: Annotated[
        Path | None, "Animation of the network and the error, for slides: a .gif or .mp4 file."
    ] = None
    as_json: options.Json = False

    @property
    def picture(self) -> Path | None:
        """The file of the plot, or None for no plot."""
        return options.choose_picture(self.plot, Path("gosta-run.png"), self.as_json)


WITH_RESUME = {
    "resume",
    "engine",
    "iterations",
    "out",
    "plot",
    "against",
    "bound",
    "as_json",
    "statistic",
}
WITH_RESUME |= {"animate", "report"}


def run(
    context: typer.Context,
    simulation: Simulation,
    placement: Placement,
    faults: Faults,
    rows: options.Rows,
    private: options.Private,
    output: Output,
    data: options.DataName = "breast-cancer",
) -> None:
    """Simulate gossip on a network whose nodes hold one row of the data each, or several."""
    picture = output.picture
    require_extra("sim", *["plot"] * (picture is not None), purpose="gosta run")
    options.check_picture("plot", picture)
    _check(context, output)
    if output.live or output.open_:
        _check_live(context, simulation, output)
    if output.bound and "," in simulation.statistic:
        raise InputError(
            f"bound: there is theory for one statistic only, not for {simulation.statistic}"
        )
    if private.settings() is not None:
        run_private(context, simulation, placement, rows, private, data, picture, output.as_json)
        return
    options.check_pairwise(simulation.statistic)
    watched = WatchedRun(context, output.open_, output.as_json) if output.live else None
    chosen = None if output.resume else rows.select(rows.load(data))
    if chosen is None:
        assert output.resume is not None
        traces = _resume(context, simulation, output.resume)
    else:
        more = {} if watched is None else {"runner": watched.make_runner, "runs": 1}
        traces = _simulate(chosen, simulation, placement, faults, rows, more)
    # a second Ctrl-C must not lose what the first one kept
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if watched is not None:
        watched.end()
    records = [run_summary.record(trace) for trace in traces]
    assumed: list[str] = []
    if chosen is not None:
        assumed = _add_assumptions(records, chosen, simulation, rows)
    reported = [
        trace for trace, record in zip(traces, records, strict=True) if record["runs_reached"]
    ]
    if output.as_json or reported:
        shown = (
            map(json.dumps, records) if output.as_json else [run_summary.text(records), *assumed]
        )
        print("\n".join(shown), flush=True)
    files = _save(traces, output.out or output.resume)
    for trace, file in _files(reported, output.report):
        trace.report(file)
        if not output.as_json:
            print(f"report: {file}")
    if output.bound and watched is None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # the simulation is saved
    if picture is not None and reported:
        _draw(reported, output, picture)
        if not output.as_json:
            print(f"plot: {picture}")
    if output.animate is not None and reported:
        reported[0].animate(output.animate)
        if not output.as_json:
            print(f"animation: {output.animate}")
    if not traces[-1].is_complete:
        hint = (
            f"; continue with: gosta run --resume {files[-1]}"
            if files and traces[-1].can_resume
            else ""
        )
        reached = (
            "; the numbers are those of the checkpoints reached"
            if reported
            else " before the first checkpoint"
        )
        print(f"gosta: interrupted{reached}{hint}", file=sys.stderr)
        raise typer.Exit(130)
    if watched is not None:
        watched.wait()


def _add_assumptions(
    records: list[dict[str, Any]], data: Data, simulation: Simulation, rows: options.Rows
) -> list[str]:
    """Add to records what was assumed about the data, and doubts; return them in words."""
    given, exact = (
        rows.statistic_options(simulation.option),
        records[0].get("value", records[0]["exact"]),
    )
    values = {part["statistic"]: part["exact"] for part in records[0].get("statistics", [])}
    if isinstance(exact, float):
        values[simulation.statistic] = exact
    found = options.find_assumptions(data, simulation.statistic, given, values)
    for record in records:
        record |= {"assumed": found.assumed, "warnings": found.warnings}
    return found.lines


def _check(context: typer.Context, output: Output) -> None:
    """Reject options that cannot be used, before the simulation begins."""
    if output.against not in ("iterations", "units"):
        raise InputError(f"against = {output.against!r} must be 'iterations' or 'units'")
    if (file := output.out or output.resume) is not None:
        from gosta.simulation.trace import check_file

        name = "out" if output.out else "resume"
        check_file(name, file)
        options.check_writable(name, file)
    if output.report is not None:
        from gosta.simulation.report import check_path

        options.check_writable("report", check_path("report", output.report))
    if output.animate is not None:
        from gosta.simulation.animation import check_animation

        check_animation("animate", output.animate)
        options.check_writable("animate", output.animate)
    if output.resume is not None:
        for name in sorted(_given(context) - WITH_RESUME):
            raise InputError(
                f"{name} is for new runs only; --resume continues with the settings of {output.resume}"
            )


def _check_live(context: typer.Context, simulation: Simulation, output: Output) -> None:
    if not output.live:
        raise InputError("open is for the page of --live; give both")
    if "," in simulation.protocol:
        raise InputError(f"protocol = {simulation.protocol!r}: --live shows one protocol; name one")
    if "runs" in _given(context) and simulation.runs != 1:
        raise InputError(f"runs = {simulation.runs}: --live shows one run; leave --runs out")


def _given(context: typer.Context) -> set[str]:
    """Return the names of the options that were given on the command line."""
    return {
        name
        for name in context.params
        if context.get_parameter_source(name).name == "COMMANDLINE"  # type: ignore[union-attr]
    }


def _resume(context: typer.Context, simulation: Simulation, file: Path) -> list[Trace]:
    import gosta
    from gosta.statistics.joint import choose

    choose(simulation.statistic)  # a file of one's own registers its statistic
    engine = simulation.engine if "engine" in _given(context) else None
    try:
        return [gosta.resume(file, simulation.iterations, engine=engine, patience=0)]
    except gosta.Interrupted as interrupted:
        return [interrupted.trace]


def _simulate(
    chosen: Data,
    simulation: Simulation,
    placement: Placement,
    faults: Faults,
    rows: options.Rows,
    more: dict[str, Any],
) -> list[Trace]:
    """Simulate one protocol after the other, up to one that is interrupted."""
    import gosta
    from gosta.protocols import find

    statistic = simulation.statistic
    protocols = [
        find(name.strip()) for name in dict.fromkeys(simulation.protocol.split(",")) if name.strip()
    ]
    if not protocols:
        raise InputError(
            f"protocol = {simulation.protocol!r} has no name; 'gosta protocols' lists them"
        )
    settings = {
        **simulation.settings(rows),
        **vars(placement),
        **faults.settings(),
        "checkpoints": simulation.checkpoints,
        "spacing": "log" if simulation.log else "linear",
        "engine": simulation.engine,
        "until": options.fraction("until", simulation.until, options.ERROR),
        "interval": options.fraction("interval", simulation.interval, options.LEVEL),
        **more,
    }
    traces: list[Trace] = []
    try:
        for protocol in protocols:
            trace = gosta.simulate(chosen, statistic, protocol=protocol, patience=0, **settings)
            traces.append(trace)
    except gosta.Interrupted as interrupted:
        traces.append(interrupted.trace)
    return traces


def _save(traces: list[Trace], out: Path | None) -> list[Path]:
    """Save the traces to one file, or to one for each protocol, and return their paths."""
    found = _files(traces, out)
    for trace, file in found:
        trace.save(file)
    return [file for _, file in found]


def _files(traces: list[Trace], file: Path | None) -> list[tuple[Trace, Path]]:
    """Return the file of each trace: one, or one for each protocol."""
    if file is None or len(traces) == 1:
        return [(trace, file) for trace in traces if file is not None]
    return [
        (trace, file.with_name(f"{file.stem}-{trace.info.protocol}{file.suffix}"))
        for trace in traces
    ]


def _draw(traces: list[Trace], output: Output, file: Path) -> None:
    from gosta.simulation import overview, plotting
    from gosta.simulation.simulate import setting_of
    from gosta.theory.curves import error_curves, similar_rows, unknown_kinds
    from gosta.theory.prediction import neighbour_correlation
    from gosta.views import plots

    against: plotting.Axis = "units" if output.against == "units" else "iterations"
    labels = [trace.info.protocol for trace in traces]
    draw = plotting.plot if overview.reason_not_to_draw(traces[0]) else overview.overview
    ax = draw(traces, labels, against)
    for trace in traces if output.bound else ():
        several_rows = trace.info.has_tables
        if (
            curves := {}
            if several_rows
            else error_curves(setting := setting_of(trace), trace.iterations)
        ):
            plots.draw_theory(ax, plotting.error_curve(trace, against), curves)
            alike = similar_rows(curves, neighbour_correlation(setting))
            for line in filter(None, [unknown_kinds(curves, trace.info.protocol), alike]):
                print(f"gosta: {line}", file=sys.stderr)
        else:
            case = "nodes with several rows" if several_rows else trace.info.protocol
            case = "networks with faults" if trace.info.faults else case
            case = "graphs that change" if trace.info.graph_changes else case
            print(f"gosta: there is no theory for {case} to draw", file=sys.stderr)
    plots.save(ax.figure, file)
