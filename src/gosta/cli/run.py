"""``gosta run``: simulate protocols on a network."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from gosta.cli import options
from gosta.cli.private import run_private
from gosta.errors import InputError
from gosta.runtime.extras import require_extra
from gosta.runtime.interrupts import Signals

if TYPE_CHECKING:
    from gosta.datasets import Data
    from gosta.estimation.setting import Setting
    from gosta.runtime.arrays import Integers
    from gosta.simulation.live import LiveRunner
    from gosta.simulation.run_options import RunInfo
    from gosta.simulation.trace import Trace

# What `options.fraction` takes for shares.
SHARE = "a share such as 10% or 0.1, below 100%"


@dataclass(frozen=True)
class Simulation(options.Simulation):
    """Options of a simulation that `gosta theory` does not have."""

    graph: Annotated[
        str | None,
        "A family of graphs ('gosta graph --help'), or an edge-list file; by default "
        "watts-strogatz, complete for "
        "fewer than 6 nodes. It may change: cycle,complete@20000 draws edges from the complete "
        "graph from iteration 20,000 on.",
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
class Placement(options.Placement):
    """How rows are distributed to nodes, and how alike those of neighbours are."""

    homophily: Annotated[
        float | None,
        "How alike neighbours are in the column --by, from 0 (rows at random) to 1 (sorted).",
    ] = None


@dataclass(frozen=True)
class Faults:
    """What keeps exchanges from taking place."""

    TITLE: ClassVar = "Faults"
    loss: Annotated[
        str | None, "Share of messages that are lost, such as 10%; an exchange takes two."
    ] = None
    away: Annotated[
        str | None,
        "Share of nodes that are away at any time, such as 5%; they come back as they were.",
    ] = None
    away_for: Annotated[
        float | None, "Exchanges that a node misses while away, on average; by default 10."
    ] = None
    partition: Annotated[
        str | None,
        "Iterations FROM-TO during which the first half of the nodes is separated from the others.",
    ] = None

    def settings(self) -> dict[str, Any]:
        """Return arguments of `gosta.simulate`."""
        return {
            "loss": options.fraction("loss", self.loss, SHARE, may_be_zero=True),
            "away": options.fraction("away", self.away, SHARE, may_be_zero=True),
            "away_for": self.away_for,
            "partition": None if self.partition is None else _first_and_last(self.partition),
        }


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


# Options that --resume takes.
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
    "animate",
    "report",
}


class WatchedRun:
    """A run with a page, which is served until the command ends."""

    def __init__(self, context: typer.Context, is_opened: bool, as_json: bool) -> None:
        self._context, self._is_opened, self._as_json = context, is_opened, as_json
        self._signals = Signals()

    def make_runner(self, setting: Setting, info: RunInfo, checkpoints: Integers) -> LiveRunner:
        """Serve the page, print its address, and return what advances the run."""
        from gosta.net.addresses import page_url
        from gosta.simulation import live

        page = live.LivePage(setting)
        listener, host = options.listen_for_page(None, "live")
        url, output = page_url(listener), sys.stderr if self._as_json else sys.stdout
        self._context.with_resource(page.serving(listener, host))
        print(f"live page: {url} (the run begins when it is opened)", file=output, flush=True)
        if self._is_opened:
            import webbrowser

            webbrowser.open(url)
        self._runner = live.LiveRunner(setting, info, checkpoints, page)
        return self._runner

    def end(self) -> None:
        """Say on the page that the run has ended; from now on, Ctrl-C ends the page."""
        self._signals.handle(signal.SIGINT, signal.SIGTERM)
        self._runner.end()

    def wait(self) -> None:
        """Wait for Ctrl-C, unless it was pressed since the run has ended."""
        print("the run has ended; its page stays until Ctrl-C", file=sys.stderr, flush=True)
        self._signals.wait()


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
    simulation = replace(simulation, statistic=rows.weighted(simulation.statistic))
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
    # A second Ctrl-C must not lose what the first one kept.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if watched is not None:
        watched.end()
    from gosta.simulation.trace_summary import summary_text

    records = [trace.to_dict() for trace in traces]
    assumed: list[str] = []
    if chosen is not None:
        assumed = _add_assumptions(records, chosen, simulation, rows)
    reported = [
        trace for trace, record in zip(traces, records, strict=True) if record["runs_reached"]
    ]
    if output.as_json or reported:
        shown = map(json.dumps, records) if output.as_json else [summary_text(records), *assumed]
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
    statistic_options = rows.statistic_options(simulation.option)
    exact = records[0].get("value", records[0]["exact"])
    values = {part["statistic"]: part["exact"] for part in records[0].get("statistics", [])}
    if isinstance(exact, float):
        values[simulation.statistic] = exact
    assumptions = options.find_assumptions(data, simulation.statistic, statistic_options, values)
    for record in records:
        record |= {"assumed": assumptions.assumed, "warnings": assumptions.warnings}
    return assumptions.lines


def _check(context: typer.Context, output: Output) -> None:
    """Reject options that cannot be used, before the simulation begins."""
    if output.against not in ("iterations", "units"):
        raise InputError(f"against = {output.against!r} must be 'iterations' or 'units'")
    if (file := output.out or output.resume) is not None:
        from gosta.simulation.trace_file import check_file

        name = "out" if output.out else "resume"
        check_file(name, file)
        options.check_writable(name, file)
    if output.report is not None:
        from gosta.simulation.run_page import check_path

        options.check_writable("report", check_path("report", output.report))
    if output.animate is not None:
        from gosta.simulation.animation import check_animation

        check_animation("animate", output.animate)
        options.check_writable("animate", output.animate)
    if output.resume is not None:
        for name in sorted(_given(context) - WITH_RESUME):
            raise InputError(
                f"{name} is for new runs only; --resume continues with the settings of "
                f"{output.resume}"
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
    files = _files(traces, out)
    for trace, file in files:
        trace.save(file)
    return [file for _, file in files]


def _files(traces: list[Trace], file: Path | None) -> list[tuple[Trace, Path]]:
    """Return the file of each trace: one, or one for each protocol."""
    if file is None or len(traces) == 1:
        return [(trace, file) for trace in traces if file is not None]
    return [
        (trace, file.with_name(f"{file.stem}-{trace.setting.protocol.name}{file.suffix}"))
        for trace in traces
    ]


def _draw(traces: list[Trace], output: Output, file: Path) -> None:
    from gosta.simulation import trace_plots
    from gosta.theory.curves import error_curves, similar_rows, unknown_kinds
    from gosta.theory.prediction import neighbour_correlation
    from gosta.views import plots

    against: trace_plots.Axis = "units" if output.against == "units" else "iterations"
    labels = [trace.setting.protocol.label for trace in traces]
    has_networks = not trace_plots.reason_not_to_draw(traces[0])
    ax = (trace_plots.overview if has_networks else trace_plots.plot_errors)(
        traces, labels, against
    )
    for trace in traces if output.bound else ():
        setting, name = trace.setting, trace.setting.protocol.name
        has_tables = setting.placement.has_several_rows
        curves = {} if has_tables else error_curves(setting, trace.iterations)
        if curves:
            plots.draw_theory(ax, trace_plots.error_curve(trace, against), curves)
            alike = similar_rows(curves, neighbour_correlation(setting))
            for line in filter(None, [unknown_kinds(curves, name), alike]):
                print(f"gosta: {line}", file=sys.stderr)
        else:
            case = "nodes with several rows" if has_tables else name
            case = "networks with faults" if setting.faults else case
            case = "graphs that change" if setting.changing is not None else case
            print(f"gosta: there is no theory for {case} to draw", file=sys.stderr)
    plots.save(ax.figure, file)


def _first_and_last(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal()):
        raise InputError(
            f"partition = {text!r} must be two iterations, FROM-TO, such as 5000-15000"
        )
    return int(first), int(last)
