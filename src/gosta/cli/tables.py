"""Nodes side by side, as a person reads them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gosta.cli import options

if TYPE_CHECKING:
    from gosta.net.deploy.supervisor import View
    from gosta.net.node.status import Status

HEAD = ("node", "state", "rows", "exchanges", "epoch", "estimate", "interval", "error", "agreement")
LEAST = ("rows", "epoch", "agreement", "error", "interval")
MEANING = (
    "estimate, interval: of the data of all nodes, by what the node knows now; exchanges: meetings in this epoch",
    "error: how far off the node itself thinks it is; agreement: how far its neighbours' estimates are from its own",
)
AGREED = 0.01


def row(view: View) -> tuple[str, ...]:
    """A node."""
    status = view.status
    state = view.state + f", restarted {view.restarts} x" * (view.restarts > 0)
    if status is None:
        return (view.name, state, *("-",) * (len(HEAD) - 2))
    return (
        view.name,
        state,
        f"{status.rows:,}",
        f"{status.exchanges:,}",
        str(status.epoch),
        number(status.estimate) + f" (epoch {status.estimate_epoch})" * (status.estimate_epoch != status.epoch),
        interval(status),
        share(status.expected_error),
        share(status.agreement),
    )


def fitting(views: Sequence[View], width: int) -> list[tuple[str, ...]]:
    """The head and a row a node; without the columns that matter least where there is no room for all."""
    rows = [HEAD, *map(row, views)]
    for name in LEAST:
        if sum(widths(rows)) + 3 * len(rows[0]) + 1 <= width:
            break
        place = rows[0].index(name)
        rows = [cells[:place] + cells[place + 1 :] for cells in rows]
    return rows


def widths(rows: Sequence[tuple[str, ...]]) -> list[int]:
    """How wide each column is."""
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def text(views: Sequence[View]) -> str:
    """A plain table, as wide as the terminal if it goes to one."""
    rows = fitting(views, shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000)
    wide = widths(rows)
    return "\n".join("  ".join(map(str.ljust, cells, wide)).rstrip() for cells in rows)


def summary(views: Sequence[View], seconds: float | None) -> str:
    """The nodes together, in one line."""
    from gosta.net.deploy.ask import spread

    statuses = [view.status for view in views if view.status is not None]
    found = spread(statuses) if len(statuses) == len(views) else None
    after = "" if seconds is None else f" after {seconds:.0f} s"
    if found is None:
        have = sum(status.estimate is not None for status in statuses)
        return f"{have} of {len(views)} nodes have an estimate{after}"
    agree = "all agree within 1 %" if found[1] <= AGREED else "they do not all agree within 1 % yet"
    if len({status.estimate_epoch for status in statuses}) > 1:
        agree += ", but their estimates are of different epochs"
    for state in ("alone", "at odds", "in doubt", "cannot write"):
        count = sum(view.state == state for view in views)
        agree += f"; {count} of them {state}" * (count > 0)
    return f"mean estimate {number(found[0])}, nodes differ from it by at most {share(found[1])}{after}: {agree}"


def number(values: Sequence[float] | None) -> str:
    """An estimate."""
    return "-" if not values else ", ".join(f"{value:.5g}" for value in values)


def interval(status: Status) -> str:
    """The ends of an interval."""
    return "-" if status.low is None or status.high is None else f"{status.low:.4g} to {status.high:.4g}"


def share(value: float | None) -> str:
    """A relative number, if there is one."""
    return "-" if value is None else options.share(value)
