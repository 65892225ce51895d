"""Models with scikit-learn's interface: in pipelines, grid searches, cross-validation.

The penalty is that of scikit-learn's models after a `StandardScaler`: C = 1 / penalty of
`LogisticRegression`, alpha = penalty of `Ridge`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import roc_auc_score
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from gosta import datasets
from gosta.errors import DataError
from gosta.models.arithmetic import exp, expit
from gosta.models.definition import make_model
from gosta.models.design import make_design
from gosta.models.fit import Fit
from gosta.models.fitting import fit_model
from gosta.runtime.arrays import Floats, project

OUTCOME, TIME, EVENT = "outcome", "time", "event"  # names of columns beside those of X


class _Estimator(BaseEstimator):  # type: ignore[misc]
    """What all models have: settings, the fit, and linear predictors."""

    model = ""  # its name in `MODELS`
    result_: Fit
    coef_: Floats  # by one unit of each column; 1 × columns of models of classes
    intercept_: Any  # a number, or an array of one of models of classes
    n_iter_: int  # rounds of sums

    def __init__(self, penalty: float = 1.0, max_rounds: int = 50) -> None:
        self.penalty = penalty
        self.max_rounds = max_rounds

    def _fit(self, x: Floats, response: dict[str, Floats], **options: Any) -> Fit:
        """Fit the model to columns and the outcome's columns."""
        given = getattr(self, "feature_names_in_", [f"x{k}" for k in range(x.shape[1])])
        names = [f"{name}{'_' * (name in response)}" for name in map(str, given)]
        data = datasets.load({**dict(zip(names, x.T, strict=True)), **response})
        settings = {"penalty": float(self.penalty), "max_rounds": self.max_rounds, **options}
        design = make_design(names, data=data)
        roles = {name: name for name in response}
        made = make_model(self.model, design, data, min_rows_per_column=0.0, **roles, **settings)
        self.result_ = fit_model(made, data)
        self.n_iter_ = self.result_.rounds
        return self.result_

    def _predictors(self, x: object) -> Floats:
        """Return the sum of coefficients times columns, of each row."""
        check_is_fitted(self)
        columns = validate_data(self, x, reset=False, dtype=np.float64)
        predictors = project(columns, np.reshape(self.coef_, (1, -1)))[:, 0]
        return np.asarray(predictors + np.ravel(self.intercept_)[0])

    def _keep(self, found: Fit) -> None:
        """Keep coefficients as scikit-learn's models of one outcome do."""
        self.coef_ = found.coefficients[-self.n_features_in_ :]
        self.intercept_ = float(found.coefficients[0]) if found.model.has_intercept else 0.0


class _OfClasses(_Estimator):
    """A model of two classes."""

    def fit(self, X: object, y: object) -> Any:  # noqa: N803
        """Fit the model to rows X with the classes y."""
        x, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(labels)
        kind = type_of_target(labels, input_name="y", raise_unknown=True)
        self.classes_ = np.unique(labels)
        if kind != "binary":
            reason = f"Only binary classification is supported. The type of the target is {kind}."
            raise DataError(reason)
        if len(self.classes_) < 2:
            raise DataError(f"needs two classes, y has one class only: {self.classes_[0]}")
        flags = (labels == self.classes_[1]).astype(np.float64)
        self._keep(self._fit(x, {OUTCOME: flags}))
        self.coef_, self.intercept_ = self.coef_[None], np.array([self.intercept_])
        return self

    def decision_function(self, X: object) -> Floats:  # noqa: N803
        """Return a score of each row, the larger the more likely the second class is."""
        return self._predictors(X)


class _OfNumbers(_Estimator):
    """A model of numbers."""

    def fit(self, X: object, y: object) -> Any:  # noqa: N803
        """Fit the model to rows X with the numbers y."""
        x, values = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2
        )
        self._keep(self._fit(x, {OUTCOME: np.asarray(values, dtype=np.float64)}))
        return self

    def predict(self, X: object) -> Floats:  # noqa: N803
        """Return the expected value of each row."""
        return self._predictors(X)


