"""Starts jobs on this machine the way a campaign starts them on a host, and follows them to their end."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fleetmark.hosts.agent import BOOT, answer_of, payload


def step(number: int, argv: Sequence[str], **more: Any) -> dict[str, Any]:
    """A step as jobs carry it, with what is usual left as usual."""
    usual = {"workload": "w", "case": f"c{number}", "repeat": 0, "env": {}, "timeout_s": 120, "expect_s": 1}
    return {"id": f"{number:05d}", "argv": list(argv), **usual, **more}


class Job:
    """One job under ``work``."""

    def __init__(self, work: Path, steps: Sequence[dict[str, Any]], campaign: str = "test") -> None:
        self.folder = work / "jobs" / campaign / "h1"
        self.doc = {
            "campaign": campaign,
            "folder": str(self.folder),
            "work": str(work),
            "owner": "me@here",
            "created": "today",
            "steps": list(steps),
        }

    def start(self, env: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Launch it as a host is sent it, in this process's environment or in ``env``; what it answered."""
        words = [sys.executable, "-c", BOOT]
        ran = subprocess.run(words, input=payload(self.doc), capture_output=True, timeout=120, env=env)
        assert ran.stdout.startswith(b"FLEETMARK"), ran.stderr
        return answer_of(ran.returncode, ran.stdout.decode(), ran.stderr.decode())

    def follow(self, have: Sequence[str] = (), patience: float = 300.0) -> Iterator[tuple[dict[str, Any], Any]]:
        """What the follower says, each with a function that sends it an order; ends after ``over``.

        The parts of a step's files come together with its ``end``, unpacked, as ``contents``.
        """
        follower = subprocess.Popen(
            [sys.executable, str(self.folder / "follow.py"), str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert follower.stdin
        assert follower.stdout
        stdin = follower.stdin

        def send(order: str, step: str | None = None) -> None:
            stdin.write(json.dumps({"order": order, **({"step": step} if step else {})}) + "\n")
            stdin.flush()

        watchdog = threading.Timer(patience, follower.kill)
        watchdog.start()
        try:
            stdin.write(json.dumps({"order": "have", "steps": list(have)}) + "\n")
            stdin.flush()
            contents: dict[str, bytearray] = {}
            for line in follower.stdout:
                doc = json.loads(line)
                if doc["e"] == "part":
                    contents.setdefault(doc["name"], bytearray()).extend(zlib.decompress(base64.b64decode(doc["data"])))
                    continue
                if doc["e"] == "end":
                    assert {name: len(data) for name, data in contents.items()} == doc["files"]
                    doc["contents"], contents = contents, {}
                yield doc, send
                if doc["e"] == "over":
                    return
            raise AssertionError(f"the follower ended without saying over (or took more than {patience} s)")
        finally:
            watchdog.cancel()
            follower.kill()
            follower.wait()
            stdin.close()
            follower.stdout.close()

    def results(self, **kwargs: Any) -> dict[str, dict[str, Any]]:
        """Follow to the end: step id to its result, its unpacked files under ``files``."""
        by_step = {}
        for doc, _ in self.follow(**kwargs):
            if doc["e"] == "end":
                by_step[doc["step"]] = unpack(doc)
        return by_step


def unpack(doc: dict[str, Any]) -> dict[str, Any]:
    files = {name: data.decode() for name, data in doc["contents"].items()}
    return {**json.loads(files.pop("result.json")), "files": files}
