"""``gosta node``: what one site runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
[bold]Examples[/bold]

gosta node my-network/node-3/

gosta node /srv/gosta 2>> node.jsonl
"""


def node(
    folder: Annotated[Path, typer.Argument(help="The node's folder: node.toml, data, key.pem, cert.pem, ca.pem.")],
) -> None:
    """Run one node of a network, until SIGTERM or Ctrl-C; it goes on where it was when it is started again."""
    from gosta.net.service import run

    run(folder)
