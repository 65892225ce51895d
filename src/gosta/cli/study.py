"""``gosta study``: one file says what a validation study asks; all of it is one release."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from gosta.cli import options
from gosta.errors import InputError
from gosta.views import numbers, terminal

if TYPE_CHECKING:
    from gosta.datasets import Data
    from gosta.studies.definition import Study
    from gosta.studies.proposal import Answers

StudyFolder = Annotated[Path, typer.Argument(help="The study's folder, with study.toml.")]
DataFiles = Annotated[
    list[Path] | None,
    "A file of rows, or a site's folder, whose node.toml says how its file is read; given once for "
    "each.",
]


@dataclass(frozen=True)
class Questions:
    """What a study asks of which columns."""

    TITLE: ClassVar = "What is asked"
    title: Annotated[str | None, "Title of the report."] = None
    question: Annotated[
        list[str] | None,
        "table-one, discrimination, calibration, usefulness, survival, comparison; by default all "
        "that the columns allow.",
    ] = None
    label: Annotated[str | None, "Column of the outcome: two classes."] = None
    score: Annotated[
        list[str] | None, "Column of predicted risks or scores: a, or a,b to compare two models."
    ] = None
    time: Annotated[str | None, "Column of times to an event."] = None
    event: Annotated[str | None, "Column of 1 for an event at that time, or 0."] = None
    group: Annotated[
        list[str] | None,
        "Columns of groups, each alone: sex,ward; combined: sex+ward; site: the hospital.",
    ] = None
    threshold: Annotated[list[str] | None, "Thresholds of risk that decide: 0.1,0.2."] = None
    times: Annotated[list[str] | None, "Times at which survival is told: 1,3,5."] = None
    horizon: Annotated[float | None, "Time before which the scores predict an event."] = None
    risks_over_time: Annotated[
        list[str] | None, "Columns of predicted risks, one for each of the times: a,b,c."
    ] = None
    also: Annotated[
        list[str] | None, "Statistics left out by default: partial-auc, hosmer-lemeshow."
    ] = None
    range_: options.Ranges = None
    classes: Annotated[
        list[str] | None, "All values of a column, COLUMN=A,B; of the outcome, the positive last."
    ] = None
    epsilon: Annotated[
        float | None, "Differential privacy of the whole study; by default there is no noise."
    ] = None
    delta: Annotated[float | None, "Its second parameter; by default 1e-6."] = None
    bins: Annotated[
        int | None, "Bins of each column in private sums; by default 80, or as many as fit."
    ] = None

    def answers(self) -> Answers:
        """Return what is said, in the terms of a proposal."""
        from gosta.studies.proposal import Answers

        classes = dict(pair for text in self.classes or [] for pair in options.parse_strata(text))
        return Answers(
            self.title or "Validation study",
            _names(self.question),
            self.label,
            _names(self.score),
            self.time,
            self.event,
            _names(self.group),
            _floats("threshold", self.threshold),
            _floats("times", self.times),
            self.horizon,
            self.epsilon,
            self.delta,
            dict(map(options.parse_range, self.range_ or [])),
            classes,
            self.bins,
            _names(self.risks_over_time),
            _names(self.also),
        )


def _names(texts: list[str] | None) -> tuple[str, ...]:
    return tuple(name.strip() for text in texts or [] for name in text.split(",") if name.strip())


def _floats(option: str, texts: list[str] | None) -> tuple[float, ...]:
    try:
        return tuple(map(float, _names(texts)))
    except ValueError:
        raise InputError(f"{option} = {','.join(texts or [])} must be numbers: 0.1,0.2") from None


def example(
    folder: Annotated[Path, typer.Argument(help="The folder to write the files into.")],
) -> None:
    """Write files of made-up patients of three hospitals, in three languages, to try a study."""
    from gosta.studies.example import write_files

    for path in write_files(folder):
        print(path)
    print("next: the tutorial of a validation study in docs/tutorials/validation-study.md")


def init(
    folder: Annotated[Path, typer.Argument(help="The folder to create.")],
    questions: Questions,
    reading: options.Reading,
    data: Annotated[
        Path | None, "A file of rows: ranges, classes and times are proposed from it."
    ] = None,
    yes: Annotated[bool, "Ask nothing: take what the options and the data say."] = False,
) -> None:
    """Write the study.toml of a validation study: questions, columns, thresholds, privacy."""
    from contextlib import suppress

    from gosta.datasets import load
    from gosta.datasets.doubts import far_values
    from gosta.runtime.files import write_atomically
    from gosta.studies.definition import STUDY_FILE, study_text
    from gosta.studies.proposal import fewer_bins

    path = folder / STUDY_FILE
    if path.exists():
        raise InputError(f"{path} is there already: change it, or name another folder")
    table = None if data is None else load(str(data), **reading.settings())
    _show_doubts(() if table is None else (*table.doubts, *far_values(table)))
    is_asked = not yes and sys.stdin.isatty()
    study = _asked(questions, table) if is_asked else _proposed(questions, table)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, study_text(study))
    print(f"{path}: {numbers.count(len(study.items), 'statistic')} for {_list(study)}")
    if questions.bins is None and (fewer := fewer_bins(study)):
        print(f"note: {fewer}")
    with suppress(InputError):  # check says what is missing
        _warn(study)
    print("next: read it, complete the lines with TO FILL IN, then:")
    print(f"      gosta study check {_quoted(folder)}")


def _show_doubts(doubts: Iterable[str], place: str = "") -> None:
    for doubt in doubts:
        print(terminal.printable(f"warning: {place}{doubt}"), file=sys.stderr)


def _asked(questions: Questions, table: Data | None) -> Study:
    """Return the study of answers at the terminal, which is asked until nothing is missing."""
    from gosta.cli.study_questions import ask

    questions.answers()  # an error if an option is wrong, which no answer mends
    answers: dict[str, str] = {}
    while True:
        try:
            return _proposed(ask(questions, table, answers), table)
        except InputError as error:
            print(f"{error}\nonce more: Enter keeps an answer, - removes it")


def _proposed(questions: Questions, table: Data | None) -> Study:
    """Return the study that the answers give, checked."""
    from gosta.studies.definition import check_study
    from gosta.studies.proposal import propose

    if questions.label is None and questions.time is None:
        raise InputError(
            "label is missing: name the column of the outcome (--label died), or those of times "
            "and events (--time, --event)"
        )
    study = propose(questions.answers(), table)
    check_study(study)
    return study


def check(folder: StudyFolder, as_json: options.Json = False) -> None:
    """Check a study.toml; show its statistics, the sums that they need, and what leaves a site."""
    import json

    from gosta.studies.definition import read_study

    study = read_study(folder)
    layout = study.layout()
    if as_json:
        items = [{**item._asdict(), "sums": item in study.summed} for item in study.items]
        print(json.dumps({"statistics": items, **layout.describe(), "numbers": layout.size}))
        return
    questions: dict[str, list[str]] = {}
    for item in study.items:
        names = questions.setdefault(item.question, [])
        names.append(item.statistic) if item.statistic not in names else None
    print(f"{study.study.title}: {numbers.count(len(study.items), 'statistic')}")
    answered = [(question, ", ".join(names)) for question, names in questions.items()]
    print(terminal.definitions(answered, wrap=True))
    print("in a network of private sums, one release has all of them:")
    print(terminal.definitions(_release(study), wrap=True))
    _warn(study)
    print(f"next: gosta study run {_quoted(folder)} --data FILE, with all rows in one place;")
    print(f"or a network: gosta network init NETWORK --study {_quoted(folder)} --enrol")


def _warn(study: Study) -> None:
    """Say of a study with noise what would make it tell more."""
    from gosta.studies.noise import warning_of_noise

    if warning := warning_of_noise(study):
        print(f"warning: {warning}")


def _release(study: Study) -> list[tuple[str, str]]:
    """Return what a release of a study needs, in words."""
    from gosta.studies.noise import effect_of_noise

    layout, privacy = study.layout(), study.privacy
    told = layout.describe()
    only_here = dict.fromkeys(item.statistic for item in study.items if item not in study.summed)
    by_site = [f"groups by {one}" for one in study.study.groups if one not in study.known_groups]
    cost = "no noise: all members know the exact totals"
    effect = effect_of_noise(study)  # an error if a delta is needed
    if privacy.epsilon is not None:
        delta = f", delta {privacy.delta:g}" if privacy.delta else ""
        cost = f"epsilon {privacy.epsilon:g}{delta} for all of them together"
    leaves = f"{layout.numbers} masked numbers from each site, {8 * layout.size / 1e6:.2g} MB"
    entries = [
        ("columns", told["columns"]),
        ("ranges", told.get("ranges", "")),
        ("bins", told.get("bins", "")),
        ("groups", told.get("strata", "")),
        ("budget", cost),
        ("noise", effect.text if effect else ""),
        ("what leaves", f"{leaves}; no row"),
        ("only in one place", ", ".join([*only_here, *by_site])),
    ]
    return [(name, text) for name, text in entries if text]


def run(folder: StudyFolder, reading: options.Reading, data: DataFiles = None) -> None:
    """Compute a study over files that are in one place; write results.json into its folder."""
    from gosta.studies import pooled, results
    from gosta.studies.definition import read_study

    if not data:
        raise InputError("data is missing: name the files of rows (--data a.csv --data b.xlsx)")
    study = read_study(folder)
    parts = [options.load_site(file, reading) for file in data]
    for part in parts:
        _show_doubts(part.doubts, f"{part.name}: ")
    found = pooled.run(study, parts, [options.site_of(file) for file in data])
    _show(found, results.write(_place(folder), found), folder)


def collect(
    folder: StudyFolder,
    network: Annotated[
        Path, typer.Argument(help="The network's folder, or that of one node, after the release.")
    ],
) -> None:
    """Take the results of a network of private sums; write results.json into the study's folder."""
    from gosta.studies import results
    from gosta.studies.collected import collect, expect_network
    from gosta.studies.definition import read_study

    expect_network(network)
    found = collect(read_study(folder), network)
    _show(found, results.write(_place(folder), found), folder)


