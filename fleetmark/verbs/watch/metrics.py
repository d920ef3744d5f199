"""Convert the state of a watch to OpenMetrics families."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fleetmark.record.watched import WatchState
from fleetmark.reports.diagnosis import openmetrics
from fleetmark.reports.kit.openmetrics import Family

JUDGES = ("diagnose", "history", "gate")


def families(state: WatchState, judged: Sequence[Family], moment: float) -> list[Family]:
    """Return the metrics of rounds, hosts, open findings and hardware counters.

    ``judged``: the metrics from the round's evaluation.
    """
    rounds = Family("fleetmark_watch_rounds", "Rounds of the watch.", "counter")
    rounds.add(state.rounds)
    campaigns = Family("fleetmark_watch_campaigns", "Campaigns that the watch ran.", "counter")
    campaigns.add(state.campaigns)
    failures = Family("fleetmark_watch_failures", "Rounds whose campaign could not run.", "counter")
    failures.add(state.failures)
    last = Family("fleetmark_watch_last_round_timestamp_seconds", "End of the last round, in seconds since 1970.")
    last.add(round(moment, 3))
    hosts = Family("fleetmark_watch_hosts", "Hosts by their state in the last round: idle, busy, unreachable.")
    by_status = Counter(host.status for host in state.hosts.values())
    for status in ("idle", "busy", "unreachable"):
        hosts.add(by_status[status], {"status": status})
    open_ = Family("fleetmark_watch_open_findings", "Open findings, by the command that shows them.")
    by_source = Counter(f.source for f in state.findings)
    for source in JUDGES:
        open_.add(by_source[source], {"source": source})
    slow = openmetrics.findings((f.labels, f.deficit) for f in state.findings if f.source == "diagnose")
    return [rounds, campaigns, failures, last, hosts, open_, slow, *_hardware(state), *judged]


def _hardware(state: WatchState) -> list[Family]:
    errors = Family("fleetmark_host_errors", "Errors and throttling events counted by a host.", "counter")
    gauges = Family("fleetmark_host_state", "States of devices, such as the width of a PCIe link.")
    for name, host in state.hosts.items():
        for device, counts in host.counters.items():
            for counter, value in counts.items():
                errors.add(value, {"host": name, "device": device, "name": counter})
        for event, devices in host.events.items():
            for device, value in devices.items():
                errors.add(value, {"host": name, "device": f"kernel:{device}", "name": event})
        for device, values in host.gauges.items():
            for gauge, value in values.items():
                gauges.add(value, {"host": name, "device": device, "name": gauge})
    return [errors, gauges]
