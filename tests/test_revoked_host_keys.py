"""RevokedHostKeys: our reading of text files, and of key revocation lists that ssh-keygen made."""

from __future__ import annotations

import base64
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from fleetmark.hosts.inventory import Host
from fleetmark.hosts.reach import ReachError
from fleetmark.hosts.ssh import hostkey
from fleetmark.hosts.ssh.known import KnownKey
from fleetmark.hosts.ssh.revoked import is_revoked
from fleetmark.hosts.ssh.target import Target, resolve

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="this machine has no OpenSSH client")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two public keys."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("good", "stolen"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    return [folder / "good.pub", folder / "stolen.pub"]


def blob(file: Path) -> bytes:
    return base64.b64decode(file.read_text().split()[1])


def test_a_text_file_and_a_list_of_ssh_keygen(keys: list[Path], tmp_path: Path) -> None:
    good, stolen = keys
    text, krl, empty = tmp_path / "with a blank", tmp_path / "krl", tmp_path / "empty"
    text.write_text(f"# stolen in May\n\n  {stolen.read_text()}")
    subprocess.run(["ssh-keygen", "-q", "-k", "-f", str(krl), str(stolen)], check=True)
    empty.write_text("# none yet\n")
    for file in (text, krl):
        assert is_revoked("ssh-ed25519", blob(stolen), file)
        assert not is_revoked("ssh-ed25519", blob(good), file)
    assert not is_revoked("ssh-ed25519", blob(stolen), empty)


def test_a_file_that_cannot_be_read_says_why(keys: list[Path], tmp_path: Path) -> None:
    krl, text = tmp_path / "krl", tmp_path / "text"
    subprocess.run(["ssh-keygen", "-q", "-k", "-f", str(krl), str(keys[1])], check=True)
    krl.write_bytes(krl.read_bytes()[:30])
    text.write_text("ssh-ed25519\n")
    reasons = {
        krl: "incomplete message",
        text: "one of its lines is not a public key",
        tmp_path / "none": "No such file",
    }
    for file, reason in reasons.items():
        with pytest.raises(ValueError, match=reason):
            is_revoked("ssh-ed25519", blob(keys[0]), file)


def configured(revoked: str, strict: str) -> Target:
    options = ("-F", "/dev/null", "-o", f'RevokedHostKeys="{revoked}"', "-o", f"StrictHostKeyChecking={strict}")
    return resolve(Host("h1", "h1", "h1", ssh_args=options))


@pytest.mark.parametrize("strict", ["yes", "accept-new", "no"])
def test_a_revoked_key_is_refused_however_strict_the_check_is(keys: list[Path], tmp_path: Path, strict: str) -> None:
    good, stolen = keys
    host = Host("h1", "h1", "h1")
    revoked = tmp_path / "revoked keys"
    revoked.write_text(stolen.read_text())
    target = configured(str(revoked), strict)
    assert target.revoked == revoked
    known = [KnownKey("", "ssh-ed25519", blob(file), tmp_path / "known_hosts") for file in keys]
    shown = [paramiko.PKey.from_type_string("ssh-ed25519", blob(file)) for file in (good, stolen)]
    assert hostkey.check(host, target, known, shown[0])
    with pytest.raises(ReachError, match=rf"h1: its host key SHA256:\S+ is revoked in {revoked}"):
        hostkey.check(host, target, known, shown[1])
    missing = replace(target, revoked=tmp_path / "missing")
    with pytest.raises(ReachError, match="cannot be read .No such file or directory., so no host key is trusted"):
        hostkey.check(host, missing, known, shown[0])
    assert configured("none", strict).revoked is None
