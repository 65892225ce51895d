"""A node's status as a page for people."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from gosta.net.node.status import Neighbour, Status

REFRESH = 2  # seconds

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="{refresh}">
<title>{node}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse; width: 100%; margin-bottom: 2rem }}
td, th {{ text-align: left; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid #ddd; font-weight: normal }}
th {{ color: #666 }}
td {{ font-variant-numeric: tabular-nums }}
</style>
<h1>{node}</h1>
{tables}
</html>
"""


def page(now: Status) -> str:
    """A page with all that a status says.

    The tables are what a person asks first: the answer and how good it is, then the neighbours, then what happened.
    """
    neighbours = [("neighbour", "", "meetings", "last heard", "differs"), *map(_neighbour, now.neighbours)]
    events = [(name, str(count)) for name, count in sorted(now.counts.items())]
    tables = _table(_summary(now)) + _table(neighbours, heading=True) + _table(events)
    return PAGE.format(refresh=REFRESH, node=escape(now.node), tables=tables)


def _summary(now: Status) -> list[tuple[str, str]]:
    estimate = "none yet" if now.estimate is None else ", ".join(f"{value:.6g}" for value in now.estimate)
    if now.estimate is not None and now.estimate_epoch != now.epoch:
        estimate += f" (of epoch {now.estimate_epoch})"
    rows = [("state", now.state), (now.statistic, estimate)]
    if now.low is not None and now.high is not None and now.level is not None:
        rows.append((f"{100 * now.level:g} % interval", f"{now.low:.6g} to {now.high:.6g}"))
    if now.doubt:
        rows.append(("waits for", f"{now.doubt.to}, {_time(now.doubt.since)}"))
    return [
        *rows,
        ("expected error of gossip", _share(now.expected_error)),
        ("largest difference from a neighbour", _share(now.agreement)),
        ("nodes met", f"{now.nodes_met}, with {now.rows_met} rows; {now.rows} rows are its own"),
        ("exchanges", f"{now.exchanges} in epoch {now.epoch}"),
        ("protocol", now.protocol),
        ("network", now.network),
        ("running for", _time(now.uptime)),
    ]


def _neighbour(one: Neighbour) -> tuple[str, ...]:
    state = "connected" if one.connected else "not connected"
    return one.name, state, str(one.meetings), _time(one.silent), _share(one.differs)


def _table(rows: Iterable[tuple[str, ...]], heading: bool = False) -> str:
    lines = []
    for number, (first, *others) in enumerate(rows):
        cell = "th" if heading and number == 0 else "td"
        lines.append(f"<tr><th>{escape(first)}" + "".join(f"<{cell}>{escape(text)}" for text in others))
    return "<table>\n" + "\n".join(lines) + "\n</table>\n"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest:.0f} s" if minutes else f"{rest:.1f} s"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2g} %"
