"""Reports of the reproduction: results.json and results.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gosta
from gosta.experiments.paper.model import CompletedExperiment, Plan
from gosta.runtime.files import write_atomically


def write(
    plan: Plan,
    completed: Sequence[CompletedExperiment],
    order: Sequence[str],
    numpy_seconds: float,
    folder: Path,
) -> None:
    """Write results.md and results.json into the folder, with experiments in the order of their names.

    Experiments of the same plan that are in results.json already are kept. `numpy_seconds` is the time of an iteration
    in numpy, for comparison.
    """
    settings = {
        "gosta": gosta.__version__,
        "runs": plan.runs,
        "seed": plan.seed,
        "data": {subject.statistic: subject.digest for subject in (plan.scatter, plan.auc)},
        "stand_in": plan.uses_stand_in,
    }
    known = _read_earlier(folder / "results.json", settings) | {
        each.name: _entry(each) for each in completed
    }
    entries = {name: known[name] for name in order if name in known}
    seconds = {each.name: each.seconds for each in completed}
    write_atomically(folder / "results.md", _markdown(plan, entries, seconds, numpy_seconds))
    content = json.dumps({**settings, "parts": entries}, indent=1, allow_nan=False)
    write_atomically(folder / "results.json", content + "\n")


def _read_earlier(file: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a file that was written with the same settings."""
    try:
        old = json.loads(file.read_text(encoding="utf-8"))
        return dict(old.pop("parts")) if {k: old[k] for k in settings} == settings else {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _entry(completed: CompletedExperiment) -> dict[str, Any]:
    """Return the JSON of an experiment, which depends on the settings only, not on where or how fast it was run."""
    claims = [
        {
            **claim._asdict(),
            "agrees": bool(claim.agrees),
            "finding": "" if claim.agrees else claim.finding,
        }
        for claim in completed.findings.claims
    ]
    return {
        "title": completed.title,
        "iterations": completed.iterations,
        "files": completed.files,
        "claims": claims,
        "table": completed.findings.table,
        "numbers": completed.findings.numbers,
    }


def _markdown(
    plan: Plan, entries: Mapping[str, Any], seconds: Mapping[str, float], numpy_seconds: float
) -> str:
    claims = [claim for entry in entries.values() for claim in entry["claims"]]
    agreeing = count_agreeing([(claim.get("is_ours", False), claim["agrees"]) for claim in claims])
    total = sum(entry["iterations"] for entry in entries.values())
    lines = [
        "# The experiments of the paper, reproduced",
        "",
        "Colin, Bellet, Salmon, Clémençon: *Extending Gossip Algorithms to Distributed Estimation of U-Statistics*.",
        "",
        f"{plan.runs} runs, seed {plan.seed}, gosta {gosta.__version__}, data: {describe_data(plan)}. "
        f"{agreeing}. Figures and curves are in the folder that `gosta reproduce` makes.",
        "",
        f"{total:,} iterations. Updating all nodes at every tick with numpy takes {1e6 * numpy_seconds:.0f} µs an "
        f"iteration here, {total * numpy_seconds / 3600:.1f} hours for all; this took {sum(seconds.values()):,.0f} s "
        "for what had not been done before.",
        "",
        "Rows are placed at nodes at random. Errors are means over nodes and runs of the relative error, ± its "
        "standard deviation over nodes; bands go from the mean divided by 1 + spread/mean to the mean times that. The "
        "grid has periodic borders. Dotted lines are the error of expected estimates, which is less than a run's.",
    ]
    for name, entry in entries.items():
        took = f" ({seconds[name]:.1f} s)" if name in seconds else ""
        lines += ["", f"## {name}: {entry['title']}{took}", ""]
        lines += [f"![{entry['title']}]({file})\n" for file in entry["files"][:1]]
        heading, *rows = entry["table"]
        lines += [_row(heading), _row(["---"] * len(heading)), *map(_row, rows), ""]
        for claim in entry["claims"]:
            verdict = "agrees" if claim["agrees"] else "**disagrees**"
            source = "Ours" if claim.get("is_ours") else "The paper says"
            sentence = f"{source}: {claim['sentence']} *{verdict}*: {claim['measured']}. {claim['finding']}"
            lines.append(f"- {sentence}".rstrip())
    return "\n".join(lines) + "\n"


def count_agreeing(claims: Sequence[tuple[bool, bool]]) -> str:
    """Return in words how many claims agree, those of the paper and ours; each says whether it is ours, and agrees.

    >>> count_agreeing([(False, True), (False, False), (True, True)])
    'Of 2 claims of the paper 1 agree, of 1 of ours 1'
    """
    paper, ours = (
        [agrees for is_ours, agrees in claims if is_ours == wanted] for wanted in (False, True)
    )
    text = f"Of {len(paper)} claims of the paper {sum(paper)} agree, of {len(ours)} of ours {sum(ours)}"
    return text if paper and ours else f"Of {len(claims)} claims {sum(paper) + sum(ours)} agree"


def describe_data(plan: Plan) -> str:
    """Return the names and sizes of the data as text."""
    one, other = (
        f"{subject.data} ({len(subject.rows):,} rows)" for subject in (plan.scatter, plan.auc)
    )
    return (
        f"{one}, a stand-in for the paper's two data sets"
        if plan.uses_stand_in
        else f"{one} and {other}"
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
