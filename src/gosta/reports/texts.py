"""Words of a report: names of statistics, references, and the items of TRIPOD+AI."""

from __future__ import annotations

from typing import NamedTuple

from gosta.sketches.risk_moments import LEAST_RISK

# In the words of the field; other statistics are shown by their names.
TITLES = {
    "table-one": "Table 1",
    "roc-curve": "ROC curve",
    "precision-recall-curve": "precision-recall curve",
    "auc": "AUC",
    "average-precision": "average precision",
    "sensitivity": "sensitivity",
    "specificity": "specificity",
    "positive-predictive-value": "positive predictive value",
    "negative-predictive-value": "negative predictive value",
    "f1-score": "F1 score",
    "calibration-in-the-large": "calibration in the large",
    "calibration-intercept": "calibration intercept",
    "calibration-slope": "calibration slope",
    "observed-expected-ratio": "observed / expected outcomes",
    "calibration-error": "calibration error of the smooth curve",
    "brier-score": "Brier score",
    "scaled-brier-score": "scaled Brier score",
    "brier-parts": "parts of the Brier score",
    "log-loss": "log loss",
    "hosmer-lemeshow": "Hosmer-Lemeshow test, which depends on the bins and on the number of rows",
    "partial-auc": "partial AUC, false positive rates up to 0.1, standardised",
    "net-benefit": "net benefit",
    "net-benefit-of-all": "net benefit of treating all",
    "kaplan-meier": "share without an event",
    "kaplan-meier-at-times": "share without an event just before",
    "numbers-at-risk": "rows at risk",
    "concordance-index": "C-index (Harrell)",
    "uno-concordance": "C-index (Uno)",
    "time-dependent-auc": "AUC at a time",
    "survival-brier-score": "Brier score at the horizon",
    "integrated-brier-score": "integrated Brier score",
    "survival-observed-expected-ratio": "observed / expected events before the horizon",
    "survival-calibration-intercept": "calibration intercept at the horizon",
    "survival-calibration-slope": "calibration slope at the horizon",
    "survival-smooth-calibration": "smooth calibration at the horizon",
    "survival-calibration-error": "calibration error at the horizon",
    "auc-difference": "difference of AUCs",
    "brier-difference": "difference of Brier scores",
    "concordance-difference": "difference of C-indices",
    "integrated-discrimination": "integrated discrimination improvement (IDI)",
    "net-reclassification": "net reclassification improvement (NRI)",
}
# What is seen as better, so that a table can be read without a textbook.
MEANINGS = {
    "auc": "probability that a row with the outcome has a higher score than one without; 0.5 is "
    "chance",
    "average-precision": "mean precision over the ranks of the rows with the outcome; chance is "
    "their share",
    "calibration-in-the-large": "0 if as many have the outcome as was predicted; above 0 if more",
    "calibration-intercept": "0 if risks are right on average, given the slope",
    "calibration-slope": "1 if risks are as spread as they should be; below 1 if too extreme",
    "observed-expected-ratio": "1 if as many have the outcome as was predicted",
    "brier-score": "mean squared error of the risks; smaller is better",
    "scaled-brier-score": "share of the prevalence's Brier score that the risks remove; 1 is best",
    "log-loss": "mean negative log-likelihood; smaller is better",
    "partial-auc": "0.5 is chance, 1 the best, as McClish standardises the area",
    "integrated-brier-score": "mean over the times of the Brier score; smaller is better",
    "concordance-index": "probability that of two rows the one with the earlier event has the "
    "higher score; 0.5 is chance",
    "uno-concordance": "the same, weighted so that it does not depend on censoring",
    "survival-brier-score": "mean squared error of the risks of an event before the horizon",
    "survival-calibration-intercept": "0 if risks are right on average, given the slope",
    "survival-calibration-slope": "1 if risks are as spread as they should be; below 1 if too "
    "extreme",
    "survival-observed-expected-ratio": "events by Kaplan and Meier over those predicted; 1 is "
    "right",
}
RECLASSIFICATION_WARNING = (
    "NRI and IDI can favour a model that is merely miscalibrated, and their p-values are too small "
    "then; the differences of AUC, Brier score and net benefit do not have this flaw (Hilden and "
    "Gerds 2014)."
)
BRACKETS = (
    " An interval covers the error of sampling; a bracket covers what bins leave open: the value "
    "over the rows lies within it. Neither includes the other. A bracket that covers more than "
    "half of all possible values is called wide, and not shown; more bins narrow it."
)
BRACKETS_BELOW = (
    "In parentheses is the interval, for the error of sampling alone; a bracket is what bins leave "
    "open of the value over these rows. Neither includes the other: both together are more."
)
QUARTILES = (
    "Quartiles are values of rows: the least that at least a quarter, a half and three quarters of "
    "the rows do not exceed (type 1 of R's quantile, whose default is type 7); by private sums, "
    "they are interpolated in bins."
)
P_VALUES_AND_BRACKETS = (
    " They do not include the bracket: where it includes 0, the sign of the difference over the "
    "rows is open, and more bins would decide."
)
TIMES = (
    "The share without an event just before t is Kaplan and Meier's "
    "P(T \N{GREATER-THAN OR EQUAL TO} t), in which an event at t itself has not counted; software "
    "such as R's survfit tells P(T > t), in which it has, as curves of rows in one place do from "
    "each time of an event on; "
    "rows at risk at t are those whose time is t or later. The AUC at a time t is cumulative and "
    "dynamic: it compares rows with an event before t with rows without one by then, weighted by "
    "the inverse probability of not being censored."
)
AT_RISK_BY_SUMS = (
    " Rows at risk are shown at times that are edges of bins; a number after "
    "\N{ALMOST EQUAL TO} is known within a bracket."
)
ROWS_OF_SITES = (
    "How many rows were left out is not known here: a row counts at its site if it has a value in "
    "every column that has a role, and how many lack one is known at each site only."
)
SEVERAL_MISSING = "A row can lack several values."
# Statistics that take logits or logarithms of risks.
OF_LOGITS = {
    "log-loss",
    "calibration-in-the-large",
    "calibration-intercept",
    "calibration-slope",
    "smooth-calibration-curve",
    "calibration-error",
}
FLOOR = (
    f"For the log loss and for calibration on the logit scale, risks below {LEAST_RISK:f} or above "
    f"{1 - LEAST_RISK:f} were set to these values."
)
# For which statistics each work stands, and how it is cited.
REFERENCES: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("auc", "auc-difference"),
        "DeLong ER, DeLong DM, Clarke-Pearson DL. Comparing the areas under two or more correlated "
        "receiver operating characteristic curves. Biometrics 1988;44:837-845.",
    ),
    (
        ("sensitivity", "specificity", "calibration-curve"),
        "Wilson EB. Probable inference, the law of succession, and statistical inference. J Am "
        "Stat Assoc 1927;22:209-212.",
    ),
    (
        ("calibration-slope", "calibration-intercept", "calibration-in-the-large"),
        "Van Calster B, McLernon DJ, van Smeden M, et al. Calibration: the Achilles heel of "
        "predictive analytics. BMC Med 2019;17:230.",
    ),
    (
        ("calibration-error", "smooth-calibration-curve"),
        "Austin PC, Steyerberg EW. The Integrated Calibration Index (ICI) and related metrics for "
        "quantifying the calibration of logistic regression models. Stat Med 2019;38:4051-4065.",
    ),
    (
        ("brier-score", "scaled-brier-score", "brier-parts", "brier-difference"),
        "Brier GW. Verification of forecasts expressed in terms of probability. Mon Weather Rev "
        "1950;78:1-3.",
    ),
    (
        ("partial-auc",),
        "McClish DK. Analyzing a portion of the ROC curve. Med Decis Making 1989;9:190-195.",
    ),
    (
        ("hosmer-lemeshow",),
        "Hosmer DW, Hosmer T, le Cessie S, Lemeshow S. A comparison of goodness-of-fit tests for "
        "the logistic regression model. Stat Med 1997;16:965-980.",
    ),
    (
        ("net-benefit", "net-benefit-of-all"),
        "Vickers AJ, Elkin EB. Decision curve analysis: a novel method for evaluating prediction "
        "models. Med Decis Making 2006;26:565-574.",
    ),
    (
        ("kaplan-meier",),
        "Kaplan EL, Meier P. Nonparametric estimation from incomplete observations. J Am Stat "
        "Assoc 1958;53:457-481.",
    ),
    (
        ("concordance-index", "concordance-difference"),
        "Harrell FE, Lee KL, Mark DB. Multivariable prognostic models. Stat Med 1996;15:361-387.",
    ),
    (
        ("uno-concordance", "time-dependent-auc"),
        "Uno H, Cai T, Pencina MJ, D'Agostino RB, Wei LJ. On the C-statistics for evaluating "
        "overall adequacy of risk prediction procedures with censored survival data. Stat Med "
        "2011;30:1105-1117.",
    ),
    (
        ("survival-smooth-calibration", "survival-calibration-error"),
        "Austin PC, Harrell FE Jr, van Klaveren D. Graphical calibration curves and the integrated "
        "calibration index (ICI) for survival models. Stat Med 2020;39:2714-2742.",
    ),
    (
        ("survival-brier-score", "integrated-brier-score"),
        "Graf E, Schmoor C, Sauerbrei W, Schumacher M. Assessment and comparison of prognostic "
        "classification schemes for survival data. Stat Med 1999;18:2529-2545.",
    ),
    (
        ("net-reclassification", "integrated-discrimination"),
        "Pencina MJ, D'Agostino RB, D'Agostino RB Jr, Vasan RS. Evaluating the added predictive "
        "ability of a new marker. Stat Med 2008;27:157-172.",
    ),
    (
        ("net-reclassification", "integrated-discrimination"),
        "Hilden J, Gerds TA. A note on the evaluation of novel biomarkers: do not rely on "
        "integrated discrimination improvement and net reclassification index. Stat Med "
        "2014;33:3405-3414.",
    ),
)
PRIVATE_REFERENCES = (
    "Bonawitz K, Ivanov V, Kreuter B, et al. Practical secure aggregation for privacy-preserving "
    "machine learning. Proc ACM CCS 2017:1175-1191.",
    "Dwork C, McSherry F, Nissim K, Smith A. Calibrating noise to sensitivity in private data "
    "analysis. Theory of Cryptography 2006:265-284.",
)
TRIPOD_REFERENCE = (
    "Collins GS, Moons KGM, Dhiman P, et al. TRIPOD+AI statement: updated guidance for reporting "
    "clinical prediction models that use regression or machine learning methods. BMJ "
    "2024;385:e078378."
)


