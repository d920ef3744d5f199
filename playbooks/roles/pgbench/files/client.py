"""Run pgbench with a number of connections: client.py OPTIONS --scale N --script tpcb-like --address A --port P
-- BIN
"""

import glob
import os
import re
import subprocess
import sys

import load

LOG = "transactions"


def program(name, *words):
    connection = ["-h", chosen.address, "-p", str(chosen.port), "-U", "bench"]
    return [os.path.join(chosen.command[0], name), *connection, *words]


def prepare():
    """Create tables at the scale, unless the server has them from an earlier case."""
    count = program("psql", "-X", "-t", "-A", "-c", "SELECT count(*) FROM pgbench_branches", "bench")
    ran = subprocess.run(count, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if ran.stdout.strip() != str(chosen.scale).encode():
        fill = program("pgbench", "-i", "-q", "-I", "dtGvp", "-s", str(chosen.scale), "bench")
        ran = subprocess.run(fill, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if ran.returncode:
            sys.exit((ran.stderr.decode(errors="replace").strip() or "pgbench -i printed nothing").splitlines()[-1])


def command_of(clients, seconds, _):
    """Return the command with a log of every transaction, because pgbench itself prints no percentiles."""
    for path in glob.glob(LOG + ".*"):
        os.unlink(path)
    options = ["-b", chosen.script, "-M", "prepared", "-c", str(clients), "-j", str(load.threads(clients))]
    return program("pgbench", *options, "-T", "%d" % max(1, round(seconds)), "-l", "--log-prefix", LOG, "bench")


def read(text):
    """Return the rate, and the 99th percentile from the log; prints the percentiles for the parser."""
    rate = re.search(r"^tps = ([0-9.]+) \((?:without|excluding)", text, re.MULTILINE)
    times = []
    for path in glob.glob(LOG + ".*"):
        with open(path) as source:
            times += [int(words[2]) for words in map(str.split, source) if words[2].isdigit()]
        os.unlink(path)
    if not rate or not times:
        return None
    times.sort()
    within = {share: times[min(len(times) - 1, int(len(times) * share / 100))] * 1e-6 for share in (50, 95, 99)}
    for share, seconds in within.items():
        print("fleetmark: %d%% of %d transactions within %.6f s" % (share, len(times), seconds), flush=True)
    return float(rate.group(1)), within[99]


chosen = load.options(scale=int, script=str, address=str, port=int)
prepare()
load.Client(chosen, command_of, read).go()
