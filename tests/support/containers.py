"""Containers without Docker: the steps of a Dockerfile and the services of a compose file, in
namespaces of Linux.

This machine's own root, under an overlay that is thrown away, stands for the base image; everything
else is done as the files say: steps, copies, users, read-only roots, capabilities, volumes,
commands, a network of all services.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any, NamedTuple, Self

import psutil

TOOLS = ("unshare", "nsenter", "setpriv", "chroot", "ip", "useradd")
DEPENDENCIES = "/dependencies"  # installed packages of this machine, instead of a download of them
TRIAL = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root" "$1/groups"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
mount -t cgroup2 cgroup2 "$1/groups"
mount -t tmpfs tmpfs /run
ip link add bridge type bridge
ip netns add trial
ip link add port type veth peer name eth0 netns trial
"""
SETUP = """
set -e
mount -t tmpfs -o mode=755 tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
mkdir -p "$1/root$2" "$1/root$4"
[ -e "$1/root$2/bin" ] || mount --bind "$2" "$1/root$2"
mount --bind "$3" "$1/root$4"
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mount -t tmpfs tmpfs /run
ip link set lo up
ip link add bridge type bridge
ip link set bridge up
shift 4
while [ $# -gt 0 ]; do
  ip netns add "$1"
  ip link add "port-$#" type veth peer name eth0 netns "$1"
  ip link set "port-$#" master bridge up
  ip -n "$1" address add "$2/24" dev eth0
  ip -n "$1" link set eth0 up
  ip -n "$1" link set lo up
  shift 2
done
echo ready
exec sleep infinity
"""
RUN = """
set -e
root=$1 read_only=$2; shift 2
while [ "$1" != -- ]; do
  mkdir -p "$root$2"
  case "$1" in tmpfs) mount -t tmpfs -o "$3" tmpfs "$root$2";; *) mount --bind "$1" "$root$2";; esac
  shift 3
done
shift
[ "$read_only" = no ] || mount -o remount,bind,ro "$root"
exec chroot "$root" "$@"
"""


def missing() -> str:
    """Return why containers cannot be run here; empty if they can."""
    lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.name != "posix" or os.geteuid():
        return "namespaces need root"
    if lacking:
        return f"no {', '.join(lacking)} on this machine"
    with tempfile.TemporaryDirectory() as folder:
        command = ["unshare", "--mount", "--net", "--pid", "--fork", "--propagation", "private"]
        tried = subprocess.run(
            [*command, "sh", "-c", TRIAL, "sh", folder], capture_output=True, text=True, check=False
        )
    return f"namespaces cannot be used here: {tried.stderr.strip()}" if tried.returncode else ""


class Instruction(NamedTuple):
    stage: int  # from 1; 0: before the first FROM
    name: str
    text: str


def read_dockerfile(path: Path) -> list[Instruction]:
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    found, stage = [], 0
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if line.strip():
            name, _, text = line.strip().partition(" ")
            stage += name == "FROM"
            found.append(Instruction(stage, name, text.strip()))
    return found


