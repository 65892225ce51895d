"""Leaving private sums, and agreeing to totals without a site: for which nodes that is decided."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from gosta.errors import InputError
from gosta.net.deploy.network import is_network, nodes_in, task_of
from gosta.net.deploy.node_folder import NodeFolder, read_list
from gosta.net.members import MEMBERS_FILE


class Agreeing(NamedTuple):
    """The nodes on this machine whose operator can agree."""

    nodes: dict[Path, str]  # names by folder
    has_noise: bool

    def consequence(self, name: str) -> str:
        """Return in words what it means to agree about a site."""
        if self.has_noise:
            return f"Epochs with {name} can then cost epsilon again, even if it lets them fail."
        return consequence(name)


def consequence(name: str) -> str:
    """Return in words what it means that there are totals with and without a site."""
    return (
        f"The exact sums of {name} can then be computed by everybody who has the totals with and "
        "without it."
    )


def find_nodes(folder: Path) -> Agreeing:
    """Return the nodes that can agree: the one in a folder, or those of a network."""
    private = task_of(folder).private
    if private is None:
        raise InputError(
            f"{folder}: this network exchanges rows, not sums: there is nothing to agree about"
        )
    nodes = nodes_in(folder)
    names = [node.name if is_network(folder) else node.read().node.name for node in nodes]
    paths = [node.path for node in nodes]
    return Agreeing(dict(zip(paths, names, strict=True)), private.epsilon is not None)


def find_leaving(folder: Path) -> tuple[str, bool]:
    """Return the name of a node that contributes to private sums, and whether they have noise."""
    site = NodeFolder(folder).read()
    if site.network.private is None:
        raise InputError(
            f"{folder}: this network exchanges rows, and others may keep those that they have "
            "seen; stop the node, and have the coordinator run: gosta network remove"
        )
    return site.node.name, site.network.private.epsilon is not None


def strangers(nodes: Iterable[Path], names: Collection[str]) -> list[str]:
    """Return the names that no member list in these folders has."""
    lists = [read_list(folder / MEMBERS_FILE) for folder in nodes]
    known = {name for signed in lists if signed is not None for name in signed.list.keys}
    return [name for name in names if name not in known]
