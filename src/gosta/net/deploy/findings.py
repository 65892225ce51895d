"""What a check finds, and shares of rows in words that a policy would show."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from gosta.net.deploy.column_views import ColumnView
from gosta.private.policy import Policy
from gosta.views import numbers

Level = Literal["ok", "warning", "error"]


class Finding(NamedTuple):
    """The outcome of one check."""

    check: str
    level: Level
    text: str  # without values of the data
    hint: str = ""  # what to do
    detail: str = ""  # may hold values of the data: for this site only
    view: ColumnView | None = None  # of a column, with values: for this site only

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain values, for JSON."""
        view = None if self.view is None else self.view._asdict()
        plain = self._asdict()
        return plain | {"view": view} if view else {k: v for k, v in plain.items() if k != "view"}

    @classmethod
    def ok(cls, check: str, text: str) -> Finding:
        """Return a finding of what is right."""
        return cls(check, "ok", text)

    @classmethod
    def warning(cls, check: str, text: str, hint: str = "", detail: str = "") -> Finding:
        """Return a finding of what may be wrong."""
        return cls(check, "warning", text, hint, detail)

    @classmethod
    def error(cls, check: str, text: str, hint: str = "", detail: str = "") -> Finding:
        """Return a finding of what keeps the node from taking part."""
        return cls(check, "error", text, hint, detail)


def share_text(count: int, rows: int, policy: Policy) -> str:
    """Return a share of the rows, in words where it would tell of too few rows."""
    least = policy.min_rows
    if count == 0:
        return "none"
    if count < least or rows < least:
        return f"fewer than {least}"
    return "nearly all" if rows - count < least else numbers.percent(count / rows, ".0f")
