"""Statuses of nodes as their pages show them."""

from __future__ import annotations

import msgspec

from gosta.net.node.contact import Rejection
from gosta.net.node.status import Neighbour, Status, SumStatus

RUNNING = Status(
    node="node-3",
    network="0123456789abcdef",
    statistic="auc",
    protocol="tracking",
    state="stalled",
    epoch=2,
    epoch_origin="node-9",
    epoch_reason="rows <changed>",
    exchanges=1234,
    rows=10,
    rows_seen=1203,
    rows_declared=1416,
    sites_seen=4,
    sites=5,
    missing=("node-4",),
    estimate=(0.75, 2.0),
    low=0.7,
    high=0.8,
    confidence_level=0.95,
    expected_error=0.001,
    estimate_epoch=1,
    max_difference=0.002,
    neighbours=(
        Neighbour("node-7", 600, True, True, 0.5, 0.0123, 0.002, epoch=2),
        Neighbour("<b>node-8</b>", 0),
    ),
    rejections=(
        Rejection("node-7", "values", 3, "it tells <i>1e200</i>", 4.0),
        Rejection("", "unauthenticated", 2, "no certificate", 100.0),
    ),
    reload_error="data.csv is empty",
    counters={
        "offers": 700,
        "offers declined: busy": 3,
        "rejected: unauthenticated": 2,
        "rejected: values": 3,
    },
    uptime_seconds=4000.0,
    version="0.1.0",
    list_serial=3,
    epoch_time=1.5e9,
    journal_bytes=4096,
    certificate_ends={"node": 2e9, "authority": 3e9},
    list_fingerprint="8695 94b6 712b 7342",
    list_conflict="the coordinator signed two lists",
)


SUPPRESSED = msgspec.structs.replace(
    RUNNING,
    state="suppressed",
    sites_seen=6,
    sums=SumStatus(
        results=(),
        participants=("node-3", "node-4", "node-7"),
        left_out=(),
        joined=(),
        missing=(),
        refused=("node-3",),
        reason="node-4 takes no part; wait, or agree to go on without it: "
        "gosta network agree FOLDER node-4; "
        "left; to come back: gosta node leave FOLDER --back",
        law="none",
        epsilon=0.0,
        delta=0.0,
        spent_epsilon=0.0,
        epsilon_budget=10.0,
        contributions=1,
        releases=1,
        layout="0" * 16,
        release_time=None,
        rows_of=None,
        why_older="",
        needed_agreements=("node-4",),
        left_out_reasons={},
    ),
)


NEW = msgspec.structs.replace(
    RUNNING,
    state="disconnected",
    estimate=None,
    low=None,
    high=None,
    expected_error=None,
    max_difference=None,
    sites=0,
    rows_declared=0,
    missing=(),
    rejections=(),
    reload_error="",
    list_fingerprint="",
    list_conflict="",
    counters={},
)
