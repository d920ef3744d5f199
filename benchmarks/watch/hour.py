"""Watch four real hosts with ``fleetmark watch`` while one is slowed and healed, and record every alert of Prometheus."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.watch import SICK, SUITE, WELL, Monitoring, free_port, watched
from tests.fleet.command import FLEETMARK
from tests.fleet.hosts import SCRIPT, Fleet

HOSTS, FAULTY, COLLECTOR_HOST = 4, "h3", "h1"
EVERY_S, SCRAPE_S, POLL_S = 60, 5, 2.0
INJECTED, HEALED = 1 / 3, 7 / 12  # of the hour: after 20 and after 35 minutes
REFERENCE = "sound"
WEIGHT = 20 * 1024  # cgroup cpu.shares of the hosts: their quotas decide, not other programs of this machine
CLOCK = os.sysconf("SC_CLK_TCK")
Alert = tuple[str, str]  # name and host; "" for the whole fleet


@dataclass(slots=True)
class Log:
    """``firing``: the alerts that are firing. ``events``: what happened, in seconds since the watch began."""

    began: float
    firing: set[Alert] = field(default_factory=set)
    events: list[dict[str, object]] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)

    def add(self, event: str, alert: Alert = ("", "")) -> None:
        seconds = round(time.monotonic() - self.began, 1)
        self.events.append({"s": seconds, "event": event, "alert": alert[0], "host": alert[1]})
        print(self.events[-1], flush=True)

    def take(self, alerts: dict[str, set[str]]) -> None:
        now = {(name, host) for name, hosts in alerts.items() for host in hosts}
        for alert in sorted(now - self.firing):
            self.add("fired", alert)
        for alert in sorted(self.firing - now):
            self.add("resolved", alert)
        self.firing = now
        self.loads.append(os.getloadavg()[0])


def hour(minutes: float) -> dict[str, object]:
    """Watch four hosts; one gets less than half of its CPU quota from a third to seven twelfths of the time."""
    with tempfile.TemporaryDirectory() as name, Fleet(HOSTS) as fleet:
        root = Path(name)
        _prefer(fleet)
        for host in fleet.names:
            fleet.cpu(host, WELL)
        watched(fleet, root)
        _fleetmark(root, "reference", "save", REFERENCE)
        port = free_port()
        collector = _collector(fleet)
        with (root / "watch.log").open("w") as out:
            watch = subprocess.Popen(_words(fleet, root, port), stdout=out, stderr=out, start_new_session=True)
        try:
            _await(port)
            with Monitoring(root, SCRAPE_S, port) as prometheus:
                log, watch_cpu_s, peak_mb = _followed(fleet, prometheus, watch, minutes)
                rounds = prometheus.rounds()
            elapsed = time.monotonic() - log.began
            collector_cpu_s = _collector_cpu_s(fleet)
        finally:
            watch.terminate()
            watch.wait(60)
            collector.terminate()
            collector.wait(60)
            print((root / "watch.log").read_text()[-20000:])
        return {
            "minutes": round(elapsed / 60, 1),
            "load": f"{sum(log.loads) / len(log.loads):.1f} on average, on {os.cpu_count()} CPUs",
            "rounds": rounds,
            "events": log.events,
            **judged(log.events),
            "watch_peak_mb": peak_mb,
            "watch_cpu_share": watch_cpu_s / elapsed,
            "collector_cpu_share": collector_cpu_s / elapsed,
        }


def exhibit(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result with the title and table that docs/reference/performance.md shows."""
    seconds = {True: "none", False: "{:.0f} s"}
    alert, recovery = (seconds[result[n] is None].format(result[n]) for n in ("s_to_alert", "s_to_recovery"))
    rows = [
        ["rounds of the watch", f"{result['rounds']} in {result['minutes']:.0f} min"],
        ["from the fault to its alert", alert],
        ["from the repair to the end of the alert", recovery],
        ["false alarms", f"{result['false_alarms']}"],
        ["peak memory of the watch", f"{result['watch_peak_mb']:.0f} MB"],
        ["CPU of the watch, with its runs over SSH", f"{result['watch_cpu_share']:.1%} of a core"],
        ["CPU of the collector", f"{result['collector_cpu_share']:.3%} of a core"],
    ]
    return result | {
        "section": "How reliable it is",
        "title": "An hour of the watch",
        "description": f"`fleetmark watch` over {HOSTS} hosts, a round each minute, scraped by Prometheus with the alert "
        f"rules of `--install`. One host gets {SICK}% of a core instead of {WELL}% for a quarter of the time. Busy hosts "
        "are also measured. All hosts share one machine with other programs, whose load can cause a false alarm.",
        "command": f"python -m benchmarks.watch --minutes {result['minutes']:.0f}",
        "columns": ["figure", "value"],
        "rows": rows,
    }


