"""Reports: what they say of a study's results, as a page and as a PDF."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import CONTRAST, Browser, browse, needs_browser
from matplotlib.backends.backend_pdf import PdfPages

from gosta.errors import InputError
from gosta.reports import content, html_page, pdf_pages
from gosta.reports.blocks import Figures, List, Report, Table, Text
from gosta.reports.questions import readable_at_risk
from gosta.reports.tables import Found
from gosta.statistics.estimate import Estimate
from gosta.statistics.heterogeneity import heterogeneity

Command = Callable[..., tuple[int, str, str]]
SCORES = ("risk", "old")
VOID = {"meta", "br", "path", "use", "rect"}  # elements without an end


def estimate(name: str, columns: str, value: Any, **others: Any) -> dict[str, Any]:
    """Return a record of an estimate as results.json has it, with intervals of ± 0.05."""
    value = np.array(value) if np.ndim(value) else value
    interval = {} if others.pop("plain", False) else {"level": 0.95, "standard_error": 0.02 * value}
    if interval:
        interval |= {"low": value - 0.05, "high": value + 0.05}
    found = Estimate(
        value,
        statistic=f"{name}:{columns}",
        columns=tuple(columns.split("+")),
        n=100,
        **interval,
        **others,
    )
    return {"name": name, **found.to_dict()}


def results(mode: str = "one place", **how: Any) -> dict[str, Any]:
    """Return the contents of a results.json with an answer to each question."""
    t = np.array([0.1, 0.3, 0.6])
    bracket = {"bracket": (0.6, 0.9)} if mode != "one place" else {}
    groups = tuple(
        Estimate(0.7, 0.6, 0.8, 0.05, 0.95, group=f"sex = {name}", n=50) for name in "FM"
    )
    curves = [
        ("discrimination", "roc-curve", ("false positive rate", "true positive rate"), t**0.5),
        ("discrimination", "precision-recall-curve", ("recall", "precision"), 1 - t),
        ("calibration", "calibration-curve", ("predicted risk", "observed share"), t),
        ("calibration", "smooth-calibration-curve", ("predicted risk", "observed share"), t),
        ("usefulness", "net-benefit", ("threshold", "net benefit"), 0.3 - 0.3 * t),
        ("discrimination", "sensitivity", ("threshold", "sensitivity"), 1 - t),
        ("discrimination", "specificity", ("threshold", "specificity"), t),
    ]
    found = [
        {"question": question, **estimate(name, score, y, at=t, axes=axes, counts=50 * t)}
        for question, name, axes, y in curves
        for score in SCORES
    ]
    of_all = estimate("net-benefit-of-all", "risk", 0.4 - 0.6 * t / (1 - t), at=t)
    found.append({"question": "usefulness", **of_all})
    for score in SCORES:
        auc = estimate("auc", score, 0.75, by="sex", groups=groups, **bracket)
        errors = estimate("calibration-error", score, [0.1, 0.02], labels=("ICI", "E50"))
        found += [{"question": "discrimination", **auc}, {"question": "calibration", **errors}]
    survival = {"at": 100 * t, "axes": ("time", "share without an event")}
    found += [
        {"question": "survival", **estimate("kaplan-meier", "time+event", 1 - t, **survival)},
        {"question": "comparison", **estimate("auc-difference", "risk+old", 0.1, null_value=0.0)},
        {"question": "comparison", **estimate("net-reclassification", "risk+old", 0.1)},
    ]
    labels: tuple[str, ...] = (
        "age: mean",
        "age: standard deviation",
        "age: 25 %",
        "age: 50 %",
        "age: 75 %",
    )
    labels += ("age: missing", "sex = F", "sex: missing")
    values = np.array([61.25, 10.0, 54, 61, 68, 0.02, 0.5, 0.0])
    ages = tuple(
        Estimate(values + k * (values > 60), labels=labels, group=f"{k}", n=50) for k in (0, 5)
    )
    table = {"labels": labels, "plain": True, "groups": ages, "by": "sex"}
    found.append({"question": "table-one", **estimate("table-one", "age+sex", values, **table)})
    without = {"statistic": "log-loss:risk", "value": None, "reason": "too few rows", "n": 0}
    found.append({"question": "calibration", "name": "log-loss", **without})
    return {
        "format": 1,
        "study": {
            "questions": ["discrimination"],
            "title": "Does <RISK> hold?",
            "label": "died",
            "scores": list(SCORES),
            "groups": ["sex"],
            "time": "time",
            "event": "event",
        },
        "columns": {
            "risk": {"range": [0, 1], "description": "predicted risk"},
            "died": {"type": "class", "classes": ["no", "yes"]},
        },
        "privacy": {"bins": 40},
        "how": {"mode": mode, "data": ["a.csv"], "sites": 3, **how},
        "rows": 100,
        "incomplete_rows": 4,
        "estimates": found,
        "version": "0.1.0",
        "date": "2026-11-19T18:51:02+00:00",
    }


def built(**how: Any) -> Report:
    return content.build(json.loads(json.dumps(results(**how))))


def section(report: Report, title: str) -> list[Any]:
    (found,) = [one for one in report.sections if one.title == title]
    return found.blocks


def tables(blocks: list[Any]) -> list[Table]:
    return [block for block in blocks if isinstance(block, Table) and not block.is_detail]


def words(blocks: list[Any]) -> str:
    return " ".join(block.text for block in blocks if isinstance(block, Text))


def test_each_question_has_its_section() -> None:
    titles = [one.title for one in built().sections]
    assert titles == [
        "Study",
        "Table 1",
        "Main results",
        "Discrimination",
        "Calibration",
        "Usefulness",
        "Survival",
        "Comparison of two models",
        "Subgroups",
        "Statistics without a value",
        "Methods",
        "Privacy",
        "TRIPOD+AI",
    ]


def test_table_one_is_as_in_papers() -> None:
    (table,) = tables(section(built(), "Table 1"))
    assert table.heading == [
        "",
        "all\nn = 100",
        "sex 0\nn = 50",
        "sex 5\nn = 50",
        "difference\nstandardised",
    ]
    assert [row[:2] for row in table.rows] == [
        ["age, mean", "61.2\n(10.0)"],
        ["age, median", "61.0\n(54.0 to 68.0)"],
        ["age, missing", "2.0 %"],
        ["sex = F", "50\n(50.0 %)"],
    ]
    assert table.rows[0][-1] == "0.50"
    assert table.rows[1][-1] == ""
    assert table.rows[3][2:] == ["", "", ""]  # groups' own classes say nothing


def test_table_one_of_many_groups_has_several_tables() -> None:
    found = results()
    (record,) = [one for one in found["estimates"] if one["name"] == "table-one"]
    record["by"] = "sex, ward"
    group = record["groups"][0]
    wards = ("icu", "surgery", "medicine")
    record["groups"] = [{**group, "group": f"{sex}, {ward}"} for sex in "MF" for ward in wards]
    record["groups"][0] |= {"value": [70.0, 10.0, 54, 61, 68, None, 0.5, 0.0]}
    found["columns"]["sex"] = {"classes": ["F", "M"]}
    found["columns"]["ward"] = {"classes": ["medicine", "surgery", "icu"]}
    blocks = section(content.build(json.loads(json.dumps(found))), "Table 1")
    first, second, differences = tables(blocks)
    heads = [head.partition("\n")[0] for head in [*first.heading[1:], *second.heading[1:]]]
    sexes = [f"sex {sex}, ward {ward}" for sex in "FM" for ward in wards[::-1]]
    assert heads == ["all", *sexes]
    assert [row[0] for row in second.rows] == ["age, mean", "age, median", "age, missing"]
    assert second.rows[2][-1] == "-"  # not told
    assert words(blocks).startswith("-: too few rows, or too much noise, to tell. Quartiles are")
    assert differences.rows[0][2].endswith(" and sex M, ward icu")


def test_values_stand_beside_each_other_with_their_intervals() -> None:
    main, differences = tables(section(built(), "Main results"))
    assert main.heading == ["", "risk", "old"]
    assert main.rows == [["AUC", *["0.750\n(0.700 to 0.800)"] * 2]]
    assert differences.heading == ["", "risk less old"]
    assert differences.rows[0][1].startswith("0.100\n(0.050 to 0.150)\np < 0.0001")


def test_thresholds_are_tables_and_curves_pictures() -> None:
    blocks = section(built(), "Discrimination")
    (pictures,) = [block.pictures for block in blocks if isinstance(block, Figures)]
    assert [one.title for one in pictures] == [
        "ROC curve (n = 100)",
        "Precision-recall curve (n = 100)",
    ]
    assert [table.heading for table in tables(blocks)[1:]] == [
        [
            "threshold",
            "Sensitivity, risk",
            "Sensitivity, old",
            "Specificity, risk",
            "Specificity, old",
        ]
    ]
    (pictures,) = [
        block.pictures for block in section(built(), "Calibration") if isinstance(block, Figures)
    ]
    assert [one.title for one in pictures] == [
        "Calibration curve, risk (n = 100)",
        "Calibration curve, old (n = 100)",
    ]


def test_the_curve_of_events_is_told_at_the_times_of_the_study() -> None:
    found = results()
    found["study"]["times"] = [5.0, 30.0, 45.0]
    table = tables(section(content.build(json.loads(json.dumps(found))), "Survival"))[0]
    assert table.heading == ["time", "Share without an event just before"]
    assert [row[0] for row in table.rows] == ["30", "45"]  # nothing is known before the first event
    assert [row[1][:5] for row in table.rows] == ["0.900", "0.700"]


def test_rows_at_risk_are_told_at_round_times_too() -> None:
    found = results()
    found["study"]["times"] = [365.0]
    steps = 75.0 * np.arange(1, 21)
    left = np.arange(20.0)[::-1]
    bracket = (left, left + 2 * (steps == 1200))
    axes = {"at": steps, "axes": ("time", "rows at risk"), "plain": True, "bracket": bracket}
    at_risk = estimate("numbers-at-risk", "time+event", left, **axes)
    found["estimates"].append({"question": "survival", **at_risk})
    blocks = section(content.build(json.loads(json.dumps(found))), "Survival")
    (table,) = [b for b in blocks if isinstance(b, Table) and b.caption == "Rows at risk"]
    # not 1200, of which the number is not known exactly
    assert [row[0] for row in table.rows] == ["300", "600", "900", "1125", "1500"]
    whole = Estimate.from_dict(at_risk)
    by_sex = whole._replace(by="sex", groups=(whole._replace(group="sex = F"),) * 2)
    grouped = whole._replace(groupings=(by_sex, by_sex))
    shown = readable_at_risk(Found("survival", "numbers-at-risk", grouped, ""), [365.0]).estimate
    assert {len(part.at) for own in shown.groupings for part in own.groups} == {len(table.rows)}


def test_many_groups_are_lines_beside_their_differences() -> None:
    groups = tuple(
        Estimate(0.7, 0.6, 0.8, 0.05, 0.95, group=f"ward = {k}", n=50 + k) for k in range(4)
    )
    found = results()
    compared = heterogeneity([0.7] * 4, [0.05] * 4)
    auc = estimate("auc", "risk", 0.75, by="ward", groups=groups, heterogeneity=compared)
    found["estimates"] = [{"question": "discrimination", **auc}]
    blocks = section(content.build(json.loads(json.dumps(found))), "Subgroups")
    (table,) = tables(blocks)
    assert words(blocks) == "Differences are from the largest group, ward 3."
    assert table.heading == ["", "risk", "difference"]
    assert [row[0].partition("\n")[0] for row in table.rows[:4]] == [f"ward {k}" for k in range(4)]
    assert table.rows[3][2] == ""
    assert table.rows[4] == ["p, all groups\nCochran's Q, I²", "1.0\nI² 0 %", ""]


def test_groups_are_compared() -> None:
    blocks = section(built(), "Subgroups")
    (table,) = tables(blocks)
    heads = ["sex F\nn = 50", "sex M\nn = 50", "sex M less sex F\nn = 100"]
    assert table.heading == ["", *heads]
    assert table.rows[0][:3] == ["AUC, risk", *["0.700\n(0.600 to 0.800)"] * 2]
    assert table.rows[0][3] == "0.000\n(\N{MINUS SIGN}0.141 to 0.141)\np = 1.0"
    (pictures,) = [block.pictures for block in blocks if isinstance(block, Figures)]
    assert [one.title for one in pictures] == [
        "AUC by sex, risk (n = 100)",
        "AUC by sex, old (n = 100)",
    ]


def test_the_privacy_statement_says_what_was_done() -> None:
    assert "All rows were read in one place" in words(section(built(), "Privacy"))
    exact = built(mode="private sums", participants=["a", "b", "c"], epsilon=None)
    said = words(section(exact, "Privacy"))
    assert "No noise was added" in said
    assert "lies for certain within the bracket" in said
    (facts,) = tables(section(exact, "Privacy"))
    assert ["participants", "a, b, c"] in facts.rows
    assert "bracket 0.600 to 0.900" in tables(section(exact, "Main results"))[0].rows[0][1]
    noisy = built(mode="private sums", participants=["a", "b", "c"], epsilon=2.0, delta=1e-6)
    said = words(section(noisy, "Privacy"))
    assert "epsilon = 2, delta = 1e-06 for all statistics together" in said
    assert "for certain within" not in said


def test_with_noise_numbers_of_rows_are_not_exact() -> None:
    report = built(mode="private sums", epsilon=2.0, rows_error=30.0)
    (table,) = tables(section(report, "Table 1"))
    assert table.heading[1] == "all\nn \N{ALMOST EQUAL TO} 100"
    assert table.rows[-1][1] == "\N{ALMOST EQUAL TO}50\n(50.0 %)"
    (pictures,) = [b.pictures for b in section(report, "Subgroups") if isinstance(b, Figures)]
    assert pictures[0].title == "AUC by sex, risk (n \N{ALMOST EQUAL TO} 100)"
    assert pictures[0].lines[0].name == "sex F\n(n \N{ALMOST EQUAL TO} 50)"
    assert report.subtitle.startswith("about 100 rows")


def test_brackets_say_what_helps() -> None:
    found = results(mode="private sums", layout={"fingerprint": "ab12", "numbers": 4321})
    by_name = {one["name"]: one for one in found["estimates"]}
    by_name["calibration-error"] |= {"bracket": [[0.0, 0.01], [0.8, 0.03]]}
    by_name["auc-difference"] |= {"bracket": [-0.01, 0.2]}
    found["columns"]["time"] = {"range": [0, 730], "unit": "days"}
    found["study"] |= {"times": [30.0], "horizon": 180.0}
    report = content.build(json.loads(json.dumps(found)))
    errors = [one for one in tables(section(report, "Calibration")) if "error" in one.caption]
    assert [row[2].split("\n")[-1] for row in errors[0].rows] == [
        "wide bracket",
        "bracket 0.010 to 0.030",
    ]
    differences = tables(section(report, "Main results"))[1]
    assert differences.rows[0][1].endswith("; bracket includes 0")
    said = words(section(report, "Methods"))
    assert "A bracket that covers more than half of all possible values is called wide" in said
    assert "the sign of the difference over the rows is open" in said
    assert "rows at risk at t are those whose time is t or later" in said
    assert "an event before 180 days." in words(section(report, "Study"))
    assert tables(section(report, "Survival"))[0].heading[0] == "time (days)"
    (facts,) = tables(section(report, "Privacy"))
    assert ["layout of the sums", "4,321 numbers, fingerprint ab12"] in facts.rows
    shown = dict(facts.rows)
    assert shown["bins of time"].endswith("an edge at each of the study's times and horizon")
    assert shown["bins of died"] == "2 classes"


def test_files_are_named_without_their_folders() -> None:
    report = built(data=["/home/a/one.csv", "C:\\data\\two.xlsx"])
    assert "in 100 complete rows of one.csv and two.xlsx." in words(section(report, "Study"))


def test_rows_are_told_from_the_files_to_those_used() -> None:
    report = built(
        data=["/a/one.csv", "/a/two.csv"], rows_read=[64, 40], missing={"risk": 3, "sex": 2}
    )
    (table,) = [block for block in tables(section(report, "Study")) if block.caption == "Rows"]
    assert table.rows == [
        ["Read", "104\n64 in one.csv, 40 in two.csv"],
        ["Left out, as a value is missing", "4\n3 lack risk, 2 lack sex"],
        ["Used", "100"],
    ]
    assert "A row can lack several values." in words(section(report, "Study"))
    assert "Rows without a value of sex are left out of all results: 2." in words(
        section(report, "Subgroups")
    )
    sums = built(mode="private sums", participants=["a", "b", "c"])
    assert "is known at each site only" in words(section(sums, "Study"))


def test_table_one_has_units() -> None:
    found = results()
    found["columns"]["age"] = {"unit": "years", "range": [0, 100]}
    (table,) = tables(section(content.build(json.loads(json.dumps(found))), "Table 1"))
    assert [row[0] for row in table.rows] == [
        "age (years), mean", "age (years), median", "age, missing", "sex = F",
    ]  # fmt: skip


def test_what_is_missing_is_said() -> None:
    report = built()
    (items,) = section(report, "Statistics without a value")
    assert items.items == ["Log loss: too few rows"]
    assert "4 of 104" in words(section(report, "Methods"))
    (checklist,) = tables(section(report, "TRIPOD+AI"))
    by_item = {(row[0], row[1]): row[2] for row in checklist.rows}
    assert by_item["23a", "Performance with confidence intervals"] == "section Main results"
    assert by_item["17", "Ethical approval"] == "not in this report"
    assert by_item["8", "Outcome"] == "in part, section Study"
    with pytest.raises(InputError, match="the results have no estimates"):
        content.build({**results(), "estimates": []})


def test_warnings_are_shown_once() -> None:
    found = results()
    for record in found["estimates"]:
        record["warnings"] = ["the bracket is wide"]
        record["warnings"] += [f"{record['statistic']}: be careful"] * (record["name"] == "auc")
    (items,) = section(content.build(json.loads(json.dumps(found))), "Warnings")
    wide, careful = items.items
    assert wide.endswith("difference of AUCs (risk less old); Table 1: the bracket is wide")
    assert "reclassification" not in wide
    assert careful == "AUC (risk, old): be careful"


def test_references_are_those_of_the_statistics() -> None:
    (items,) = [block for block in section(built(), "Methods") if hasattr(block, "items")]
    cited = " ".join(items.items)
    assert all(name in cited for name in ("DeLong", "Vickers", "Kaplan", "Pencina", "Collins"))
    assert "Graf" not in cited
    assert "Bonawitz" not in cited


class Checker(HTMLParser):
    """Elements of a page, which have to be closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def test_the_page_is_whole_and_can_be_read_aloud() -> None:
    text = html_page.render(built())
    checker = Checker()
    checker.feed(text.partition("\n")[2])
    assert checker.open == []
    assert "<h1>Does &lt;RISK&gt; hold?</h1>" in text
    assert not re.search(r"""(src|href)="?(https?:|//)""", text)
    pictures = [attributes for tag, attributes in checker.seen if tag == "svg"]
    assert len(pictures) > 7
    assert all(one["role"] == "img" and one["aria-label"] for one in pictures)
    headers = [attributes for tag, attributes in checker.seen if tag == "th"]
    assert all(one["scope"] in ("row", "col") for one in headers)
    ids = [attributes["id"] for tag, attributes in checker.seen if tag in ("h2", "section")
           and "id" in attributes]  # fmt: skip
    assert len(ids) == len(set(ids)) == 13
    assert html_page.render(built()) == text  # depends on the results only


