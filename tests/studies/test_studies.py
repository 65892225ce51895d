"""Studies: their file, the statistics that answer their questions, and results in both ways."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from study_data import ROLES, write_sites

import gosta
from gosta.datasets.dictionary import Column
from gosta.errors import InputError
from gosta.private.settings import PrivateSettings
from gosta.sketches import SKETCHES
from gosta.sketches.layout_builder import TooManySumsError
from gosta.studies import pooled, results
from gosta.studies.definition import Asked, Study, check_study, read_study, study_text
from gosta.studies.proposal import Answers, fewer_bins, propose
from gosta.studies.questions import NEEDS, QUESTIONS
from gosta.studies.released import collect

RISK = Column(range=(0.0, 1.0))
COLUMNS = {
    "risk": RISK,
    "other": RISK,
    "died": Column("class", classes=("no", "yes")),
    "sex": Column("class", classes=("F", "M")),
    "time": Column(range=(0.0, 9.0), unit="years"),
    "event": Column("class", classes=(0, 1)),
}


def make(**changes: Any) -> Study:
    asked: dict[str, Any] = {
        "questions": tuple(QUESTIONS),
        "label": "died",
        "scores": ("risk", "other"),
        "time": "time",
        "event": "event",
        "groups": ("sex",),
        "times": (1.0, 2.0, 4.0),
        "horizon": 4.0,
        "thresholds": (0.2, 0.5),
    }
    return Study(Asked(**{**asked, **changes}), COLUMNS, PrivateSettings(40))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sites")
    write_sites(place)
    return place


def test_every_question_says_what_it_needs() -> None:
    assert NEEDS.keys() == QUESTIONS.keys()


def test_a_study_is_read_as_it_was_written(tmp_path: Path) -> None:
    study = make()
    (tmp_path / "study.toml").write_text(study_text(study))
    assert read_study(tmp_path) == study


def test_statistics_of_a_study_have_columns_and_options() -> None:
    study = make()
    titles = [item.title for item in study.items]
    assert titles[:2] == ["table-one:risk+other+died+sex+time+event", "auc:risk"]
    assert "concordance-index:time+event+other" in titles
    assert "auc-difference:other+risk" in titles
    assert {item.statistic for item in study.summed} <= SKETCHES.keys()
    curve = study.options["kaplan-meier"]
    assert curve["times"] == [1.0, 2.0, 4.0]
    assert 9.0 in curve["steps"]
    assert set(curve["steps"]) < {9 * (k / 20) for k in range(21)}  # edges of 20 bins
    assert all(abs(step - 2) > 0.22 for step in curve["steps"])  # few events would lie between
    assert study.options_of("kaplan-meier") == {}
    assert study.options_of("sensitivity") == {"thresholds": [0.2, 0.5]}
    assert study.options_of("log-loss") == {"floor": 1e-6}  # as sums have it
    assert study.options_of("log-loss", True) == {}
    assert len(study.options_of("net-benefit")["thresholds"]) == 19
    assert study.private.ranges == {"risk": (0.0, 1.0), "other": (0.0, 1.0), "time": (0.0, 9.0)}
    assert study.group_names(("sex",)) == ("F", "M")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"questions": ()}, "study.questions is empty"),
        ({"questions": ("calibrate",)}, "unknown question 'calibrate'.*calibration"),
        ({"label": "dead"}, r"column 'dead' is not in the dictionary: add \[columns\] dead"),
        ({"label": "risk"}, "columns.risk.type = 'number' must be class"),
        ({"scores": ("sex",)}, "columns.sex.type = 'class' must be number"),
        ({"scores": ("risk", "other", "time")}, "name one, or two to compare"),
        ({"times": (1.0, 9.0)}, r"study.times = 9 must lie within columns.time.range, 0 to 9"),
        ({"horizon": 12.0}, r"study.horizon = 12 must lie within columns.time.range, 0 to 9"),
        ({"time": None}, "survival needs time and event"),
        ({"scores": ("risk",)}, "comparison needs two scores"),
        ({"scores": ("risk", "risk")}, "study.scores = risk, risk: give each column once"),
        ({"label": ""}, "study.label = '' must name a column"),
        ({"table": ("sex", "sex")}, "study.table = sex, sex: give each column once"),
        ({"event": "died"}, r"columns.died tells events: .* classes = \[0, 1\]"),
        ({"confidence_level": 1.5}, "study.confidence_level = 1.5 must be between 0 and 1"),
        (
            {"questions": ("calibration",), "scores": ("time",)},
            "calibration needs predicted risks from 0 to 1, and the range of time is 0 to 9",
        ),
    ],
)
def test_studies_that_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_study(make(**changes))


def test_classes_of_the_dictionary_are_named() -> None:
    study = msgspec.structs.replace(make(), columns={**COLUMNS, "ward": Column("class")})
    with pytest.raises(InputError, match=r"columns.ward.classes is missing: name all values"):
        check_study(study)


def test_an_unknown_question_is_refused_before_bins_are_chosen() -> None:
    answers = Answers(questions=("calibrate",), label="died", scores=("risk",))
    with pytest.raises(InputError, match="unknown question 'calibrate'"):
        propose(answers)


@pytest.mark.parametrize("name", ["age, years", "risk+marker", "age "])
def test_names_that_lists_of_statistics_cannot_have_are_refused(name: str) -> None:
    study = msgspec.structs.replace(make(), columns={**COLUMNS, name: Column(range=(0.0, 1.0))})
    with pytest.raises(InputError, match=r"give it another one, .*--column NAME="):
        check_study(study)


def test_names_of_columns_can_have_any_other_sign(tmp_path: Path) -> None:
    names = ("Größe 🙂", "a.b:c", 'say "x"', "<b>", "$x^$")
    study = msgspec.structs.replace(make(), columns={**COLUMNS, **dict.fromkeys(names, RISK)})
    (tmp_path / "study.toml").write_text(study_text(study))
    assert read_study(tmp_path) == study


def test_private_sums_need_ranges_and_files_in_one_place_do_not(folder: Path) -> None:
    study = msgspec.structs.replace(make(), columns={**COLUMNS, "age": Column(unit="years")})
    check_study(study)
    assert pooled.run(study, load(folder))["estimates"][0]["labels"][-6] == "age: mean"
    with pytest.raises(InputError, match=r"columns.age.range is missing: private sums need"):
        study.layout()


def load(folder: Path) -> list[gosta.Data]:
    return [gosta.datasets.load(file) for file in sorted(folder.glob("*.csv"))]


def is_within(summed: dict[str, Any], exact: dict[str, Any]) -> bool:
    """Return whether values could be compared; they must be in the bracket then."""
    if summed["value"] is None or exact["value"] is None:
        return False
    low, high = (np.ravel(np.array(end, dtype=float)) for end in summed["bracket"])
    value = np.ravel(np.array(exact["value"], dtype=float))
    if len(value) != len(low):
        return False
    is_inside = (low <= value) & (value <= high) | np.isnan(value) | np.isnan(low)
    assert is_inside.all(), (summed["statistic"], low, value, high)
    return True


def groups_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records of all groups of one, by each column."""
    return [group for one in record.get("groupings", [record]) for group in one["groups"]]


