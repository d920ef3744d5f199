"""Run wrk with a number of connections: client.py OPTIONS -- wrk URL"""

import re

import load


def command_of(clients, seconds, _):
    """Return whole seconds, because wrk does not accept fractions."""
    options = ["-t", str(load.threads(clients)), "-c", str(clients), "-d", "%ds" % max(1, round(seconds)), "--latency"]
    return [chosen.command[0], *options, *chosen.command[1:]]


def read(text):
    """Return the rate, and the 99th percentile in its own unit."""
    rate = re.search(r"^Requests/sec: *([0-9.]+)$", text, re.MULTILINE)
    p99 = re.search(r"^ +99% +(\S+)$", text, re.MULTILINE)
    latency = load.seconds_of(p99.group(1)) if p99 else None
    return (float(rate.group(1)), latency) if rate and latency is not None else None


chosen = load.options()
# All threads of wrk have the same number of connections; wrk silently drops the rest.
load.Client(chosen, command_of, read, rounded=lambda clients: clients - clients % load.threads(clients)).go()