def test_the_pdf_has_pages() -> None:
    made = pdf_pages.render(built())
    assert made.startswith(b"%PDF")
    assert 5 <= len(re.findall(rb"/Type /Page\b", made)) <= 12
    assert pdf_pages.render(built()) == made


def test_a_long_table_of_the_pdf_has_its_heading_on_each_page() -> None:
    rows = [[f"row {k}", "0.5\n0.4 to 0.6"] for k in range(80)]
    written: list[str] = []

    class Pages(pdf_pages._Pages):
        def write(self, text: str, *place: Any, **look: Any) -> None:
            written.append(text)
            super().write(text, *place, **look)

    with PdfPages(io.BytesIO()) as file:
        pages = Pages(file)
        pages.new_page()
        pdf_pages._table(pages, Table("Values", ["statistic", "value"], rows))
        pages.finish()
    assert written.count("statistic") == 3  # of as many pages
    assert [text for text in written if text.startswith("row ")] == [row[0] for row in rows]


def test_pictures_of_the_pdf_stand_as_on_the_page() -> None:
    (pictures,) = [
        block.pictures for block in section(built(), "Subgroups") if isinstance(block, Figures)
    ]
    rows = pdf_pages._in_rows(pictures)
    assert [one for row in rows for one in row] == pictures
    assert max(map(len, rows)) == 2  # of short names, two forest plots too
    (first, *_) = pictures
    renamed = first.estimates[0]._replace(
        groups=tuple(g._replace(group="a long name " * 5) for g in first.estimates[0].groups)
    )
    assert len(pdf_pages._in_rows([first._replace(estimates=(renamed,))] * 2)) == 2


