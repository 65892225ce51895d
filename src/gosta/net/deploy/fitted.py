"""The model that a network of private sums has fitted, from the totals that a node knows."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from gosta.errors import GostaError, InputError, NetworkError
from gosta.models import Fit
from gosta.models.layout import LEVEL, FitLayout
from gosta.net.deploy.network import Network, is_network
from gosta.net.deploy.node_folder import NodeFolder
from gosta.net.deploy.query import fetch
from gosta.net.node.restore import load_peer
from gosta.net.node.rows import fit_of
from gosta.net.protocol import site, statements
from gosta.net.protocol.site import SumReport
from gosta.private.noise import choose_noise

MAX_RESPONSE_BYTES = 1 << 27  # twelve totals of the largest size
_decode = msgspec.json.Decoder(SumReport | None).decode


class Fitted(NamedTuple):
    """A fit, and the release that it follows from."""

    fit: Fit
    report: SumReport


def read_fit(folder: Path) -> Fitted:
    """Return the fit of the last release that a node of a folder knows.

    The folder is a network's or a node's; nodes need not run.
    """
    if not folder.is_dir():
        raise InputError(f"no such folder: {folder}")
    nodes = Network.read(folder).nodes_here() if is_network(folder) else [NodeFolder(folder)]
    found = [(node, report) for node in nodes if (report := _report_of(node)) is not None]
    if not found:
        raise NetworkError(f"{folder}: no node here knows a release yet; see gosta status {folder}")
    node, report = max(found, key=lambda one: one[1].epoch)
    task = node.read().network
    if task.fit is None:
        raise InputError(
            f"{folder} computes {task.statistic}, and fits no model",
            remedy=f"gosta status {folder}",
        )
    earlier, least = report.earlier_totals, report.min_cell
    last = site.layouts_of_rounds(fit_of(task, task.fit), earlier, least)[-1]
    assert isinstance(last, FitLayout)
    if last.fingerprint != report.layout:
        raise NetworkError(f"{folder}: the settings have changed since the last release")
    totals = np.asarray(statements.unpack(report.vector).view(np.int64) / 2.0**report.bits)
    assert task.private is not None
    noise = choose_noise(task.private, last, len(report.participants))
    fit = last.fit(totals, task.confidence_level or LEVEL, least, noise.variance)
    return Fitted(fit, report)


def _report_of(node: NodeFolder) -> SumReport | None:
    """Return what a node reports, whether it is running or not; None: nothing, or no answer."""
    if node.is_running:
        answer = fetch(node.read(), "/release", MAX_RESPONSE_BYTES)
        try:
            return None if answer is None else _decode(answer)
        except msgspec.MsgspecError:
            return None
    try:
        _, peer, journal = load_peer(node.path)
    except GostaError:
        return None
    with contextlib.closing(journal):
        report = getattr(peer, "report", None)
        return report if isinstance(report, SumReport) else None
