"""A site whose files change while its node runs."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from memory_transport import MemoryNetwork
from virtual_clock import VirtualClock

from gosta.net.config import NodeConfig, NodeSettings, Task, read_node, write
from gosta.net.node.node import Environment
from gosta.net.node.reload import STABLE_POLLS, FileWatcher
from gosta.net.node.restore import restore_peer
from gosta.net.node.row_node import RowNode
from gosta.net.node.source import read_row_source
from gosta.net.storage.journal import Journal

ROWS = "x1,x2\n0.5,1.0\n0.25,-1.0\n"


class Site:
    """A node without neighbours, its folder and its watcher; the data of a task must be there."""

    def __init__(self, folder: Path, task: Task | None = None) -> None:
        self.data, self.toml, self.events = folder / "data.csv", folder / "node.toml", list[str]()
        if task is None:
            self.data.write_text(ROWS)
        (folder / "policy.toml").write_text('modes = ["rows"]\n')
        settings = NodeSettings("node-0", "127.0.0.1:7400", tls=False)
        write(self.toml, NodeConfig(task or Task("0" * 16, "auc", encoded_columns=2), settings, {}))
        config, self.clock = read_node(self.toml), VirtualClock()
        source, journal = read_row_source(config, folder), Journal(folder / "journal.sqlite")
        peer = restore_peer(config, source, journal)
        environment = Environment(self.clock, Random(0), self._log, lambda: 1e9 + self.clock.now)
        self.node = RowNode(config, peer, journal, environment)
        self.node.start(MemoryNetwork(self.clock).attach("node-0", self.node))
        self.watcher = FileWatcher(self.node, folder, self._log)

    def _log(self, event: str, **_: Any) -> None:
        self.events.append(event)

    def poll(self, times: int = STABLE_POLLS) -> tuple[int, int]:
        """Poll some times; return the epoch and the number of rows."""
        for _ in range(times):
            self.clock.run(self.clock.now + 1.0)
            self.watcher.poll()
        return self.node.peer.epoch, self.node.peer.estimator.rows.count
