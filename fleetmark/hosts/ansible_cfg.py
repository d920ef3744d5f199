"""Find the configuration file that Ansible reads. It can make Ansible run code. Refuse it if others can change it."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

from fleetmark.base.errors import FleetmarkError
from fleetmark.hosts.agent import PLAYBOOKS, agent_module

VARIABLE = "ANSIBLE_CONFIG"
_NAME = "ansible.cfg"
_DEFAULT = PLAYBOOKS / "default.cfg"


def config_file() -> Path | None:
    """Return the file that Ansible would read in the current folder, or None if there is none.

    Raise FleetmarkError if another user can change an ``ansible.cfg`` in the current folder, which nobody named.
    """
    named = os.environ.get(VARIABLE)
    if named is not None:
        file = _expanded(os.path.expandvars(named))
        file = file / _NAME if file.is_dir() else file
        if os.access(file, os.R_OK):
            return file.absolute()
    if os.access(_NAME, os.R_OK):
        file = Path(_NAME).absolute()
        _refuse_shared(file)
        return file
    usual = (_expanded("~/.ansible.cfg"), Path("/etc/ansible/ansible.cfg"))
    return next((file for file in usual if os.access(file, os.R_OK)), None)


def _expanded(path: str) -> Path:
    """Return a path without ``~``, which stays if its user does not exist, as it does for Ansible."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises an error


def config_variable() -> Mapping[str, str]:
    """Return the variable that makes Ansible read ``config_file`` and no other file, even one that appears later."""
    return {VARIABLE: str(config_file() or _DEFAULT)}


def _refuse_shared(file: Path) -> None:
    """Raise FleetmarkError if a user other than this one and root can change ``file`` or replace it."""
    private = agent_module("private")
    trusted = {0, os.geteuid(), Path("/").stat().st_uid}
    if (sudoer := os.environ.get("SUDO_UID", "")).isdecimal():  # the user who called sudo
        trusted.add(int(sudoer))
    real = Path(os.path.realpath(file))
    try:
        for entry in (file, *file.parents[:-1], real, *real.parents[:-1]):
            private.refuse_replaceable(str(entry), entry.lstat(), _without_own_group(entry.parent.stat()), trusted)
        info = _without_own_group(real.stat())
    except private.NotPrivate as error:
        raise FleetmarkError(f"{_NAME} can make Ansible run code, and others can change it: {error}") from error
    if info.st_uid not in trusted:
        raise FleetmarkError(
            f"{real}: it can make Ansible run code, and uid {info.st_uid} owns it; remove it, or run in another folder"
        )
    if info.st_mode & 0o022:
        raise FleetmarkError(
            f"{real}: it can make Ansible run code, and others can write to it; run `chmod go-w {real}`"
        )


def _without_own_group(info: os.stat_result) -> SimpleNamespace:
    """Return the owner and mode in ``info``, without write permission for a group whose only member is the owner.

    Many systems give each user such a group, named like the user, and let it write to the user's new folders.
    """
    mode = info.st_mode
    try:
        group, owner = grp.getgrgid(info.st_gid), pwd.getpwuid(info.st_uid)
        if group.gr_name == owner.pw_name and set(group.gr_mem) <= {owner.pw_name}:
            mode &= ~stat.S_IWGRP
    except KeyError:  # unknown group or user: the group may have members
        pass
    return SimpleNamespace(st_uid=info.st_uid, st_mode=mode)
