"""Data sets that come with other libraries, split over uneven sites, and the models that these
libraries fit to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import lifelines
import lifelines.datasets
import numpy as np
import pandas as pd
import sklearn.datasets
import statsmodels.api as sm
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from gosta.models import Fit

Floats = np.ndarray[Any, np.dtype[np.float64]]
SHARES = (0.08, 0.35)  # of the rows that are at the first two of three sites, one after the other
PRECISE = {"precision": 1e-13}


@dataclass(frozen=True)
class Case:
    """A data set and a model of it; the first site has the rows with the lowest outcomes, which are
    of one class, or without an event.
    """

    name: str
    model: str
    load: Callable[[], pd.DataFrame]
    outcome: str = "outcome"
    penalty: float = 0.0
    strata: str = ""

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The rows, with the site of each."""
        rows = self.load().dropna()
        n, first = len(rows), int(SHARES[0] * len(rows)) + 1
        lowest = np.argsort(rows[self.outcome].to_numpy(), kind="stable")[:first]
        rows = rows.iloc[[*lowest, *np.setdiff1d(np.arange(n), lowest)]].reset_index(drop=True)
        place = np.searchsorted([first, SHARES[1] * n], np.arange(n), side="right")
        return rows.assign(site=np.array(["north", "south", "west"])[place])

    @property
    def columns(self) -> list[str]:
        """The columns that explain the outcome."""
        apart = {"site", "time", self.outcome, self.strata}
        return [name for name in self.rows.columns if name not in apart]

    @property
    def sites(self) -> dict[str, Mapping[str, Any]]:
        """The rows of each site."""
        read = self.rows.drop(columns="site")
        return {
            str(site): {name: column.to_numpy() for name, column in read.loc[places].items()}
            for site, places in self.rows.groupby("site").groups.items()
        }

    @property
    def declared(self) -> dict[str, Any]:
        """What all sites know beforehand; ranges are wider than those of the rows."""
        rows = self.rows
        declared: dict[str, Any] = {"penalty": self.penalty}
        texts = [name for name in self.columns if rows[name].dtype == object]
        numbers = [name for name in self.columns if name not in texts]
        declared["levels"] = {name: tuple(sorted(rows[name].unique())) for name in texts}
        declared["ranges"] = {name: wider(rows[name]) for name in numbers}
        outcome = rows[self.outcome]
        if self.model == "logistic":
            return declared | {"outcome": self.outcome, "classes": (0, 1)}
        if self.model == "linear":
            low, high = wider(outcome)
            return declared | {"outcome": self.outcome, "low": low, "high": high}
        if self.model == "poisson":
            return declared | {"outcome": self.outcome, "high": 2.0 * outcome.max()}
        seen = tuple(np.unique(rows["time"][outcome == 1]).tolist())
        strata = ((self.strata, tuple(sorted(rows[self.strata].unique()))),) if self.strata else ()
        return declared | {"time": "time", "event": self.outcome, "times": seen, "strata": strata}

    @property
    def network_options(self) -> list[str]:
        """Options of the command line of a network; ranges and levels are those of the data."""
        columns = ",".join(f"`{name}`" for name in self.columns)
        made = ["--fit", self.model, "--columns", columns, "--penalty", str(self.penalty)]
        if self.model != "cox":
            return [*made, "--outcome", self.outcome]
        times = ",".join(f"{time:g}" for time in self.declared["times"])
        made += ["--time", "time", "--event", self.outcome, "--option", f"times={times}"]
        return [*made, "--strata", self.strata] if self.strata else made

    @property
    def matrix(self) -> Floats:
        """The columns of the model, one for each level of a factor but the first."""
        parts = [
            pd.get_dummies(self.rows[name], drop_first=True).to_numpy(float)
            if self.rows[name].dtype == object
            else self.rows[[name]].to_numpy(float)
            for name in self.columns
        ]
        return np.hstack(parts)

    def others(self) -> tuple[Floats, Floats | None]:
        """Return coefficients of another library, and their standard errors if it has these."""
        x, y = self.matrix, self.rows[self.outcome].to_numpy(float)
        if self.model == "cox":
            table = pd.DataFrame(x).assign(time=self.rows["time"], event=y)
            if self.strata:
                table["stratum"] = self.rows[self.strata]
            strata = ["stratum"] if self.strata else None
            fit = lifelines.CoxPHFitter().fit(
                table, "time", "event", strata=strata, fit_options=PRECISE
            )
            return fit.params_.to_numpy(), fit.standard_errors_.to_numpy()
        # Newton's method of statsmodels finds more digits with standardised columns.
        scaler = StandardScaler().fit(x)
        back = np.diag(np.append(1.0, 1 / scaler.scale_))
        back[0, 1:] = -scaler.mean_ / scaler.scale_
        scaled = scaler.transform(x)
        if self.penalty:
            return back @ self._penalised(scaled, y), None
        kind = {"linear": sm.OLS, "logistic": sm.Logit, "poisson": sm.Poisson}[self.model]
        given = {} if self.model == "linear" else {"disp": 0, "tol": 1e-12, "maxiter": 100}
        fit = kind(y, sm.add_constant(scaled)).fit(**given)
        return back @ fit.params, np.sqrt(np.diagonal(back @ fit.cov_params() @ back.T))

    def _penalised(self, scaled: Floats, y: Floats) -> Floats:
        given = {"tol": 1e-13, "max_iter": 1000, "solver": "newton-cholesky"}
        other = (
            Ridge(alpha=self.penalty)
            if self.model == "linear"
            else LogisticRegression(C=1 / self.penalty, **given)
        )
        other.fit(scaled, y)
        return np.append(other.intercept_, other.coef_)

    def error(self, fit: Fit) -> float:
        """Return the largest difference of a coefficient, in its standard errors; a standard error
        that differs is an error.
        """
        values, errors = self.others()
        if errors is not None:
            np.testing.assert_allclose(fit.standard_errors, errors, rtol=1e-5)
        return float(np.abs((fit.coefficients - values) / fit.standard_errors).max())