BY_SITE = "Subgroups, by site"


class TripodItem(NamedTuple):
    """An item of TRIPOD+AI for the evaluation of a model."""

    number: str
    about: str
    section: str  # of this report where it is; "" where the authors have to write it
    is_whole: bool = True  # otherwise the authors have to add to it
    add: str = ""  # what the authors have to add


TRIPOD = (
    TripodItem("1", "Title", "", add="name model, outcome and population in the title"),
    TripodItem("2", "Abstract", "", add="see TRIPOD+AI for Abstracts"),
    TripodItem("3", "Background", "", add="context, intended users, known inequalities"),
    TripodItem("4", "Objectives", "Study", False, "what was hoped to be learned"),
    TripodItem("5", "Data: sources and dates", "Study", False, "dates, setting, why these data"),
    TripodItem("6", "Participants: eligibility, treatments", ""),
    TripodItem("7", "Data preparation", "Study", False, "what each site did to its data"),
    TripodItem("8", "Outcome", "Study", False, "how and by whom it was assessed"),
    TripodItem("9", "Predictors", "Study", False, "the predictors within the scores"),
    TripodItem("10", "Sample size", "", add="how it was determined"),
    TripodItem("11", "Missing data", "Methods", False, "why values are missing"),
    TripodItem("12e", "Measures of performance, with methods", "Methods"),
    TripodItem("12d, f, g", "Heterogeneity, updating, how predictions were calculated", ""),
    TripodItem("13", "Class imbalance", ""),
    TripodItem("14", "Fairness", "Subgroups", False, "which groups, and why"),
    TripodItem("15, 16", "Model output; differences to development", ""),
    TripodItem("17", "Ethical approval", ""),
    TripodItem("18", "Open science: funding, interests, protocol, data, code", "Methods", False,
               "all but the software and its version"),
    TripodItem("19", "Patient and public involvement", ""),
    TripodItem("20a", "Participants: numbers, follow-up", "Study", False, "the flow diagram"),
    TripodItem("20b", "Participants: characteristics", "Table 1"),
    TripodItem("20c", "Comparison with the development data", ""),
    TripodItem("21, 22", "Model development, specification", "", add="of the evaluated model"),
    TripodItem("23a", "Performance with confidence intervals", "Main results"),
    TripodItem("23a", "Performance in key subgroups", "Subgroups"),
    TripodItem("23b", "Heterogeneity between sites", BY_SITE, add='with groups = ["site"]'),
    TripodItem("24", "Model updating", ""),
    TripodItem("25, 26, 27", "Interpretation, limitations, use in practice", ""),
)  # fmt: skip
