"""The status of one node, or of all nodes of a network, as text for the terminal."""

from __future__ import annotations

import math
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gosta.errors import shorten
from gosta.net.deploy.network import is_network
from gosta.net.node import status_text
from gosta.net.node.status import Status
from gosta.net.node.status_text import CERTAIN, GOOD_STATES
from gosta.net.protocol.records import relative_distance
from gosta.sketches.results import StratumResult
from gosta.views import numbers, terminal

if TYPE_CHECKING:
    from gosta.net.deploy.query import View

MOST_RESULTS = 12  # that are named in the last line of a network
COMMON_HEADING = ("node", "state", "rows", "sites", "exchanges", "epoch")
ESTIMATE_HEADING = ("estimate", "interval", "error", "difference")
SUMS_HEADING = ("node", "state", "rows", "sites", "epoch", "value", CERTAIN, "interval")
# Columns that are left out first on a narrow terminal.
DISPENSABLE = ("rows", "epoch", "difference", "error", "interval", CERTAIN, "sites")
# Columns of one node's results that are left out.
SUMS_DISPENSABLE = ("beyond the range", "rows")
EXPLANATION = (
    "estimate, interval: over the rows of so many sites, the interval with the error; "
    "exchanges: in this epoch",
    "error: relative error that the node expects; "
    "difference: largest one from a neighbour's estimate",
)
ROW_VALUES_EXPLANATION = (
    "each node's own rows have a value each: row_values of --json; the estimate is their mean"
)
SUMS_EXPLANATION = ", from the total over so many sites"
CERTAIN_EXPLANATION = "; certainly within: where the value over all rows of these sites lies"
# States in which the reason of a node's last state is not shown.
UNSAID = ("stopped", "starting")
# Commands in what a node says: it does not know which folder its operator types.
COMMAND = re.compile(r"gosta (?:network|node) [a-z]+ (FOLDER|NETWORK)(?: [^\s;,:]+)*")
MORE = "  Curves and groups: --all"
# A space at which lines are not broken, so that a command can be copied.
FIXED_SPACE = "\xa0"
# Nodes agree if no estimate is farther from their mean, relative to it.
AGREEMENT = 0.01


def record(view: View) -> str:
    """Return a node as a line of JSON."""
    fields = {} if view.status is None else msgspec.to_builtins(view.status)
    if view.status is not None and view.status.sums is not None:
        fields["sums"]["results"] = [result._asdict() for result in view.status.sums.results]
    seen = {"state": view.state, "restarts": view.restarts}
    return msgspec.json.encode({"node": view.name, **fields, **seen}).decode()


def node_text(status: Status, folder: Path, has_all: bool = False) -> str:
    """Return the status of one node: values, then tables, then events.

    Of many statistics there are no curves and strata, unless all is asked for.
    """
    is_brief = status_text.is_long(status) and not has_all
    parts = [terminal.definitions(_lines(list(status_text.summary(status)), folder))]
    for table in status_text.tables(status, is_brief):
        dispensable = [name for name in SUMS_DISPENSABLE if name in table[0]]
        parts.append(terminal.columns(terminal.drop_columns(table, dispensable, None)))
    parts.append(MORE * is_brief)
    parts.append(terminal.definitions(status_text.events(status)))
    return f"{status.node}\n" + "\n\n".join(filter(None, parts))


def _lines(entries: Sequence[tuple[str, str]], folder: Path) -> Iterator[tuple[str, str]]:
    """Yield names and values in lines that fit the terminal, with the folder in commands."""
    width = _terminal_width() - 4 - max(len(name) for name, _ in entries)
    for name, text in entries:
        for number, line in enumerate(_wrapped(text, folder, width)):
            yield name * (number == 0), line


# A table of all nodes.


def table(views: Sequence[View], width: int | None = None, folder: Path | None = None) -> str:
    """Return a row for each node, and why some of them have no new result.

    The table is as wide as the terminal by default; `folder` is the network's, for commands.
    """
    is_joint = any(view.status is not None and view.status.statistics for view in views)
    if _has_sums(views):
        rows = [SUMS_HEADING, *map(_sums_row, views)]
    elif is_joint:
        heading = (*COMMON_HEADING, "statistic", *ESTIMATE_HEADING)
        rows = [heading, *(row for view in views for row in _joint_rows(view))]
    else:
        rows = [(*COMMON_HEADING, *ESTIMATE_HEADING)]
        rows += [(*_common_cells(view), *_estimate_cells(view)) for view in views]
    if CERTAIN in rows[0] and not _has_brackets(views):
        place = rows[0].index(CERTAIN)
        rows = [row[:place] + row[place + 1 :] for row in rows]
    dispensable = [name for name in DISPENSABLE if name in rows[0]]
    reasons = [f"{view.name}: {view.reason}" for view in views if view.reason]
    reasons += _reasons_of_sums(views, folder, width or _terminal_width())
    shown = terminal.columns(terminal.drop_columns(rows, dispensable, width), indent=0)
    return "\n".join([shown, *map(terminal.printable, reasons)])


