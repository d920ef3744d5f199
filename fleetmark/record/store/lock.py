"""Lock a campaign in a store for one controller, with an object that only one writer can create."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.files import decode_json
from fleetmark.base.user import user_name
from fleetmark.record.archive import utc
from fleetmark.record.store.objects import Objects

NAME = ".driven.json"


@contextlib.contextmanager
def held(objects: Objects, campaigns: Sequence[str]) -> Iterator[None]:
    """Hold the locks of ``campaigns``. Raise FleetmarkError, with the holder's name, if another process holds one."""
    with contextlib.ExitStack() as locks:
        for campaign in campaigns:
            _take(objects, campaign)
            locks.callback(objects.remove, [f"{campaign}/{NAME}"])
        yield


def _take(objects: Objects, campaign: str) -> None:
    name = f"{campaign}/{NAME}"
    mine = {
        "host": socket.gethostname(),
        "among": _processes(),
        "pid": os.getpid(),
        "user": user_name(),
        "since": utc(),
    }
    if objects.create(name, json.dumps(mine).encode()):
        return
    other = _owner(objects.read(name))
    is_local = all(other.get(name) == mine[name] for name in ("host", "among"))
    if is_local and not _lives(other.get("pid")):  # the holder was killed before it could remove the lock
        objects.write(name, json.dumps(mine).encode())
        return
    holder = (
        f"{other.get('user', 'somebody')} on {other.get('host', 'another machine')}, since {other.get('since', '?')}"
    )
    raise FleetmarkError(
        f"campaign {campaign} is in use by another fleetmark process ({holder}); if that process is dead: "
        f"{shlex.join(['aws', 's3', 'rm', f'{objects.url}/{name}'])}"
    )


def _owner(content: bytes) -> dict[str, Any]:
    try:
        owner = decode_json(content)
    except ValueError:
        return {}
    return {str(k): str(v)[:80] for k, v in owner.items()} if isinstance(owner, dict) else {}


def _processes() -> str:
    """Return an identifier of this machine and process-ID namespace, within which a process ID is unique.

    Machines may share a name, and each container has its own process IDs. The identifier is a digest, because a machine
    ID is confidential (machine-id(5)).
    """
    machine, namespace = Path("/etc/machine-id"), Path("/proc/self/ns/pid")
    words = b""
    with contextlib.suppress(OSError):
        words += machine.read_bytes()
    with contextlib.suppress(OSError):
        words += bytes(namespace.readlink())
    return hashlib.sha256(words).hexdigest()[:16]


def _lives(pid: Any) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except (PermissionError, TypeError):
        return True
    return True