def values_of(found: dict[str, Any]) -> dict[str, Any]:
    return {one["statistic"]: one for one in found["estimates"]}


def test_files_in_one_place_give_the_statistics_of_their_complete_rows(folder: Path) -> None:
    found = pooled.run(make(), load(folder))
    assert (found["rows"], found["incomplete_rows"]) == (285 - 9, 9)
    table = gosta.datasets.load(sorted(folder.glob("*.csv")))
    auc = gosta.exact(table, "auc", score="risk", label="died", drop_missing=True, interval=0.95)
    ours = values_of(found)["auc:risk"]
    assert ours["value"] == auc.value
    assert ours["interval"]["low"] == auc.low
    assert [group["group"] for group in ours["groups"]] == ["F", "M"]
    assert sum(group["n"] for group in ours["groups"]) == found["rows"]
    curve = values_of(found)["kaplan-meier:time+event"]
    assert len(curve["at"]) > 100


def test_groups_by_site_are_the_files_of_one_place(folder: Path) -> None:
    study = make(groups=("sex", "site"), questions=("discrimination",))
    check_study(study)
    assert study.layout().fingerprint == make(questions=("discrimination",)).layout().fingerprint
    parts = load(folder)
    found = pooled.run(study, parts)
    by_site = values_of(found)["auc:risk"]["groupings"][1]
    names = [Path(part.name).name.partition(".")[0] for part in parts]
    assert (by_site["by"], [one["group"] for one in by_site["groups"]]) == ("site", names)
    assert by_site["heterogeneity"]["groups"] == len(names)
    alone = gosta.exact(parts[0], "auc", score="risk", label="died", drop_missing=True)
    assert by_site["groups"][0]["value"] == pytest.approx(alone, abs=0.01)  # of all columns' rows
    assert found["study"]["groups"] == ["sex", "site"]
    assert found["columns"]["site"]["classes"] == tuple(names)
    with pytest.raises(gosta.InputError, match="one site only, a; give the file or the folder of"):
        pooled.run(study, parts[:1], ["a"])
    proposed = propose(Answers("", label="died", scores=("risk",), groups=("site",)))
    assert proposed.known_groups == ()


