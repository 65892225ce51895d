"""The files of a network: what its operator keeps, and what a node's folder holds."""

from __future__ import annotations

from typing import Any

import msgspec


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a network computes: all of its nodes must say the same."""

    id: str  # of the network, made at random: 16 hexadecimal digits
    statistic: str  # a name, or FILE.py:NAME with the file in the node's folder
    protocol: str = "tracking"
    interval: float | None = None  # the confidence level
    options: dict[str, Any] = {}  # of the statistic
    encoded: bool = False  # the data files hold what the kernel needs, as it is; otherwise:
    columns: tuple[str, ...] = ()
    label: str | None = None
    score: str | None = None
    classes: tuple[str | int | float, ...] = ()  # all classes of all sites, in order: a site may not have them all
    drop_missing: bool = False


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A node and how it runs."""

    name: str
    listen: str  # host:port
    status: str = ""  # host:port of its status page; empty: none
    data: str = "data.csv"  # beside the file, or an absolute path
    rate: float = 10.0  # meetings that it begins in a second, on average
    durable: bool = False  # whether the journal survives a loss of power, not only of the process
    renew: float = 0.0  # seconds after which a new epoch begins; 0: only when something changed
    tls: bool = True


class NodeFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """node.toml: all that a node needs to know."""

    network: Task
    node: Place
    neighbours: dict[str, str]  # names, and where to call them; empty: they call


class NetworkFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """network.toml: all nodes, for whoever runs the whole."""

    network: Task
    graph: str
    nodes: dict[str, str]  # names, and where they listen
    edges: tuple[tuple[str, str], ...]
