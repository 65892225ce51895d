"""``gosta replay``: the recorded exchanges of a real network, computed again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from gosta.cli import options

EXAMPLES = """
gosta replay my-network/
"""


def replay(
    folder: Annotated[Path, typer.Argument(help="The network's folder; its nodes must be stopped.")],
    as_json: options.Json = False,
) -> None:
    """Compute the recorded exchanges of a network again, and compare all states bit for bit."""
    from gosta.net.audit.replay import replay as again
    from gosta.net.audit.verify import load_journals

    found = again(load_journals(folder))
    if as_json:
        print(json.dumps(found._asdict()))
    else:
        print(f"{found.exchanges:,} exchanges of {found.nodes} nodes replayed")
        print(
            f"states differ at {', '.join(found.differing)}"
            if found.differing
            else "all states are the same, bit for bit"
        )
    if found.differing:
        raise typer.Exit(1)