def test_statistics_that_are_asked_for_by_name_are_in_one_place_and_by_sums(folder: Path) -> None:
    study = make(
        groups=(),
        scores=("risk",),
        times=(1.0, 4.0),
        also=("partial-auc", "hosmer-lemeshow"),
        risks_over_time=("risk", "other"),
    )
    titles = [
        "partial-auc:risk",
        "hosmer-lemeshow:risk",
        "integrated-brier-score:time+event+risk+other",
    ]
    assert set(titles) <= {item.title for item in study.summed}
    assert not {"partial-auc", "hosmer-lemeshow"} & {item.statistic for item in make().items}
    sums = gosta.private.release(
        load(folder),
        study.statistics,
        bins=study.privacy.bins,
        ranges=study.private.ranges,
        label="died",
        classes=study.classes,
        drop_missing=True,
        options=study.options,
    )
    there, here = (
        values_of(found)
        for found in (collect(study, sums.results, {}), pooled.run(study, load(folder)))
    )
    for title in titles:
        assert is_within(there[title], here[title])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"also": ("auc",)}, "unknown statistic 'auc'"),
        ({"questions": ("calibration",), "also": ("partial-auc",)}, "belongs to discrimination"),
        ({"risks_over_time": ("risk", "other")}, "a column for each of study.times, of which"),
        ({"risks_over_time": ("risk", "time", "other")}, "risks_over_time: time must be a risk"),
    ],
)
def test_what_a_study_cannot_add_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_study(make(**changes))


@pytest.mark.parametrize("groups", [("sex",), ("sex", "event"), ("sex+event", "sex")])
def test_private_sums_give_the_same_file_of_results(
    folder: Path, tmp_path: Path, groups: tuple[str, ...]
) -> None:
    study = make(groups=groups)
    exact = pooled.run(study, load(folder))
    sums = gosta.private.release(
        load(folder),
        study.statistics,
        bins=study.privacy.bins,
        ranges=study.private.ranges,
        strata=study.private.strata,
        groups=study.private.groups,
        label="died",
        classes=study.classes,
        drop_missing=True,
        options=study.options,
    )
    found = collect(study, sums.results, {"participants": list(sums.participants)})
    assert (found["rows"], found["how"]["mode"]) == (exact["rows"], "private sums")
    by_title, compared = values_of(exact), 0
    for one in found["estimates"]:
        known = by_title[one["statistic"]]
        assert one["question"] == known["question"]
        pairs = zip(*([each, *groups_of(each)] for each in (one, known)), strict=True)
        for there, here in pairs:
            assert there["n"] == here["n"] or there["value"] is None, one["statistic"]
            compared += is_within(there, here)
    assert compared > 130  # values with one bracket or as many as the curve over rows has points
    results.write(tmp_path, found)
    assert results.read(tmp_path)["estimates"][0]["question"] == "table-one"