def judged(events: Sequence[dict[str, object]]) -> dict[str, object]:
    """Return the seconds to the alert and to its end, and the false alarms.

    An alert is false if it fires before the fault or after its repair, or names another host. An alert without a host is
    the fleet's, and judged by its time alone.
    """
    seconds = {str(e["event"]): float(str(e["s"])) for e in events if not e["alert"]}
    injected, healed = seconds["injected"], seconds["healed"]
    fired = [e for e in events if e["event"] == "fired"]
    false = [e for e in fired if e["host"] not in ("", FAULTY) or not injected <= float(str(e["s"])) <= healed]
    slow = [e for e in events if (e["alert"], e["host"]) == ("FleetmarkSlow", FAULTY) and e not in false]
    first = [float(str(e["s"])) for e in slow if e["event"] == "fired"]
    last = [float(str(e["s"])) for e in slow if e["event"] == "resolved" and float(str(e["s"])) > healed]
    return {
        "s_to_alert": first[0] - injected if first else None,
        "s_to_recovery": last[-1] - healed if last else None,
        "interruptions": max(0, len(first) - 1),
        "false_alarms": len(false),
    }


def _followed(
    fleet: Fleet, prometheus: Monitoring, watch: subprocess.Popen[bytes], minutes: float
) -> tuple[Log, float, float]:
    """Follow the alerts for the given time. Return the log, the watch's CPU seconds, and its peak memory in MB."""
    log, length = Log(time.monotonic()), minutes * 60
    plan = [(INJECTED * length, "injected", SICK), (HEALED * length, "healed", WELL)]
    while (passed := time.monotonic() - log.began) < length:
        if watch.poll() is not None:
            raise RuntimeError("the watch ended")
        if plan and passed >= plan[0][0]:
            _, event, percent = plan.pop(0)
            fleet.cpu(FAULTY, percent)
            log.add(event)
        log.take(prometheus.alerts())
        time.sleep(POLL_S)
    return log, _cpu_s(Path(f"/proc/{watch.pid}/stat").read_text()), _peak_mb(watch.pid)


def _words(fleet: Fleet, root: Path, port: int) -> list[str]:
    suite = root / "core.yml"
    suite.write_text(SUITE)
    words = [FLEETMARK, "watch", "-i", str(fleet.inventory), "-s", str(suite), "--share", "100%", "--max-load", "1000"]
    words += ["--every", f"{EVERY_S}s", "--reference", REFERENCE, "--listen", f"127.0.0.1:{port}"]
    return [*words, "--results", str(root)]


def _fleetmark(root: Path, *words: str) -> None:
    subprocess.run([FLEETMARK, *words, "--results", str(root)], check=True, timeout=600, stdout=subprocess.DEVNULL)


def _prefer(fleet: Fleet) -> None:
    """Give the fleet's cgroup a high weight, where this machine has cgroups."""
    for file, value in (("cpu/{}/cpu.shares", WEIGHT), ("{}/cpu.weight", 10000)):
        path = Path("/sys/fs/cgroup") / file.format(f"fleetmark-{fleet.tag}")
        if path.exists():
            path.write_text(str(value))


def _await(port: int) -> None:
    """Wait until the watch serves requests. Raise TimeoutError after a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).close()
            return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError("the watch does not serve /metrics")


def _collector(fleet: Fleet) -> subprocess.Popen[bytes]:
    """Start the collector as its documentation says, on one of the hosts."""
    agent = Path(__file__).parents[2] / "playbooks" / "agent"
    line = f"exec python3 {agent}/collector.py --interval 60 --output /tmp/fleetmark.prom"
    script = ["bash", str(SCRIPT), "exec", COLLECTOR_HOST, "sh", "-c", line]
    environment = {"PATH": os.environ["PATH"], "TAG": str(fleet.tag)}
    return subprocess.Popen(script, env=environment, start_new_session=True)


def _collector_cpu_s(fleet: Fleet) -> float:
    processes = fleet.exec(COLLECTOR_HOST, ["pgrep", "-f", "collector[.]py --interval"]).stdout.split()
    return sum(_cpu_s(fleet.exec(COLLECTOR_HOST, ["cat", f"/proc/{pid}/stat"]).stdout) for pid in processes)


def _cpu_s(stat: str) -> float:
    """Return the CPU seconds of a process and of its ended children from ``/proc/PID/stat``."""
    return sum(map(int, stat.rpartition(")")[2].split()[11:15])) / CLOCK


def _peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1000