def _common_cells(view: View) -> tuple[str, ...]:
    status, state = view.status, _state(view)
    if status is None:
        return (view.name, state, *[numbers.NONE] * (len(COMMON_HEADING) - 2))
    sites = f"{status.sites_seen:,}" + f" of {status.sites:,}" * (status.sites > 0)
    rows, exchanges = f"{status.rows:,}", f"{status.exchanges:,}"
    return view.name, state, rows, sites, exchanges, str(status.epoch)


def _estimate_cells(view: View) -> tuple[str, ...]:
    status = view.status
    if status is None:
        return (numbers.NONE,) * len(ESTIMATE_HEADING)
    return (
        numbers.number(status.estimate, 5) + _old_epoch(status),
        numbers.interval(status.low, status.high, 4),
        numbers.error(status.value_errors or status.expected_error),
        numbers.error(status.max_difference),
    )


def _joint_rows(view: View) -> Iterator[tuple[str, ...]]:
    """Yield a row for each of several statistics; the first has what they have in common."""
    common, status = _common_cells(view), view.status
    estimate = _estimate_cells(view)
    if status is None or not status.statistics:
        yield (*common, numbers.NONE, *estimate)
        return
    difference = estimate[-1]
    for part in status.statistics:
        value, interval, error = status_text.cells(part, digits=5)
        value += _old_epoch(status)
        yield (*common, part.statistic, value, interval, error, difference)
        common, difference = ("",) * len(common), ""


def _sums_row(view: View) -> tuple[str, ...]:
    status, state = view.status, _state(view)
    if status is None or status.sums is None:
        return (view.name, state, *[numbers.NONE] * (len(SUMS_HEADING) - 2))
    sites = f"{status.sites_seen:,}"
    if status.sites_seen <= status.sites:  # sites of an old result may be gone
        sites += f" of {status.sites:,}"
    value = bracket = interval = numbers.NONE
    result = _first_result(status)
    if result is not None:
        if status_text.has_several(result):
            value = status_text.several(result)
        else:
            value = status_text.value_of(result, digits=5)
            bracket = status_text.bracket_of(result, digits=5)
        value += _old_epoch(status)
        interval = numbers.interval(*result.interval, 4) if result.interval else numbers.NONE
    rows, epoch = f"{status.rows:,}", str(status.epoch)
    return view.name, state, rows, sites, epoch, value, bracket, interval


def _state(view: View) -> str:
    return view.state + f", restarted {view.restarts} x" * (view.restarts > 0)


def _old_epoch(status: Status) -> str:
    return f" (epoch {status.estimate_epoch})" * (status.estimate_epoch != status.epoch)


def _reasons_of_sums(views: Sequence[View], folder: Path | None, width: int) -> Iterator[str]:
    """Yield in lines why nodes have no new result, those with the same reason together."""
    groups: dict[str, list[str]] = {}
    for view in views:
        status = view.status
        if status is None or status.sums is None or view.state in (*GOOD_STATES, *UNSAID):
            continue
        is_withdrawn = view.state == "withdrawn" and bool(status.reload_error)
        reason = status.reload_error if is_withdrawn else status.sums.reason
        groups.setdefault(reason, []).append(view.name)
    for reason, names in groups.items():
        if reason:
            place = folder if folder is None or len(names) > 1 else folder / names[0]
            yield from _wrapped(f"{shorten(names, 6)}: {reason}", place, width)


def explanation(views: Sequence[View]) -> tuple[str, ...]:
    """Return what the columns of the table mean."""
    if not _has_sums(views):
        has_rows = any(view.status is not None and view.status.row_values for view in views)
        return (*EXPLANATION, *[ROW_VALUES_EXPLANATION] * has_rows)
    results = filter(None, (_first_result(view.status) for view in views))
    result = next(results, None)
    name = "a statistic"
    if result is not None:
        name = f"{result.statistic}, {result.stratum}" if result.stratum else result.statistic
    return (f"value: {name}{SUMS_EXPLANATION}{CERTAIN_EXPLANATION * _has_brackets(views)}",)


def _has_sums(views: Sequence[View]) -> bool:
    return any(
        view.is_private or (view.status is not None and view.status.sums is not None)
        for view in views
    )


def _has_brackets(views: Sequence[View]) -> bool:
    results = filter(None, (_first_result(view.status) for view in views))
    return any(result.is_certified and len(result.value) == 1 for result in results)


def _first_result(status: Status | None) -> StratumResult | None:
    """Return the first result of one value, or the first curve if there are only curves."""
    if status is None or status.sums is None:
        return None
    results = [result for result in status.sums.results if result.has_value]
    return min(results, key=lambda result: len(result.value) > 1, default=None)


# A summary of all nodes.


