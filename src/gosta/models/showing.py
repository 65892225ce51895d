"""How a fit is shown: tables for terminals and notebooks, plain values, pictures."""

from __future__ import annotations

import math
import textwrap
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from gosta.datasets.columns import value_text
from gosta.errors import InputError, shorten
from gosta.models.design import INTERCEPT
from gosta.runtime.arrays import Floats
from gosta.statistics import assumptions
from gosta.statistics.distributions import chi_squared_tail
from gosta.views import curves, html, numbers, plots, terminal

if TYPE_CHECKING:
    from gosta.models.fit import Fit
    from gosta.sketches.results import StratumResult

WIDTH = 80  # characters of a summary
DIGITS = 4  # of coefficients
FOREST_WIDTH, FOREST_LINE = 5.6, 0.28  # inches
CURVE_SIZE = (4.6, 4.0)  # inches
LARGE = 1e4  # z from which on it has no decimals
# Of rows in a validation: by the fit without their fold, and by that to all rows.
PREDICTIONS = ("validated", "apparent")
SHORT_AXIS = 200.0  # ratio of its ends, up to which there are more ticks than powers of 10


def title(fit: Fit) -> str:
    """Return what was fitted, in a line."""
    model = fit.model
    strata = [column for column, _ in getattr(model, "strata", ())]
    outcome = [column for column in model.response_columns if column not in strata]
    name = f"{model.title[:1].upper()}{model.title[1:]} of {', '.join(outcome)}"
    if strata:
        name += f", by strata of {', '.join(strata)}"
    positive, others = _classes(fit)
    if positive:
        name += f" ({positive}, against {shorten(others)})"
    return name


def _classes(fit: Fit) -> tuple[str, list[str]]:
    """Return the class that is explained, "" if there is none, and the others."""
    if "positive" in fit.assumed:
        return str(fit.assumed["positive"]), list(fit.assumed["negative"])
    classes = list(map(value_text, getattr(fit.model, "classes", ())))
    if not classes:
        return "", []
    given = getattr(fit.model, "positive", None)
    positive = classes[-1] if given is None else value_text(given)
    return positive, [one for one in classes if one != positive]


def facts(fit: Fit) -> list[tuple[str, str]]:
    """Return what is known of a fit as a whole: names and values."""
    found = [("rows", numbers.count(fit.n))]
    if fit.events is not None:
        found.append(("events", numbers.count(fit.events)))
    found.append(("rounds", str(fit.rounds)))
    if fit.model.penalty:
        found.append(("penalty", numbers.number(fit.model.penalty)))
    if fit.privacy:
        found.append(("noise", fit.privacy))
    if np.isfinite(fit.standard_errors).any():
        found.append(("standard errors", fit.errors))
    if math.isfinite(fit.scale):
        found.append(("residual deviation", numbers.number(fit.scale, DIGITS)))
    if not math.isfinite(fit.log_likelihood):
        return found
    found.append(("log-likelihood", numbers.number(fit.log_likelihood, 7)))
    found.append(("without columns", numbers.number(fit.null_log_likelihood, 7)))
    if fit.model.has_intercept:
        found.append(("R²" if math.isfinite(fit.scale) else "pseudo R²", f"{fit.r_squared:.4f}"))
    if not fit.model.penalty:
        found.append(("AIC", numbers.number(fit.aic, 7)))
        columns = len(fit.model.design.names)
        chi = max(2 * (fit.log_likelihood - fit.null_log_likelihood), 0.0)
        p = numbers.p_value(chi_squared_tail(chi, columns))
        found.append(("likelihood ratio", f"{numbers.number(chi, DIGITS)} on {columns}, p {p}"))
    return found


def coefficient_table(fit: Fit) -> list[list[str]]:
    """Return a line for each coefficient, below one of headings."""
    has_errors = bool(np.isfinite(fit.standard_errors).any())
    ratio = fit.model.ratio
    errors = ["std err", "t" if math.isfinite(fit.degrees) else "z", "p-value"]
    interval = f"{numbers.percent(fit.level, 'g')} interval"
    heading = ["", "coef", *errors * has_errors, *[ratio] * bool(ratio), *[interval] * has_errors]
    rows = [heading]
    for k, name in enumerate(fit.names):
        shown = np.array([fit.coefficients[k], fit.low[k], fit.high[k]])
        row = [name, numbers.number(float(fit.coefficients[k]), DIGITS)]
        if has_errors:
            row.append(numbers.number(float(fit.standard_errors[k]), 3))
            z = float(fit.z[k])
            row.append(f"{z:.2f}" if abs(z) < LARGE else numbers.number(z, 3))
            row.append(numbers.p_value(float(fit.p_values[k])))
        if ratio:
            with np.errstate(over="ignore"):
                shown = np.exp(shown)
        if ratio and name == INTERCEPT:
            row += [""] * (1 + has_errors)
        else:
            value, low, high = (numbers.number(float(one), DIGITS) for one in shown)
            row += [value] * bool(ratio) + [f"{low} to {high}"] * has_errors
        rows.append(row)
    return rows