def test_rows_without_a_group_are_in_no_statistic(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "site-0.csv").read_text().splitlines()
    without = [*lines[:5], *(re.sub(",[FM],", ",,", line) for line in lines[5:])]
    (tmp_path / "site-0.csv").write_text("\n".join(without) + "\n")
    (tmp_path / "short.csv").write_text("\n".join(lines[:5]) + "\n")
    study = make(questions=("table-one",))
    tables = []
    for name in ("site-0.csv", "short.csv"):
        found = pooled.run(study, [gosta.datasets.load(tmp_path / name)])
        tables.append(values_of(found).popitem()[1])
    assert [table["value"] for table in tables] == [tables[0]["value"]] * 2
    assert [len(table["groups"]) for table in tables] == [2, 2]


def test_values_beyond_a_range_are_said(folder: Path) -> None:
    narrow = {**COLUMNS, "time": Column(range=(0.0, 5.0))}
    study = msgspec.structs.replace(make(questions=("survival",), groups=()), columns=narrow)
    parts = load(folder)
    first = next(k for k, value in enumerate(parts[0].columns["time"]) if value > 5)
    said = values_of(pooled.run(study, parts))
    assert all(f"first in line {first + 2} of" in one["warnings"][0] for one in said.values())
    settings = study.private
    sums = gosta.private.release(
        load(folder),
        study.statistics,
        bins=20,
        ranges=settings.ranges,
        drop_missing=True,
        options=study.options,
    )
    found = values_of(collect(study, sums.results, {}))
    warned = [title for title, one in found.items() if one["warnings"]]
    clipped = {one.statistic for one in sums.results if one.clipped}
    assert set(warned) == clipped


def test_times_below_0_are_refused(folder: Path) -> None:
    parts = load(folder)
    times = parts[1].columns["time"].copy()
    times[3] = -2.0
    parts[1] = replace(parts[1], columns={**parts[1].columns, "time": times})
    with pytest.raises(
        gosta.DataError, match=r"the time time must not be below 0, line 5 of .* has -2; .*:-2"
    ):
        pooled.run(make(), parts)
    with pytest.raises(gosta.DataError, match="below 0, line 5 has -2"):
        gosta.exact(parts[1], "kaplan-meier")


def test_columns_without_a_description_have_a_line_to_fill_in() -> None:
    text = study_text(make())
    section = text.partition("[columns.time]\n")[2].partition("\n\n")[0]
    assert section.splitlines()[2:] == [
        "range = [0.0, 9.0]",
        '# description = ""  # TO FILL IN: what it is, in a sentence',
    ]
    assert text.count("# unit") == 0  # risks, classes and what has one


def test_a_site_reads_its_file_as_its_node_does(folder: Path, tmp_path: Path, gosta_: Any) -> None:
    files = sorted(folder.glob("*.csv"))
    raw = files[0].read_text().replace("died", "verstorben").replace("yes", "ja")
    (tmp_path / "roh.csv").write_text(raw)
    study = tmp_path / "study"
    words = ("--label", "died", "--score", "risk", "--yes")
    assert gosta_("study", "init", study, "--data", files[0], *words)[0] == 0
    assert gosta_("network", "init", tmp_path / "net", "--study", study, "--enrol")[0] == 0
    rules = ("--column", "died=verstorben", "--value", "died:ja=yes")
    code, _, err = gosta_(
        *("node", "request", tmp_path / "net" / "invitation.json", tmp_path / "site"),
        *("--name", "a", "--address", "outbound", "--data", tmp_path / "roh.csv", *rules),
    )
    assert code == 0, err
    places = (("--data", tmp_path / "site"), ("--data", files[1]))
    code, _, err = gosta_("study", "run", study, *places[0], *places[1])
    assert code == 0, err
    mixed = results.read(study)["estimates"]
    assert gosta_("study", "run", study, "--data", files[0], "--data", files[1])[0] == 0
    plain = results.read(study)["estimates"]
    assert [one["value"] for one in mixed] == [one["value"] for one in plain]


