"""The image of operations/Dockerfile and the sites of operations/compose.yaml, in namespaces
instead of Docker.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import containers
import pytest
import yaml
from containers import Image
from processes import WAIT_SECONDS, wait_until

import gosta
from gosta.net.node.node import REQUESTED

ROOT = Path(__file__).parents[2]
OPERATIONS = ROOT / "operations"
COMPOSE: dict[str, Any] = yaml.safe_load((OPERATIONS / "compose.yaml").read_text())
SITES = {
    name: service for name, service in COMPOSE["services"].items() if "profiles" not in service
}
USER = 10001


def test_dockerfile() -> None:
    """The base is pinned, the user has no rights, and only what the image is made of is sent to the
    builder.
    """
    steps = containers.read_dockerfile(OPERATIONS / "Dockerfile")
    base = next(text.partition("=")[2] for _, name, text in steps if name == "ARG")
    assert re.fullmatch(r"\d+\.\d+\.\d+-slim-\w+", base)
    assert [text.split()[0] for _, name, text in steps if name == "FROM"] == [
        "python:${PYTHON}"
    ] * 2
    last = {name: text for stage, name, text in steps if stage == 2}
    assert (last["USER"], last["STOPSIGNAL"], last["ENTRYPOINT"]) == (
        f"{USER}:{USER}",
        "SIGTERM",
        '["gosta"]',
    )
    assert {"HEALTHCHECK", "VOLUME", "CMD"} <= set(last)
    allowed = [
        line[1:]
        for line in (OPERATIONS / "Dockerfile.dockerignore").read_text().splitlines()
        if line[0] == "!"
    ]
    copied = [
        text.split()[:-1] for _, name, text in steps if name == "COPY" and "--from" not in text
    ]
    assert sorted(source for sources in copied for source in sources) == sorted(allowed)
    assert not {name for _, name, _ in steps} & {"ADD", "MAINTAINER"}
    assert not [path for source in allowed for path in (ROOT / source).rglob("*.pem")]


def test_compose_file() -> None:
    """Three sites, each with its own folder only, without rights, on a network of their own."""
    assert list(SITES) == ["node-0", "node-1", "node-2"]
    for name, service in SITES.items():
        assert (service["hostname"], service["volumes"]) == (name, [f"./network/{name}:/site"])
        assert service["networks"] == ["sites"]
        assert service["restart"] == "unless-stopped"
        assert service["build"]["dockerfile"] == "operations/Dockerfile"
        assert (OPERATIONS / service["build"]["context"]).resolve() == ROOT
        assert not {"ports", "privileged", "network_mode"} & set(service)
    for service in COMPOSE["services"].values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert containers.interpolate(service["user"]) == f"{USER}:{USER}"
        assert service["image"] == "gosta"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    reason = containers.missing()
    if reason:
        pytest.skip(reason)
    with Image(
        OPERATIONS / "Dockerfile", ROOT, tmp_path_factory.mktemp("build") / "image", list(SITES)
    ) as built:
        built.build()
        yield built


def test_three_sites(image: Image, tmp_path: Path) -> None:
    """They start, agree, are found healthy, take up a request and stop, with the commands of the
    compose file.
    """
    os.chown(tmp_path, USER, USER)
    init = COMPOSE["services"]["init"]
    made = image.run(init, [*image.form("ENTRYPOINT"), *init["command"]], tmp_path)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "network" / "node-0" / "key.pem").stat().st_uid == USER

    def check(name: str) -> tuple[int, str]:
        test = SITES[name]["healthcheck"]["test"]
        assert test == ["CMD", *image.form("HEALTHCHECK")]
        done = image.run(SITES[name], test[1:], tmp_path)
        return done.returncode, done.stdout.strip()

    def status(name: str) -> dict[str, Any]:
        done = image.run(SITES[name], ["gosta", "status", "/site", "--json"], tmp_path)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    code, reason = check("node-0")
    assert code == 1
    assert "no answer" in reason
    command = [*image.form("ENTRYPOINT"), *SITES["node-0"]["command"]]
    assert command[1:] == image.form("CMD")
    running = {name: image.start(service, command, tmp_path) for name, service in SITES.items()}
    wait_until(lambda: all(check(name) == (0, "ok") for name in SITES))
    wait_until(lambda: status("node-2")["state"] == "complete")
    last = status("node-2")
    assert last["sites_seen"] == 3
    assert abs(last["estimate"][0] - float(gosta.exact("breast-cancer", "auc"))) < 0.001
    requested = image.run(SITES["node-0"], ["gosta", "network", "epoch", "/site"], tmp_path)
    assert requested.stdout == "node-0 started epoch 2; the other nodes follow\n", requested.stderr
    wait_until(lambda: status("node-1")["epoch_reason"] == REQUESTED)
    for name, process in running.items():
        pid = int((tmp_path / "network" / name / "node.lock").read_text())
        image.kill(pid, signal.Signals[image.settings["STOPSIGNAL"]])
        assert process.wait(WAIT_SECONDS) == 0
    assert check("node-0")[0] == 1


def test_a_container_has_no_rights(image: Image, tmp_path: Path) -> None:
    """It can write to its own folder only, and the image holds neither keys nor other files of the
    repository.
    """
    folder = tmp_path / "network" / "node-0"
    folder.mkdir(parents=True)
    os.chown(folder, USER, USER)
    writes = "touch /site/file && ! touch /opt/gosta/file && ! touch /file"
    code = f"{writes} && id -u && grep -E 'CapBnd|NoNew' /proc/self/status"
    done = image.run(SITES["node-0"], ["sh", "-c", code], tmp_path)
    assert done.stdout.split() == [str(USER), "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]
    assert (folder / "file").exists()
    inside = [
        path
        for path in image.path("/opt/gosta").rglob("*")
        if "site-packages/pip/" not in str(path)
    ]
    assert not [path for path in inside if path.suffix in (".pem", ".csv", ".toml")]
    assert not [path for path in inside if path.lstat().st_uid]
    assert not [path for path in inside if not path.is_symlink() and path.stat().st_mode & 0o022]
