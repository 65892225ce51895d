"""The results of a study from a network of private sums, or from one of its nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gosta.errors import InputError, NetworkError
from gosta.net.config import NODE_FILE
from gosta.net.deploy.network import is_network
from gosta.net.deploy.query import read_status, view_network
from gosta.net.node.status import Status
from gosta.studies import released
from gosta.studies.definition import STUDY_FILE, Study


def expect_network(folder: Path) -> None:
    """Raise an error if a folder is that of a study, where a network's or a node's is expected."""
    is_study = (folder / STUDY_FILE).exists()
    if is_study and not is_network(folder) and not (folder / NODE_FILE).exists():
        raise InputError(
            f"{folder} is the folder of a study, not of a network or a node",
            remedy="name the study first: gosta study collect STUDY NETWORK",
        )


def collect(study: Study, folder: Path) -> dict[str, Any]:
    """Return the results of the last release that a node of a folder knows."""
    if not folder.is_dir():
        raise InputError(f"no such folder: {folder}")
    status = _status(folder)
    sums = status.sums
    if sums is None:
        raise InputError(f"{folder} is no network of private sums: it exchanges rows")
    how = {
        "sites": status.sites,
        "participants": list(sums.participants),
        "left_out": list(sums.left_out),
        "epsilon": sums.epsilon or None,
        "delta": sums.delta,
        "law": sums.law,
        "layout": {"fingerprint": sums.layout, "numbers": study.layout().size},
        "release_time": sums.release_time,
        "network": status.network,
    }
    return released.collect(study, sums.results, how)


def _status(folder: Path) -> Status:
    """Return the status of the node, or of the first of a network that knows a release."""
    if not is_network(folder):
        statuses = [read_status(folder)]
    else:
        statuses = [view.status for view in view_network(folder) if view.status is not None]
    for status in statuses:
        if status.sums is None or status.sums.results:
            return status
    raise NetworkError(f"{folder}: no node here knows a release yet; see gosta status {folder}")