def test_results_of_another_study_are_refused(folder: Path) -> None:
    study = make(questions=("discrimination",), groups=())
    sums = gosta.private.release(
        load(folder), "auc:risk", ranges={"risk": (0, 1)}, label="died", classes=["no", "yes"],
        drop_missing=True,
    )  # fmt: skip
    with pytest.raises(InputError, match="does not compute auc:other of the study"):
        collect(study, sums.results, {})
    with pytest.raises(InputError, match="computes auc:risk, which is not in the study"):
        collect(make(questions=("survival",)), sums.results, {})


def test_a_study_with_noise_has_a_delta(folder: Path, tmp_path: Path, gosta_: Any) -> None:
    words = ("--data", folder / "site-1.csv", *ROLES, "--yes", "--epsilon", 4)
    assert gosta_("study", "init", tmp_path / "noisy", *words)[0] == 0
    code, out, _ = gosta_("study", "check", tmp_path / "noisy")
    assert code == 0
    assert "epsilon 4, delta 1e-06 for all of them together" in out
    assert "rows have no value of auc" in " ".join(out.split())
    assert gosta_("study", "init", tmp_path / "zero", *words, "--delta", 0)[0] == 0
    code, _, err = gosta_("study", "check", tmp_path / "zero")
    assert code == 2
    assert "delta = 0 suits statistics that are functions of counts only; set it" in err


def test_sums_of_a_study_fit_into_one_release() -> None:
    assert make().layout().size < 131_072
    assert msgspec.to_builtins(make())["privacy"] == {"bins": 40}


def test_as_many_bins_are_proposed_as_fit() -> None:
    answers = Answers(label="died", scores=("risk",))
    assert propose(answers).privacy.bins == 80
    assert propose(replace(answers, bins=24)).privacy.bins == 24
    levels = tuple(map(str, range(9)))
    many = propose(
        replace(
            answers,
            scores=("risk", "other"),
            groups=("ward+year",),
            classes={"ward": levels, "year": levels},
        )
    )
    assert 10 < many.privacy.bins < 80
    why = f"{many.privacy.bins} bins of each column in place of 80, as the sums in each of"
    assert fewer_bins(many).startswith(why)
    assert fewer_bins(propose(answers)) == ""


def test_the_bins_that_are_advised_fit_and_no_others_do() -> None:
    """Sums jump with bins, as risks have an edge at each multiple of 0.05 too."""
    ward = Column("class", classes=("a", "b", "c", "d"))
    columns = {**COLUMNS, "ward": ward}
    study = msgspec.structs.replace(make(groups=("sex", "ward")), columns=columns)
    most = propose_bins(study, 80)
    assert with_bins(study, most).layout().size <= 131_072
    assert {propose_bins(study, bins) for bins in range(most + 1, most + 8)} == {most}


def propose_bins(study: Study, bins: int) -> int:
    """Return how many bins the error for too many of them advises."""
    with pytest.raises(TooManySumsError, match="fewer bins") as caught:
        with_bins(study, bins).layout()
    assert f"--bins {caught.value.bins}," in caught.value.remedy
    return int(caught.value.bins or 0)


def with_bins(study: Study, bins: int) -> Study:
    return msgspec.structs.replace(study, privacy=PrivateSettings(bins))


def test_a_risk_of_0_does_not_remove_calibration_in_one_place(folder: Path) -> None:
    study = make(questions=("calibration",))
    parts = load(folder)
    risks = parts[0].columns["risk"].copy()
    risks[:2] = 0.0, 1.0
    parts[0] = replace(parts[0], columns={**parts[0].columns, "risk": risks})
    found = pooled.run(study, parts)["estimates"]
    assert all(one["value"] is not None for one in found)


def test_files_of_results_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file.*gosta study run"):
        results.read(tmp_path)
    (tmp_path / "results.json").write_text("{")
    with pytest.raises(InputError, match="is no JSON"):
        results.read(tmp_path)
    (tmp_path / "results.json").write_text(json.dumps({"format": 0}))
    with pytest.raises(InputError, match="is no file of results of this version"):
        results.read(tmp_path)


