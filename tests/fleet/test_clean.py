"""``fleetmark clean`` leaves hosts as they were: every file and package is compared with the state before the runs."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.command import FLEETMARK, Command, as_ops
from tests.fleet.hosts import Fleet, missing
from tests.fleet.remains import state

pytestmark = pytest.mark.fleet
# What a package manager keeps for itself: logs, caches, locks, old copies. Its packages are compared by query.
OF_DPKG = ("/var/log", "/var/cache", "/var/lib/apt", "/var/lib/dpkg")
# A stand-in for fio with a dependency and a file of configuration; it is installed, and measures nothing.
CONTROL = "Package: {name}\nVersion: 99\nArchitecture: all\nMaintainer: x <x@x.example>\nDescription: x\n"
MAKE = """
for p in fio fm-clean-lib; do dpkg-deb --root-owner-group -b /srv/$p /srv/repo/$p.deb >/dev/null; done
cd /srv/repo
for p in *.deb; do
    dpkg-deb -f $p; echo "Filename: ./$p"; echo "Size: $(stat -c %s $p)"; echo "SHA256: $(sha256sum $p | cut -d' ' -f1)"; echo
done > Packages
rm -rf /etc/apt/sources.list.d/*; echo 'deb [trusted=yes] file:/srv/repo ./' > /etc/apt/sources.list
apt-get -q update >/dev/null
"""


@pytest.fixture(scope="module")
def site() -> Iterator[Fleet]:
    """One host without fio, whose only package source has a stand-in."""
    if reason := missing():
        pytest.skip(reason)
    if not shutil.which("dpkg-deb"):
        pytest.skip("packages of this test are Debian's")
    with Fleet(1) as fleet:
        fleet.lacks("h1", "fio")
        fleet.exec("h1", ["dpkg", "--purge", "--force-depends", "fio"])
        for name, more in (("fio", "Depends: fm-clean-lib\n"), ("fm-clean-lib", "")):
            write(fleet, f"/srv/{name}/DEBIAN/control", CONTROL.format(name=name) + more)
        write(fleet, "/srv/fio/usr/bin/fio", "#!/bin/sh\necho fio-3.99\n", "755")
        write(fleet, "/srv/fm-clean-lib/etc/fm-clean-lib.conf", "a = 1\n")
        write(fleet, "/srv/fm-clean-lib/DEBIAN/conffiles", "/etc/fm-clean-lib.conf\n")
        fleet.exec("h1", ["sh", "-ec", f"mkdir -p /srv/repo; {MAKE}"])
        yield fleet


def write(fleet: Fleet, path: str, text: str, mode: str = "644") -> None:
    words = ["sh", "-ec", 'mkdir -p "${1%/*}"; cat > "$1"; chmod "$2" "$1"', "sh", path, mode]
    fleet.exec("h1", words, input=text)


def files(fleet: Fleet) -> dict[str, tuple[object, ...] | None]:
    """Return the state of each path of h1 that differs from this machine's, or is not this machine's."""
    states = {}
    for place in ("upper", "kept"):
        top = fleet.folder / "h1" / place
        for path in top.rglob("*"):
            name = f"/{path.relative_to(top)}"
            if not name.startswith(OF_DPKG):
                states[name] = state(path)
    return states


def packages(fleet: Fleet) -> set[str]:
    form = "${binary:Package} ${Version} ${Status}\n"
    return set(fleet.exec("h1", ["dpkg-query", "-W", "-f", form]).stdout.splitlines())


def clean(command: Command, *more: str) -> subprocess.CompletedProcess[str]:
    words = [FLEETMARK, "clean", "-i", str(command.fleet.inventory), *more]
    done = subprocess.run(words, capture_output=True, text=True, env=command.env, cwd=command.root)
    assert "Traceback" not in done.stdout + done.stderr
    return done


@pytest.fixture
def suite(tmp_path: Path) -> str:
    fio = {"runtime": 1, "ramp": 0, "size": "16MiB", "seq": ["read"], "rand": ["randread"], "rand_iodepth": 1}
    file = tmp_path / "suite.yml"
    chosen = {"fio": {"set": fio}, "selftest": {"set": {"commands": 1}}}
    file.write_text(json.dumps({"description": "x", "repeats": 1, "workloads": chosen}))
    return str(file)


@pytest.mark.job
def test_a_host_is_as_it_was(site: Fleet, suite: str, tmp_path: Path) -> None:
    command = Command(site, tmp_path)
    before, packages_before = files(site), packages(site)
    command.run("--suite", suite)
    assert command.count(workload="selftest") == {"passed": 1}
    added = packages(site) - packages_before
    assert {line.split()[0] for line in added} == {"fio", "fm-clean-lib"}

    used = files(site)
    shown = clean(command, "--dry-run")
    assert shown.returncode == 0 and files(site) == used, "a dry run changes nothing"
    assert "would remove" in shown.stdout and "fm-clean-lib" in shown.stdout and "/var/tmp/fleetmark-0" in shown.stdout

    write(site, "/srv/user/DEBIAN/control", CONTROL.format(name="fm-clean-user") + "Depends: fio\n")
    site.exec("h1", ["sh", "-ec", "dpkg-deb -b /srv/user /srv/user.deb && dpkg -i /srv/user.deb"])
    refused = clean(command)
    assert refused.returncode == 1 and "other packages need them: fm-clean-user" in refused.stdout
    assert added <= packages(site)
    site.exec("h1", ["dpkg", "--purge", "fm-clean-user"])

    done = clean(command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert packages(site) == packages_before
    after = files(site)
    differing = {
        name: (before.get(name), after.get(name))
        for name in before.keys() | after.keys()
        if after.get(name) != (before[name] if name in before else state(Path(name)))
        and not (name not in before and name.startswith(("/root/", "/var/tmp/")) and after.get(name) is None)
    }
    assert differing == {}
    again = clean(command)
    assert again.returncode == 0 and "has no files in /var/tmp/fleetmark-0" in again.stdout


def test_results_that_nobody_collected_stay(site: Fleet, tmp_path: Path) -> None:
    command = Command(site, tmp_path)
    folder = "/var/tmp/fleetmark-0"
    write(site, f"{folder}/jobs/20261121T010114-x-bcd4/h1/job.json", "{}")
    site.exec("h1", ["chmod", "700", folder])
    done = clean(command)
    assert done.returncode == 1 and "it contains results of 20261121T010114-x-bcd4" in done.stdout
    site.exec("h1", ["test", "-e", f"{folder}/jobs/20261121T010114-x-bcd4/h1/job.json"])
    assert clean(command, "--discard").returncode == 0
    assert site.exec("h1", ["test", "-e", folder], check=False).returncode


def test_a_mounted_file_system_and_another_users_folder_stay(site: Fleet, tmp_path: Path) -> None:
    command = Command(site, tmp_path)
    folder = "/var/tmp/fleetmark-0"
    site.exec(
        "h1", ["sh", "-ec", f"mkdir -m 700 -p {folder}/data; mount -t tmpfs x {folder}/data; touch {folder}/data/x"]
    )
    done = clean(command)
    assert done.returncode == 1 and f"a file system is mounted on {folder}/data" in done.stdout
    site.exec("h1", ["sh", "-ec", f"test -e {folder}/data/x; umount {folder}/data; chown 12345 {folder}"])
    done = clean(command)
    assert done.returncode == 1 and "belongs to uid 12345" in done.stdout
    site.exec("h1", ["rm", "-r", folder])


def test_a_host_in_production_is_refused_before_anything_is_written(site: Fleet, tmp_path: Path) -> None:
    command = Command(site, tmp_path)
    before = files(site)
    inventory = tmp_path / "hosts.ini"
    marked = "\n[all:vars]\nfleetmark_labels={'production': 'yes'}\n"
    inventory.write_text(site.inventory.read_text() + marked)
    done = as_ops(inventory, command, "--suite", "selftest")
    assert done.returncode == 2 and "h1: in production by the label production=yes" in done.stdout
    assert "add --include-busy to measure anyway" in done.stderr
    assert files(site) == before and not command.events()
    assert as_ops(inventory, command, "--suite", "selftest", "--include-busy").returncode == 0
    assert clean(command).returncode == 0
