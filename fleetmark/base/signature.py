"""Signatures: what this user started carries an HMAC, made with a key that lies outside every results root.

Whoever can write to a results root can write anything into a campaign, but no signature of this user. The key is
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
    """Return ``document``, which JSON can hold, with the signature of this user in place of any before."""
    return {**_unsigned(document), FIELD: _signature(document)}


def is_signed(document: Mapping[str, Any]) -> bool:
    """Return whether ``document`` is exactly what this user signed."""
    claimed = document.get(FIELD)
    return (
        isinstance(claimed, str)
        and claimed.isascii()
        and hmac.compare_digest(claimed.encode(), _signature(document).encode())
    )


def key_problem() -> str:
    """Return why signatures are valid in this process only; empty where the key is stored."""
    return _key(_key_file())[1]


def _key_file() -> Path | None:
    """Return the path of this user's key, None where there is no home."""
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
    """Return the key, created at the first use, and an empty string.

    Where it cannot be stored, or others could read or replace it: a key for this process, and the reason.
    """
    for_now = secrets.token_bytes(_KEY_BYTES)
    if file is None:
        return for_now, "there is no home directory; set XDG_STATE_HOME"
    try:
        root = file.parent.parent
        if not file.exists():
            root.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            with folder_inside(file.parent, root, make=PRIVATE_FOLDER) as place:
                fcntl.flock(place, fcntl.LOCK_EX)  # another first run may be doing the same
                if not file.exists():
                    replace_inside(file, root, for_now)
        for path in (file.parent, file):
            info = path.lstat()
            if info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) & 0o077:
                return for_now, f"{path}: other users can read or change it; remove it"
        key = read_inside(file, root, 1 << 10)
    except OSError as error:
        return for_now, f"{file}: {error.strerror}; set XDG_STATE_HOME to a folder of your own"
    return (key, "") if len(key) == _KEY_BYTES else (for_now, f"{file}: it does not hold {_KEY_BYTES} bytes; remove it")
