"""``gosta.fit``: a regression model fitted to rows in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from gosta import datasets
from gosta.datasets.data import Data
from gosta.datasets.roles import could_play, guess_roles
from gosta.errors import InputError, shorten
from gosta.models.definition import Model, find_model, make_model
from gosta.models.design import Formula, make_design, parse_formula
from gosta.models.fit import Fit
from gosta.models.leave_out import leave_out_sites
from gosta.statistics import assumptions
from gosta.views import numbers

FEWEST_SITES = 20  # for robust errors by site, about as many as simulations find to be enough
LOOKED_AT = 5000  # rows, to tell identifiers and dates
# Arguments that belong to some models only.
ROLES = ("outcome", "time", "event", "positive", "strata")


def fit(
    data: object,
    model: str = "logistic",
    *,
    outcome: object = None,
    columns: str | Sequence[str] | None = None,
    formula: str | None = None,
    time: object = None,
    event: object = None,
    positive: object = None,
    strata: str | Sequence[str] | None = None,
    penalty: float = 0.0,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    robust: bool = False,
    by_site: object = None,
    leave_out_site: object = None,
    level: float = 0.95,
    drop_missing: bool = False,
    **options: Any,
) -> Fit:
    """Fit a regression model to rows in one place.

    Parameters
    ----------
    data
        A data set's name, a file, or an object in memory: see `gosta.datasets.load`.
    model
        "logistic", "linear", "poisson", "cox" or "auc".
    outcome
        The column that is explained, or its values; of a Cox model, `time` and `event` are.
    columns
        The columns that explain it; by default all others but identifiers and dates. Columns of
        text are factors, whose first level is the reference. Terms such as ``"age:sex"``,
        ``"bs(age, df=4)"`` or ``"C(stage)"`` can stand among them.
    formula
        A formula in place of outcome and columns, such as ``"died ~ age * sex"``; needs the
        package formulaic.
    time, event
        For a Cox model, the columns of times and of whether an event was seen then.
    positive
        Of a logistic model or the model auc, the class that is explained; by default the last one,
        or yes of yes and no.
    strata
        For a Cox model, a column whose values have baseline hazards of their own, or several.
    penalty
        Half of it times the sum of squares of the coefficients of standardised columns is added to
        the negative log-likelihood (ridge). 0: none.
    ranges
        Lowest and highest value of columns of numbers; by default those of the rows. Values beyond
        count as these.
    levels
        Levels of factors, the reference first; by default those of the rows, in order.
    robust
        Whether standard errors are the robust ones (sandwich), for a model that need not hold.
    by_site
        A column such as "hospital": robust standard errors that allow rows of one value to depend
        on each other.
    leave_out_site
        A column such as "hospital": the rows of each site are predicted by the fit to those of the
        others, and these predictions validated; see `Fit.left_out`.
    level
        Confidence level of intervals.
    drop_missing
        Leave out rows with missing values instead of raising an error.
    **options
        Further options of the model, such as ``ties="breslow"``.

    Returns
    -------
    Fit
        Coefficients, errors, intervals and likelihood; `Fit.summary` shows them.

    Examples
    --------
    >>> import gosta
    >>> found = gosta.fit("breast-cancer", columns=["mean radius", "mean texture"])
    >>> found.names, found.coefficients.round(2).tolist()
    (('intercept', 'mean radius', 'mean texture'), [-19.85, 1.06, 0.22])
    >>> f"odds ratio {found.ratios[1]:.2f}, p = {found.p_values[1]:.0e}"
    'odds ratio 2.88, p = 2e-25'
    """
    chosen = find_model(model)
    table = datasets.load(data).select(drop_missing=drop_missing, time=time, event=event)
    sites = None
    if leave_out_site is not None:
        table = table.with_sites(leave_out_site, exclude=True)
        sites, table = table.by, replace(table, by=None)
    if by_site is not None:
        table = table.with_sites(by_site, exclude=True)
    strata_names = strata.split(",") if isinstance(strata, str) else list(strata or ())
    table = _without(table, strata_names)
    parsed = _parsed(table, columns, formula)
    if parsed.outcome is not None and outcome is not None:
        raise InputError(f"outcome = {outcome!r} and that of the formula: give one of the two")
    table = _with_outcome(table, outcome if parsed.outcome is None else parsed.outcome)
    roles = _roles(chosen, table, positive, strata_names or None, options)
    table = _without(table, [roles.get("time"), roles.get("event")])
    known_ranges = dict(ranges or {})
    if "low" in _names(chosen) and table.label in known_ranges:
        roles["low"], roles["high"] = known_ranges.pop(str(table.label))
    terms = parsed.terms or _explaining(table)
    design = make_design(terms, ranges=known_ranges, levels=levels, data=table)
    # Few rows are no danger in one place: there is a warning.
    settings = {"penalty": penalty, "min_rows_per_column": 0, **roles, **options}
    made = make_model(model, design, table, **settings)
    _check_apart(made)
    if parsed.terms:
        table = replace(table, has_selected_columns=True)
    found = fit_model(made, table, level=level, robust=robust)
    if sites is None:
        return found
    return replace(found, left_out=leave_out_sites(made, replace(table, by=sites), level))


def fit_model(model: Model, data: Data, *, level: float = 0.95, robust: bool = False) -> Fit:
    """Return the fit of a model to data in one place; if rows have sites, with errors by these."""
    chosen = data
    if data.by is not None:
        chosen = data.take(~np.isnan(data.site_codes()[0]))
    rows = model.rows(chosen)
    groups = None if data.by is None else chosen.site_codes()[0][rows.kept].astype(np.int64)
    found = model.fit_rows(rows.x, level, groups)
    if groups is not None:
        found = replace(found, robust_by=str(data.by))
        sites = len(np.unique(groups))
        if sites < FEWEST_SITES:
            doubt = f"standard errors by {sites} sites are too small on average, as these are few"
            found = replace(found, warnings=(*found.warnings, doubt))
    if robust or groups is not None:
        found = found.robust()
    left_out = assumptions.left_out(data, model.columns, len(rows.x), len(data))
    if data.has_selected_columns:
        left_out["columns_left_out"] = []
    likely = assumptions.likely_positive(rows.assumed) if "positive" in rows.assumed else None
    doubts = data.doubts + ((assumptions.opposite(rows.assumed),) if likely is not None else ())
    return replace(
        found,
        data=data.name,
        assumed={**rows.assumed, **left_out},
        warnings=(*doubts, *beyond_ranges(model, data), *_few_rows(found), *found.warnings),
    )


def beyond_ranges(model: Model, data: Data) -> tuple[str, ...]:
    """Return what to say of columns with values beyond their declared ranges."""
    ranges = model.design.declared_ranges
    for name in model.response_columns[:1]:
        if (high := getattr(model, "high", None)) is not None:
            ranges[name] = getattr(model, "low", 0.0), high
    found = []
    for name, (low, high) in ranges.items():
        values = data.to_floats([name])
        count = int(np.count_nonzero((values < low) | (values > high)))
        if count:
            text = f"{numbers.count(count, 'value')} beyond {low:g} to {high:g}"
            found.append(f"column {name!r} has {text}, counted as the nearest of these ends")
    return tuple(found)


def _few_rows(found: Fit) -> tuple[str, ...]:
    """Return what to say of a model with many columns for its rows."""
    columns, few = len(found.model.design.names), Model.min_rows_per_column
    if found.n >= few * columns:
        return ()
    return (
        f"{found.n:,} rows for {numbers.count(columns, 'column')} are fewer than {few:g} for each: "
        "predictions for other rows are worse than for these; use fewer columns or a penalty.",
    )


def _check_apart(model: Model) -> None:
    """Raise an error if a column both is explained and explains."""
    both = [name for name in model.design.columns if name in model.response_columns]
    if both:
        raise InputError(
            f"column {both[0]!r} is the outcome and explains it", remedy="leave it out of columns"
        )


def _names(model: type[Model]) -> set[str]:
    return {one.name for one in fields(model)}


def _without(data: Data, others: Sequence[object]) -> Data:
    """Return data of which some columns are no features."""
    left = tuple(name for name in data.features if name not in others)
    return replace(data, features=left)


def _parsed(data: Data, columns: str | Sequence[str] | None, formula: str | None) -> Formula:
    if formula is not None:
        if columns is not None:
            raise InputError("formula and columns are both given: give one of the two")
        return parse_formula(formula, data)
    return Formula(None, (columns,) if isinstance(columns, str) else tuple(columns or ()))


def _explaining(data: Data) -> tuple[str, ...]:
    """Return the columns that are no outcome, and neither identifiers nor dates by their values."""
    found = guess_roles(data.head(min(len(data), LOOKED_AT)), list(data.features))
    return tuple(name for name in data.features if name not in (*found.identifiers, *found.dates))


def _with_outcome(data: Data, outcome: object) -> Data:
    """Return data with the column of the outcome, which is no feature."""
    if outcome is None:
        return data
    left = [name for name in data.columns if name not in data.features]
    return _without(data.select(label=outcome), left)


def _roles(
    model: type[Model],
    data: Data,
    positive: object,
    strata: list[str] | None,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the columns that a model takes beside those of its design."""
    known = _names(model)
    given = {
        "outcome": data.label,
        "time": data.time or ("time" if "time" in data.columns else None),
        "event": data.event or ("event" if "event" in data.columns else None),
        "positive": positive,
        "strata": strata,
    }
    for name in ROLES:
        required = name in known and name in ("outcome", "time", "event")
        if required and given[name] is None and name not in options:
            raise _missing(model, data, name)
    for name, value in {"positive": positive, "strata": strata}.items():
        if value is not None and name not in known:
            raise InputError(f"{name} = {value!r}: {model.title} has none; leave it out")
    return {k: v for k, v in given.items() if k in known and v is not None and k not in options}


def _missing(model: type[Model], data: Data, role: str) -> InputError:
    """Return the error for a role that no column has, with columns that could play it."""
    if role == "outcome":
        found = guess_roles(data, list(data.columns))
        likely = found.binary if "classes" in _names(model) else found.numbers
    else:
        likely = could_play(data, role)
    guess = f" ({shorten(likely, 3)}?)" if likely else ""
    return InputError(
        f"{model.title} of {data.name} needs the {role}", remedy=f"name it with --{role}{guess}"
    )
