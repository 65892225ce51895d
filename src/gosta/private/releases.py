"""A release of private sums with all sites in one process, by the functions that nodes call."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from gosta import datasets
from gosta.errors import InputError, NumericalError, shorten
from gosta.private import masks
from gosta.private.accounting import Spent
from gosta.private.noise import Random, choose_noise, open_totals, site_vector
from gosta.private.policy import MODES, Policy, Subject, verdict_to_contribute, verdict_to_join
from gosta.private.settings import PrivateSettings, check_settings
from gosta.runtime.arrays import Floats
from gosta.sketches.estimates import differences_of
from gosta.sketches.layout import Layout
from gosta.sketches.layout_builder import check_columns, make_layout
from gosta.sketches.results import StratumResult
from gosta.sketches.sums import Sums, run_rounds
from gosta.statistics.definition import Options
from gosta.statistics.estimate import Estimate
from gosta.views import html, numbers

T = TypeVar("T")
BYTES_PER_NUMBER = 8  # of a masked vector
MOST_CHARACTERS = 60  # of an argument in a message
MOST_VALUES = 4  # of a curve that are shown in one line
# The policy with which every site takes part.
ANYTHING = Policy(
    modes=MODES,
    min_rows=0,
    min_sites=1,
    min_rows_per_column=0,
    min_share=0.0,
    min_cell=0,
    max_bins=1 << 20,
    epsilon_budget=math.inf,
)


@dataclass(frozen=True)
class Release:
    """What everybody knows after a release of private sums.

    Examples
    --------
    >>> import gosta
    >>> sites = [{"age": [31, 42]}, {"age": [65]}]
    >>> found = gosta.private.release(sites, "variance", columns="age", ranges={"age": (0, 128)})
    >>> found.participants, found.epsilon
    (('site-0', 'site-1'), None)
    """

    results: tuple[StratumResult, ...]  # of each statistic: over all rows, then in each stratum
    epsilon: float | None  # of the differential privacy of the release; None: no noise
    delta: float  # of the differential privacy; 0 without noise
    participants: tuple[str, ...]  # sites whose rows are counted
    bytes_per_site: int  # of the masked vectors that a site sends
    layout: Layout  # of the sums
    totals: Floats  # in units of features, with their noise
    level: float | None = None  # of the intervals

    @property
    def value(self) -> Any:
        """Value of the first statistic over all rows; several for a curve.

        None stands where there is no value at a point of a curve.
        """
        value = self.results[0].value
        return value[0] if len(value) == 1 else value

    @property
    def labels(self) -> tuple[str, ...]:
        """What each value of a curve is for, such as "25 %"; empty if there is one value."""
        return self.results[0].labels

    @property
    def bracket(self) -> tuple[Any, Any]:
        """Ends between which the value over the rows lies; of a curve, the ends of all its values.

        That is certain if ``results[0].is_certified``: not with noise.
        """
        low, high = self.results[0].low, self.results[0].high
        return (low[0], high[0]) if len(low) == 1 else (low, high)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Confidence interval for the population, with the noise; None if the sums give none."""
        return self.results[0].interval

    @property
    def differences(self) -> list[Estimate]:
        """The value of each statistic in each stratum less that in the largest one."""
        return differences_of(self.results, self.level)

    def __repr__(self) -> str:
        return f"Release({', '.join(f'{name} {text}' for name, text in self._rows().items())})"

    def _repr_html_(self) -> str:
        return html.table(self._rows().items(), caption="Release")

    def _rows(self) -> dict[str, str]:
        first = self.results[0]
        if not first.has_value:
            value = "not defined"
        else:
            is_curve = len(first.value) > MOST_VALUES
            text = f"{len(first.value)} values" if is_curve else numbers.number(self.value)
            value = text if first.is_certified else f"about {text}"
        shown = {first.statistic: value}
        if first.is_certified and len(first.value) == 1:
            shown["bracket"] = numbers.interval(*self.bracket)
        if self.interval is not None:
            shown["interval"] = numbers.interval(*self.interval)
        if self.epsilon is not None:
            delta = f", delta {self.delta:g}" if self.delta else ""
            shown["epsilon"] = f"{self.epsilon:g}{delta}"
        return shown | {"sites": str(len(self.participants))}