def wider(values: pd.Series) -> tuple[float, float]:
    """Return a range that is a fifth wider than that of values."""
    low, high = float(values.min()), float(values.max())
    return low - (high - low) / 10, high + (high - low) / 10


def of_sklearn(name: str, columns: slice = slice(None)) -> pd.DataFrame:
    """Return a data set of scikit-learn, with its target as the column "outcome"."""
    found = getattr(sklearn.datasets, f"load_{name}")(as_frame=True)
    return found.data.iloc[:, columns].assign(outcome=found.target)


def of_lifelines(name: str, time: str, event: str) -> pd.DataFrame:
    """Return a data set of lifelines, with columns "time" and "outcome", 1 for an event."""
    return getattr(lifelines.datasets, f"load_{name}")().rename(
        columns={time: "time", event: "outcome"}
    )


def of_statsmodels(name: str, outcome: str) -> pd.DataFrame:
    """Return a data set of statsmodels, with one of its columns as "outcome"."""
    found = getattr(sm.datasets, name).load_pandas().data
    return found.rename(columns={outcome: "outcome"})


def wine() -> pd.DataFrame:
    return of_sklearn("wine").assign(outcome=lambda rows: (rows["outcome"] == 1).astype(int))


def digits() -> pd.DataFrame:
    """Pixels in the middle of digits, which are odd or even."""
    found = of_sklearn("digits")
    middle = [f"pixel_{row}_{column}" for row in (1, 2, 3, 5) for column in (2, 3, 4, 5)]
    return found[middle].assign(outcome=found["outcome"] % 2)


def iris() -> pd.DataFrame:
    found = of_sklearn("iris")
    species = np.array(["setosa", "versicolor", "virginica"], dtype=object)[found["outcome"]]
    named = found.rename(columns={"sepal length (cm)": "outcome", "outcome": "species"})
    return named.assign(species=species)


def fair() -> pd.DataFrame:
    return of_statsmodels("fair", "affairs").assign(
        outcome=lambda rows: (rows["outcome"] > 0).astype(int)
    )


def randhie() -> pd.DataFrame:
    return of_statsmodels("randhie", "mdvis").drop(columns=["fmde"])


def gbsg2() -> pd.DataFrame:
    return of_lifelines("gbsg2", "time", "cens").rename(columns={"tgrade": "grade"})


def lung() -> pd.DataFrame:
    """Rows with missing values are left out; 1 stands for an event there, and 0 for none."""
    columns = ["time", "outcome", "age", "sex", "ph.ecog", "ph.karno"]
    return of_lifelines("lung", "time", "status")[columns]


CASES = [
    Case("breast-cancer", "logistic", lambda: of_sklearn("breast_cancer", slice(5))),
    # All 30 columns, which are nearly combinations of each other.
    Case("breast-cancer", "logistic", lambda: of_sklearn("breast_cancer"), penalty=1.0),
    Case("wine", "logistic", wine, penalty=1.0),
    Case("digits", "logistic", digits, penalty=2.0),
    Case("spector", "logistic", lambda: of_statsmodels("spector", "GRADE")),
    Case("anes96", "logistic", lambda: of_statsmodels("anes96", "vote")),
    Case("fair", "logistic", fair),
    Case("iris", "linear", iris),
    Case("diabetes", "linear", lambda: of_sklearn("diabetes"), penalty=1.0),
    Case("randhie", "poisson", randhie),
    Case("rossi", "cox", lambda: of_lifelines("rossi", "week", "arrest")),
    Case("larynx", "cox", lambda: of_lifelines("larynx", "time", "death")),
    Case("lung", "cox", lung),
    Case("kidney-transplant", "cox", lambda: of_lifelines("kidney_transplant", "time", "death")),
    Case("gbsg2", "cox", gbsg2, strata="grade"),
]