class GostaClassifier(ClassifierMixin, _OfClasses):  # type: ignore[misc]
    """Logistic regression of two classes, with scikit-learn's interface.

    Parameters
    ----------
    penalty
        Half of it times the squares of the coefficients of standardised columns (ridge).
    max_rounds
        Rounds of sums that Newton's method may take.

    Attributes
    ----------
    result_
        The `Fit`, with standard errors and intervals if the penalty is 0.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> x, y = load_breast_cancer(return_X_y=True)
    >>> model = GostaClassifier().fit(x, y)
    >>> round(model.score(x, y), 3)
    0.988
    >>> model.predict_proba(x[:1]).round(3).tolist()
    [[1.0, 0.0]]
    """

    model = "logistic"

    def predict_proba(self, X: object) -> Floats:  # noqa: N803
        """Return the probability of each class, rows × 2."""
        risks = expit(self._predictors(X))
        return np.column_stack([1 - risks, risks])

    def predict_log_proba(self, X: object) -> Floats:  # noqa: N803
        """Return the logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: object) -> Any:  # noqa: N803
        """Return the more likely class of each row."""
        scores = self._predictors(X)
        return self.classes_[(scores > 0).astype(np.int64)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class GostaRegressor(RegressorMixin, _OfNumbers):  # type: ignore[misc]
    """Linear regression, with scikit-learn's interface.

    Parameters
    ----------
    penalty
        As alpha of scikit-learn's `Ridge` after a `StandardScaler`.
    max_rounds
        Rounds of sums that are taken at most.

    Attributes
    ----------
    result_
        The `Fit`, with standard errors and intervals if the penalty is 0.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(20.0)[:, None]
    >>> model = GostaRegressor(penalty=0).fit(x, 3 * x[:, 0] + 1)
    >>> model.coef_.round(6).tolist(), round(model.intercept_, 6)
    ([3.0], 1.0)
    """

    model = "linear"


class GostaPoissonRegressor(RegressorMixin, _OfNumbers):  # type: ignore[misc]
    """Poisson regression of counts, with scikit-learn's interface.

    Parameters
    ----------
    penalty
        Half of it times the squares of the coefficients of standardised columns (ridge).
    max_rounds
        Rounds of sums that Newton's method may take.

    Attributes
    ----------
    result_
        The `Fit`, with standard errors and intervals if the penalty is 0.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.repeat([0.0, 1.0], 4)[:, None]
    >>> model = GostaPoissonRegressor(penalty=0).fit(x, [1, 2, 3, 2, 4, 4, 3, 5])
    >>> model.predict([[0.0], [1.0]]).round(6).tolist()
    [2.0, 4.0]
    """

    model = "poisson"

    def predict(self, X: object) -> Floats:  # noqa: N803
        """Return the expected count of each row."""
        return exp(self._predictors(X))


class GostaAUCRanker(_OfClasses):
    """Scores that rank rows of one class above those of the other, with scikit-learn's interface.

    The mean over pairs of rows of two classes of (1 − difference of their scores)² is minimised.

    Parameters
    ----------
    penalty
        Half of it times the squares of the coefficients of standardised columns (ridge).
    max_rounds
        Rounds of sums that are taken at most.

    Attributes
    ----------
    result_
        The `Fit`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> x, y = load_breast_cancer(return_X_y=True)
    >>> ranker = GostaAUCRanker(penalty=0.01).fit(x, y)
    >>> ranker.score(x, y) > 0.99
    True
    """

    model = "auc"

    def score(self, X: object, y: object) -> float:  # noqa: N803
        """Return the AUC of the scores."""
        scores = self._predictors(X)
        return float(roc_auc_score(column_or_1d(y) == self.classes_[1], scores))


class GostaCox(_Estimator):
    """Cox regression of times to an event, with scikit-learn's interface.

    Parameters
    ----------
    penalty
        Half of it times the squares of the coefficients of standardised columns (ridge).
    max_rounds
        Rounds of sums that Newton's method may take.

    Attributes
    ----------
    result_
        The `Fit`, with baseline hazards, and with standard errors if the penalty is 0.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.0], [1.0], [0.0], [1.0], [0.0], [1.0]])
    >>> y = np.array([(True, 5.0), (True, 2.0), (True, 7.0), (True, 6.0), (False, 9.0),
    ...               (True, 1.0)], dtype=[("event", bool), ("time", float)])
    >>> bool(GostaCox().fit(x, y).coef_[0] > 0)
    True
    """

    model = "cox"

    def fit(self, X: object, y: object) -> Any:  # noqa: N803
        """Fit the model to rows X, and y with fields for events and times as scikit-survival's."""
        x = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        table = np.asarray(y)
        names = table.dtype.names or ()
        if len(names) != 2 or table.dtype[0].kind != "b":
            raise DataError("y must be an array with two fields: events (True or False) and times")
        events, times = (np.asarray(table[name], dtype=np.float64) for name in names)
        self._keep(self._fit(x, {TIME: times, EVENT: events}))
        return self

    def predict(self, X: object) -> Floats:  # noqa: N803
        """Return the logarithm of each row's hazard against that of mean columns."""
        return self._predictors(X) - float(self.result_.means @ self.coef_)