def release(
    sites: Sequence[object] | Mapping[str, object],
    statistic: str,
    *,
    bins: int = 64,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    edges: Mapping[str, Sequence[float]] | None = None,
    find_edges: bool = False,
    strata: Mapping[str, Sequence[str | int | float]] | None = None,
    groups: str | Sequence[str] = (),
    columns: str | Sequence[str] = (),
    label: str | None = None,
    score: str | Sequence[str] | None = None,
    time: str | None = None,
    event: str | None = None,
    classes: Sequence[str | int | float] = (),
    drop_missing: bool = False,
    options: Options | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    colluding: int = 1,
    interval: float | None = 0.95,
    policy: Policy | None = None,
    seed: int | None = None,
) -> Release:
    """Compute statistics of sites' rows from masked sums, as networks with ``--private`` do.

    Parameters
    ----------
    sites
        The rows of each site: what `gosta.datasets.load` takes. A mapping gives the sites names.
    statistic
        A name from ``gosta statistics`` that has a sketch, or several: ``"auc,gini-index:income"``.
    bins, ranges, edges, find_edges
        Bins of equal width of each column within its range, lowest and highest value; or edges
        between bins; or bins that hold equally many rows, which a first release finds. The range
        for ``""`` is that of columns not named.
    strata, groups
        Values of columns; each combination has results of its own. With `groups`, so has each value
        of each of these: ``("sex", "ward")``, or ``("sex", "sex+ward")`` for combinations too.
    columns, label, score, time, event, classes, drop_missing, options
        As for `gosta.exact`. A site need not have rows of all classes, so these are declared,
        negative one first.
    epsilon, delta
        Differential privacy of the release, for one row that is replaced; None: no noise.
    colluding
        Sites that may combine what they know without weakening epsilon and delta for the others.
    interval
        Confidence level of the intervals.
    policy
        A policy that all sites have; a site that it forbids to take part is left out. None: all
        take part.
    seed
        Of keys and noise, for tests: who knows it can remove both. None: the operating system's
        generator.

    Returns
    -------
    Release
        With ``value``, ``bracket``, ``interval``, and ``results`` of all statistics and strata.

    Examples
    --------
    >>> import gosta
    >>> first = {"risk": [0.1, 0.4, 0.8], "died": [0, 0, 1]}
    >>> second = {"risk": [0.35, 0.7], "died": [1, 0]}
    >>> columns = {"score": "risk", "label": "died", "classes": [0, 1]}
    >>> released = gosta.private.release([first, second], "auc", ranges={"risk": (0, 1)}, **columns)
    >>> released.value, released.participants
    (0.6666666666666666, ('site-0', 'site-1'))
    """
    _check_types(sites, interval, policy)
    _check_numbers(bins=bins, epsilon=epsilon, delta=delta, colluding=colluding)
    settings = PrivateSettings(
        bins=bins,
        ranges=_by_column("ranges", ranges, _range, '{"risk": (0, 1)}'),
        edges=_by_column("edges", edges, _edges, '{"risk": [0.1, 0.5]}'),
        find_edges=find_edges,
        strata=_by_column("strata", strata, _levels, '{"sex": ["f", "m"]}'),
        groups=(groups,) if isinstance(groups, str) else tuple(groups),
        epsilon=epsilon,
        delta=delta,
        colluding=colluding,
    )
    check_settings(settings)
    for name, value in {"columns": columns, "classes": classes}.items():
        if not isinstance(value, Iterable):
            raise InputError(f"{name} = {_short(value)} must be a list")
    layout = make_layout(
        statistic,
        settings,
        columns=(columns,) if isinstance(columns, str) else tuple(columns),
        label=label,
        score=score,
        time=time,
        event=event,
        classes=tuple(classes),
        options=options,
    )
    check_columns(layout, settings)
    rows = {}
    for name, site in named_sites(sites).items():
        data = replace(
            datasets.load(site).select(event=event), drop_missing=drop_missing, is_partial=True
        )
        rows[name] = layout.encode(data)
    random = os.urandom if seed is None else np.random.default_rng(seed).bytes
    return release_rows(layout, rows, settings, interval, policy, random)


def named_sites(sites: object) -> Mapping[str, object]:
    """Return the rows of each site by its name, or raise `InputError`."""
    if isinstance(sites, str) or not isinstance(sites, Sequence | Mapping):
        raise InputError(
            f"sites = {_short(sites)} must be a list of tables, one for each site, "
            "or a mapping of the sites' names to these"
        )
    if not sites:
        raise InputError("sites is empty: give the rows of at least one site")
    if isinstance(sites, Mapping):
        return sites
    return {f"site-{k}": site for k, site in enumerate(sites)}


def _check_types(sites: object, interval: object, policy: object) -> None:
    """Raise `InputError` for arguments that are of another type than the function takes."""
    named_sites(sites)
    if interval is not None and not (isinstance(interval, Real) and 0 < float(interval) < 1):
        raise InputError(
            f"interval = {_short(interval)} must be a level between 0 and 1, such as 0.95, or None"
        )
    if policy is not None and not isinstance(policy, Policy):
        raise InputError(
            f"policy = {_short(policy)} must be a gosta.private.Policy, such as Policy(min_rows=20)"
        )


def _check_numbers(**values: object) -> None:
    """Raise `InputError` for arguments that are no numbers."""
    for name, value in values.items():
        is_whole = name in ("bins", "colluding")
        if not isinstance(value, Integral if is_whole else Real) and not (
            name == "epsilon" and value is None
        ):
            raise InputError(f"{name} = {_short(value)} must be a {'whole ' * is_whole}number")


