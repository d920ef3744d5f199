"""Sign the campaigns that this user started, with an HMAC whose key is outside all results roots.

Anyone who can write to a results root can change a campaign, but cannot forge this user's signature. The key is
``fleetmark/signing.key`` under XDG_STATE_HOME (``~/.local/state``): 32 random bytes that only the user can read.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from fleetmark.base.inside import PRIVATE_FOLDER, folder_inside, read_inside, replace_inside

FIELD = "signature"
_KEY_BYTES = 32


def sign(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``document``, which must be JSON-serialisable, with this user's signature, replacing any earlier one."""
    return {**_unsigned(document), FIELD: _signature(document)}


def is_signed(document: Mapping[str, Any]) -> bool:
    """Return whether this user signed exactly this ``document``."""
    claimed = document.get(FIELD)
    return (
        isinstance(claimed, str)
        and claimed.isascii()
        and hmac.compare_digest(claimed.encode(), _signature(document).encode())
    )


def key_problem() -> str:
    """Return why signatures are valid only in this process; empty if the key is stored."""
    return _key(_key_file())[1]


def _key_file() -> Path | None:
    """Return the path of this user's key, or None if there is no home directory."""
    try:
        return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "fleetmark" / "signing.key"
    except RuntimeError:
        return None


def _unsigned(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != FIELD}


def _signature(document: Mapping[str, Any]) -> str:
    canonical = json.dumps(_unsigned(document), sort_keys=True, separators=(",", ":"))
    return hmac.new(_key(_key_file())[0], canonical.encode(), hashlib.sha256).hexdigest()


@lru_cache(maxsize=8)
def _key(file: Path | None) -> tuple[bytes, str]:
    """Return the key and an empty string. Create the key on first use.

    If the key cannot be stored, or if others could read or replace it, return a temporary key and the reason.
    """
    for_now = secrets.token_bytes(_KEY_BYTES)
    if file is None:
        return for_now, "there is no home directory; set XDG_STATE_HOME"
    try:
        root = file.parent.parent
        if not file.exists():
            root.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            with folder_inside(file.parent, root, make=PRIVATE_FOLDER) as place:
                fcntl.flock(place, fcntl.LOCK_EX)  # another process may also be creating the key
                if not file.exists():
                    replace_inside(file, root, for_now)
        for path in (file.parent, file):
            info = path.lstat()
            if info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) & 0o077:
                return for_now, f"{path}: other users can read or change it; remove it"
        key = read_inside(file, root, 1 << 10)
    except OSError as error:
        return for_now, f"{file}: {error.strerror}; set XDG_STATE_HOME to a folder of your own"
    return (key, "") if len(key) == _KEY_BYTES else (for_now, f"{file}: it is not {_KEY_BYTES} bytes long; remove it")
