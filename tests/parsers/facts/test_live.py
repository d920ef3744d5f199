"""Run playbooks/agent/facts/facts.py on this machine and compare its output with other sources."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.facts import Facts
from fleetmark.parsers.facts import normalise

SCRIPT = Path(__file__).parents[3] / "playbooks" / "agent" / "facts" / "facts.py"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="facts are gathered on Linux hosts")


def gather(options: dict[str, Any], path: str | None = None) -> dict[str, Any]:
    env = dict(os.environ, PATH=path) if path is not None else None
    words = [sys.executable, "-B", str(SCRIPT), json.dumps(options)]
    done = subprocess.run(words, capture_output=True, check=True, env=env, timeout=60)
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    work = tmp_path_factory.mktemp("host") / "work"
    (work / "tools/stream/bin").mkdir(parents=True)
    (work / "tools/stream/bin/stream").touch()
    (work / "tools/a/b/c/d").mkdir(parents=True)
    (work / "tools/a/b/c/four").touch()
    (work / "tools/a/b/c/d/five").touch()
    return gather({"probe": ["sh", "no-such-command"], "work": str(work)})


@pytest.fixture(scope="module")
def facts(document: dict[str, Any]) -> Facts:
    return normalise(document, skew=0.0, root=os.geteuid() == 0, work_dir=document["statvfs"]["work_dir"])


def meminfo() -> dict[str, int]:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.endswith("kB")}


def test_the_kernels_command_line_keeps_no_credentials(tmp_path: Path) -> None:
    """With a command line that this machine does not have, in a namespace of mounts."""
    line = tmp_path / "cmdline"
    line.write_text(
        "root=UUID=ab-1 isolcpus=2 rd.iscsi.password=s3cret ks=http://jane:s3cret@x/y keymap=de url=http://x/y\n"
    )
    words = ["sh", "-ec", 'mount --bind "$1" /proc/cmdline; exec "$2" -B "$3"', "sh", line, sys.executable, SCRIPT]
    done = subprocess.run(["unshare", "-m", *map(str, words)], capture_output=True, text=True, timeout=60)
    if done.returncode:
        pytest.skip(f"no namespace of mounts: {done.stderr.strip()}")
    assert json.loads(done.stdout)["files"]["/proc/cmdline"] == (
        "root=UUID=(dropped) isolcpus=2 rd.iscsi.password=(dropped) ks=http://(dropped) keymap=de url=http://x/y\n"
    )


def test_processors(facts: Facts) -> None:
    cpuinfo = Path("/proc/cpuinfo").read_text()
    assert facts.cpu.threads == os.cpu_count()
    assert facts.cpu.arch == os.uname().machine
    if "core id" in cpuinfo:  # x86 tells which thread runs on which core and socket
        places = re.findall(r"physical id\s*: (\d+)(?:.|\n)*?core id\s*: (\d+)", cpuinfo)
        assert facts.cpu.cores == len(set(places))
        assert facts.cpu.sockets == len({socket for socket, _ in places})
        assert set(facts.cpu.flags) == set((re.search(r"^flags\s*: (.*)$", cpuinfo, re.M) or [""] * 2)[1].split())
    assert sorted(cpu for node in facts.numa for cpu in node.cpus) == list(range(os.cpu_count() or 0))


def test_last_level_cache(facts: Facts) -> None:
    # The kernel is right, not getconf: glibc reads a CPUID leaf of the whole package on AMD guests.
    size = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    if not size.exists():
        pytest.skip("this machine shows no L3")
    assert int(size.read_text().strip().removesuffix("K")) << 10 in {c.size for c in facts.cpu.caches if c.level == 3}


def test_memory(facts: Facts) -> None:
    now = meminfo()
    assert facts.memory == now["MemTotal"]
    assert facts.swap == now["SwapTotal"]
    assert facts.memory_available == pytest.approx(now["MemAvailable"], rel=0.2)


def test_system(facts: Facts) -> None:
    assert (facts.hostname, facts.kernel) == (socket.gethostname(), os.uname().release)
    assert facts.python_version == ".".join(map(str, sys.version_info[:3]))
    assert Path(facts.python).samefile(sys.executable)
    assert abs(facts.time - time.time()) < 60
    assert f'PRETTY_NAME="{facts.os}"' in Path("/etc/os-release").read_text()
    assert facts.sudo is None if os.geteuid() == 0 else facts.sudo is not None


def test_work_folder(facts: Facts) -> None:
    usage = shutil.disk_usage(facts.work_dir)
    assert facts.work_total == usage.total
    assert facts.work_free == pytest.approx(usage.free, rel=0.05)
    assert facts.cached == ("a/b/c/four", "stream/bin/stream")
    assert facts.tools == {"sh": shutil.which("sh"), "no-such-command": None}


def test_work_folder_that_does_not_exist_yet(tmp_path: Path) -> None:
    space = gather({"probe": [], "work": str(tmp_path / "not/yet")})["statvfs"]
    assert space["checked"] == str(tmp_path)
    assert space["total_bytes"] == shutil.disk_usage(tmp_path).total
    kind = subprocess.run(["findmnt", "-n", "-o", "FSTYPE", "-T", tmp_path], capture_output=True, text=True, check=True)
    assert space["fstype"] == kind.stdout.strip()


def test_network(facts: Facts) -> None:
    names = {name for _, name in socket.if_nameindex()}
    if {path.name for path in Path("/sys/class/net").iterdir() if path.is_dir()} != names:
        pytest.skip("/sys shows the interfaces of another network namespace")
    assert {nic.name for nic in facts.nics} == names - {"lo"}
    for nic in facts.nics:
        assert nic.mtu == int(Path(f"/sys/class/net/{nic.name}/mtu").read_text())


def test_disks(facts: Facts) -> None:
    for disk in facts.disks:
        assert disk.size == int(Path(f"/sys/block/{disk.name}/size").read_text()) * 512
    root = Path("/").stat().st_dev
    device = Path(f"/sys/dev/block/{os.major(root)}:{os.minor(root)}")
    if not device.exists():
        pytest.skip("/ lies on no block device of its own here")
    names = {device.resolve().name, device.resolve().parent.name}
    assert [disk for disk in facts.disks if disk.name in names and disk.in_use]


def test_no_mac_address_leaves_the_host(document: dict[str, Any]) -> None:
    printed = json.dumps(document).lower()
    macs = {p.read_text().strip() for p in Path("/sys/class/net").glob("*/address")}
    assert not [mac for mac in macs if len(mac) > 8 and mac.strip("0:") and mac in printed]


def test_without_any_command_the_kernel_still_tells(facts: Facts, tmp_path: Path) -> None:
    doc = gather({"probe": [], "work": str(tmp_path)}, path=str(tmp_path))
    bare = normalise(doc, skew=None, root=False, work_dir=str(tmp_path))
    assert doc["commands"]["lscpu"]["err"] == "not found"
    keys = {"model", "vendor", "arch", "sockets", "cores", "threads", "microcode", "caches"}
    assert bare.cpu.model_dump(include=keys) == facts.cpu.model_dump(include=keys)
    assert [node.cpus for node in bare.numa] == [node.cpus for node in facts.numa]
    assert any("Disks are unknown: lsblk is not installed" in note for note in bare.notes)


def test_buses_without_links_need_no_lspci(document: dict[str, Any], facts: Facts) -> None:
    answer = document["commands"]["lspci"]
    if shutil.which("lspci") is None:
        assert answer["err"] == "not found"
        return
    functions = list(Path("/sys/bus/pci/devices").glob("*"))
    classes = {f: (f / "class").read_text() for f in functions}
    bare = [
        f
        for f in functions
        if not (f / "current_link_speed").exists() and classes[f][:4] not in ("0x03", "0x0b", "0x12")
    ]
    bare = [f for f in bare if (f / "config").stat().st_size <= 256 or classes[f].startswith("0x0600")]
    assert (answer["err"] == "not needed") == (bare == functions and bool(functions))
    if answer["err"] == "not needed":
        assert (facts.pcie, facts.gpus) == ((), ())
        assert not [note for note in facts.notes if "lspci" in note or "PCI" in note]


def test_a_command_that_hangs_does_not_keep_the_others(tmp_path: Path) -> None:
    stuck = tmp_path / "nvidia-smi"
    stuck.write_text("#!/bin/sh\nexec sleep 600\n")
    stuck.chmod(stuck.stat().st_mode | stat.S_IXUSR)
    doc = gather({"probe": [], "work": str(tmp_path), "seconds": 1}, path=f"{tmp_path}:{os.environ['PATH']}")
    assert doc["commands"]["nvidia_smi"]["err"] == "no answer in time"
    result = normalise(doc, skew=None, root=False, work_dir=str(tmp_path))
    assert result.cpu.threads == os.cpu_count()
    assert any("nvidia-smi gave no answer in time" in note for note in result.notes)
