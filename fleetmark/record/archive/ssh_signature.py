"""Sign and verify texts with OpenSSH keys (``ssh-keygen -Y``). Fleetmark itself never reads a private key.

A signature contains the public key that made it, but no path, comment or name.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fleetmark.base.errors import FleetmarkError

MAX_SIGNATURE = 20_000  # maximum characters; the signature of a 16-Kibit RSA key has about 6,000
_NAMESPACE = "fleetmark"
_MAGIC = b"SSHSIG\0\0\0\1"
_TIMEOUT_S = 30.0


def sign(text: str, key: Path) -> str:
    """Return the signature of ``text``. ``key``: a private key file, or a public one whose key an agent holds.

    Raise FleetmarkError if the key cannot sign without a passphrase.
    """
    if not key.is_file():
        raise FleetmarkError(f"--sign {key}: there is no such file; name an SSH key, such as ~/.ssh/id_ed25519")
    done = _keygen(["-Y", "sign", "-n", _NAMESPACE, "-f", str(key)], text)
    if done.returncode:
        raise FleetmarkError(
            f"--sign {key}: ssh-keygen cannot sign with it ({_last_line(done.stderr)}); "
            "if it has a passphrase, run ssh-add and name the .pub file"
        )
    return done.stdout


def fingerprint(signature: str) -> str:
    """Return the fingerprint of the public key that made a signature. Raise FleetmarkError if it is damaged."""
    try:
        _, _, body = signature.partition("-----BEGIN SSH SIGNATURE-----")
        raw = base64.b64decode(body.partition("-----END")[0].encode("ascii"))
        begin = len(_MAGIC) + 4
        key = raw[begin : begin + int.from_bytes(raw[len(_MAGIC) : begin])]
        if not raw.startswith(_MAGIC) or not key:
            raise ValueError
    except (ValueError, binascii.Error):
        raise FleetmarkError("it is not an SSH signature") from None
    return f"SHA256:{base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip('=')}"


def is_valid(text: str, signature: str) -> bool:
    """Return whether the key in ``signature`` signed exactly this ``text``. The key itself is not trusted."""
    with _stored(signature) as file:
        return not _keygen(["-Y", "check-novalidate", "-n", _NAMESPACE, "-s", file], text).returncode


def signer(text: str, signature: str, signers: Path) -> str:
    """Return the name that the file ``signers`` gives to the key that signed ``text``; empty if it allows none.

    ``signers``: the format of ALLOWED SIGNERS in ssh-keygen(1). Raise FleetmarkError if it cannot be read.
    """
    try:
        with signers.open("rb"):
            pass
    except OSError as error:
        raise FleetmarkError(f"--signers {signers}: cannot be read: {error.strerror}; check the path") from error
    with _stored(signature) as file:
        usual = ["-n", _NAMESPACE, "-s", file, "-f", str(signers)]
        names = _keygen(["-Y", "find-principals", *usual], text).stdout.splitlines()
        allowed = (name for name in names if not _keygen(["-Y", "verify", "-I", name, *usual], text).returncode)
        return next(allowed, "")


@contextlib.contextmanager
def _stored(signature: str) -> Iterator[str]:
    """Yield the path of a temporary file that contains the signature, because ssh-keygen reads it from a file."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="fleetmark-", suffix=".sig") as file:
        file.write(signature[:MAX_SIGNATURE])
        file.flush()
        yield file.name


def _keygen(words: list[str], text: str) -> subprocess.CompletedProcess[str]:
    """Run ssh-keygen on ``text`` without a terminal, so that it cannot wait for a passphrase."""
    try:
        return subprocess.run(
            ["ssh-keygen", *words],
            input=text,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_TIMEOUT_S,
            start_new_session=True,
            env={**os.environ, "SSH_ASKPASS_REQUIRE": "never"},
            check=False,
        )
    except FileNotFoundError as error:
        raise FleetmarkError("ssh-keygen is not installed; install openssh-client") from error
    except subprocess.TimeoutExpired as error:
        raise FleetmarkError(f"ssh-keygen gave no answer within {_TIMEOUT_S:.0f} s; try again") from error


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1][:200]
