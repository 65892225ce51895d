"""A process that looks like a node from outside: it has a status page, holds its lock and stops at
SIGTERM.

Files in its folder change its behaviour: ``fails`` (it ends at once), ``fails-once``, ``is-wrong``
(it ends with code 2), ``ignores-sigterm``.
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
CONFIG = tomllib.loads((FOLDER / "node.toml").read_text())
NUMBER = int(CONFIG["node"]["name"].partition("-")[2])
STARTED = time.monotonic()


def status() -> dict[str, Any]:
    return {
        "node": CONFIG["node"]["name"],
        "network": CONFIG["network"]["id"],
        "statistic": CONFIG["network"]["statistic"],
        "protocol": "tracking",
        "state": "running",
        "epoch": 1,
        "exchanges": 1234 + NUMBER,
        "rows": 7,
        "epoch_origin": "node-0",
        "epoch_reason": "first start",
        "rows_seen": 21,
        "rows_declared": 21,
        "sites_seen": 3,
        "sites": 3,
        "missing": [],
        "estimate": [0.5 + NUMBER / 1000],
        "low": 0.4,
        "high": 0.625,
        "confidence_level": 0.95,
        "expected_error": 0.0125 if time.monotonic() - STARTED < 0.3 else 0.00125,
        "estimate_epoch": 1,
        "max_difference": 0.0025,
        "neighbours": [
            {
                "name": name,
                "connected": True,
                "alive": True,
                "exchanges": 55,
                "silent_seconds": 0.25,
                "round_trip_seconds": 0.0015,
                "difference": 0.0025,
                "epoch": 1,
            }
            for name in CONFIG["neighbours"]
        ],
        "rejections": [
            {
                "neighbour": "node-1",
                "reason": "values",
                "count": 4,
                "detail": "it tells \x1b[2J",
                "seconds": 7.0,
            }
        ],
        "counters": {"offers": 99, "rejected: unauthenticated": 3},
        "uptime_seconds": time.monotonic() - STARTED,
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
    if not (FOLDER / "ignores-sigterm").exists():
        (FOLDER / "got-sigterm").touch()
        os._exit(0)


def main() -> None:
    print(json.dumps({"event": "started"}), flush=True)
    if (FOLDER / "fails").exists() or (FOLDER / "fails-once").exists():
        (FOLDER / "fails-once").unlink(missing_ok=True)
        print("gosta: this node cannot run", file=sys.stderr)
        sys.exit(1)
    if (FOLDER / "is-wrong").exists():
        print(json.dumps({"event": "cannot run", "reason": "node.toml is wrong"}), file=sys.stderr)
        sys.exit(2)
    signal.signal(signal.SIGTERM, stop)
    with (FOLDER / "node.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        host, _, port = CONFIG["node"]["status_page"].rpartition(":")
        ThreadingHTTPServer((host, int(port)), Page).serve_forever()


if __name__ == "__main__":
    main()