def test_lines_of_the_pdf_fit_their_columns() -> None:
    lines = pdf_pages._wrapped("some words " * 30 + "a" * 80, 9.0, 3.0)
    assert len(lines) > 5
    assert all(pdf_pages._width(line, 9.0) <= 3.05 for line in lines[:-1])
    widths = pdf_pages._column_widths([["a", "a long text " * 20, "b"]])
    assert sum(widths) <= pdf_pages.WIDTH - 2 * pdf_pages.MARGIN
    assert widths[0] < widths[1]


def test_the_command(tmp_path: Path, gosta_: Command) -> None:
    (tmp_path / "results.json").write_text(json.dumps(results()))
    assert gosta_("report", tmp_path)[:2] == (0, f"report: {tmp_path / 'report.html'}\n")
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert gosta_("report", tmp_path, "--out", tmp_path / "r.pdf")[0] == 0
    code, _, error = gosta_("report", tmp_path, "--out", tmp_path / "r.docx")
    assert (code, error) == (2, f"gosta: out = '{tmp_path}/r.docx' must end in .html or .pdf\n")
    (tmp_path / "results.json").unlink()
    code, _, error = gosta_("report", tmp_path)
    assert code == 2
    assert "'gosta study run' and 'gosta study collect' write it" in error


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Browser, str]]:
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(html_page.render(built()))
    with browse() as browser:
        yield browser, file.as_uri()


