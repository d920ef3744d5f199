"""Check the key that a host presents: which type to request, and whether it is trusted (StrictHostKeyChecking)."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Sequence
from pathlib import Path

import paramiko

from fleetmark.hosts.inventory import Host
from fleetmark.hosts.reach import ReachError
from fleetmark.hosts.ssh.known import KnownKey
from fleetmark.hosts.ssh.revoked import is_revoked
from fleetmark.hosts.ssh.target import Target, UnknownKey


def prefer(transport: paramiko.Transport, types: Sequence[str]) -> None:
    """Request the host key types that known_hosts contains, because a server presents only one key."""
    options = transport.get_security_options()
    preferred = {"rsa-sha2-512", "rsa-sha2-256", *types} if "ssh-rsa" in types else set(types)
    first = [kind for kind in options.key_types if kind in preferred]
    options.key_types = (*first, *(kind for kind in options.key_types if kind not in preferred))


def check(host: Host, target: Target, known: Sequence[KnownKey], key: paramiko.PKey) -> bool:
    """Check a host key according to StrictHostKeyChecking. Treat ``ask`` as ``yes``, because no user can answer.

    Return False if the key is wrong but checking is off. As in ssh, such a host gets no password. Raise ReachError if
    the key is rejected.
    """
    blob, kind = key.asbytes(), key.get_name()
    print_ = "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    files = [k.file for k in known if k.marker == "@revoked" and k.blob == blob]
    if files := files or _revoking(host, target, kind, blob):
        raise ReachError(f"{host.name}: its host key {print_} is revoked in {files[0]}")
    plain = [k for k in known if not k.marker]
    if any(k.blob == blob for k in plain):
        return True
    changed = next((k for k in plain if k.type == kind), None)
    if target.strict == "no":
        return changed is None
    if changed:
        forget = shlex.join(["ssh-keygen", "-R", target.key_name, "-f", str(changed.file)])
        raise ReachError(
            f"{host.name}: its host key CHANGED to {print_}: another machine answers, or the host was reinstalled; "
            f"in the latter case run {forget} and log in once with ssh"
        )
    file = target.known_hosts[0] if target.known_hosts else Path("~/.ssh/known_hosts").expanduser()
    if target.strict == "accept-new":
        _remember(host, target, file, key)
        return True
    by_authority = any(k.marker == "@cert-authority" for k in known)
    reason = (
        "is known by a certificate authority only, which Fleetmark cannot check" if by_authority else "is not known"
    )
    raise UnknownKey(host.name, f"its host key ({kind} {print_}) {reason}", target, file)


def _revoking(host: Host, target: Target, kind: str, blob: bytes) -> list[Path]:
    """Return the RevokedHostKeys file if it revokes the key. Raise ReachError if the file is unreadable, because ssh
    then trusts no host.
    """
    try:
        return [target.revoked] if target.revoked and is_revoked(kind, blob, target.revoked) else []
    except ValueError as error:
        reason = f"RevokedHostKeys {target.revoked} cannot be read ({error}), so no host key is trusted"
        raise ReachError(f"{host.name}: {reason}; fix the file, or remove it from the SSH configuration") from None


def _remember(host: Host, target: Target, file: Path, key: paramiko.PKey) -> None:
    name = paramiko.HostKeys.hash_host(target.key_name) if target.hash_known_hosts else target.key_name
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file.open("a") as lines:  # one short write, because other programs may also append
            lines.write(f"{name} {key.get_name()} {key.get_base64()}\n")
    except OSError as error:
        raise ReachError(f"{host.name}: its new host key cannot be saved in {file}: {error.strerror}") from None
