"""Names of statistics: those of all statistics and measures, and other names people type.

A name that is none is answered with those it may mean: first those it is a slip of the keyboard
for, then those whose names, other names and summaries share its words, then those spelled alike.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from math import log

from gosta.errors import InputError, unknown

SUMMARIES: dict[str, str] = {}  # of all statistics and measures, filled as they are registered
# What else statistics are called. A name with two meanings, such as gini, is in none of the lists.
# Words that the answer to an unknown name takes into account are added in parentheses.
OTHER_NAMES = {
    "auc": "auroc roc-auc c-statistic area-under-curve (discrimination accuracy)",
    "auc-difference": "delong (compare models)",
    "average-precision": "ap auprc pr-auc",
    "partial-auc": "pauc",
    "roc-curve": "roc",
    "precision-recall-curve": "pr pr-curve prc",
    "sensitivity": "tpr recall true-positive-rate (accuracy)",
    "specificity": "tnr true-negative-rate (accuracy)",
    "positive-predictive-value": "ppv precision",
    "negative-predictive-value": "npv",
    "f1-score": "f1 f-score",
    "net-benefit": "dca decision-curve",
    "net-benefit-of-all": "treat-all",
    "brier-score": "brier (accuracy)",
    "scaled-brier-score": "brier-skill-score bss",
    "brier-parts": "brier-decomposition murphy-decomposition",
    "log-loss": "logloss cross-entropy",
    "observed-expected-ratio": "oe o-e oe-ratio",
    "calibration-in-the-large": "citl",
    "calibration-curve": "calibration-plot reliability-diagram",
    "smooth-calibration-curve": "loess-calibration",
    "calibration-error": "ici e50 e90 emax ece",
    "hosmer-lemeshow": "hl",
    "kaplan-meier": "km survival-curve (hazard)",
    "numbers-at-risk": "at-risk",
    "concordance-index": "cindex c-index harrell harrells-c concordance (discrimination survival)",
    "uno-concordance": "uno unos-c cindex-ipcw (discrimination)",
    "time-dependent-auc": "tdauc td-auc cumulative-dynamic-auc",
    "survival-brier-score": "brier-survival",
    "integrated-brier-score": "ibs",
    "survival-smooth-calibration": "calibration-at-time",
    "survival-calibration-error": "survival-ici",
    "brier-difference": "(compare models)",
    "integrated-discrimination": "idi (compare models)",
    "net-reclassification": "nri (compare models)",
    "concordance-difference": "(compare models)",
    "log-rank": "logrank mantel-cox (hazard)",
    "kolmogorov-smirnov": "ks",
    "mann-whitney": "mwu wilcoxon rank-sum (t-test)",
    "kendall-tau": "kendall tau (pearson correlation association)",
    "spearman-rho": "spearman rho (pearson correlation association)",
    "somers-d": "somers",
    "goodman-kruskal-gamma": "goodman-kruskal",
    "distance-correlation": "dcor",
    "covariance": "cov (pearson)",
    "variance": "var (sd std stdev standard deviation)",
    "quantiles": "percentiles deciles (median iqr)",
    "table-one": "table1 table-1 (sd std mean median descriptives)",
    "mmd": "maximum-mean-discrepancy",
    "gini-mean-difference": "gmd",
}
SLIP = 0.84  # likeness of two texts from which on one is a slip of the keyboard for the other
MOST = 3  # names in an answer


def _other_names() -> dict[str, str]:
    listed = re.compile(r"\(.*\)")
    return {
        other: name for name, text in OTHER_NAMES.items() for other in listed.sub("", text).split()
    }


ALIASES = _other_names()
TEST_ALIASES = {**ALIASES, "delong": "auc", "auc-difference": "auc"}


def aliases_of(name: str) -> list[str]:
    """Return the other names of a statistic.

    >>> aliases_of("kaplan-meier")
    ['km', 'survival-curve']
    """
    return [other for other, meant in ALIASES.items() if meant == name]


def resolve(
    name: str, known: Collection[str] = SUMMARIES, aliases: Mapping[str, str] = ALIASES
) -> str:
    """Return the name among known ones that is meant, or the text itself if it is none.

    >>> resolve("AUROC"), resolve("kaplan_meier"), resolve("tau@weight"), resolve("mine")
    ('auc', 'kaplan-meier', 'kendall-tau@weight', 'mine')
    """
    typed, at, weights = name.partition("@")
    if typed in known:
        return name
    plain = re.sub(r"[\s_]+", "-", typed.strip().lower()).replace("'", "")
    meant = aliases.get(plain, plain)
    return meant + at + weights if meant in known else name


def unknown_statistic(
    name: str, known: Collection[str] = SUMMARIES, kind: str = "statistic"
) -> InputError:
    """Return the error for a name that is none, with those that may be meant."""
    return unknown(kind, name, known, "gosta statistics", suggest(name, known))


def suggest(name: str, known: Collection[str] = SUMMARIES) -> list[str]:
    """Return the names among known ones that a text may mean, the likeliest first.

    >>> suggest("giny-index"), suggest("gini")
    (['gini-index'], ['gini-mean-difference', 'gini-index'])
    """
    plain = name.lower().replace("_", "-")
    return _alike(plain, known, SLIP) or _of_same_words(plain, known) or _alike(plain, known, 0.6)


def _alike(name: str, known: Collection[str], least: float) -> list[str]:
    others = [other for other, meant in ALIASES.items() if meant in known]
    near = difflib.get_close_matches(name, known, n=1, cutoff=least)
    other = difflib.get_close_matches(name, others, n=1, cutoff=least)
    return near or [ALIASES[one] for one in other]


def _of_same_words(name: str, known: Collection[str]) -> list[str]:
    """Return the names that share words with a text, of which rare ones count more."""
    texts = {
        one: (_words(f"{one} {OTHER_NAMES.get(one, '')}"), _words(SUMMARIES.get(one, "")))
        for one in known
    }
    scores = dict.fromkeys(texts, 0.0)
    for word in _words(name):
        hits = {
            one: next((2 - k for k, part in enumerate(parts) if _holds(part, word)), 0)
            for one, parts in texts.items()
        }
        found = sum(hit > 0 for hit in hits.values())
        for one, hit in hits.items():
            scores[one] += hit * log((1 + len(texts)) / (1 + found)) if found else 0.0
    best = max(scores.values(), default=0.0)
    likely = sorted(scores, key=lambda one: -scores[one])[:MOST]
    return [one for one in likely if scores[one] > 0 and scores[one] >= best / 2]


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"[a-z0-9]+", text.lower()) if len(word) > 1}


def _holds(words: Iterable[str], wanted: str) -> bool:
    """Return whether one of some words is the wanted one, or differs in its ending only."""
    return any(
        word == wanted
        or (
            min(len(word), len(wanted)) > 3 and (word.startswith(wanted) or wanted.startswith(word))
        )
        for word in words
    )
