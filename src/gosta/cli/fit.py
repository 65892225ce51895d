"""``gosta fit``: a regression model fitted to data in one place."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from gosta.cli import options
from gosta.errors import InputError, shorten

if TYPE_CHECKING:
    from gosta.datasets import Data
    from gosta.models import Fit


@dataclass(frozen=True)
class Columns:
    """What a model explains, by which columns."""

    TITLE: ClassVar = "The model"
    outcome: Annotated[str | None, "Column that is explained."] = None
    columns: Annotated[
        list[str] | None,
        "Columns that explain it, a,b or given several times, by default all others; also "
        "terms such as age:sex, 'bs(age, df=4)' or 'C(stage)'. Text is a factor.",
        "-c",
    ] = None
    formula: Annotated[
        str | None, "In place of outcome and columns: 'died ~ age * sex + bs(bmi, df=4)'."
    ] = None
    time: Annotated[str | None, "Column of times to an event, of a Cox model."] = None
    event: Annotated[
        str | None, "Column that says whether the event was seen then (1) or not (0)."
    ] = None
    positive: Annotated[
        str | None, "The class that is explained; by default yes of yes and no, or the last one."
    ] = None
    strata: Annotated[
        str | None, "Columns, a,b, whose values have baseline hazards of their own, of a Cox model."
    ] = None
    levels: Annotated[
        list[str] | None, "Levels of a factor, the reference first: stage=II,I,III."
    ] = None
    range_: Annotated[
        list[str] | None, "Lowest and highest number of a column: age=0:110.", "--range"
    ] = None
    penalty: Annotated[
        float, "Half of it times the squares of standardised coefficients is added (ridge)."
    ] = 0.0

    def settings(self, data: Data) -> dict[str, Any]:
        """Return arguments of `gosta.fit`."""
        given = {
            name: getattr(self, name)
            for name in ("outcome", "formula", "time", "event", "positive", "strata", "penalty")
        }
        levels = [pair for text in self.levels or [] for pair in options.parse_strata(text)]
        return given | {
            "columns": self.columns and options.parse_terms(self.columns, data.columns),
            "ranges": dict(map(options.parse_range, self.range_ or [])),
            "levels": dict(levels),
        }


def fit(
    chosen: Columns,
    reading: options.Reading,
    data: options.DataNames = None,
    model: Annotated[str, "logistic, linear, poisson, cox or auc.", "-m"] = "logistic",
    option: Annotated[list[str] | None, "An option of the model, as ties=breslow.", "-o"] = None,
    robust: Annotated[bool, "Robust standard errors (sandwich)."] = False,
    by_site: Annotated[
        str | None, "Column of sites: robust standard errors, as rows of one depend on each other."
    ] = None,
    leave_out_site: Annotated[
        str | None,
        "Column of sites: validate predictions for each one's rows by the fit to the others.",
    ] = None,
    level: Annotated[str, "Confidence level of intervals."] = "95%",
    drop_missing: options.DropMissing = False,
    private: Annotated[
        Path | None,
        "Folder of a network, or of a node: show the model that its sites fitted by private sums.",
    ] = None,
    *,
    plot: Annotated[
        Path | None,
        "File of a plot, .png, .svg or .pdf: ratios or coefficients, and the baseline survival.",
    ] = None,
    out: Annotated[
        Path | None, "File to write the model to, .json, with which gosta predict predicts rows."
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Fit a regression model: logistic, linear, Poisson, Cox, or one that ranks (auc)."""
    from gosta.models import save
    from gosta.models.fitting import fit as fitted
    from gosta.models.leave_out import no_leaving_out
    from gosta.views import plots

    options.check_picture("plot", plot)
    if out is not None:
        options.check_writable("out", out)
    confidence = options.fraction("level", level, options.LEVEL) or 0.0
    if private is None:
        table = options.load_files(data or ["breast-cancer"], **reading.settings())
        found = fitted(
            table,
            model,
            robust=robust,
            by_site=by_site,
            leave_out_site=leave_out_site,
            level=confidence,
            drop_missing=drop_missing,
            **chosen.settings(table),
            **options.statistic_options(option),
        )
    else:
        if leave_out_site is not None:
            raise no_leaving_out(leave_out_site)
        others = (data, option, by_site, drop_missing or None)
        if chosen != Columns() or reading != options.Reading() or set(others) != {None}:
            raise InputError(
                f"private = {str(private)!r}: the network says what is fitted to which columns",
                remedy="give only --robust, --level, --plot, --out and --json beside it",
            )
        found = _of_network(private, robust, confidence)
    print(json.dumps(found.to_dict()) if as_json else found.summary())
    if private is not None and not as_json:
        print(f"  fitted by {found.data}")
    if plot is not None:
        plots.save(found.draw(), plot)
        if not as_json:
            print(f"  plot: {plot}")
    if out is not None:
        save(found, out)
        if not as_json:
            print(f"  model: {out}")


def _of_network(folder: Path, robust: bool, level: float) -> Fit:
    """Return the model that a network's sites fitted."""
    from gosta.net.deploy.fitted import read_fit

    fit, report = read_fit(folder)
    who = f"private sums over the rows of {shorten(report.participants, 12)}"
    shown = replace(fit, level=level, data=who)
    return shown.robust() if robust else shown
