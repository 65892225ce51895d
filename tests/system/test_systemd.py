"""The unit of operations/ under a real systemd: the first process of a namespace, on an overlay of
this root.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import uuid
from collections.abc import Iterator
from pathlib import Path

import containers
import psutil
import pytest
from processes import wait_until

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "operations" / "gosta-node@.service"
SYSTEMD = Path("/lib/systemd/systemd")
NODES = ["gosta-node@node-0", "gosta-node@node-1", "gosta-node@node-2"]
# Arguments: a folder, the prefix of Python, its packages, the source, the unit, a name for a
# control group.
SETUP = r"""
set -e
base=$1 root=$1/root
mount -t tmpfs -o mode=755 tmpfs "$base"
mkdir "$base/upper" "$base/work" "$root" "$base/groups"
mount -t overlay -o "lowerdir=/,upperdir=$base/upper,workdir=$base/work" overlay "$root"
mount -t cgroup2 cgroup2 "$base/groups"
mkdir "$base/groups/$6"
echo $$ > "$base/groups/$6/cgroup.procs"
for place in opt/base opt/packages opt/source opt/gosta/bin; do mkdir -p "$root/$place"; done
mount --bind "$2" "$root/opt/base"
mount --bind "$3" "$root/opt/packages"
mount --bind "$4" "$root/opt/source"
for place in run tmp dev var/lib; do mount -t tmpfs tmpfs "$root/$place"; done
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
for device in "null 3" "zero 5" "full 7" "random 8" "urandom 9"; do
  mknod -m 666 "$root/dev/${device% *}" c 1 "${device#* }"
done
mknod -m 666 "$root/dev/tty" c 5 0
for place in pts shm mqueue hugepages; do mkdir "$root/dev/$place"; done
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ip link set lo up
rm -rf "$root"/etc/systemd/system/*.wants
cp "$5" "$root/etc/systemd/system/"
mkdir -p "$root/etc/systemd/system/gosta-node@.service.d"
printf '[Service]\nWatchdogSec=5\nRestartSec=500ms\n' > "$root/etc/systemd/system/gosta-node@.service.d/test.conf"
cat > "$root/opt/gosta/bin/gosta" <<'END'
#!/bin/sh
export PYTHONHOME=/opt/base LD_LIBRARY_PATH=/opt/base/lib PYTHONPATH=/opt/source:/opt/packages
exec /opt/base/bin/python3 -m gosta "$@"
END
chmod 755 "$root/opt/gosta/bin/gosta"
chroot "$root" useradd --system --shell /usr/sbin/nologin gosta
chroot "$root" /opt/gosta/bin/gosta network init /var/lib/gosta --data breast-cancer --statistic auc --nodes 3
chroot "$root" chown -R gosta:gosta /var/lib/gosta
mkdir "$root/old"
cd "$root"
pivot_root . old
exec unshare --cgroup sh -c 'mount -t cgroup2 cgroup2 /sys/fs/cgroup && umount -l /old && container=test exec "$@"' sh \
  /lib/systemd/systemd --system --unit=basic.target --show-status=no
"""
REMOVE_GROUP = """
mount -t cgroup2 cgroup2 "$1"
find "$1/$2" -depth -type d -exec rmdir {} ";"
[ ! -e "$1/$2" ]
"""


class Machine:
    """A machine with systemd."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._group = folder, f"gosta-test-{uuid.uuid4().hex}"
        packages = sysconfig.get_paths()["purelib"]
        kinds = ["--mount", "--pid", "--net", "--uts", "--ipc"]
        command = [
            "unshare",
            *kinds,
            "--fork",
            "--kill-child",
            "--propagation",
            "private",
            "sh",
            "-c",
            SETUP,
            "sh",
        ]
        arguments = [
            str(folder),
            sys.base_prefix,
            packages,
            str(ROOT / "src"),
            str(UNIT),
            self._group,
        ]
        self._log = (folder.parent / "machine.log").open("w+")
        self._holder = subprocess.Popen([*command, *arguments], stdout=self._log, stderr=self._log)

    def start(self) -> None:
        wait_until(lambda: self._is_ready() or self._holder.poll() is not None)
        if self._holder.poll() is not None:
            pytest.skip(
                "systemd cannot be started in a namespace here: "
                f"{Path(self._log.name).read_text()[-300:]}"
            )

    def _is_ready(self) -> bool:
        inside = psutil.Process(self._holder.pid).children()
        if not inside or inside[0].name() != "systemd":
            return False
        self._pid = inside[0].pid
        return self.run("systemctl", "is-system-running").stdout.strip() in ("running", "degraded")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        enter = [
            "nsenter",
            "--target",
            str(self._pid),
            "--mount",
            "--pid",
            "--net",
            "--uts",
            "--ipc",
            "--cgroup",
            "--",
        ]
        return subprocess.run(
            [*enter, *command], capture_output=True, text=True, timeout=60, check=False
        )

    def show(self, unit: str, name: str) -> str:
        """Return a property of a unit."""
        return self.run("systemctl", "show", "--value", "--property", name, unit).stdout.strip()

    def close(self) -> None:
        self._holder.kill()
        self._holder.wait()
        self._log.close()
        remove = ["unshare", "--mount", "--propagation", "private", "sh", "-c", REMOVE_GROUP, "sh"]
        arguments = [*remove, str(self._folder), self._group]
        wait_until(
            lambda: subprocess.run(arguments, capture_output=True, check=False).returncode == 0
        )


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    reason = containers.missing()
    if reason or not SYSTEMD.exists() or shutil.which("systemctl") is None:
        pytest.skip(reason or "no systemd on this machine")
    (tmp_path / "machine").mkdir()
    made = Machine(tmp_path / "machine")
    try:
        made.start()
        yield made
    finally:
        made.close()


def test_nodes_as_services(machine: Machine) -> None:
    """They run with all restrictions of the unit; one that hangs is restarted, one whose files are
    wrong is not.
    """
    started = machine.run("systemctl", "start", *NODES)
    assert started.returncode == 0, machine.run("journalctl", "--no-pager").stdout
    wait_until(
        lambda: machine.show(NODES[0], "StatusText").startswith("running, 3 of 3 sites, epoch ")
    )
    pid = machine.show(NODES[0], "MainPID")
    rights = machine.run(
        "grep", "-E", "^(Uid|CapBnd|NoNewPrivs|Seccomp):", f"/proc/{pid}/status"
    ).stdout.split()
    assert rights[1] == machine.run("id", "-u", "gosta").stdout.strip()
    assert rights[-6:] == ["CapBnd:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2"]
    asked = machine.run("/opt/gosta/bin/gosta", "network", "epoch", "/var/lib/gosta/node-1")
    assert asked.stdout.startswith("node-1 started epoch "), asked.stderr
    pid = machine.show(NODES[0], "MainPID")
    machine.run("kill", "-STOP", pid)
    machine.run("sh", "-c", "echo nonsense >> /var/lib/gosta/node-1/node.toml")
    assert machine.run("systemctl", "restart", NODES[1]).returncode == 1
    found = [machine.show(NODES[1], name) for name in ("SubState", "ExecMainStatus", "NRestarts")]
    assert found == ["failed", "2", "0"]
    assert machine.run("systemctl", "stop", NODES[2]).returncode == 0
    assert [machine.show(NODES[2], name) for name in ("Result", "SubState")] == ["success", "dead"]
    wait_until(lambda: machine.show(NODES[0], "MainPID") not in (pid, "0"))
    wait_until(lambda: machine.show(NODES[0], "SubState") == "running")
    assert "watchdog" in machine.run("journalctl", "--no-pager").stdout.lower()
