"""Drives a client of a server: at one number of connections, or at the most that keep a limit on the 99th percentile.

Imported by a workload's own client.py on the host. Standard library only, Python 3.6 and later. Prints what the client
printed between marks that parsers/kit/load.py reads. All loads are closed loops: a connection sends its next request
when the answer to the last one is there, so a server that stalls is asked less meanwhile.
"""

import argparse
import glob
import os
import re
import resource
import signal
import subprocess
import sys

COARSE = 1.1  # the search ends where the fewest that break the limit are this much more than the most that keep it
CONFIRM = 4  # runs that may break the limit that their probe kept, each with a tenth fewer connections


def options(**more):
    """The command line; ``more``: further option names to type."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", choices=["server", "client", ""], default="")
    parser.add_argument("--clients", type=int, default=0)
    parser.add_argument("--limit", type=float, default=0.0, help="seconds; look for the most within it")
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
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))  # each connection takes a file
    return chosen


def halves(siblings):
    """Two halves of the cores, as sets of CPUs, from the sibling lists of all CPUs; None where there is one core."""
    cores = sorted({tuple(sorted(group)) for group in siblings})
    if len(cores) < 2:
        return None
    middle = len(cores) // 2
    return {c for core in cores[:middle] for c in core}, {c for core in cores[middle:] for c in core}


def cpus(text):
    """A kernel's list of CPUs ("0-3,8") as numbers."""
    ends = [part.split("-") for part in text.strip().split(",")]
    return [cpu for end in ends for cpu in range(int(end[0]), int(end[-1]) + 1)]


def pin(half):
    """Keep this process and its children on one half of the cores it may use: both ends run on this host."""
    mine = os.sched_getaffinity(0)
    siblings = []
    for path in glob.glob("/sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list"):
        with open(path) as source:
            siblings.append([cpu for cpu in cpus(source.read()) if cpu in mine])
    two = halves([group for group in siblings if group] or [[cpu] for cpu in mine])
    if two:
        os.sched_setaffinity(0, two[0] if half == "server" else two[1])


def threads(clients):
    """Threads of a client: one a CPU that it may use, and no more than it has connections."""
    return max(1, min(clients, len(os.sched_getaffinity(0))))


def search(probe, limit, maximum):
    """The number of connections with the highest rate of those that kept ``limit``; None where none did.

    ``probe`` gives a number's rate and 99th percentile. Doubles while the limit is kept, then halves the gap. A number
    that breaks the limit is tried twice: one stall of the host is no limit of the server.
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
    """``command_of`` gives the argument vector for a number of connections, seconds and the last rate; ``read`` the
    rate (1/s) and 99th percentile (s) in what it prints, None where they are not in it; ``rounded`` a number of
    connections that the client can have.
    """

    def __init__(self, chosen, command_of, read, rounded=int):
        self.chosen, self.command_of, self.read, self.rounded = chosen, command_of, read, rounded
        self.rate = 0.0

    def run(self, phase, clients, seconds):
        """One run of the client, printed between marks. Exits where it fails, with its last line on standard error."""
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
        """What the command line asks for."""
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
    """A time with its unit as tools print it (196.00us, 2.97ms, 1.2s), in seconds; None where it is none."""
    match = re.match(r"([0-9]+(?:\.[0-9]+)?)(us|ms|s|m|h)$", text)
    return (
        float(match.group(1)) * {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}[match.group(2)] if match else None
    )


def serve(argv, stop=signal.SIGTERM):
    """Run a server until this process is asked to end (SIGTERM), which it hears as ``stop``; exits with its status."""
    child = subprocess.Popen(argv)
    signal.signal(signal.SIGTERM, lambda *_: child.send_signal(stop))
    sys.exit(child.wait())


if __name__ == "__main__":  # "load.py --half server -- COMMAND": a server that needs no more than to be pinned
    words = options().command
    os.execvp(words[0], words)