def _place(folder: Path) -> Path:
    return folder if folder.is_dir() else folder.parent


def _show(found: dict[str, Any], path: Path, folder: Path) -> None:
    """Say what was computed, what has no value, and what comes next."""
    estimates = found["estimates"]
    without = {one["statistic"]: one["reason"] for one in estimates if one["value"] is None}
    values = numbers.count(len(estimates) - len(without), "statistic")
    dropped = found["incomplete_rows"]
    rows = "about " * ("rows_error" in found["how"]) + numbers.count(found["rows"], "row")
    rows += f", {dropped:,} left out as a value is missing" if dropped else ""
    print(f"{path}: {values} of {rows}, {found['how']['mode']}")
    reasons: dict[str, list[str]] = {}
    for title, reason in without.items():
        reasons.setdefault(reason, []).append(title)
    lines = [f"no value of {', '.join(titles)}: {reason}" for reason, titles in reasons.items()]
    warnings = {
        warning.removeprefix(f"{one['statistic']}: "): one["statistic"]
        for one in estimates
        for warning in one["warnings"]
    }
    lines += [f"warning: {title}: {warning}" for warning, title in warnings.items()]
    print(*map(terminal.printable, lines), f"next: gosta report {_quoted(folder)}", sep="\n")


def _list(study: Study) -> str:
    return ", ".join(study.study.questions)


def _quoted(folder: Path) -> str:
    return shlex.quote(str(folder))
