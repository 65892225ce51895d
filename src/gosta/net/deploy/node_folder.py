"""The folder of a node: its files, whether it is here, and what they say."""

from __future__ import annotations

import contextlib
import math
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gosta.errors import InputError
from gosta.net import addresses, config, members
from gosta.net.addresses import Address
from gosta.net.agreements import AGREED_FILE
from gosta.net.config import NETWORK_FILE, NODE_FILE, NodeConfig, NodeSettings
from gosta.net.deploy import authority, bundles
from gosta.net.deploy.certificates import Pair
from gosta.net.members import ACCEPTED_FILE, MEMBERS_FILE, MemberList, SignedList
from gosta.net.node import lock
from gosta.net.node.rows import read_rows
from gosta.private.policy import POLICY_FILE
from gosta.runtime.files import write_atomically

REQUESTS = "requests"  # folder with the requests of sites that enrolled
BUNDLES = "bundles"  # folder with their bundles
KEY_FILE, CERTIFICATE_FILE, AUTHORITIES_FILE = "key.pem", "cert.pem", "ca.pem"
NEXT_KEY_FILE = "next-key.pem"  # a requested key that is not certified yet
DATA_FILE = "data.csv"
# Names that files shared by all nodes cannot have.
RESERVED_NAMES = {
    *(authority.FOLDER, REQUESTS, BUNDLES, DATA_FILE, POLICY_FILE, AGREED_FILE),
    *(KEY_FILE, CERTIFICATE_FILE, AUTHORITIES_FILE, NEXT_KEY_FILE),
    *(NODE_FILE, NETWORK_FILE, config.JOURNAL_FILE, config.HEAD_FILE, config.LOCK_FILE),
    *(config.LOG_FILE, MEMBERS_FILE, ACCEPTED_FILE, members.PROPOSED_FILE, members.CONFLICT_FILE),
    *(bundles.INVITATION_FILE, bundles.REQUEST_FILE, bundles.CSR_FILE),
}


@dataclass(frozen=True)
class NodeFolder:
    """The folder of a node: settings, data, key and certificate, member lists, policy."""

    path: Path

    @property
    def name(self) -> str:
        """The folder's name: in a network's folder, that of the node."""
        return self.path.name

    @property
    def is_here(self) -> bool:
        """Whether the folder is on this machine."""
        return (self.path / NODE_FILE).exists()

    @property
    def is_running(self) -> bool:
        """Whether a process on this machine runs the node."""
        return lock.is_running(self.path)

    def read(self) -> NodeConfig:
        """Read node.toml."""
        return config.read_node(self.path / NODE_FILE)

    def write(self, settings: NodeConfig) -> None:
        """Write node.toml."""
        config.write(self.path / NODE_FILE, settings)

    def data_file(self, settings: NodeConfig | None = None) -> Path:
        """Return where the data file is, or has to be put."""
        return self.path / (settings or self.read()).node.data

    def count_rows(self) -> int:
        """Return how many rows the data file has; 0 if there is none."""
        settings = self.read()
        data = self.data_file(settings)
        if not data.is_file():
            return 0
        return len(read_rows(settings.network, data, self.path, settings.node.format))

    def write_pair(self, pair: Pair) -> None:
        """Write the node's key, which nobody else can read, and its certificate."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        write_atomically(self.path / KEY_FILE, pair.key, mode=0o600)
        write_atomically(self.path / CERTIFICATE_FILE, pair.cert)

    def accepted(self) -> MemberList | None:
        """Return the member list that the site accepted last."""
        signed = read_list(self.path / ACCEPTED_FILE)
        return None if signed is None else signed.list

    def install(self, signed: SignedList, authorities: bytes) -> None:
        """Write an accepted list and the authorities' certificates."""
        write_atomically(self.path / AUTHORITIES_FILE, authorities)
        members.write_list(self.path / ACCEPTED_FILE, signed)
        members.write_list(self.path / MEMBERS_FILE, signed)


def read_list(path: Path) -> SignedList | None:
    """Read a member list if there is one; whose signature it has is not checked."""
    return members.read_list(path) if path.exists() else None


def node_settings(
    name: str,
    place: Address,
    exchanges_per_second: float = 10.0,
    listen: str = "",
    page_offset: int = 1,
) -> NodeSettings:
    """Return the settings of a node that neighbours reach at a place, unless that is "outbound".

    It listens on all interfaces, or on loopback if it is reached there, unless another address is
    given. The port of its status page is that many above its own.
    """
    if not 0 < exchanges_per_second < math.inf:
        raise InputError(
            f"exchanges_per_second = {exchanges_per_second!r} must be a positive number"
        )
    reached = addresses.reachable_at(place)
    listen = (listen or str(addresses.everywhere(*place))) if reached else ""
    port = addresses.parse(listen).port if listen else place.port
    page = addresses.page_address(port, page_offset)
    advertise = "" if listen == reached else reached
    return NodeSettings(
        name, listen, str(page), advertise, exchanges_per_second=exchanges_per_second
    )


@contextlib.contextmanager
def new_folder(folder: Path, mode: int = 0o755) -> Iterator[Path]:
    """Yield a temporary folder to fill, which is renamed into place if all went well."""
    target = folder.resolve()
    if target == Path.cwd() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise InputError(f"{folder} exists already; name a folder that does not exist yet")
    try:
        draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from None
    try:
        yield draft
        draft.chmod(mode)
        draft.rename(target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