def notes(fit: Fit) -> list[str]:
    """Return what was assumed, and what to have a look at."""
    factors = [
        f"{name} ({shorten([value_text(one) for one in levels[1:]], 3)} against "
        f"{value_text(levels[0])})"
        for name, levels in fit.model.design.levels.items()
    ]
    lines = [f"factors: {shorten(factors)}"] if factors else []
    lines += assumptions.text(fit.assumed)
    return [*lines, *(f"warning: {warning}" for warning in fit.warnings)]


def validation_table(fit: Fit) -> list[list[str]]:
    """Return a line for each statistic of predictions, below one of headings; empty: none."""
    if not fit.validation:
        return []
    interval = f"{numbers.percent(fit.level, 'g')} interval"
    rows = [["", "value", interval, "apparent", "optimism"]]
    known = {one.statistic: one for one in fit.validation}
    for one in fit.validation:
        name, _, kind = one.statistic.partition(":")
        if kind == PREDICTIONS[0]:
            rows.append([name, *_validated(one, known[f"{name}:{PREDICTIONS[1]}"])])
    return rows


def left_out_table(fit: Fit) -> list[list[str]]:
    """Return a line for each statistic of each site, and of their mean; empty: none."""
    if not fit.left_out:
        return []
    rows = [["", "rows", "value", f"{numbers.percent(fit.level, 'g')} interval"]]
    for one in fit.left_out:
        for group in (*one.groups, one):
            name = "mean" if group.group is None else group.group
            ends = numbers.interval(group.low, group.high, DIGITS)
            value = numbers.NONE if group.value is None else numbers.number(group.value, DIGITS)
            rows.append([f"{one.statistic}, {name}", numbers.count(group.n or 0), value, ends])
    return rows


def _validations(fit: Fit) -> list[tuple[str, list[list[str]]]]:
    """Return titles and tables of validations."""
    sites = [one.by for one in fit.left_out][:1]
    title = f"Each {sites[0]} predicted by the fit to the others" if sites else ""
    tables = [(_folds(fit), validation_table(fit)), (title, left_out_table(fit))]
    return [(name, table) for name, table in tables if table]


def _folds(fit: Fit) -> str:
    return f"Validation in {fit.model.folds} folds, on rows that were not fitted"


def _validated(validated: StratumResult, apparent: StratumResult) -> list[str]:
    """Return value and interval of a statistic, the apparent value, and how much better it is."""
    if not (validated.has_value and apparent.has_value):
        return [numbers.NONE] * 4
    value, own = (one.value[0] for one in (validated, apparent))
    ends = numbers.interval(*validated.interval, DIGITS) if validated.interval else numbers.NONE
    shown = (numbers.number(one, DIGITS) for one in (value, own))
    return [next(shown), ends, next(shown), numbers.number(own - value, 2)]