def test_from_three_files_to_results_on_the_command_line(
    folder: Path, tmp_path: Path, gosta_: Any
) -> None:
    files = sorted(folder.glob("*.csv"))
    study = tmp_path / "study"
    code, out, err = gosta_(
        "study", "init", study, "--data", files[0], *ROLES, "--group", "sex", "--yes"
    )
    assert code == 0, err
    assert "gosta study check" in out
    written = read_study(study)
    assert written.columns["time"].range == (0.0, 8.5)
    assert written.columns["sex"].classes == ("F", "M")
    assert written.study.times
    code, out, err = gosta_("study", "check", study)
    assert code == 0, err
    assert "what leaves" in out
    assert max(len(line) for line in out.splitlines() if str(study) not in line) <= 80
    code, out, err = gosta_("study", "check", study, "--json")
    assert json.loads(out)["numbers"] > 1000
    code, out, err = gosta_("study", "run", study, *(x for file in files for x in ("--data", file)))
    assert code == 0, err
    assert "276 rows, 9 left out" in out
    assert results.read(study)["how"]["data"] == [str(file) for file in files]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("init", "NEW", "--yes"), "label is missing: name the column of the outcome"),
        (
            ("init", "NEW", "--label", "died", "--score", "risk", "--group", "sex", "--yes"),
            "the classes of sex are missing: give --classes sex=A,B, or a file",
        ),
        (("init", "NEW", "--label", "died", "--score", "a", "--threshold", "x"), "must be numbers"),
        (("init", "NEW", "--label", "died", "--data", "FILE"), "discrimination needs a label"),
        (
            ("init", "NEW", "--label", "died", "--score", "a,b", "--bins", "8000"),
            "gosta study init --bins 4233, or bins = 4233 under [privacy] of study.toml",
        ),
        (("check", "NEW"), "no such file"),
        (("run", "NEW"), "data is missing"),
        (("collect", "NEW", "net"), "no such file"),
        (("collect", "NEW", "STUDY"), "name the study first: gosta study collect STUDY NETWORK"),
    ],
)
def test_mistakes_are_one_line(
    words: tuple[str, ...], message: str, folder: Path, tmp_path: Path, gosta_: Any
) -> None:
    places = {"NEW": tmp_path / "new", "FILE": folder / "site-0.csv", "STUDY": tmp_path / "study"}
    places["STUDY"].mkdir()
    (places["STUDY"] / "study.toml").touch()
    questions = ("--question", "discrimination") if "FILE" in words else ()
    code, _, err = gosta_("study", *(places.get(word, word) for word in words), *questions)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"estimates": [None]}, r"is damaged: Expected `object`, got `null` - at `\$.estimates"),
        ({"how": {}}, "is damaged: Object missing required field `mode`"),
        ({"rows": "many"}, "is damaged: Expected `int`, got `str`"),
        ({"study": None}, "is damaged: Expected `object`, got `null`"),
        ({"format": 0}, "is no file of results of this version"),
    ],
)
def test_damaged_results_are_refused(
    folder: Path, tmp_path: Path, damage: dict[str, Any], message: str
) -> None:
    study = make(questions=("table-one",))
    results.write(tmp_path, pooled.run(study, load(folder)))
    found = results.read(tmp_path)
    results.write(tmp_path, {**found, **damage})
    with pytest.raises(InputError, match=message):
        results.read(tmp_path)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{"])
def test_results_that_are_no_json_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(InputError, match=r"results.json is no JSON: .*gosta study run"):
        results.read(tmp_path)


def test_results_that_are_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "results.json").mkdir()
    with pytest.raises(InputError, match=r"^cannot read .*results.json: Is a directory"):
        results.read(tmp_path)


@pytest.mark.parametrize("count", [2, 3])
def test_a_few_rows_have_a_table_but_no_groups(folder: Path, count: int) -> None:
    study = make(questions=("table-one",))
    data = load(folder)[0]
    kept = pooled.complete_rows(study, pooled.pooled_rows(study, [data]))
    few = data.take(kept & (np.cumsum(kept) <= count))
    (table,) = pooled.run(study, [few])["estimates"]
    assert table["n"] == count
    assert table["value"] is not None
