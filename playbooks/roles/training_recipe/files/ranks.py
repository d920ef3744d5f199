"""Read the working time of each rank per step from traces of torch.profiler or from JSON lines. A trace gives the

total over its steps: their time minus the time of collectives without overlapping computation, in which a rank waits
for others. A line is {"step": 12, "rank": 3, "working": 0.4}. Imported by recipe.py. Python 3.6
and later, standard library only.
"""

import glob
import gzip
import json
import os
import re
import statistics

MOST_FILES = 4096
MOST_BYTES = 2 << 30  # maximum bytes of a file, decompressed
MOST_STEPS = 50000
CHUNK = 4 << 20
LONGEST = 64 << 10  # maximum bytes of an event's head
EVENT = re.compile(
    rb'"ph":\s*"X",\s*"cat":\s*"([\w ]{1,40})",\s*"name":\s*"((?:[^"\\]|\\.){1,20000})",\s*"pid":\s*[^,]{1,60},'
    rb'\s*"tid":\s*([^,]{1,60}),\s*"ts":\s*([0-9.]{1,30}),\s*"dur":\s*([0-9.]{1,30})'
)
RANK = re.compile(rb'"distributedInfo":\s*\{[^{}]{0,2000}?"rank":\s*([0-9]{1,7})\b')
STEP = re.compile(rb"ProfilerStep#([0-9]{1,12})$")
COLLECTIVES = (b"nccl", b"rccl", b"oneccl")


def read(pattern, since):
    """Return seconds of work by rank, by step, from the files of ``pattern`` that were written after ``since``."""
    by_step = {}
    for path in sorted(glob.glob(os.path.expanduser(pattern), recursive=True))[:MOST_FILES]:
        try:
            if not os.path.isfile(path) or os.path.getmtime(path) < since:
                continue
            for step, rank, seconds in times(path):
                if step in by_step or len(by_step) < MOST_STEPS:
                    by_step.setdefault(step, {})[rank] = seconds
        except (OSError, EOFError, ValueError):
            continue  # the file is incomplete, or has another format
    return by_step


def kept(seconds):
    """Return the seconds of the slowest and of the median rank, by rank, from which the lost time is computed."""
    middle = statistics.median_low(seconds.values())
    slowest = max(seconds, key=seconds.get)
    return {
        rank: seconds[rank] for rank in (slowest, next(r for r in seconds if r != slowest and seconds[r] == middle))
    }


def times(path):
    """Yield (step, rank, seconds of work) of a file."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        head = file.read(CHUNK)
        if b'"traceEvents"' in head or b'"schemaVersion"' in head:
            rank = RANK.search(head)
            result = worked(events(head, file)) if rank else None
            if result:
                yield result[0], int(rank.group(1)), result[1]
            return
        file.seek(0)
        for line in iter(lambda: file.readline(4096), b""):
            entry = entry_of(line)
            if entry:
                yield entry


def entry_of(line):
    """Return (step, rank, seconds) of a JSON line; None for other lines."""
    try:
        document = json.loads(line.decode())
        step, rank, seconds = document["step"], document["rank"], document["working"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    are_counts = all(type(value) is int and 0 <= value < 1 << 50 for value in (step, rank))
    is_time = isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 < seconds < 1e9
    return (step, rank, float(seconds)) if are_counts and is_time else None


def events(head, file):
    """Yield (category, name, thread, begin, end) of a trace, in s, without loading it completely."""
    rest, size = head, len(head)
    while True:
        end = 0
        for match in EVENT.finditer(rest):
            end = match.end()
            begin, length = float(match.group(4)) / 1e6, float(match.group(5)) / 1e6
            yield match.group(1), match.group(2), match.group(3), begin, begin + length
        chunk = file.read(CHUNK)
        size += len(chunk)
        if not chunk or size > MOST_BYTES:
            return
        rest = rest[max(end, len(rest) - LONGEST) :] + chunk


def worked(events):
    """Return (last step, seconds of work per step) of a trace; None if it marks no step."""
    spans, kernels, gloo, operators = {}, [], [], []
    for category, name, thread, begin, end in events:
        step = STEP.match(name)
        if step:
            if category == b"user_annotation":
                spans[int(step.group(1))] = begin, end
        elif category == b"kernel":
            kernels.append((any(word in name.lower() for word in COLLECTIVES), begin, end))
        elif name.startswith(b"gloo:"):
            gloo.append((thread, begin, end))
        elif category == b"cpu_op" and name.startswith(b"aten::"):
            operators.append((thread, begin, end))
    if not spans:
        return None
    if kernels:
        communication = [(begin, end) for is_collective, begin, end in kernels if is_collective]
        computing = [(begin, end) for is_collective, begin, end in kernels if not is_collective]
    else:
        threads = {thread for thread, _, _ in gloo}
        communication = [(begin, end) for _, begin, end in gloo]
        computing = [(begin, end) for thread, begin, end in operators if thread not in threads]
    first, last = min(begin for begin, _ in spans.values()), max(end for _, end in spans.values())
    exposed = covered(communication + computing, first, last) - covered(computing, first, last)
    seconds = (last - first - exposed) / len(spans)
    return (max(spans), seconds) if seconds > 0 else None


def covered(spans, first, last):
    """Return the length of the union of ``spans`` from ``first`` to ``last``."""
    total, reached = 0.0, first
    for span in sorted(spans):
        begin, end = max(span[0], reached), min(span[1], last)
        if end > begin:
            total += end - begin
            reached = end
    return total