def summary(fit: Fit) -> str:
    """Return a fit as text, at most 80 characters wide."""
    rows = [f"{name}\t{value}".split("\t") for name, value in facts(fit)]
    half = (len(rows) + 1) // 2
    rows += [["", ""]] * (2 * half - len(rows))
    beside = [[*left, "   ", *right] for left, right in zip(rows[:half], rows[half:], strict=True)]
    known = terminal.columns(beside, right=[1, 4])
    lines = [terminal.printable(title(fit)), known, "", *_lines(coefficient_table(fit))]
    for name, table in _validations(fit):
        lines += ["", f"  {terminal.printable(name)}", *_lines(table)]
    lines.append("")
    for note in notes(fit):
        text = f"  {terminal.printable(note)}"
        lines += textwrap.wrap(text, WIDTH, subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(lines).rstrip()


def _lines(rows: list[list[str]]) -> list[str]:
    """Return a table as lines; a name that is too long stands above its numbers."""
    cells = [row[1:] for row in rows]
    parts = terminal.columns(cells, right=range(len(cells[0])), indent=0).split("\n")
    names = [terminal.printable(row[0]) for row in rows]
    room = max(WIDTH - 4 - max(map(len, parts)), 8)
    width = max(len(name) for name in names if len(name) <= room)
    lines = []
    for name, part in zip(names, parts, strict=True):
        if len(name) > room:
            lines.append(f"  {name}")
            name = ""
        lines.append(f"  {name.ljust(width)}  {part}")
    return lines


def as_html(fit: Fit) -> str:
    """Return a fit as tables for notebooks."""
    about = html.table(facts(fit), caption=title(fit))
    rest = "".join(f"<p>{escape(note)}</p>\n" for note in notes(fit))
    tables = (html.table(rows, heading=True, caption=name) for name, rows in _validations(fit))
    below = "".join(tables)
    return about + html.table(coefficient_table(fit), heading=True) + below + rest


def as_dict(fit: Fit) -> dict[str, Any]:
    """Return a fit as plain values, None for numbers that do not exist."""
    parts = {
        "coefficient": fit.coefficients,
        "standard_error": fit.standard_errors,
        "z": fit.z,
        "p_value": fit.p_values,
        "low": fit.low,
        "high": fit.high,
    }
    if fit.model.ratio:
        parts["ratio"] = fit.ratios
    columns = {name: _plain(values) for name, values in parts.items()}
    coefficients = [
        {"name": name, **{part: values[k] for part, values in columns.items()}}
        for k, name in enumerate(fit.names)
    ]
    design, robust = fit.model.design, fit.robust_covariance
    baselines = [
        {
            "stratum": one.stratum,
            "times": _plain(one.times),
            "events": _plain(one.events),
            "hazard": _plain(one.hazard),
        }
        for one in fit.baselines
    ]
    return {
        "model": fit.model.name,
        "outcome": list(fit.model.response_columns),
        "data": fit.data,
        "n": fit.n,
        "events": fit.events,
        "rounds": fit.rounds,
        "penalty": fit.model.penalty,
        "level": fit.level,
        "errors": fit.errors,
        "degrees": _plain(fit.degrees),
        "log_likelihood": _plain(fit.log_likelihood),
        "null_log_likelihood": _plain(fit.null_log_likelihood),
        "aic": _plain(fit.aic),
        "coefficients": coefficients,
        "covariance": _plain(fit.covariance),
        "robust_covariance": None if robust is None else _plain(robust),
        "validation": [
            {
                "statistic": one.statistic,
                "value": list(one.value),
                "bracket": [list(one.low), list(one.high)],
                "interval": one.interval,
            }
            for one in fit.validation
        ],
        "left_out": [one.to_dict() for one in fit.left_out],
        "baselines": baselines,
        "terms": list(design.terms),
        "ranges": {name: list(ends) for name, ends in design.ranges.items()},
        "levels": {name: list(map(value_text, each)) for name, each in design.levels.items()},
        "assumed": dict(fit.assumed),
        "warnings": list(fit.warnings),
    }


def _plain(values: Any) -> Any:
    """Return numbers as Python's own, None for those that do not exist."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim == 0:
        return float(found) if np.isfinite(found) else None
    return [_plain(one) for one in found]


def draw_coefficients(fit: Fit, ax: Any) -> None:
    """Draw ratios, or coefficients where there are none, with their intervals."""
    chosen = [k for k, name in enumerate(fit.names) if name != INTERCEPT]
    parts = np.array([fit.coefficients, fit.low, fit.high])[:, chosen]
    values: Floats = np.exp(parts) if fit.model.ratio else parts
    lines = [curves.Line(fit.names[k], *ends) for k, ends in zip(chosen, values.T, strict=True)]
    if fit.model.ratio and np.isfinite(values[0]).all() and values[0].max() < math.inf:
        ax.set_xscale("log")
    curves.draw_forest(ax, lines, 1.0 if fit.model.ratio else 0.0)
    if ax.get_xscale() == "log":
        _set_ticks(ax)
    ax.set_xlabel(f"{fit.model.ratio or 'coefficient'} for one unit more")
    ax.set_title(title(fit), fontsize="medium")
    for text in ax.findobj(lambda artist: hasattr(artist, "set_parse_math")):
        text.set_parse_math(False)  # a name such as "$x^$" is no formula


def _set_ticks(ax: Any) -> None:
    """Write plain numbers at a logarithmic axis, at 1, 2, 5 and 10 if it is short."""
    ticker, (low, high) = plots.matplotlib("ticker"), ax.get_xlim()
    steps = (1.0, 2.0, 5.0) if high < SHORT_AXIS * low else (1.0,)
    ax.xaxis.set_major_locator(ticker.LogLocator(subs=steps))
    ax.xaxis.set_major_formatter(lambda value, _: numbers.number(value, 3))
    ax.xaxis.set_minor_formatter(ticker.NullFormatter())


def forest_height(fit: Fit) -> float:
    """Return the height of a picture of coefficients, in inches."""
    return 1.2 + FOREST_LINE * len(fit.names)


def draw_baseline(fit: Fit, ax: Any) -> None:
    """Draw the survival of rows whose columns are at their means, of each stratum."""
    if not fit.baselines:
        raise InputError(f"a {fit.model.title} has no baseline", remedy="fit the model cox")
    shown = [curves.Curve(one.times, one.survival, one.stratum) for one in fit.baselines]
    axes = (fit.model.response_columns[0], "survival with columns at their means")
    curves.draw_curves(ax, "kaplan-meier", shown, axes)


def draw_all(fit: Fit, new_figure: Any = plots.new_figure) -> Any:
    """Return a figure of coefficients, and beside them of the baseline if there is one."""
    height = max(forest_height(fit), CURVE_SIZE[1] * bool(fit.baselines))
    width = FOREST_WIDTH + CURVE_SIZE[0] * bool(fit.baselines)
    figure = new_figure(width, height)
    across = figure.subplots(1, 1 + bool(fit.baselines), squeeze=False)[0]
    draw_coefficients(fit, across[0])
    if fit.baselines:
        draw_baseline(fit, across[1])
    return figure
