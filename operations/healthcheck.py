"""Exit with 0 if the node in a folder is well, with 1 and the reason if not: for Docker's
HEALTHCHECK.

The node answers at /healthz of its status page, whose address is in its node.toml.
"""

import http.client
import sys
import tomllib
from pathlib import Path

# where to reach a node that listens on all interfaces
LOOPBACK = {"0.0.0.0": "127.0.0.1", "[::]": "::1"}


def main() -> int:
    try:
        page = tomllib.loads((Path(sys.argv[1]) / "node.toml").read_text())["node"].get(
            "status_page", ""
        )
        if not page:
            print("status_page in node.toml is empty, so that nobody can ask the node")
            return 1
        host, _, port = page.rpartition(":")
        connection = http.client.HTTPConnection(
            LOOPBACK.get(host, host.strip("[]")), int(port), timeout=4
        )
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        print(answer.read(1000).decode(errors="replace").strip())
    except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
        print(f"no answer: {error}")
        return 1
    return int(answer.status != 200)


if __name__ == "__main__":
    sys.exit(main())