@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_can_be_read(page: tuple[Browser, str], width: int, scheme: str) -> None:
    browser, url = page
    browser.resize(width, 844)
    browser.prefer(scheme=scheme)
    browser.open(url)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.problems == []
    assert {one for one in browser.requests if not one.startswith("file:")} == set()
    assert browser.run("[...document.querySelectorAll('figure svg')].every("
                       "(one) => one.getBoundingClientRect().width > 280)")  # fmt: skip
    wider = "(one) => one.scrollWidth > one.clientWidth"
    assert browser.run(f"[...document.querySelectorAll('.table')].filter({wider}).length") == 0
    shown = browser.run("getComputedStyle(document.querySelector('.stacked tr')).display")
    assert shown == ("block" if width == 390 else "table-row")
    least = browser.run("Math.min(...[...document.querySelectorAll('svg text')].map("
                        "(one) => one.getBoundingClientRect().height))")  # fmt: skip
    assert least >= 8
    if scheme == "light":
        assert browser.run(CONTRAST)[0][0] >= 4.5


def test_groups_that_are_withheld_are_named_with_the_reason() -> None:
    reason = "withheld: another group would follow from it"
    known = [Estimate(0.7, 0.6, 0.8, 0.05, 0.95, group=f"ward = {k}", n=50 + k) for k in range(3)]
    groups = (*known, Estimate(None, group="ward = 3", reason=reason))
    assert groups[-1].to_dict()["n"] is None
    found = results()
    compared = heterogeneity([0.7] * 3, [0.05] * 3)
    auc = estimate("auc", "risk", 0.75, by="ward", groups=groups, heterogeneity=compared)
    found["estimates"] = [{"question": "discrimination", **auc}]
    blocks = section(content.build(json.loads(json.dumps(found))), "Subgroups")
    (table,) = tables(blocks)
    assert table.rows[3] == ["ward 3\nn withheld", "-", ""]
    assert table.rows[4] == ["p, all groups\nCochran's Q, I²", "1.0\nI² 0 %\n3 of 4 groups", ""]
    assert [block.items for block in blocks if isinstance(block, List)] == [[f"ward 3: {reason}"]]


def test_what_brackets_are_beside_intervals_is_said_below_the_first_table_that_has_some() -> None:
    found = results()
    one = estimate("auc", "risk", 0.75, bracket=(0.6, 0.9))
    found["estimates"] = [{"question": "discrimination", **one}]
    for title in ("Main results", "Discrimination"):
        blocks = section(content.build(json.loads(json.dumps(found))), title)
        assert [type(block) for block in blocks[-2:]] == [Table, Text]
        assert "Neither includes the other" in words(blocks)
