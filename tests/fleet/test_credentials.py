"""Credentials of a download reach only their server: no record, screen, command line or host has them, even after a kill."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.command import FLEETMARK
from tests.fleet.credentials import ELSE, LEAKS, NAME, TOKEN, Server, Watch
from tests.fleet.hosts import Fleet

pytestmark = pytest.mark.fleet


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.hold.set()
    server.http.shutdown()
    server.http.server_close()


class Here:
    """The user's side: a suite that holds the credentials, results, and folders for temporary and cached files."""

    def __init__(self, fleet: Fleet, root: Path, server: Server) -> None:
        self.fleet, self.root, self.server = fleet, root, server
        for name in ("results", "tmp", "cache", "suites"):
            (root / name).mkdir()
        self.env = {
            **os.environ,
            "COLUMNS": "120",
            "FLEETMARK_RESULTS": str(root / "results"),
            "TMPDIR": str(root / "tmp"),
            "XDG_CACHE_HOME": str(root / "cache"),
            "AWS_SECRET_ACCESS_KEY": ELSE,
        }

    def suite(self, **more: Any) -> str:
        digest = hashlib.sha256(self.server.source).hexdigest()
        settings = {"array_elements": 1000000, "ntimes": 3, "threads": 1, "source_sha256": digest, **more}
        doc = {"description": "x", "repeats": 1, "workloads": {"stream": {"set": settings}}}
        file = self.root / "suites" / "s.yml"
        file.write_text(json.dumps(doc))
        return str(file)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [FLEETMARK, "run", "-i", str(self.fleet.inventory), *words],
            capture_output=True,
            text=True,
            env=self.env,
            cwd=self.root,
            timeout=600,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def holds(self, *folders: str, words: list[bytes] = LEAKS) -> list[str]:
        """The files below ``folders`` that hold, or are named by, one of ``words``."""
        files = []
        for file in (f for folder in folders for f in (self.root / folder).rglob("*")):
            held = str(file).encode() + (file.read_bytes() if file.is_file() else b"")
            files += [str(file)] if any(word in held for word in words) else []
        return files

    def on_hosts(self) -> str:
        """The files with credentials on the hosts' disks."""
        word = NAME  # beside every other
        script = f"grep -rlE '{word}|{TOKEN}|S3cr3t' /var/tmp /tmp /root/.ansible /var/log 2>/dev/null; true"
        return "".join(self.fleet.exec(h, ["sh", "-c", script]).stdout for h in self.fleet.names)


@pytest.fixture
def here(fleet: Fleet, tmp_path: Path, server: Server) -> Iterator[Here]:
    yield Here(fleet, tmp_path, server)
    for host in fleet.names:
        fleet.exec(host, ["sh", "-c", "rm -rf /var/tmp/fleetmark-0"])


def test_credentials_go_to_their_server_and_nowhere_else(here: Here) -> None:
    with Watch() as watch:
        done = here.run("--suite", here.suite(source=here.server.url()), "--limit", "h1,h2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All 2 runs passed." in done.stdout
    assert here.holds("results", "tmp", "cache") == []
    assert not any(leak.decode() in done.stdout + done.stderr for leak in LEAKS)
    assert watch.exposed == set()
    assert here.on_hosts() == ""
    campaign = json.loads(next((here.root / "results").glob("*/campaign.json")).read_text())
    shown = f"http://***@127.0.0.1:{here.server.http.server_port}/stream.c?token=***"
    assert campaign["settings"]["stream"]["source"] == shown


def test_refused_credentials_are_not_repeated(here: Here) -> None:
    done = here.run("--suite", here.suite(source=here.server.url("S3cr3t-but-wrong")), "--limit", "h1")
    assert done.returncode == 1
    assert "could not be deployed" in done.stdout and "401" in done.stdout, done.stdout
    assert here.holds("results", "tmp", "cache", words=[*LEAKS, b"S3cr3t"]) == []
    assert "S3cr3t" not in done.stdout + done.stderr and NAME not in done.stdout + done.stderr
    assert here.on_hosts() == ""


def test_a_killed_controller_leaves_no_environment_and_the_credentials_are_given_again(here: Here) -> None:
    url = here.server.url()
    suite = here.suite()
    here.server.hold.clear()
    process = subprocess.Popen(
        [
            FLEETMARK,
            "run",
            "-i",
            str(here.fleet.inventory),
            "--limit",
            "h1",
            "-s",
            suite,
            "--set",
            f"stream.source={url}",
        ],
        env=here.env,
        cwd=here.root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert here.server.requested.wait(600), "nobody fetched it"
        assert list((here.root / "tmp").glob("fleetmark-ansible-*")), "Ansible's folder is there while it works"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        here.server.hold.set()
    left = list((here.root / "tmp").glob("fleetmark-ansible-*"))
    assert left
    assert here.holds("tmp", words=[ELSE.encode()]) == []
    for folder in left:
        assert folder.stat().st_mode & 0o077 == 0
        os.utime(folder, (0, 0))  # as one of an hour ago
    for file in (here.root / "tmp").rglob("secrets.json"):
        assert file.stat().st_mode & 0o077 == 0

    refused = here.run("--resume", "last")
    assert refused.returncode == 2
    assert "the credentials of stream.source are not stored" in refused.stderr
    assert "--set stream.source='http://***@127.0.0.1" in refused.stderr
    done = here.run("--resume", "last", "--set", f"stream.source={url}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert here.holds("results", "tmp", "cache") == []
    assert not list((here.root / "tmp").glob("fleetmark-ansible-*")), "what the killed one left is gone"
