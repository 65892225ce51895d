"""``gosta status``: the status of a node, or of all nodes of a network."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gosta.cli import options
from gosta.errors import InputError, shorten
from gosta.views import numbers, terminal

if TYPE_CHECKING:
    from gosta.net.deploy.query import View
    from gosta.net.node.status import Status
    from gosta.sketches.layout import StratumResult

CERTAIN = "certainly within"
SUMS_HEADING = ("node", "state", "rows", "sites", "epoch", "value", CERTAIN, "interval")
SUMS_EXPLANATION = ", from the total over so many sites"
CERTAIN_EXPLANATION = "; certainly within: where the value over all rows of these sites lies"
HEADING = (
    "node",
    "state",
    "rows",
    "sites",
    "exchanges",
    "epoch",
    "estimate",
    "interval",
    "error",
    "difference",
)
SEVERAL_HEADING = (*HEADING[:6], "statistic", *HEADING[6:])
# left out first on a narrow terminal
DISPENSABLE = ("rows", "epoch", "difference", "error", "interval", CERTAIN, "sites")
EXPLANATION = (
    "estimate, interval: over the rows of so many sites, the interval with the error; exchanges: in this epoch",
    "error: relative error that the node expects; difference: largest one from a neighbour's estimate",
)
ROW_VALUES_EXPLANATION = (
    "each node's own rows have a value each: row_values of --json; the estimate is their mean"
)
UNSAID = ("stopped", "starting")  # states in which the reason of a node's last state is not shown
# Commands in what a node says: it does not know which folder its operator types.
COMMAND = re.compile(r"gosta (?:network|node) [a-z]+ (FOLDER|NETWORK)(?: [^\s;,:]+)*")
FIXED_SPACE = "\xa0"  # at which lines are not broken, so that a command can be copied
SUMS_DISPENSABLE = ("beyond the range", "rows")  # of one node's results
AGREEMENT = 0.01  # nodes agree if no estimate is farther from their mean, relative to it


def status(
    folder: Annotated[Path, typer.Argument(help="A node's folder, or a network's.")],
    as_json: options.Json = False,
) -> None:
    """Show the status of a node: estimate, neighbours, events; or of all nodes of a network."""
    from gosta.net.config import NETWORK_FILE
    from gosta.net.deploy.query import View, read_status, view_network

    if (folder / NETWORK_FILE).exists():
        views = view_network(folder)
        if as_json:
            print("\n".join(map(record, views)))
        elif not views:
            print(f"{folder}: no site is a member yet; 'gosta network sign' makes them members")
        else:
            print(table(views, folder=folder), summary(views), *explanation(views), sep="\n")
    elif folder.is_dir():
        found = read_status(folder)
        print(record(View(found.node, found.state, 0, found)) if as_json else _text(found, folder))
    else:
        raise InputError(f"no such folder: {folder}")


def record(view: View) -> str:
    """Return a node as a line of JSON."""
    import msgspec

    fields = {} if view.status is None else msgspec.to_builtins(view.status)
    if view.status is not None and view.status.sums is not None:
        fields["sums"]["results"] = [one._asdict() for one in view.status.sums.results]
    return msgspec.json.encode(
        {"node": view.name, **fields, "state": view.state, "restarts": view.restarts}
    ).decode()


def table(views: Sequence[View], width: int | None = None, folder: Path | None = None) -> str:
    """Return a row for each node, as wide as the terminal by default, and why some of them have no new result."""
    heading: tuple[str, ...] = HEADING
    if _has_sums(views):
        heading, rows = SUMS_HEADING, [SUMS_HEADING, *map(_sums_row, views)]
    elif any(view.status is not None and view.status.statistics for view in views):
        heading, rows = (
            SEVERAL_HEADING,
            [SEVERAL_HEADING, *(row for view in views for row in _rows_of_several(view))],
        )
    else:
        rows = [HEADING, *map(_row, views)]
    dispensable = [name for name in DISPENSABLE if name in heading]
    if CERTAIN in heading and not _has_brackets(views):
        place = heading.index(CERTAIN)
        rows, dispensable = (
            [row[:place] + row[place + 1 :] for row in rows],
            [n for n in dispensable if n != CERTAIN],
        )
    reasons = [f"{view.name}: {view.reason}" for view in views if view.reason]
    reasons += _reasons_of_sums(views, folder, width or _terminal_width())
    shown = terminal.columns(terminal.drop_columns(rows, dispensable, width), indent=0)
    return "\n".join([shown, *map(terminal.printable, reasons)])


def _reasons_of_sums(views: Sequence[View], folder: Path | None, width: int) -> Iterator[str]:
    """Yield in lines why nodes of private sums have no new result, those with the same reason together."""
    from gosta.net.node.status_text import GOOD_STATES

    groups: dict[str, list[str]] = {}
    for view in views:
        if (
            view.status is not None
            and view.status.sums is not None
            and view.state not in (*GOOD_STATES, *UNSAID)
        ):
            is_withdrawn = view.state == "withdrawn" and bool(view.status.reload_error)
            reason = view.status.reload_error if is_withdrawn else view.status.sums.reason
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
    first = next((one for view in views if (one := _first_result(view.status)) is not None), None)
    of = (
        ""
        if first is None
        else f"{first.statistic}, {first.stratum}"
        if first.stratum
        else first.statistic
    )
    return (
        f"value: {of or 'a statistic'}{SUMS_EXPLANATION}{CERTAIN_EXPLANATION * _has_brackets(views)}",
    )


def _has_sums(views: Sequence[View]) -> bool:
    return any(
        view.is_private or (view.status is not None and view.status.sums is not None)
        for view in views
    )


def _has_brackets(views: Sequence[View]) -> bool:
    found = [_first_result(view.status) for view in views]
    return any(one is not None and one.is_certified and len(one.value) == 1 for one in found)


def _first_result(status: Status | None) -> StratumResult | None:
    """Return the first result of one value, or the first curve if there are only curves."""
    results = (
        []
        if status is None or status.sums is None
        else [one for one in status.sums.results if one.has_value]
    )
    return next((one for one in results if len(one.value) == 1), results[0] if results else None)


def _sums_row(view: View) -> tuple[str, ...]:
    from gosta.net.node import status_text

    state, status = _state(view), view.status
    if status is None or status.sums is None:
        return (view.name, state, *[numbers.NONE] * (len(SUMS_HEADING) - 2))
    # sites of an old result may be gone
    of = f" of {status.sites:,}" * (status.sites_seen <= status.sites)
    first, value, bracket, interval = (
        _first_result(status),
        numbers.NONE,
        numbers.NONE,
        numbers.NONE,
    )
    if first is not None:
        interval = numbers.interval(*first.interval, 4) if first.interval else numbers.NONE
        is_curve = len(first.value) > 1
        value = f"{len(first.value)} values" if is_curve else status_text.value_of(first, digits=5)
        value += f" (epoch {status.estimate_epoch})" * (status.estimate_epoch != status.epoch)
        bracket = numbers.NONE if is_curve else status_text.bracket_of(first, digits=5)
    return (
        view.name,
        state,
        f"{status.rows:,}",
        f"{status.sites_seen:,}{of}",
        str(status.epoch),
        value,
        bracket,
        interval,
    )


def _state(view: View) -> str:
    return view.state + f", restarted {view.restarts} x" * (view.restarts > 0)


def _row(view: View) -> tuple[str, ...]:
    state, status = _state(view), view.status
    if status is None:
        return (view.name, state, *[numbers.NONE] * (len(HEADING) - 2))
    old = f" (epoch {status.estimate_epoch})" * (status.estimate_epoch != status.epoch)
    return (
        view.name,
        state,
        f"{status.rows:,}",
        f"{status.sites_seen:,}" + f" of {status.sites:,}" * (status.sites > 0),
        f"{status.exchanges:,}",
        str(status.epoch),
        numbers.number(status.estimate, 5) + old,
        numbers.interval(status.low, status.high, 4),
        numbers.error(status.value_errors or status.expected_error),
        numbers.error(status.max_difference),
    )


def _rows_of_several(view: View) -> Iterator[tuple[str, ...]]:
    """Yield a row for each of several statistics; what they have in common is in the first one."""
    from gosta.net.node.status_text import cells

    common, status = _row(view), view.status
    before, old = (
        common[:6],
        "" if status is None else common[6].removeprefix(numbers.number(status.estimate, 5)),
    )
    if status is None or not status.statistics:
        yield (*before, numbers.NONE, *common[6:])
        return
    last = common[-1]
    for one in status.statistics:
        value, ends, error = cells(one, digits=5)
        yield (*before, one.statistic, value + old, ends, error, last)
        before, last = ("",) * len(before), ""


def summary(views: Sequence[View], elapsed_seconds: float | None = None) -> str:
    """Return what the nodes have in common, or what is wrong; and over how many sites and rows their estimates are."""
    from gosta.net.deploy.query import spread
    from gosta.net.node.status_text import coverage

    statuses = [view.status for view in views if view.status is not None]
    if _has_sums(views):
        return _sums_summary(views, statuses, elapsed_seconds)
    found = spread(statuses) if len(statuses) == len(views) else None
    after = "" if elapsed_seconds is None else f" after {elapsed_seconds:.0f} s"
    wrong = "; ".join(_problems(views, statuses))
    if found is None:
        have = sum(status.estimate is not None for status in statuses)
        return f"{have} of {len(views)} nodes have an estimate{after}" + f": {wrong}" * bool(wrong)
    mean, difference = found
    agree = (
        "all agree within 1 %"
        if difference <= AGREEMENT
        else "they do not all agree within 1 % yet"
    )
    least = coverage(min(statuses, key=lambda status: status.sites_seen))
    differ = f"nodes differ from it by at most {numbers.error(difference)}{after}"
    shown, statistics = numbers.number(mean, 5), statuses[0].statistics
    if statistics:
        values = iter(mean)
        each = ((one.statistic, [next(values) for _ in one.value]) for one in statistics)
        shown = ", ".join(f"{name} {numbers.number(value, 5)}" for name, value in each)
    return f"mean estimate {shown}, {differ}: {wrong or agree}\nover {least}"


def _sums_summary(
    views: Sequence[View], statuses: Sequence[Status], elapsed_seconds: float | None
) -> str:
    """Return whether all nodes have the same result of the current epoch, and otherwise what is wrong."""
    after = "" if elapsed_seconds is None else f" after {elapsed_seconds:.0f} s"
    found = {
        (one.estimate_epoch, one.estimate, one.sums.participants)
        for one in statuses
        if one.sums and one.estimate
    }
    wrong = "; ".join(_problems(views, statuses))
    if len(found) != 1 or wrong:
        having = [status for status in statuses if status.estimate is not None]
        old = " of an earlier epoch" * (
            bool(having) and all(one.estimate_epoch != one.epoch for one in having)
        )
        return (
            f"{len(having)} of {len(views)} nodes have a result{old}{after}"
            + f": {wrong}" * bool(wrong)
        )
    ((_, _, participants),) = found
    results = next(
        one.sums.results
        for one in statuses
        if one.sums is not None and _first_result(one) is not None
    )
    shown = ", ".join(map(_named_value, results))
    return f"all nodes have the same result over {len(participants)} sites{after}: {shown}"


def _named_value(result: StratumResult) -> str:
    from gosta.net.node import status_text

    name = f"{result.statistic} ({result.stratum})" if result.stratum else result.statistic
    if not result.has_value:
        return f"{name} withheld"
    return f"{name} {status_text.value_of(result) if len(result.value) == 1 else f'{len(result.value)} values'}"


def _problems(views: Sequence[View], statuses: Sequence[Status]) -> Iterator[str]:
    """Yield why the estimates are not yet one value over all sites."""
    from gosta.net.node.status_text import GOOD_STATES

    partial = [status.node for status in statuses if status.missing]
    if partial and any(status.sums is not None for status in statuses):
        yield f"left out: {shorten(sorted({name for status in statuses for name in status.missing}))}"
    elif partial:
        yield "sites are missing" + f" in the estimates of {shorten(partial)}" * (
            len(partial) < len(statuses)
        )
    epochs = sorted({status.epoch for status in statuses})
    if len(epochs) > 1:
        yield f"nodes are in different epochs, {epochs[0]} to {epochs[-1]}"
    if len({status.estimate_epoch for status in statuses if status.estimate is not None}) > 1:
        yield "their estimates are of different epochs"
    for state in sorted({view.state for view in views if view.state not in GOOD_STATES}):
        yield f"{state}: {shorten([view.name for view in views if view.state == state])}"


def _text(status: Status, folder: Path) -> str:
    """Return the status of one node: values, then tables, then events."""
    from gosta.net.node import status_text

    parts = [terminal.definitions(_lines(list(status_text.summary(status)), folder))]
    for table in status_text.tables(status):
        dispensable = [name for name in SUMS_DISPENSABLE if name in table[0]]
        parts.append(terminal.columns(terminal.drop_columns(table, dispensable, None)))
    parts.append(terminal.definitions(status_text.events(status)))
    return f"{status.node}\n" + "\n\n".join(filter(None, parts))


def _lines(entries: Sequence[tuple[str, str]], folder: Path) -> Iterator[tuple[str, str]]:
    """Yield names and values in lines that fit the terminal, with the folder in commands."""
    room = _terminal_width() - 4 - max(len(name) for name, _ in entries)
    for name, text in entries:
        for number, line in enumerate(_wrapped(text, folder, room)):
            yield name * (number == 0), line


def with_folder(text: str, folder: Path | None, space: str = " ") -> str:
    """Return what a node says with the folder of a node or a network in its commands, so that they can be copied."""
    from gosta.net.config import NETWORK_FILE

    is_network = folder is not None and (folder / NETWORK_FILE).exists()

    def insert(found: re.Match[str]) -> str:
        suits = found[0].startswith("gosta network") if is_network else found[1] == "FOLDER"
        place = shlex.quote(str(folder)) if folder is not None and suits else found[1]
        return found[0].replace(found[1], place).replace(" ", space)

    return COMMAND.sub(insert, text)


def _wrapped(text: str, folder: Path | None, width: int) -> list[str]:
    """Return what a node says in lines, with a folder in its commands, which are not broken."""
    room, whole = max(terminal.MIN_WIDTH, width), with_folder(text, folder, FIXED_SPACE)
    lines = textwrap.wrap(whole, room, break_long_words=False, break_on_hyphens=False) or [""]
    return [line.replace(FIXED_SPACE, " ") for line in lines]


def _terminal_width() -> int:
    """Return the columns of the terminal; where output goes to a file there is no limit."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
