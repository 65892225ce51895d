"""``gosta exact``: a statistic over data in one place."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

from gosta.cli import options, sketches
from gosta.errors import GostaError, InputError, unknown
from gosta.views import numbers, terminal

if TYPE_CHECKING:
    from gosta.statistics.exact import Measurement

Record = dict[str, Any]


def exact(
    rows: options.Rows,
    data: options.DataName = "breast-cancer",
    statistic: Annotated[
        str | None,
        "A name from 'gosta statistics', or FILE.py:NAME for your own; by default all that fit the data.",
        "-s",
    ] = None,
    option: options.StatisticOptions = None,
    normalisation: Annotated[
        str | None, "U: pairs of different rows; V: all pairs. By default that of textbooks."
    ] = None,
    interval: options.Interval = None,
    *,
    binning: options.Binning,
    seed: Annotated[int | None, "Seed of synthetic data."] = None,
    as_json: options.Json = False,
) -> None:
    """Compute the exact value of a statistic over all rows of the data."""
    from gosta.sketches import SKETCHES
    from gosta.statistics import STATISTICS, Statistic
    from gosta.statistics.exact import measure

    table, level = rows.load(data, seed), options.fraction("interval", interval, options.LEVEL)
    given = options.statistic_options(option)
    if normalisation not in (None, "U", "V"):
        raise InputError(f"normalisation = {normalisation!r} must be U or V")

    def compute(chosen: Statistic, given: dict[str, Any]) -> Record:
        start = time.perf_counter()
        result = measure(rows.select(table), chosen, normalisation, level, given)  # type: ignore[arg-type]
        return _record(result, data, given, time.perf_counter() - start)

    bins = binning.settings()
    if bins is not None or (statistic is not None and statistic in set(SKETCHES) - set(STATISTICS)):
        if statistic is None:
            raise InputError("bins are for one statistic or some; name them, such as --statistic auc")
        if normalisation is not None:
            raise InputError(f"normalisation = {normalisation!r}: sums have that of textbooks; leave it out")
        selected = rows.select(table)
        sketches.show(selected, statistic, bins, level, given, as_json)
        return
    if statistic is not None:
        record = compute(options.find_statistic(statistic), given)
        print(json.dumps(record) if as_json else _text(record))
        return
    rows.select(table)
    known = {name for chosen in STATISTICS.values() for name in chosen.options}
    for name in given:
        if name not in known:
            raise unknown("option", name, sorted(known))
    records: list[Record] = []
    columns = [f"{numbers.percent(level, 'g')} interval"] if level is not None else []
    cells: list[tuple[str, ...]] = [("statistic", "value", *columns, "columns")]
    for chosen in STATISTICS.values():
        try:
            record = compute(chosen, {k: v for k, v in given.items() if k in chosen.options})
        except GostaError as error:
            reason = str(error).removeprefix(chosen.name + ": ").partition(";")[0]
            cells.append((chosen.name, numbers.NONE, *[numbers.NONE] * len(columns), reason))
        else:
            records.append(record)
            cells.append(_cells(record))
    if not records:
        raise InputError(f"no statistic fits {data}; choose one to see why: --statistic auc")
    if as_json:
        print("\n".join(map(json.dumps, records)))
    else:
        print(f"{data}, {numbers.count(len(table), 'row')}", terminal.columns(cells, right=[1]), sep="\n")


def _record(result: Measurement, data: str, options: dict[str, Any], seconds: float) -> Record:
    from gosta.statistics.exact import Estimate

    value = result.value.value if isinstance(result.value, Estimate) else result.value
    record = {
        "statistic": result.statistic.name,
        "data": data,
        "n": result.n,
        "columns": result.columns,
        "options": options,
        "normalisation": result.normalisation,
        "value": value if isinstance(value, float) else value.tolist(),
        "seconds": round(seconds, 6),
    }
    if isinstance(result.value, Estimate):
        record["interval"] = {k: v for k, v in result.value._asdict().items() if k not in ("value", "bracket")}
    return record


def _text(record: Record) -> str:
    n = record["n"]
    lines = [f"{record['statistic']} of {record['data']}: {record['value']}"]
    if "interval" in record:
        low, high, level, error = (record["interval"][key] for key in ("low", "high", "level", "standard_error"))
        ends = f"{numbers.interval(low, high)} ({numbers.percent(level, 'g')} interval)"
        lines.append(f"  {ends}, standard error {numbers.number(error, 3)}")
    size = f"  {n:,} rows, {n * (n - 1) // 2:,} pairs, {record['seconds']:.2g} s"
    return "\n".join([*lines, size, f"  from {_columns(record)}"])


def _cells(record: Record) -> tuple[str, ...]:
    interval = [numbers.interval(record["interval"]["low"], record["interval"]["high"])] if "interval" in record else []
    return record["statistic"], numbers.number(record["value"]), *interval, _columns(record)


def _columns(record: Record) -> str:
    names = record["columns"]
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}, ..., {names[-1]} ({len(names)} columns)"
