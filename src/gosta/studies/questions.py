"""The questions of a study, and the statistics that answer each of them."""

from __future__ import annotations

from typing import NamedTuple

TABLE_ONE = "table-one"  # the question whose rows need not be complete
# What a statistic takes, in the order of its columns: "columns" are all that Table 1 describes,
# "other" is the second score. No columns of a statistic, but needed for it, are "label", the
# outcome, "horizon", and "risks": scores from 0 to 1. "risks_over_time" are several columns.
SCORED = ("label", "score")
SURVIVAL = ("time", "event", "score")
TWO_SCORES = ("label", "score", "other")


class Answer(NamedTuple):
    """A statistic that answers a question."""

    statistic: str
    roles: tuple[str, ...]  # that a study must have for it
    is_extra: bool = False  # whether only where a study asks for it by name, under `also`


def _answers(
    roles: tuple[str, ...], *statistics: str, is_extra: bool = False
) -> tuple[Answer, ...]:
    return tuple(Answer(name, roles, is_extra) for name in statistics)


QUESTIONS: dict[str, tuple[Answer, ...]] = {
    TABLE_ONE: _answers(("columns",), "table-one"),
    "discrimination": (
        *_answers(
            SCORED,
            "auc",
            "roc-curve",
            "precision-recall-curve",
            "average-precision",
            "sensitivity",
            "specificity",
            "positive-predictive-value",
            "negative-predictive-value",
            "f1-score",
        ),
        *_answers(SCORED, "partial-auc", is_extra=True),
    ),
    "calibration": (
        *_answers(
            SCORED,
            "calibration-in-the-large",
            "calibration-intercept",
            "calibration-slope",
            "observed-expected-ratio",
            "calibration-curve",
            "smooth-calibration-curve",
            "calibration-error",
            "brier-score",
            "scaled-brier-score",
            "brier-parts",
            "log-loss",
        ),
        *_answers(SCORED, "hosmer-lemeshow", is_extra=True),
    ),
    "usefulness": _answers(SCORED, "net-benefit", "net-benefit-of-all"),
    "survival": (
        *_answers(("time", "event"), "kaplan-meier", "numbers-at-risk"),
        *_answers(SURVIVAL, "concordance-index", "uno-concordance", "time-dependent-auc"),
        *_answers(
            (*SURVIVAL, "risks", "horizon"),
            "survival-brier-score",
            "survival-calibration",
            "survival-observed-expected-ratio",
            "survival-calibration-intercept",
            "survival-calibration-slope",
            "survival-smooth-calibration",
            "survival-calibration-error",
        ),
        *_answers(("time", "event", "risks_over_time"), "integrated-brier-score"),
    ),
    "comparison": (
        *_answers(TWO_SCORES, "auc-difference", "brier-difference"),
        *_answers(TWO_SCORES, "integrated-discrimination", "net-reclassification"),
        Answer("concordance-difference", (*SURVIVAL, "other")),
    ),
}
NEEDS = {  # for messages: what each question needs of a study
    TABLE_ONE: "columns in its dictionary",
    "discrimination": "a label and a score",
    "calibration": "a label and a score",
    "usefulness": "a label and a score",
    "survival": "time and event",
    "comparison": "two scores, and a label or time and event",
}
NO_COLUMNS = ("label", "risks", "horizon")  # roles that are no columns of a statistic
EXTRA = {  # statistics that a study names under `also`, and their questions
    answer.statistic: question
    for question, answers in QUESTIONS.items()
    for answer in answers
    if answer.is_extra
}
# Questions whose scores are predicted risks, from 0 to 1.
OF_RISKS = ("calibration", "usefulness")
