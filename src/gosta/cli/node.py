"""``gosta node``: run one node of a network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gosta.errors import GostaError

EXAMPLES = """
gosta node my-network/node-3/
gosta node /srv/gosta 2>> node.jsonl
"""


def node(
    folder: Annotated[Path, typer.Argument(help="The node's folder: node.toml, data, key.pem, cert.pem, ca.pem.")],
) -> None:
    """Run one node of a network until SIGTERM or Ctrl-C; a restarted node continues from its journal."""
    from gosta.net.node.service import make_logger, run

    try:
        run(folder)
    except GostaError as error:
        if sys.stderr.isatty():
            raise
        make_logger(folder.name, sys.stderr)("cannot run", reason=str(error))
        raise typer.Exit(2) from None
