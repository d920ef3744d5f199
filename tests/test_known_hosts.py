"""Our reading of known_hosts against that of ``ssh-keygen -F``, over files of all kinds of lines."""

from __future__ import annotations

import base64
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from fleetmark.hosts.ssh.known import known_keys

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="this machine has no OpenSSH client")
UNREADABLE = "no-key"  # ssh-keygen prints such a line, and ssh skips it
NAMES = ("a.lab", "b.lab", "[a.lab]:2222", "10.0.0.1", "x")
PATTERNS = ("*", "*.lab", "?.lab", "!a.lab", "[*]:2222", "10.0.0.*", "A.LAB", "b.lab", "a.lab", "x", "[a.lab]:2222", "")


def key(number: int) -> str:
    """An Ed25519 key, as a line has it; the number tells it from others."""
    raw = b"\0\0\0\x0bssh-ed25519\0\0\0 " + number.to_bytes(32, "big")
    return base64.b64encode(raw).decode()


def openssh(name: str, file: Path) -> list[tuple[str, str]]:
    ran = subprocess.run(["ssh-keygen", "-F", name, "-f", str(file)], capture_output=True, text=True, check=False)
    lines = [line.split() for line in ran.stdout.splitlines() if not line.startswith("#")]
    marked = [words if words[0].startswith("@") else ["", *words] for words in lines]
    return [(words[0], words[3]) for words in marked if words[3] != UNREADABLE]


def test_all_kinds_of_lines(tmp_path: Path) -> None:
    rng = random.Random(7)
    plain, hashed, file = (tmp_path / name for name in ("plain", "hashed", "known_hosts"))
    for number in range(12):
        plain.write_text("".join(f"{name} ssh-ed25519 {key(1000 + n)}\n" for n, name in enumerate(NAMES)))
        shutil.copy(plain, hashed)
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(hashed)], check=True, capture_output=True)
        lines = hashed.read_text().splitlines()
        lines = [*rng.sample(lines, 2), "# a comment", "", "  \t", "a.lab ssh-ed25519"]
        lines.append(f"a.lab ssh-ed25519 {UNREADABLE}")
        for n in range(8):
            marker = rng.choice(["", "", "@revoked ", "@cert-authority "])
            names = ",".join(rng.sample(PATTERNS, rng.randint(1, 3)))
            blank = rng.choice([" ", "\t", "  "])
            lines.append(
                f"{marker}{names}{blank}ssh-ed25519{blank}{key(number * 100 + n)}{rng.choice(['', ' a comment'])}"
            )
        rng.shuffle(lines)
        file.write_text("\n".join(lines) + rng.choice(["", "\n"]))
        for name in (*NAMES, "nowhere", "B.Lab"):
            ours = [(k.marker, base64.b64encode(k.blob).decode()) for k in known_keys([name], [file])]
            assert ours == openssh(name, file), (name, file.read_text())


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    assert known_keys(["a"], [file]) == []
    file.write_text(f"a ssh-ed25519 {key(1)}\n")
    assert len(known_keys(["a"], [file])) == 1
    with file.open("a") as out:
        out.write(f"b ssh-ed25519 {key(2)}\n")
    assert len(known_keys(["b", "a"], [file])) == 1
    assert [k.blob[-1] for k in known_keys(["c", "a"], [file])] == [1]


def test_bytes_that_are_no_text_and_files_that_cannot_be_read(tmp_path: Path) -> None:
    file, closed = tmp_path / "known_hosts", tmp_path / "closed"
    broken = b"a.lab ssh-ed25519 \xff\xfe\n|1|\xff|\xff ssh-ed25519 AAAA\n|1|\xc3\xa9 ssh-ed25519 AAAA\n\xff\n"
    file.write_bytes(broken + f"a.lab ssh-ed25519 {key(1)}\n".encode())
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    files = [closed / ("x" * 300), loop, Path("/dev/null"), tmp_path, file]
    assert [k.blob[-1] for k in known_keys(["a.lab"], files)] == [1]
