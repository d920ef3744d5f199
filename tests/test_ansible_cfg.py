"""Test that Ansible reads no configuration, and loads no code, that another user can place in the current folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.campaign.launch import launch
from fleetmark.hosts import ansible, ansible_cfg
from fleetmark.hosts.inventory import load_inventory

NOBODY = 65534
SOURCES = ["h1,", "h2,"]  # two inventories, which only Ansible reads
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, which is empty. Ansible has no other configuration."""
    for name in [n for n in os.environ if n.startswith("ANSIBLE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    shared = tmp_path / "shared" / "folder"
    shared.mkdir(parents=True)
    monkeypatch.chdir(shared)
    return shared


def configure(folder: Path, name: str = "ansible.cfg") -> Path:
    """Write a configuration with a command that Ansible runs when it reads an inventory."""
    command = folder / "command"
    command.write_text(f"#!/bin/sh\ntouch {folder}/ran\necho password\n")
    command.chmod(0o755)
    file = folder / name
    file.write_text(f"[defaults]\nvault_password_file = {command}\nremote_user = planted\n")
    return file


def has_run(folder: Path) -> bool:
    return (folder / "ran").exists()


def give_away(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY)


def put_in_shared_folder(file: Path) -> None:
    shared = file.parent.parent / "group"
    shared.mkdir()
    file.rename(shared / "real.cfg")
    file.symlink_to(shared / "real.cfg")
    shared.chmod(0o777)


def open_to_group(path: Path, mode: int) -> None:
    os.chown(path, 0, NOBODY)
    path.chmod(mode)


REFUSED: dict[str, Callable[[Path], None]] = {
    "another user's file": give_away,
    "a file that its group can write": lambda file: open_to_group(file, 0o664),
    "a file that everybody can write": lambda file: file.chmod(0o646),
    "another user's folder": lambda file: give_away(file.parent),
    "another user's folder above": lambda file: give_away(file.parent.parent),
    "a folder that its group can write": lambda file: open_to_group(file.parent, 0o775),
    "a folder above that everybody can write": lambda file: file.parent.parent.chmod(0o777),
    "another user's file in a sticky folder": lambda file: (give_away(file), file.parent.chmod(0o1775)),  # type: ignore[func-returns-value, return-value]
    "a symlink into a shared folder": put_in_shared_folder,
}


@needs_root
@pytest.mark.parametrize("case", REFUSED)
def test_a_configuration_that_others_can_change_is_refused(folder: Path, case: str) -> None:
    REFUSED[case](configure(folder))
    with pytest.raises(FleetmarkError, match="can make Ansible run code, and (uid|others can)") as error:
        load_inventory(SOURCES)
    assert "\n" not in str(error.value) and any(
        word in str(error.value) for word in ("; run `", "; choose a", "; remove")
    )
    heard: list[object] = []
    problem = launch([], {"h1": {}}, {"h1": {}}, {}, lambda *event: heard.append(event), lambda: False)
    assert problem == str(error.value) and not heard
    assert not has_run(folder)


def own_group(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the folder to a user, with a group of the same name, and let this user call sudo."""
    for place in (path, path.parent):
        os.chown(place, NOBODY, NOBODY)
        place.chmod(0o775)
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    user = type("User", (), {"pw_name": "alice"})
    group = type("Group", (), {"gr_name": "alice", "gr_mem": []})
    monkeypatch.setattr(ansible_cfg.pwd, "getpwuid", lambda _: user)
    monkeypatch.setattr(ansible_cfg.grp, "getgrgid", lambda _: group)


ACCEPTED: dict[str, Callable[[Path, pytest.MonkeyPatch], object]] = {
    "one's own": lambda *_: None,
    "one's own in a sticky folder": lambda file, _: file.parent.chmod(0o1777),
    "a user's own group": own_group,
}


@needs_root
@pytest.mark.parametrize("case", ACCEPTED)
def test_a_configuration_that_nobody_else_can_change_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    ACCEPTED[case](configure(folder), monkeypatch)
    assert [host.user for host in load_inventory(SOURCES)] == ["planted"] * 2
    assert has_run(folder), "the tests above must see a command that runs"


def test_the_named_configuration_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "named.cfg").write_text("[defaults]\nremote_user = named\n")
    configure(folder).chmod(0o666)
    monkeypatch.setenv("ANSIBLE_CONFIG", "named.cfg")
    assert [host.user for host in load_inventory(SOURCES)] == ["named"] * 2
    monkeypatch.setenv("ANSIBLE_CONFIG", "missing.cfg")  # Ansible then searches other places
    with pytest.raises(FleetmarkError, match="others can write to it"):
        load_inventory(SOURCES)


def test_a_configuration_that_appears_after_the_check_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = subprocess.run

    def plant(*args: Any, **more: Any) -> Any:
        configure(folder)
        return real(*args, **more)

    monkeypatch.setattr(ansible.subprocess, "run", plant)
    listed, _ = ansible.list_inventory(SOURCES, None)
    assert list(listed.hosts) == ["h1", "h2"]
    assert (folder / "ansible.cfg").exists() and not has_run(folder)


def test_ansible_loads_no_module_from_the_current_folder(folder: Path) -> None:
    for name in ("ansible", "yaml", "jinja2", "json"):
        (folder / f"{name}.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    assert [host.name for host in load_inventory(SOURCES)] == ["h1", "h2"]
    assert not has_run(folder)


def test_ansible_without_a_configuration_leaves_the_processor_to_others(folder: Path) -> None:
    words = [sys.executable, "-P", "-m", "ansible", "config", "dump", "--only-changed", "--format", "json"]
    env = {**os.environ, **ansible_cfg.config_variable()}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=env)
    changed = {entry["name"]: entry["value"] for entry in json.loads(done.stdout) if "name" in entry}
    assert changed["DEFAULT_INTERNAL_POLL_INTERVAL"] == 0.01
