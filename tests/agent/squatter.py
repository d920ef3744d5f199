"""Start a process of another user that holds the name of the host's lock, a name that any user can bind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The script binds the abstract socket name that all users of a host share. ``how`` selects how it answers.
SQUATTER = """
import json, os, socket, sys, time
how, folder = sys.argv[1:]
os.setuid(65534)
name = socket.socket(socket.AF_UNIX)
while True:
    try:
        name.bind(chr(0) + "fleetmark-host-job")
        break
    except OSError:  # a runner that was just killed closes its socket after its command line is gone
        time.sleep(0.05)
name.listen(0 if how == "full" else 64)
crowd = []
if how == "full":
    for _ in range(2):
        crowd.append(socket.socket(socket.AF_UNIX))
        crowd[-1].setblocking(False)
        try:
            crowd[-1].connect(chr(0) + "fleetmark-host-job")
        except BlockingIOError:
            pass
print("holds", flush=True)
while how in ("silent", "full"):
    time.sleep(60)
lie = json.dumps({"campaign": "PWNED", "owner": "PWNED", "dir": folder, "since": "PWNED"}).encode() + b"\\n"
while True:
    peer = name.accept()[0]
    crowd = [*crowd[-20:], peer]
    try:
        if how == "greets":
            peer.send(lie)
        while how == "endless":
            peer.send(b"x" * 65536)
    except OSError:
        pass
"""


@contextmanager
def squatter(way: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-c", SQUATTER, way, str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout and process.stdout.readline() == "holds\n"
            yield process
        finally:
            process.kill()