def summary(views: Sequence[View], elapsed_seconds: float | None = None) -> str:
    """Return what the nodes have in common, or what is wrong, and what the estimates are over."""
    statuses = [view.status for view in views if view.status is not None]
    after = "" if elapsed_seconds is None else f" after {elapsed_seconds:.0f} s"
    problems = "; ".join(_problems(views, statuses))
    if _has_sums(views):
        return _sums_summary(len(views), statuses, after, problems)
    common = spread(statuses) if len(statuses) == len(views) else None
    if common is None:
        count = sum(status.estimate is not None for status in statuses)
        suffix = f": {problems}" if problems else ""
        return f"{count} of {len(views)} nodes have an estimate{after}{suffix}"
    mean, difference = common
    agree = "all agree" if difference <= AGREEMENT else "they do not all agree"
    agree += " within 1 %" + " yet" * (difference > AGREEMENT)
    shown, statistics = numbers.number(mean, 5), statuses[0].statistics
    if statistics:
        values = iter(mean)
        parts = ((part.statistic, [next(values) for _ in part.value]) for part in statistics)
        shown = ", ".join(f"{name} {numbers.number(value, 5)}" for name, value in parts)
    distance = f"nodes differ from it by at most {numbers.error(difference)}{after}"
    least = status_text.coverage(min(statuses, key=lambda status: status.sites_seen))
    return f"mean estimate {shown}, {distance}: {problems or agree}\nover {least}"


def spread(statuses: Sequence[Status]) -> tuple[tuple[float, ...], float] | None:
    """Return the mean of the nodes' estimates and the largest relative distance from it.

    Returns None if a node has no estimate.
    """
    estimates = [status.estimate for status in statuses if status.estimate]
    if not estimates or len(estimates) < len(statuses) or len(set(map(len, estimates))) > 1:
        return None
    mean = tuple(math.fsum(parts) / len(estimates) for parts in zip(*estimates, strict=True))
    statistics = statuses[0].statistics
    return mean, max(relative_distance(estimate, mean, statistics) for estimate in estimates)


def _sums_summary(nodes: int, statuses: Sequence[Status], after: str, problems: str) -> str:
    """Return the result that all nodes have of the current epoch, or otherwise what is wrong."""
    having = [status for status in statuses if status.estimate is not None]
    results = {
        (status.estimate_epoch, status.estimate, status.sums.participants)
        for status in having
        if status.sums and status.estimate
    }
    if len(results) != 1 or problems:
        is_old = having and all(status.estimate_epoch != status.epoch for status in having)
        suffix = (" of an earlier epoch" if is_old else "") + after
        suffix += f": {problems}" if problems else ""
        return f"{len(having)} of {nodes} nodes have a result{suffix}"
    ((_, _, participants),) = results
    first = next(status.sums for status in having if status.sums and _first_result(status))
    shown = shorten(list(map(_named_value, first.results)), MOST_RESULTS)
    return f"all nodes have the same result over {len(participants)} sites{after}: {shown}"


def _named_value(result: StratumResult) -> str:
    name = f"{result.statistic} ({result.stratum})" if result.stratum else result.statistic
    if not result.has_value:
        return f"{name} withheld" + f": {result.why}" * bool(result.why)
    if status_text.has_several(result):
        return f"{name} {status_text.several(result)}"
    return f"{name} {status_text.value_of(result)}"


def _problems(views: Sequence[View], statuses: Sequence[Status]) -> Iterator[str]:
    """Yield why the estimates are not yet one value over all sites."""
    partial = [status.node for status in statuses if status.missing]
    if partial and any(status.sums is not None for status in statuses):
        missing = {name for status in statuses for name in status.missing}
        yield f"left out: {shorten(sorted(missing))}"
    elif partial:
        whose = f" in the estimates of {shorten(partial)}" if len(partial) < len(statuses) else ""
        yield f"sites are missing{whose}"
    epochs = sorted({status.epoch for status in statuses})
    if len(epochs) > 1:
        yield f"nodes are in different epochs, {epochs[0]} to {epochs[-1]}"
    if len({status.estimate_epoch for status in statuses if status.estimate is not None}) > 1:
        yield "their estimates are of different epochs"
    for state in sorted({view.state for view in views if view.state not in GOOD_STATES}):
        yield f"{state}: {shorten([view.name for view in views if view.state == state])}"


# Commands with folders, and lines.


def with_folder(text: str, folder: Path | None, space: str = " ") -> str:
    """Return what a node says with the folder in its commands, so that they can be copied.

    The folder is that of a node or of a network.
    """
    is_of_network = folder is not None and is_network(folder)

    def insert(command: re.Match[str]) -> str:
        placeholder = command[1]
        suits = command[0].startswith("gosta network") if is_of_network else placeholder == "FOLDER"
        place = shlex.quote(str(folder)) if folder is not None and suits else placeholder
        return command[0].replace(placeholder, place).replace(" ", space)

    return COMMAND.sub(insert, text)


def _wrapped(text: str, folder: Path | None, width: int) -> list[str]:
    """Return what a node says in lines, with a folder in its commands, which are not broken."""
    width, whole = max(terminal.MIN_WIDTH, width), with_folder(text, folder, FIXED_SPACE)
    lines = textwrap.wrap(whole, width, break_long_words=False, break_on_hyphens=False) or [""]
    return [line.replace(FIXED_SPACE, " ") for line in lines]


def _terminal_width() -> int:
    """Return the columns of the terminal; where output goes to a file there is no limit."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
