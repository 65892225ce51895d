"""What the reproduction leaves in its folder: results.json, and the same in words."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gosta
from gosta.errors import InputError
from gosta.experiments.paper.model import Part, Plan


def write(plan: Plan, parts: Sequence[Part], order: Sequence[str], eager: float, folder: Path) -> None:
    """Put results.md and results.json into the folder, each whole or not at all.

    Parts of the same plan that are in results.json already stay there.
    """
    head = {
        "gosta": gosta.__version__,
        "runs": plan.runs,
        "seed": plan.seed,
        "data": {subject.statistic: subject.digest for subject in (plan.scatter, plan.auc)},
        "stand_in": plan.stand_in,
    }
    known = _earlier(folder / "results.json", head) | {part.name: _entry(part) for part in parts}
    entries = {name: known[name] for name in order if name in known}
    seconds = {part.name: part.seconds for part in parts}
    texts = {
        "results.md": _report(plan, entries, seconds, eager),
        "results.json": json.dumps({**head, "parts": entries}, indent=1, allow_nan=False) + "\n",
    }
    for name, text in texts.items():
        draft = folder / f".{name}.part"
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(folder / name)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise InputError(f"cannot write {folder / name}: {error.strerror or error}") from error


def _earlier(file: Path, head: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a file that was written for the same plan."""
    try:
        old = json.loads(file.read_text(encoding="utf-8"))
        return dict(old.pop("parts")) if {k: old[k] for k in head} == head else {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _entry(part: Part) -> dict[str, Any]:
    """A part as JSON has it: the same for the same seed, wherever and how fast it was computed."""
    claims = [
        {**claim._asdict(), "agrees": bool(claim.agrees), "finding": "" if claim.agrees else claim.finding}
        for claim in part.found.claims
    ]
    return {
        "title": part.title,
        "iterations": part.iterations,
        "files": part.files,
        "claims": claims,
        "table": part.found.table,
        "numbers": part.found.numbers,
    }


def _report(plan: Plan, entries: Mapping[str, Any], seconds: Mapping[str, float], eager: float) -> str:
    """All in words, as Markdown."""
    claims = [claim for entry in entries.values() for claim in entry["claims"]]
    agree, total = sum(claim["agrees"] for claim in claims), sum(entry["iterations"] for entry in entries.values())
    lines = [
        "# The experiments of the paper, reproduced",
        "",
        "Colin, Bellet, Salmon, Clémençon: *Extending Gossip Algorithms to Distributed Estimation of U-Statistics*.",
        "",
        f"{plan.runs} runs, seed {plan.seed}, gosta {gosta.__version__}, data: {data_in_words(plan)}. "
        f"Of {len(claims)} claims {agree} agree. Pictures and curves lie in the folder that `gosta reproduce` makes.",
        "",
        f"{total:,} iterations. Updating all nodes at every tick with numpy takes {1e6 * eager:.0f} µs an iteration "
        f"here, {total * eager / 3600:.1f} hours for all; this took {sum(seconds.values()):,.0f} s "
        "for what had not been done before.",
        "",
        "Rows are dealt to nodes at random. Errors are means over nodes and runs of the relative error, ± its standard "
        "deviation over nodes; bands go from the mean divided by 1 + spread/mean to the mean times that. The grid has "
        "glued borders. Dotted lines are the error of expected estimates, which is less than that of a run.",
    ]
    for name, entry in entries.items():
        took = f" ({seconds[name]:.1f} s)" if name in seconds else ""
        lines += ["", f"## {name}: {entry['title']}{took}", ""]
        lines += [f"![{entry['title']}]({file})\n" for file in entry["files"][:1]]
        heading, *rows = entry["table"]
        lines += [_row(heading), _row(["---"] * len(heading)), *map(_row, rows), ""]
        for claim in entry["claims"]:
            verdict = "agrees" if claim["agrees"] else "**disagrees**"
            lines.append(f"- {claim['sentence']} *{verdict}*: {claim['measured']}. {claim['finding']}".rstrip())
    return "\n".join(lines) + "\n"


def data_in_words(plan: Plan) -> str:
    """Which data were taken."""
    one, other = (f"{subject.data} ({len(subject.rows):,} rows)" for subject in (plan.scatter, plan.auc))
    return f"{one}, a stand-in for the paper's two data sets" if plan.stand_in else f"{one} and {other}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
