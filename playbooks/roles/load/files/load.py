"""Run a client of a server with a given number of connections, or search for the maximum within a p99 latency limit.

Imported by a workload's own client.py on the host. Standard library only, Python 3.6 and later. Prints the client's
output between marks that parsers/kit/load.py reads. All loads are closed loops. A connection sends its next request
after the previous answer, so a stalled server gets fewer requests.
"""

import argparse
import glob
import os
import re
import resource
import signal
import subprocess
import sys

COARSE = 1.1  # ratio of the lowest failing to the highest passing number at which the search ends
CONFIRM = 4  # maximum number of confirming runs, each with a tenth fewer connections


def options(**more):
    """Parse the command line. ``more``: the types of further options by name."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", choices=["server", "client", ""], default="")
    parser.add_argument("--clients", type=int, default=0)
    parser.add_argument("--limit", type=float, default=0.0, help="p99 limit in seconds; search the maximum within it")
    parser.add_argument("--most", type=int, default=1024, help="connections")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--probe", type=float, default=2.0, help="seconds of each step of the search")
    for name, kind in more.items():
        parser.add_argument("--" + name.replace("_", "-"), type=kind, required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    chosen = parser.parse_args()
    chosen.command = chosen.command[1:] if chosen.command[:1] == ["--"] else chosen.command
    if chosen.half:
        pin(chosen.half)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))  # each connection needs a file descriptor
    return chosen


def halves(siblings):
    """Return two halves of the cores as sets of CPUs, from the sibling lists of all CPUs. None for a single core."""
    cores = sorted({tuple(sorted(group)) for group in siblings})
    if len(cores) < 2:
        return None
    middle = len(cores) // 2
    return {c for core in cores[:middle] for c in core}, {c for core in cores[middle:] for c in core}


def cpus(text):
    """Parse a kernel's list of CPUs, such as "0-3,8"."""
    ends = [part.split("-") for part in text.strip().split(",")]
    return [cpu for end in ends for cpu in range(int(end[0]), int(end[-1]) + 1)]


def pin(half):
    """Pin this process and its children to one half of its allowed cores, because both ends run on this host."""
    mine = os.sched_getaffinity(0)
    siblings = []
    for path in glob.glob("/sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list"):
        with open(path) as source:
            siblings.append([cpu for cpu in cpus(source.read()) if cpu in mine])
    two = halves([group for group in siblings if group] or [[cpu] for cpu in mine])
    if two:
        os.sched_setaffinity(0, two[0] if half == "server" else two[1])


def threads(clients):
    """Return the number of threads of a client: one per allowed CPU, and at most one per connection."""
    return max(1, min(clients, len(os.sched_getaffinity(0))))


def search(probe, limit, maximum):
    """Return the number of connections with the highest rate within ``limit``, or None if all exceed it.

    ``probe`` returns the rate and 99th percentile for a number. Double the number while it meets the limit, then
    bisect. Try a failing number twice, because one stall of the host does not show the limit of the server.
    """
    rates, broken, clients = {}, None, 1
    while True:
        rate, p99 = probe(clients)
        if p99 > limit:
            rate, p99 = probe(clients)
        if p99 <= limit:
            rates[clients] = rate
        else:
            broken = clients
        kept = max(rates, default=0)
        if broken is None:
            if kept >= maximum:
                break
            clients = min(2 * kept, maximum)
        elif not kept or broken <= max(kept + 1, COARSE * kept):
            break
        else:
            clients = (kept + broken) // 2
    return max(rates, key=rates.get) if rates else None


class Client:
    """Run a client.

    ``command_of`` returns the argument vector for a number of connections, seconds and the last rate. ``read`` returns
    the rate (1/s) and 99th percentile (s) in the output, or None. ``rounded`` returns a number of connections that the
    client supports.
    """

    def __init__(self, chosen, command_of, read, rounded=int):
        self.chosen, self.command_of, self.read, self.rounded = chosen, command_of, read, rounded
        self.rate = 0.0

    def run(self, phase, clients, seconds):
        """Run the client once, and print its output between marks. If it fails, exit with its last line."""
        clients = self.rounded(clients)
        limit = ", limit %g s" % self.chosen.limit if self.chosen.limit else ""
        print("fleetmark: %s of %d clients%s" % (phase, clients, limit), flush=True)
        argv = self.command_of(clients, seconds, self.rate)
        ran = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        text = ran.stdout.decode(errors="replace")
        sys.stdout.write(text if text.endswith("\n") or not text else text + "\n")
        figures = self.read(text) if ran.returncode == 0 else None
        print("fleetmark: end of %s, exit status %d" % (phase, ran.returncode), flush=True)
        if figures is None:
            lines = [line for line in (ran.stderr.decode(errors="replace") or text).splitlines() if line.strip()]
            sys.exit(lines[-1] if lines else "the client printed nothing")
        self.rate = figures[0]
        return figures

    def go(self):
        """Perform the runs that the command line selects."""
        chosen = self.chosen
        if not chosen.limit:
            self.run("run", chosen.clients, chosen.seconds)
            return
        clients = search(lambda n: self.run("probe", n, chosen.probe), chosen.limit, chosen.most)
        for _ in range(CONFIRM):
            if not clients:
                break
            if self.run("run", clients, chosen.seconds)[1] <= chosen.limit:
                return
            clients = clients * 9 // 10
        print("fleetmark: the limit of %g s is not kept" % chosen.limit)


def seconds_of(text):
    """Parse a time with its unit (196.00us, 2.97ms, 1.2s) into seconds, or return None if it is invalid."""
    match = re.match(r"([0-9]+(?:\.[0-9]+)?)(us|ms|s|m|h)$", text)
    return (
        float(match.group(1)) * {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}[match.group(2)] if match else None
    )


def serve(argv, stop=signal.SIGTERM):
    """Run a server until this process gets SIGTERM, then send it ``stop``. Exit with the server's status."""
    child = subprocess.Popen(argv)
    signal.signal(signal.SIGTERM, lambda *_: child.send_signal(stop))
    sys.exit(child.wait())


if __name__ == "__main__":  # "load.py --half server -- COMMAND" runs a server that only needs pinning
    words = options().command
    os.execvp(words[0], words)