def _by_column(
    name: str, value: object, convert: Callable[[str, Iterable[Any]], T], example: str
) -> dict[str, T]:
    """Return the converted values of each column; an error if there is no mapping to values."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(
        isinstance(values, Iterable) and not isinstance(values, str) for values in value.values()
    ):
        what = "must be a mapping of columns to their values"
        raise InputError(f"{name} = {_short(value)} {what}, such as {example}")
    return {column: convert(column, values) for column, values in value.items()}


def _range(column: str, ends: Iterable[Any]) -> tuple[float, float]:
    values = _floats("range", column, ends)
    if len(values) != 2:
        raise InputError(
            f"range of {column!r} = {_short(ends)} must be two numbers, such as (0, 1)"
        )
    return values[0], values[1]


def _edges(column: str, values: Iterable[Any]) -> tuple[float, ...]:
    return _floats("edges", column, values)


def _levels(_: str, values: Iterable[Any]) -> tuple[str | int | float, ...]:
    return tuple(values)


def _floats(what: str, column: str, values: Iterable[Any]) -> tuple[float, ...]:
    try:
        return tuple(map(float, values))
    except (TypeError, ValueError):
        raise InputError(f"{what} of {column!r} = {_short(values)} must be numbers") from None


def _short(value: object) -> str:
    """Return the first line of a value, for a message."""
    text = repr(value).partition("\n")[0]
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."


def release_rows(
    layout: Layout,
    rows: Mapping[str, Floats],
    settings: PrivateSettings,
    interval: float | None = None,
    policy: Policy | None = None,
    random: Random = os.urandom,
) -> Release:
    """Release the sums over the encoded rows of each site, in two rounds if edges are found."""
    chosen = policy or ANYTHING
    names = participants_by(chosen, layout, rows, settings)
    rounds = masked_rounds(layout, {name: rows[name] for name in names}, settings, random)
    noises = [choose_noise(settings, layout, len(names)) for layout, _ in rounds]
    (last, totals), noise = rounds[-1], noises[-1]
    assert isinstance(last, Layout)
    min_cell = 0 if settings.epsilon else chosen.min_cell
    results = last.results(totals, min_cell, noise.variance, interval, noise.bits)
    return Release(
        tuple(results),
        epsilon=None if settings.epsilon is None else sum(noise.epsilon for noise in noises),
        delta=sum(noise.delta for noise in noises),
        participants=tuple(names),
        bytes_per_site=sum(BYTES_PER_NUMBER * layout.size for layout, _ in rounds),
        layout=last,
        totals=totals,
        level=interval,
    )


def masked_rounds(
    first: Sums,
    rows: Mapping[str, Floats],
    settings: PrivateSettings,
    random: Random = os.urandom,
    min_cell: int = 0,
) -> list[tuple[Sums, Floats]]:
    """Return the sums and the total of each round over the encoded rows of each site."""

    def total_of(sums: Sums) -> Floats:
        for name, x in rows.items():
            if reason := sums.few_rows(x):
                raise InputError(f"{name} does not contribute: {reason}")
        noise = choose_noise(settings, sums, len(rows), [len(x) for x in rows.values()])
        keys = {name: random(masks.KEY_BYTES) for name in rows}
        public = {name: masks.public_key(key) for name, key in keys.items()}
        context = f"{sums.fingerprint} of {', '.join(rows)}".encode()
        vectors = [
            site_vector(sums, x, noise, random)
            + masks.mask(sums.size, name, keys[name], public, context)
            for name, x in rows.items()
        ]
        totals = open_totals(vectors, noise)[1]
        if not sums.is_plausible(totals, noise.reach):
            raise NumericalError("the total of all sites cannot be a sum over rows")
        return totals

    return run_rounds(first, total_of, min_cell)


def participants_by(
    policy: Policy, layout: Sums, rows: Mapping[str, Floats], settings: PrivateSettings
) -> list[str]:
    """Return the sites that the policy lets take part."""
    noise = choose_noise(settings, layout, max(len(rows), 1))
    epsilon = settings.epsilon
    subject = Subject(
        mode="private" if epsilon is None else "noisy",
        statistics=layout.statistics,
        columns=layout.columns,
        layout=layout.fingerprint,
        bins=layout.bins,
        rows_per_column=layout.rows_per_column,
        spent=() if epsilon is None else (Spent(noise.law, epsilon, settings.delta),),
    )
    verdicts = {
        name: verdict_to_join(policy, subject._replace(rows=len(x)), [], 0.0)
        for name, x in rows.items()
    }
    names = sorted(name for name, verdict in verdicts.items() if not verdict)
    too_few = verdict_to_contribute(policy, len(names))
    if too_few or not names:
        left_out = [f"{name}: {verdict}" for name, verdict in verdicts.items() if verdict]
        reasons = "; ".join(filter(None, [too_few, shorten(left_out, 3)]))
        raise InputError(f"suppressed by policy: {reasons}")
    return names
