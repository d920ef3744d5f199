"""Run memcaslap with a number of connections: client.py OPTIONS -- memcaslap -s HOST:PORT"""

import re

import load


def command_of(clients, seconds, _):
    """Use whole seconds, and a thousand keys per connection, so that 1,024 connections fit into the server's memory."""
    time = "%ds" % max(1, round(seconds))
    threads = load.threads(clients)
    return [
        *chosen.command,
        "-T",
        str(threads),
        "-c",
        str(clients),
        "-w",
        "1k",
        "-X",
        str(chosen.size),
        "-t",
        time,
        "-S",
        time,
    ]


def read(text):
    """Return the rate, and the power of two that 99% of the latencies stay below."""
    rate = re.search(r" TPS: ([0-9]+) ", text)
    block = text.rpartition("Total Statistics (")[2].partition("Log2 Dist:")[2].partition("cmd_get")[0]
    bins = {}
    for line in block.splitlines():
        first, colon, counts = line.partition(":")
        if colon and first.strip().isdigit():
            bins.update({int(first) + n: int(count) for n, count in enumerate(counts.split())})
    below, total = 0, sum(bins.values())
    for power in sorted(bins):
        below += bins[power]
        if rate and total and below >= 0.99 * total:
            return float(rate.group(1)), 2.0**power * 1e-6
    return None


chosen = load.options(size=int)
# memcaslap starts only if all threads have the same number of connections.
load.Client(chosen, command_of, read, rounded=lambda clients: clients - clients % load.threads(clients)).go()
