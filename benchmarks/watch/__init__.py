"""Watch real hosts while a fault is injected and healed, and read the alerts of a real Prometheus.

``python -m benchmarks.watch [--minutes 60]`` needs root (network namespaces) and Debian's prometheus package. It takes
this machine's lock unless it runs under ``unshare -m sh -c 'mount -t tmpfs tmpfs /var/tmp; exec ...'``.
``python -m benchmarks.watch collector`` measures the CPU time of the collector between campaigns.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from fleetmark.hosts.agent import agent_source
from fleetmark.reports.kit.language import Language
from fleetmark.verbs import serve
from fleetmark.verbs.serve.pages import Pages
from fleetmark.verbs.watch import install
from tests.fleet.command import FLEETMARK
from tests.fleet.hosts import Fleet

PATIENCE_S = 60.0
LIMIT = 0.001  # of one core, for the collector
WELL, SICK = 20, 8  # percent of a core
SUITE = """
description: hashes on one core of each host
repeats: 3
workloads:
  openssl_speed: {set: {algorithms: [sha256], processes: [1], seconds: 1}}
"""


class Monitoring:
    """Let Prometheus scrape the record in ``root`` with the rules that ``watch --install`` writes.

    ``port``: where a watch serves the record already; none: it is served here.
    """

    def __init__(self, root: Path, interval_s: int, port: int | None = None) -> None:
        self.root, self.interval_s, self.served = root, interval_s, port

    def __enter__(self) -> Self:
        if self.served is None:
            self.server = serve.serve(Pages(self.root, Language()), "127.0.0.1", 0, None)
            threading.Thread(target=self.server.run, daemon=True).start()
        folder = self.root / "prometheus"
        install.write(
            folder,
            install.contents(
                watch=["fleetmark"], serve=["fleetmark"], every_s=60, folder=folder, user="", becomes=False
            ),
        )
        config = (folder / "prometheus.yml").read_text()
        config = config.replace("127.0.0.1:8300", f"127.0.0.1:{self.served or self.server.effective_port}")
        (folder / "prometheus.yml").write_text(config.replace("30s", f"{self.interval_s}s"))
        self.port = free_port()
        with (folder / "log").open("w") as log:
            self.process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={folder}/prometheus.yml",
                    f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                ],
                stdout=log,
                stderr=log,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        self.process.wait(30)
        if self.served is None:
            self.server.close()

    def ask(self, path: str) -> dict[str, object]:
        """Return the data of an answer of Prometheus's API; nothing while it starts."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}", timeout=10) as answer:
                data: dict[str, object] = json.load(answer)["data"]
                return data
        except OSError:
            return {}

    def rounds(self) -> int:
        """Return the number of rounds that Prometheus has seen."""
        result = self.ask("query?query=fleetmark_watch_rounds_total").get("result")
        return int(result[0]["value"][1]) if isinstance(result, list) and result else 0

    def alerts(self) -> dict[str, set[str]]:
        """Return the hosts of each firing alert."""
        hosts_by_alert: dict[str, set[str]] = {}
        alerts = self.ask("alerts").get("alerts")
        for alert in alerts if isinstance(alerts, list) else []:
            if alert["state"] == "firing":
                hosts_by_alert.setdefault(alert["labels"]["alertname"], set()).add(alert["labels"].get("host", ""))
        return hosts_by_alert

    def wait_for(self, holds: Callable[[dict[str, set[str]]], bool], rounds: int) -> dict[str, set[str]]:
        """Return the alerts once Prometheus has seen this many rounds and they are as they should be.

        Raise TimeoutError with the alerts otherwise.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            alerts = self.alerts()
            if self.rounds() >= rounds and holds(alerts):
                return alerts
            if time.monotonic() > deadline:
                log = (self.root / "prometheus" / "log").read_text()[-2000:]
                raise TimeoutError(f"after {self.rounds()} rounds: {alerts}\n{log}")
            time.sleep(0.5)


def watched(fleet: Fleet, root: Path) -> int:
    """Run one round over all hosts of a fleet, and return its exit status."""
    suite = root / "core.yml"
    suite.write_text(SUITE)
    words = ["watch", "--once", "-i", str(fleet.inventory), "-s", str(suite), "--share", "100%", "--max-load", "1000"]
    done = subprocess.run(
        [FLEETMARK, *words, "--results", str(root)], capture_output=True, text=True, timeout=600, check=False
    )
    if "Traceback" in done.stderr or done.returncode not in (0, 1):
        raise RuntimeError(done.stdout + done.stderr)
    return done.returncode


def free_port() -> int:
    """Return a TCP port of this machine that is free now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def collector(readings: int = 50) -> dict[str, object]:
    """Return the CPU time of one reading on this machine, and the share of a core at one reading a minute."""
    with tempfile.TemporaryDirectory() as name:
        for file in install.AGENT:
            (Path(name) / file).write_bytes(agent_source(file))
        loop = f"for _ in range({readings}): collector.collect()"
        text = f"import collector,time\n{loop}\nprint(time.process_time()/{readings})"
        done = subprocess.run(
            [sys.executable, "-c", text], cwd=name, capture_output=True, text=True, check=True, env={**os.environ}
        )
    seconds = float(done.stdout)
    share = seconds / 60
    return {
        "cpu_s": seconds,
        "share_of_core": share,
        "limit": LIMIT,
        "kept": share <= LIMIT,
        "section": "What Fleetmark costs",
        "title": "The collector between campaigns",
        "description": f"`collector.py` of `fleetmark watch --install`: the mean of {readings} readings, one reading per "
        "minute. Hosts with more devices need more time.",
        "command": "python -m benchmarks.watch collector",
        "columns": ["figure", "value"],
        "rows": [
            ["CPU time of one reading", f"{1000 * seconds:.1f} ms"],
            ["share of one core", f"{share:.4%}"],
            ["limit", f"{LIMIT:.1%}"],
        ],
    }
