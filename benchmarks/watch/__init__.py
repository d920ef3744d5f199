"""Watch real hosts for an hour while a fault is injected and healed, and read the alerts of a real Prometheus.

``python -m benchmarks.watch [--minutes 60]`` needs root (network namespaces) and Debian's package prometheus.
``python -m benchmarks.watch collector`` measures the CPU time of the collector between campaigns.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
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
from fleetmark.verbs.watch import install
from tests.fleet.command import FLEETMARK
from tests.fleet.hosts import Fleet

LIMIT = 0.001  # of one core, for the collector
PATIENCE_S = 60.0
WELL, SICK = 20, 8  # percent of a core
SUITE = """
description: hashes on one core of each host
repeats: 3
workloads:
  openssl_speed: {set: {algorithms: [sha256], processes: [1], seconds: 1}}
"""


class Monitoring:
    """Serve the record in ``root``, and let Prometheus scrape it with the rules that ``watch --install`` writes."""

    def __init__(self, root: Path, interval_s: int) -> None:
        self.root, self.interval_s = root, interval_s

    def __enter__(self) -> Self:
        self.server = serve.serve(self.root, "127.0.0.1", 0, None, Language())
        threading.Thread(target=self.server.run, daemon=True).start()
        folder = self.root / "prometheus"
        install.write(
            folder,
            install.contents(
                watch=["fleetmark"], serve=["fleetmark"], every_s=60, folder=folder, user="", becomes=False
            ),
        )
        config = (folder / "prometheus.yml").read_text()
        config = config.replace("127.0.0.1:8300", f"127.0.0.1:{self.server.effective_port}")
        (folder / "prometheus.yml").write_text(config.replace("30s", f"{self.interval_s}s"))
        self.port = _free_port()
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


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def hour(minutes: float) -> dict[str, object]:
    """Watch four hosts; h2 has less than half of its CPU time in the middle third. Return when the alert fired and ended."""
    began, events = time.monotonic(), []
    with tempfile.TemporaryDirectory() as name, Fleet(4) as fleet, Monitoring(Path(name), 5) as prometheus:
        for host in fleet.names:
            fleet.cpu(host, WELL)
        is_sick, fires, rounds = False, False, 0
        while (passed := time.monotonic() - began) < minutes * 60:
            if (1 / 3 <= passed / (minutes * 60) < 2 / 3) != is_sick:
                is_sick = not is_sick
                fleet.cpu("h2", SICK if is_sick else WELL)
                events.append({"s": round(passed), "event": "injected" if is_sick else "healed"})
            watched(fleet, Path(name))
            rounds += 1
            prometheus.wait_for(lambda _: True, rounds)
            time.sleep(12)  # two scrapes and evaluations
            hosts = prometheus.alerts().get("FleetmarkSlow", set())
            if bool(hosts) != fires:
                fires = bool(hosts)
                event = f"alert: {', '.join(sorted(hosts))}" if fires else "recovered"
                events.append({"s": round(time.monotonic() - began), "event": event})
    return {"minutes": minutes, "rounds": rounds, "events": events}


def collector(readings: int = 50) -> dict[str, object]:
    """Return the CPU time of one reading on this machine, and the share of a core at one reading a minute."""
    with tempfile.TemporaryDirectory() as name:
        for file in ("collector.py", "nic_counters.py"):
            (Path(name) / file).write_bytes(agent_source(file))
        loop = f"for _ in range({readings}): collector.collect()"
        text = f"import collector,time\n{loop}\nprint(time.process_time()/{readings})"
        done = subprocess.run(
            [sys.executable, "-c", text], cwd=name, capture_output=True, text=True, check=True, env={**os.environ}
        )
    seconds = float(done.stdout)
    return {"cpu_s": seconds, "share_of_core": seconds / 60, "limit": LIMIT, "kept": seconds / 60 <= LIMIT}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=["hour", "collector"], default="hour")
    parser.add_argument("--minutes", type=float, default=60.0)
    options = parser.parse_args()
    if options.part == "hour" and shutil.which("prometheus") is None:
        sys.exit("prometheus is not installed: apt-get install prometheus")
    print(json.dumps(collector() if options.part == "collector" else hour(options.minutes), indent=1))