class Image:
    """The file system of an image, built by the steps of a Dockerfile; `run` runs a command in a
    container of it.
    """

    def __init__(self, dockerfile: Path, context: Path, folder: Path, hosts: list[str]) -> None:
        self.instructions, self.context = read_dockerfile(dockerfile), context
        self.settings = {
            one.name: one.text
            for one in self.instructions
            if one.stage == self.instructions[-1].stage
        }
        self.root, self._base = folder / "root", folder
        self._base.mkdir()
        self._started: list[subprocess.Popen[str]] = []
        packages = sysconfig.get_paths()["purelib"]
        command = [
            "unshare",
            "--mount",
            "--net",
            "--pid",
            "--fork",
            "--kill-child",
            "--propagation",
            "private",
        ]
        arguments = [str(folder), sys.base_prefix, packages, DEPENDENCIES]
        addresses = {name: f"10.77.0.{k}" for k, name in enumerate(hosts, 1)}
        arguments += [text for pair in addresses.items() for text in pair]
        self._holder = subprocess.Popen(
            [*command, "sh", "-c", SETUP, "sh", *arguments], stdout=subprocess.PIPE
        )
        try:
            assert self._holder.stdout is not None
            assert self._holder.stdout.readline() == b"ready\n"
            (inside,) = psutil.Process(self._holder.pid).children()
            self._pid = inside.pid
            self._prepare(addresses)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes of all containers, and throw away the overlay."""
        self._holder.kill()
        self._holder.communicate()
        for process in self._started:
            process.wait()

    def path(self, inside: str) -> Path:
        """Return where a file of the image is found from outside."""
        return Path(f"/proc/{self._pid}/root{self.root}{inside}")

    def _prepare(self, addresses: dict[str, str]) -> None:
        """Give the base image its commands, and names of the containers."""
        for parent in Path(sys.base_prefix).parents:
            self.path(str(parent)).chmod(0o755)
        lines = [
            "127.0.0.1 localhost",
            *(f"{address} {name}" for name, address in addresses.items()),
            "",
        ]
        self.path("/etc/hosts").write_text("\n".join(lines))
        commands = self.path("/opt/base/bin")
        commands.mkdir(parents=True)
        python = (
            Path(sys.base_prefix)
            / "bin"
            / f"python{sys.version_info.major}.{sys.version_info.minor}"
        )
        # downloads nothing
        pip = f'PYTHONPATH={DEPENDENCIES} exec {python} -m pip "$@" --no-build-isolation'
        for name, line in {"python": f'exec {python} "$@"', "pip": pip}.items():
            (commands / name).write_text(f"#!/bin/sh\n{line}\n")
            (commands / name).chmod(0o755)

    def build(self) -> None:
        """Do all COPY and RUN steps in order, the latter as they are; packages are not downloaded
        but found here.
        """
        for stage, name, text in self.instructions:
            if name == "COPY" and not text.startswith("--from="):
                *sources, target = shlex.split(text)
                self._copy(sources, target)
            elif name == "RUN":
                given = [
                    one.text
                    for one in self.instructions
                    if one.stage == stage and one.name == "ARG"
                ]
                variables = ["PIP_NO_DEPS=1", "PIP_NO_INDEX=1", *map(_unquote, given)]
                inside = [
                    "env",
                    "-i",
                    f"PATH=/opt/base/bin:{os.defpath}:/usr/sbin:/sbin",
                    "HOME=/root",
                    *variables,
                ]
                enter = [
                    "nsenter",
                    "--target",
                    str(self._pid),
                    "--mount",
                    "--",
                    "chroot",
                    str(self.root),
                ]
                subprocess.run(
                    [*enter, *inside, "sh", "-ec", text], check=True, stdout=subprocess.DEVNULL
                )
        (packages,) = self.path("/opt/gosta/lib").glob("python*/site-packages")
        (packages / "dependencies.pth").write_text(f"{DEPENDENCIES}\n")

    def _copy(self, sources: list[str], target: str) -> None:
        for source in sources:
            here = self.context / source
            if here.is_dir():
                shutil.copytree(
                    here, self.path(target), ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                place = self.path(target) / here.name if target.endswith("/") else self.path(target)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(here, place)

    def start(
        self, service: dict[str, Any], command: list[str], folder: Path, **options: Any
    ) -> subprocess.Popen[str]:
        """Start a container of a compose file's service; `folder` holds the compose file."""
        arguments = [str(self.root), "yes" if service.get("read_only") else "no"]
        for volume in service.get("volumes", []):
            source, target = volume.split(":")
            arguments += [str((folder / source).resolve()), target, "bind"]
        for place in service.get("tmpfs", []):
            target, mode = place.split(":", 1)
            arguments += ["tmpfs", target, mode]
        user, group = interpolate(service["user"]).split(":")
        rights = [f"--reuid={user}", f"--regid={group}", "--clear-groups"]
        rights += (
            ["--bounding-set=-all", "--inh-caps=-all"] if service.get("cap_drop") == ["ALL"] else []
        )
        rights += (
            ["--no-new-privs"]
            if "no-new-privileges:true" in service.get("security_opt", [])
            else []
        )
        variables = dict(_unquote(one).split("=", 1) for one in shlex.split(self.settings["ENV"]))
        variables["PATH"] = variables["PATH"].replace("$PATH", os.defpath)
        variables |= service.get("environment", {})
        chdir = f"--chdir={service.get('working_dir', self.settings['WORKDIR'])}"
        inside = ["env", "-i", chdir, *(f"{key}={value}" for key, value in variables.items())]
        enter = ["nsenter", "--target", str(self._pid), "--mount", "--net", "--pid", "--"]
        enter += ["ip", "netns", "exec", service["hostname"]] if "networks" in service else []
        enter += [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            RUN,
            "sh",
            *arguments,
            "--",
        ]
        process = subprocess.Popen(
            [*enter, "setpriv", *rights, *inside, *command], text=True, **options
        )
        self._started.append(process)
        return process

    def run(
        self, service: dict[str, Any], command: list[str], folder: Path
    ) -> subprocess.CompletedProcess[str]:
        with self.start(
            service, command, folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            out, err = process.communicate(timeout=120)
            return subprocess.CompletedProcess(command, process.returncode, out, err)

    def kill(self, pid: int, number: int) -> None:
        """Send a signal to a process, whose number is the one that it has in its container."""
        enter = ["nsenter", "--target", str(self._pid), "--mount", "--pid", "--"]
        subprocess.run([*enter, "kill", f"-{number}", str(pid)], check=True)

    def form(self, name: str) -> list[str]:
        """Return the command of ENTRYPOINT, CMD or HEALTHCHECK."""
        found: list[str] = json.loads(self.settings[name][self.settings[name].index("[") :])
        return found


def interpolate(text: str) -> str:
    """Replace ${NAME:-default} by the default, as compose does where the variable is not set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


def _unquote(text: str) -> str:
    return text.replace('"', "")
