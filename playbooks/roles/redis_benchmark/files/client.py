"""Run redis-benchmark with a number of connections: client.py OPTIONS -- redis-benchmark -h HOST -p PORT"""

import load

FIRST = 10000  # requests of the first probe, before a rate is known
KEYS = 100000


def command_of(clients, seconds, rate):
    """Return the number of requests for ``seconds``, from the last run's rate: redis-benchmark accepts no duration."""
    return [
        *chosen.command,
        *("-t", chosen.test, "-c", str(clients), "-n", str(max(FIRST, clients, int(rate * seconds)))),
        *("-P", str(chosen.pipeline), "-d", str(chosen.size), "-r", str(KEYS), "--threads", str(load.threads(clients))),
        *("--csv",),
    ]


def read(text):
    """Return the rate and 99th percentile in the last row of the CSV."""
    row = text.strip().splitlines()[-1].split(",") if text.strip() else []
    try:
        return float(row[1].strip('"')), float(row[6].strip('"')) / 1e3
    except (IndexError, ValueError):
        return None


chosen = load.options(test=str, pipeline=int, size=int)
client = load.Client(chosen, command_of, read)
if not chosen.limit:
    client.run("probe", chosen.clients, 0)
client.go()
