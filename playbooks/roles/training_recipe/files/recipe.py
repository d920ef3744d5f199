"""Run the user's own training, restart it after failures, and print its log with the time of each line:

    recipe.py --case=NAME --framework=NAME --command=SHELL [--env=LINES] [--restarts=N] [--duration=S]
        [--devices=N] [--tokens=N] [--flops=N] [--peak=FLOPS] [--ranks=PATTERN]

Lines of the log follow "@SECONDS ", counted from the start; all other lines are JSON documents. FLEETMARK_ATTEMPT
contains the number of the attempt, from 0. After each attempt, the times of the slowest and the median rank of each
step follow, from the files of PATTERN (ranks.py). After S seconds, the command gets SIGTERM, and the run ends
successfully. Exits with the status of the last attempt. Python 3.6 and later, standard library only.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time

import ranks

LONGEST = 4096  # maximum stored bytes of a line
MOST_BYTES = 14 << 20  # maximum bytes of all lines, as the parser's limit
CLOCK_S = 2.0  # maximum delay of a file system's timestamps
GRACE_S = 60.0  # timeout for the command to end after SIGTERM


class Recorder(object):
    """Write stamped lines and documents, within MOST_BYTES."""

    def __init__(self, out):
        self.out, self.begin, self.size, self.dropped = out, time.monotonic(), 0, 0

    def now(self):
        return round(time.monotonic() - self.begin, 4)

    def say(self, **document):
        self.write(json.dumps(document).encode())

    def line(self, raw):
        text = b"@%.4f " % self.now() + raw.rstrip(b"\r\n")[:LONGEST]
        if self.size + len(text) > MOST_BYTES:
            self.dropped += 1
            return
        self.size += len(text) + 1
        self.write(text)

    def write(self, text):
        self.out.write(text + b"\n")
        self.out.flush()


def environment(lines, attempt):
    env = dict(os.environ, PYTHONUNBUFFERED="1", FLEETMARK_ATTEMPT=str(attempt))
    for line in filter(None, lines.splitlines()):
        name, equals, value = line.partition("=")
        if not (name and equals):
            sys.exit("training_recipe.env: %r is not NAME=VALUE" % line)
        env[name] = value
    return env


def attempt(recorder, options, number, deadline):
    """Run the command once. Return its exit status as shells do, and whether it was ended at the deadline."""
    child = subprocess.Popen(
        ["/bin/sh", "-c", options.command], env=environment(options.env, number), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=bool(deadline),
    )  # fmt: skip
    ended, timers = [], []
    if deadline:
        left = max(0.0, deadline - recorder.now())
        timers = [
            threading.Timer(left, end, (child, signal.SIGTERM, ended)),
            threading.Timer(left + GRACE_S, end, (child, signal.SIGKILL, ended)),
        ]
        for timer in timers:
            timer.daemon = True
            timer.start()
    for raw in iter(lambda: child.stdout.readline(1 << 20), b""):
        recorder.line(raw)
    status = child.wait()
    for timer in timers:
        timer.cancel()
    return (status if status >= 0 else 128 - status), bool(ended)


def end(child, number, ended):
    """Send a signal to the command and its child processes, unless it has ended."""
    if child.poll() is None:
        ended.append(number)
        try:
            os.killpg(child.pid, number)
        except OSError:
            pass  # it ended meanwhile


def main(words):
    parser = argparse.ArgumentParser()
    for name in ("--case", "--framework", "--command"):
        parser.add_argument(name, required=True)
    parser.add_argument("--env", default="")
    parser.add_argument("--ranks", default="")
    parser.add_argument("--restarts", type=int, default=0)
    for name in ("--duration", "--devices", "--tokens", "--flops", "--peak"):
        parser.add_argument(name, type=float, default=0.0)
    options = parser.parse_args(words)
    recorder = Recorder(sys.stdout.buffer)
    recorder.say(
        tool="training_recipe", case=options.case, framework=options.framework, devices=options.devices,
        tokens=options.tokens, flops=options.flops, peak=options.peak, unix=time.time(),
    )  # fmt: skip
    status = 0
    for number in range(options.restarts + 1):
        recorder.say(attempt=number, at=recorder.now())
        began = time.time()
        status, is_over = attempt(recorder, options, number, options.duration)
        recorder.say(exit=status, at=recorder.now(), ended=is_over)
        for step, seconds in sorted(ranks.read(options.ranks, began - CLOCK_S).items() if options.ranks else ()):
            if len(seconds) > 1:
                recorder.say(step=step, working=ranks.kept(seconds))
        status = 0 if is_over else status
        if status == 0 or (options.duration and recorder.now() >= options.duration):
            break
    recorder.say(end=True, at=recorder.now(), dropped=recorder.dropped)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
