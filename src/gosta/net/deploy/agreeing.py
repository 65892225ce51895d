"""Whose agreements the operator of a machine can give: those of the nodes of private sums whose folders are here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from gosta.errors import InputError
from gosta.net import members
from gosta.net.config import NETWORK_FILE, NODE_FILE, Task, read_node
from gosta.net.deploy.folders import load_network, local_nodes
from gosta.net.members import MEMBERS_FILE


def find_nodes(folder: Path) -> dict[Path, str]:
    """Return the folders and names of nodes that can agree: the one in a folder, or those of a network."""
    if (folder / NETWORK_FILE).exists():
        _check_sums(folder, load_network(folder).network)
        return {folder / name: name for name in local_nodes(folder)}
    site = read_node(folder / NODE_FILE)
    _check_sums(folder, site.network)
    return {folder: site.node.name}


def leaving_node(folder: Path) -> str:
    """Return the name of the node in a folder, if it contributes to private sums."""
    site = read_node(folder / NODE_FILE)
    if site.network.private is None:
        why = "this network exchanges rows, of which others may keep those that they have seen"
        raise InputError(f"{folder}: {why}; stop the node, and have the coordinator run: gosta network remove")
    return site.node.name


def strangers(nodes: Iterable[Path], names: Collection[str]) -> list[str]:
    """Return the names that no member list in these folders has."""
    files = [folder / MEMBERS_FILE for folder in nodes]
    known = {name for file in files if file.exists() for name in members.read_list(file).list.keys}
    return [name for name in names if name not in known]


def _check_sums(folder: Path, task: Task) -> None:
    if task.private is None:
        raise InputError(f"{folder}: this network exchanges rows, not sums: there is nothing to agree about")
    if task.private.epsilon is not None:
        why = "the sums of this network have noise, so that no totals give exact sums"
        raise InputError(f"{folder}: {why}: there is nothing to agree about")
