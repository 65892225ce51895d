"""A process that looks like a node from outside: it has a status page, holds its lock and obeys SIGTERM.

Files in its folder say how it behaves: ``fails`` (it ends at once), ``fails-once``, ``deaf`` (it ignores SIGTERM).
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import time
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
FILE = tomllib.loads((FOLDER / "node.toml").read_text())
NUMBER = int(FILE["node"]["name"].partition("-")[2])
STARTED = time.monotonic()


def status() -> dict[str, Any]:
    return {
        "node": FILE["node"]["name"],
        "network": FILE["network"]["id"],
        "statistic": FILE["network"]["statistic"],
        "protocol": "tracking",
        "state": "running",
        "epoch": 1,
        "exchanges": 1234 + NUMBER,
        "rows": 7,
        "rows_met": 70,
        "nodes_met": 3,
        "estimate": [0.5 + NUMBER / 1000],
        "low": 0.4,
        "high": 0.625,
        "level": 0.95,
        "expected_error": 0.0125 if time.monotonic() - STARTED < 0.3 else 0.00125,
        "estimate_epoch": 1,
        "agreement": 0.0025,
        "doubt": {"to": "node-1", "since": 2.5} if NUMBER == 0 else None,
        "neighbours": [
            {"name": name, "connected": True, "meetings": 55, "silent": 0.25, "differs": 0.0025}
            for name in FILE["neighbours"]
        ],
        "counts": {"offers": 99, "refused: stranger": 3},
        "uptime": time.monotonic() - STARTED,
    }


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(status()).encode()
        self.send_response(200 if self.path == "/status" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        pass


def stop(*_arguments: object) -> None:
    if not (FOLDER / "deaf").exists():
        (FOLDER / "was-told").touch()
        os._exit(0)


def main() -> None:
    print(json.dumps({"event": "started"}), flush=True)
    if (FOLDER / "fails").exists() or (FOLDER / "fails-once").exists():
        (FOLDER / "fails-once").unlink(missing_ok=True)
        print("gosta: this node cannot run", file=sys.stderr)
        sys.exit(2)
    signal.signal(signal.SIGTERM, stop)
    with (FOLDER / "node.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        host, _, port = FILE["node"]["status"].rpartition(":")
        ThreadingHTTPServer((host, int(port)), Page).serve_forever()


if __name__ == "__main__":
    main()
