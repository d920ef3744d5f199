"""Check whether the user revoked a host key (RevokedHostKeys), as OpenSSH does."""

from __future__ import annotations

import base64
import binascii
import subprocess
from pathlib import Path

_LIST = b"SSHKRL\n\0"  # start of a key revocation list (PROTOCOL.krl); other files have a public key per line
_REVOKED = 1  # exit status of ssh-keygen -Q


def is_revoked(kind: str, blob: bytes, file: Path) -> bool:
    """Return whether ``file`` revokes the key ``blob`` of this ``kind`` (``ssh-ed25519``).

    Raise ValueError with the reason if the file cannot be read. In this case, ssh trusts no host.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ValueError(error.strerror) from None
    if content.startswith(_LIST):
        return _is_in_list(kind, blob, file)
    lines = [line.strip() for line in content.splitlines()]
    return blob in [_key(line) for line in lines if line and not line.startswith(b"#")]


def _key(line: bytes) -> bytes:
    words = line.split(maxsplit=2)
    try:
        return base64.b64decode(words[1], validate=True)
    except (IndexError, binascii.Error):
        raise ValueError("one of its lines is not a public key") from None


def _is_in_list(kind: str, blob: bytes, file: Path) -> bool:
    done = subprocess.run(
        ["ssh-keygen", "-Q", "-f", str(file.absolute()), "/dev/stdin"],
        input=f"{kind} {base64.b64encode(blob).decode()}\n".encode(),
        capture_output=True,
        check=False,
    )
    if done.returncode not in (0, _REVOKED):
        words = done.stderr.decode(errors="replace").strip().splitlines() or ["ssh-keygen cannot read it"]
        raise ValueError(words[-1])
    return done.returncode == _REVOKED
