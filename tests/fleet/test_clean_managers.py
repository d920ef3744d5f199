"""``fleetmark clean`` with the real dnf, zypper and pacman, where this machine has them, and packages of its own."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fleet.command import FLEETMARK, Command
from tests.fleet.hosts import Fleet, missing
from tests.fleet.remains import state

pytestmark = pytest.mark.fleet
INSTALL = Path(__file__).parents[2] / "playbooks" / "roles" / "packages" / "files" / "install.sh"
WORK = "/var/tmp/fleetmark-0"
# fm-tool needs fm-lib, and fm-user needs fm-tool. Each has one file.
SPEC = """
mkdir -p /srv/repo /etc/rpm
echo '%_dbpath /var/lib/rpm' >> /etc/rpm/macros
for p in "fm-lib" "fm-tool fm-lib" "fm-user fm-tool"; do
    set -- $p
    cat > /srv/$1.spec <<S
Name: $1
Version: 1
Release: 1
Summary: x
License: x
BuildArch: noarch
AutoReqProv: no
${2:+Requires: $2}
%description
x
%install
mkdir -p %{buildroot}/usr/bin; echo '#!/bin/sh' > %{buildroot}/usr/bin/$1; chmod 755 %{buildroot}/usr/bin/$1
%files
/usr/bin/$1
S
    rpmbuild -bb --define "_topdir /srv/rpm" --define "_rpmdir /srv/repo" /srv/$1.spec
done
createrepo_c /srv/repo
"""
DNF = (
    SPEC
    + "mkdir -p /etc/yum.repos.d\nprintf '[fm]\\nname=fm\\nbaseurl=file:///srv/repo\\ngpgcheck=0\\n' > /etc/yum.repos.d/fm.repo\n"
)
ZYPPER = SPEC + "zypper --non-interactive addrepo --no-gpgcheck /srv/repo fm\n"
PACMAN = """
mkdir -p /srv/repo
for p in "fm-lib" "fm-tool fm-lib" "fm-user fm-tool"; do
    set -- $p
    mkdir -p /srv/$1/usr/bin; echo '#!/bin/sh' > /srv/$1/usr/bin/$1; chmod 755 /srv/$1/usr/bin/$1
    printf 'pkgname = %s\\npkgbase = %s\\npkgver = 1-1\\npkgdesc = x\\narch = any\\nsize = 10\\n' $1 $1 > /srv/$1/.PKGINFO
    [ -z "${2:-}" ] || echo "depend = $2" >> /srv/$1/.PKGINFO
    (cd /srv/$1 && bsdtar -cJf /srv/repo/$1-1-1-any.pkg.tar.xz .PKGINFO usr)
done
repo-add /srv/repo/fm.db.tar.gz /srv/repo/*.pkg.tar.xz
printf '[options]\\nArchitecture = auto\\nSigLevel = Never\\n[fm]\\nServer = file:///srv/repo\\n' > /etc/pacman.conf
pacman -Sy
"""


@dataclass(frozen=True, kw_only=True)
class Manager:
    """A package manager. ``needs``: the commands that this machine must have; ``add`` and ``drop``: with fm-user."""

    family: str
    needs: tuple[str, ...]
    setup: str
    packages: str
    add: str
    drop: str


RPM = {"packages": "rpm -qa", "drop": "rpm -e fm-user"}
MANAGERS = {
    "dnf": Manager(
        family="rhel", needs=("dnf", "rpmbuild", "createrepo_c"), setup=DNF, add="dnf -y install fm-user", **RPM
    ),
    "zypper": Manager(
        family="suse",
        needs=("zypper", "rpmbuild", "createrepo_c"),
        setup=ZYPPER,
        add="zypper --non-interactive install fm-user",
        **RPM,
    ),
    "pacman": Manager(
        family="arch",
        needs=("pacman", "repo-add", "bsdtar"),
        setup=PACMAN,
        packages="pacman -Q || true",
        add="pacman -S --noconfirm fm-user",
        drop="pacman -R --noconfirm fm-user",
    ),
}
DATA = (
    "/var/log",
    "/var/cache",
    "/var/lib/rpm",
    "/var/lib/dnf",
    "/var/lib/zypp",
    "/var/lib/pacman",
    "/etc/zypp",
    "/var/tmp",
)


@pytest.fixture(params=list(MANAGERS))
def manager(request: pytest.FixtureRequest) -> Manager:
    known = MANAGERS[request.param]
    if absent := [tool for tool in known.needs if not shutil.which(tool)]:
        pytest.skip(f"this machine has no {', '.join(absent)}")
    return known


@pytest.fixture
def site(manager: Manager) -> Iterator[Fleet]:
    if reason := missing():
        pytest.skip(reason)
    with Fleet(1) as fleet:
        fleet.exec("h1", ["sh", "-ec", manager.setup])
        fleet.exec("h1", ["mkdir", "-m", "700", WORK])
        yield fleet


def files(fleet: Fleet) -> dict[str, object]:
    """Return the state of each path of h1 that differs from this machine's, without the data of package managers."""
    upper = fleet.folder / "h1" / "upper"
    states = {f"/{path.relative_to(upper)}": state(path) for path in upper.rglob("*")}
    return {n: now for n, now in states.items() if not n.startswith(DATA) and now != state(Path(n))}


def shell(fleet: Fleet, line: str) -> str:
    return fleet.exec("h1", ["sh", "-c", line]).stdout


def test_packages_go_unless_another_needs_them(site: Fleet, manager: Manager, tmp_path: Path) -> None:
    def clean() -> subprocess.CompletedProcess[str]:
        words = [FLEETMARK, "clean", "-i", str(site.inventory)]
        return subprocess.run(words, capture_output=True, text=True, env=Command(site, tmp_path).env)

    before = files(site), shell(site, manager.packages)
    words = ["sh", "-s", manager.family, "fm-tool", "fm-tool"]
    env = ["env", f"FLEETMARK_WORK={WORK}"]
    assert site.exec("h1", [*env, *words], input=INSTALL.read_text()).stdout == "installed fm-tool\n"
    added = [f"{manager.family} remove {name}" for name in ("fm-lib", "fm-tool")]
    assert sorted(shell(site, f"cat {WORK}/packages").splitlines()) == added
    shell(site, manager.add)
    kept = clean()
    assert kept.returncode == 1
    assert "fm-user" in kept.stdout + kept.stderr
    assert shell(site, "command -v fm-tool") == "/usr/bin/fm-tool\n"
    shell(site, manager.drop)
    cleaned = clean()
    assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr
    assert (files(site), shell(site, manager.packages)) == before
    assert not shell(site, f"[ ! -e {WORK} ] || echo there")
