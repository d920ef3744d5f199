"""Packages on record: only those that Fleetmark added are removed, also on systems other than Debian (stand-ins)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.hosts.clean import answer_in, outcome_of

HOUSE = Path(__file__).parents[2]
AGENT = HOUSE / "playbooks" / "agent"
INSTALL = HOUSE / "playbooks" / "roles" / "packages" / "files" / "install.sh"
# Stand-ins for rpm and dnf: the file DB has one package a line. libaio comes with fio; tool needs fio.
RPM = """#!/bin/sh
case "$*" in
    "-qa "*) cat "$DB" ;;
    "-q --whatprovides "*) grep -qx "$3" "$DB" ;;
    "-q "*) grep -qx "$2" "$DB" ;;
    "-e --test "*) grep -qx tool "$DB" || exit 0; echo "fio is needed by (installed) tool" >&2; exit 1 ;;
    "-e "*) shift; for p; do sed -i "/^$p\\$/d" "$DB"; done ;;
esac
"""
DNF = (
    '#!/bin/sh\nprintf "%s\\n" fio libaio other >> "$DB"\nprintf "Installing : fio-3.35\\nInstalling : libaio-0.3\\n"\n'
)
SUFFIX = "libaio-devel"  # other, which somebody else installed meanwhile, is not named by dnf


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the work directory and the packages of a host whose installer works."""
    (tmp_path / "work").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "db").write_text(f"bash\n{SUFFIX}\n")
    for name, text in (("rpm", RPM), ("dnf", DNF), ("id", "#!/bin/sh\necho 0\n")):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("DB", str(tmp_path / "db"))
    monkeypatch.setenv("FLEETMARK_WORK", str(tmp_path / "work"))
    subprocess.run(["sh", str(INSTALL), "rhel", "fio", ""], check=True)
    return tmp_path


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> Any:
    for folder in (AGENT / "shares", AGENT):
        monkeypatch.syspath_prepend(str(folder))
    names = ("clean", "job", "lock", "private", "files", "disks", "network", "groups", "steps")
    for name in names:
        sys.modules.pop(name, None)
    import clean as module  # type: ignore[import-not-found]

    monkeypatch.setattr(module.os, "geteuid", lambda: 0)
    yield module
    for name in names:
        sys.modules.pop(name, None)


def test_only_what_the_installation_added_is_on_record(host: Path) -> None:
    assert (host / "work" / "packages").read_text() == "rhel remove fio\nrhel remove libaio\n"


def test_packages_on_record_are_removed(host: Path, clean: Any) -> None:
    rows = clean.recorded(str(host / "work"))
    assert clean.remove_packages(rows) == ""
    assert (host / "db").read_text() == f"bash\n{SUFFIX}\nother\n"
    assert clean.recorded(str(host / "work")) == [], "they are gone, so nothing is left to remove"


def test_a_package_that_another_one_needs_stays(host: Path, clean: Any) -> None:
    with (host / "db").open("a") as file:
        file.write("tool\n")
    assert clean.remove_packages(clean.recorded(str(host / "work"))) == (
        "fio, libaio: rpm: fio is needed by (installed) tool"
    )
    assert "fio\n" in (host / "db").read_text()


# apk keeps what another package needs, and succeeds. This stand-in follows its manual; no apk runs on this machine.
APK = """#!/bin/sh
case "$1" in
    info) grep -qx "$3" "$DB" ;;
    del) shift 2; for p; do [ "$p" = "${NEEDED:-}" ] || sed -i "/^$p\\$/d" "$DB"; done ;;
esac
"""


@pytest.mark.parametrize(("needed", "kept"), [("", ""), ("libaio", "fio, libaio: other packages need libaio")])
def test_apk_keeps_needed_packages_without_an_error(
    host: Path, clean: Any, monkeypatch: pytest.MonkeyPatch, needed: str, kept: str
) -> None:
    (host / "bin" / "apk").write_text(APK)
    (host / "bin" / "apk").chmod(0o755)
    (host / "work" / "packages").write_text("alpine remove fio\nalpine remove libaio\n")
    monkeypatch.setenv("NEEDED", needed)
    rows = clean.recorded(str(host / "work"))
    assert len(rows) == 2
    assert clean.remove_packages(rows) == kept
    assert ("libaio" in (host / "db").read_text().split()) == bool(needed)


def test_what_a_host_answers_is_checked_and_bounded() -> None:
    def answered(**more: Any) -> bytes:
        return b"FLEETMARK" + json.dumps(more).encode()

    for out in (b"", b"FLEETMARK[]", b"FLEETMARK" + b"[" * 100_000, answered(bytes=-1), answered(packages="fio")):
        with pytest.raises(FleetmarkError, match="could not be cleaned: no answer"):
            answer_in(out, b"")
    many = answer_in(answered(bytes=4096, packages=["x" * 2000] * 9000), b"")
    text = outcome_of("h1", "/var/tmp/fleetmark-0", many, dry_run=False).text
    assert len(text) < 6000 and text.endswith(" and 8950 more")


def test_a_damaged_record_removes_nothing(host: Path, clean: Any) -> None:
    (host / "work" / "packages").write_text(
        "rhel remove --all\nrhel remove\n\nrhel remove fio bash\nunknown remove x\n"
    )
    assert clean.recorded(str(host / "work")) == [("unknown", "remove", "x")]
    assert "support the package manager of unknown" in clean.remove_packages(clean.recorded(str(host / "work")))


@pytest.mark.parametrize(("gone", "left"), [("campaign", []), ("all", ["h1"]), ("", ["h1"])])
def test_a_job_of_slurm_is_over_when_its_shared_folder_alone_is_gone(
    tmp_path: Path, clean: Any, gone: str, left: list[str]
) -> None:
    """A node that was off when its job ended keeps the folder. The next job removes it, and cleaning needs no consent."""
    shared = tmp_path / "shared" / "campaign"
    shared.mkdir(parents=True)
    folder = tmp_path / "work" / "jobs" / "campaign" / "h1"
    for name, text in (("campaign", json.dumps({"shared": str(shared)})), ("other", "{}"), ("broken", "[")):
        (tmp_path / "work" / "jobs" / name / "h1").mkdir(parents=True)
        (tmp_path / "work" / "jobs" / name / "h1" / "job.json").write_text(text)
    for place in {"campaign": [shared], "all": [shared, shared.parent]}.get(gone, []):
        place.rmdir()
    results = clean.contents(str(tmp_path / "work"))["results"]
    assert ("campaign" in results) == bool(left)
    sys.modules["job"].clear_over(str(tmp_path / "work"))
    assert [path.name for path in folder.parent.glob("*")] == left
    assert (tmp_path / "work" / "jobs" / "other" / "h1" / "job.json").exists()
    assert (tmp_path / "work" / "jobs" / "broken" / "h1" / "job.json").exists()
