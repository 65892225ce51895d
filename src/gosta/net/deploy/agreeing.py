"""Whose agreements the operator of a machine can give: those of the nodes of private sums whose folders are here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from gosta.errors import InputError
from gosta.net import members
from gosta.net.config import NETWORK_FILE, NODE_FILE, read_node
from gosta.net.deploy.folders import load_network, local_nodes
from gosta.net.members import MEMBERS_FILE


class Agreeing(NamedTuple):
    """Nodes whose operator can agree."""

    nodes: dict[Path, str]  # names by folder
    has_noise: bool

    def consequence(self, name: str) -> str:
        """Return in words what it means to agree about a site."""
        if self.has_noise:
            return f"Epochs with {name} can then cost epsilon again, even if it lets them fail."
        return f"The exact sums of {name} can then be computed by everybody who has the totals with and without it."


def find_nodes(folder: Path) -> Agreeing:
    """Return the nodes that can agree: the one in a folder, or those of a network."""
    is_network = (folder / NETWORK_FILE).exists()
    site = None if is_network else read_node(folder / NODE_FILE)
    task = load_network(folder).network if site is None else site.network
    if task.private is None:
        raise InputError(
            f"{folder}: this network exchanges rows, not sums: there is nothing to agree about"
        )
    nodes = (
        {folder / name: name for name in local_nodes(folder)}
        if site is None
        else {folder: site.node.name}
    )
    return Agreeing(nodes, task.private.epsilon is not None)


def find_leaving(folder: Path) -> tuple[str, bool]:
    """Return the name of the node in a folder, if it contributes to private sums, and whether these have noise."""
    site = read_node(folder / NODE_FILE)
    if site.network.private is None:
        why = "this network exchanges rows, of which others may keep those that they have seen"
        raise InputError(
            f"{folder}: {why}; stop the node, and have the coordinator run: gosta network remove"
        )
    return site.node.name, site.network.private.epsilon is not None


def strangers(nodes: Iterable[Path], names: Collection[str]) -> list[str]:
    """Return the names that no member list in these folders has."""
    files = [folder / MEMBERS_FILE for folder in nodes]
    known = {name for file in files if file.exists() for name in members.read_list(file).list.keys}
    return [name for name in names if name not in known]
