"""The document of a page: served, it links to its files; as a file of its own, it contains them."""

from __future__ import annotations

import base64
from importlib import resources
from string import Template
from typing import Literal

Source = Literal["network", "simulation"]  # of what a page shows
STYLES = ("uplot.css", "page.css")
COMMON = ("uplot.js", "texts.js", "charts.js", "map.js")
# The last script starts the page.
SCRIPTS: dict[Source, tuple[str, ...]] = {
    "network": (*COMMON, "network-map.js", "network-charts.js", "network.js", "page.js"),
    "simulation": (
        *COMMON,
        "simulation-map.js",
        "simulation-charts.js",
        "simulation.js",
        "page.js",
    ),
}
ICON = "icon.svg"


def read_static(name: str) -> bytes:
    """Return the content of a file of the front end."""
    return (resources.files("gosta.pages") / "static" / name).read_bytes()


def served(source: Source) -> bytes:
    """Return the document of a page whose files and data are requested."""
    head = "".join(f'<link rel="stylesheet" href="{name}">\n' for name in STYLES)
    head += "".join(f'<script src="{name}" defer></script>\n' for name in SCRIPTS[source])
    return _fill(source, ICON, head)


def whole(source: Source, recording: bytes) -> bytes:
    """Return a document that contains its styles, scripts and data, a text of JSON."""
    icon = "data:image/svg+xml;base64," + base64.b64encode(read_static(ICON)).decode()
    policy = (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
    )
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    head += "".join(f"<style>\n{read_static(name).decode()}</style>\n" for name in STYLES)
    data = recording.decode().replace("<", "\\u003c")  # so that nothing in it ends the element
    scripts = f'<script type="application/json" id="recording">{data}</script>\n'
    scripts += "".join(
        f"<script>\n{read_static(name).decode()}</script>\n" for name in SCRIPTS[source]
    )
    return _fill(source, icon, head, scripts)


def _fill(source: Source, icon: str, head: str, end: str = "") -> bytes:
    text = Template(read_static("index.html").decode())
    return text.substitute(source=source, icon=icon, head=head, end=end).encode()
