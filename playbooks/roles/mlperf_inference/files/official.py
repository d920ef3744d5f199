"""Run the user's own MLPerf command, and collect the logs that LoadGen meanwhile writes below a folder:

    official.py LOGS COMMAND [ENVIRONMENT]

ENVIRONMENT contains lines of NAME=VALUE. Unchanged logs are ignored. Leaves these files in the current folder:
mlperf_log_summary.txt (all new summaries, each after a line with its name, and every new accuracy.txt),
N-mlperf_log_detail.txt.gz and N-accuracy.txt. Exits with the command's status. Python 3.6 and later, standard library
only.
"""

import glob
import gzip
import os
import re
import shutil
import subprocess
import sys

SUMMARY, DETAIL, ACCURACY = "mlperf_log_summary.txt", "mlperf_log_detail.txt", "accuracy.txt"
# Folders of compliance tests, whose logs are not scores.
COMPLIANCE = re.compile(r"TEST0[1-9].*|compliance", re.IGNORECASE)


def logs_below(folder):
    """Return every log below ``folder`` with its time, size and inode, which change when it is rewritten."""
    logs = {}
    for here, _, names in os.walk(folder):
        for name in {SUMMARY, DETAIL, ACCURACY}.intersection(names):
            path = os.path.join(here, name)
            info = os.stat(path)
            logs[path] = (info.st_mtime_ns, info.st_size, info.st_ino)
    return logs


def run(command, environment):
    """Run the command. Return its exit status, or 128 plus the signal number if it was killed, as shells do."""
    env = dict(os.environ, **dict(line.split("=", 1) for line in environment.splitlines() if "=" in line))
    sys.stdout.flush()
    status = subprocess.run(["/bin/sh", "-c", command], env=env, check=False).returncode
    return status if status >= 0 else 128 - status


def copy(path, out):
    with open(path, "rb") as source:
        shutil.copyfileobj(source, out)


def gather(new, folder):
    """Copy the new logs to the current folder. Return one line for each log."""
    report = []
    summaries, scores = ([path for path in new if os.path.basename(path) == n] for n in (SUMMARY, ACCURACY))
    for path in list(summaries):
        if any(COMPLIANCE.fullmatch(part) for part in os.path.relpath(path, folder).split(os.sep)[:-1]):
            summaries.remove(path)
            report.append("left out, a compliance test: " + path)
    with open(SUMMARY, "wb") as out:
        for path in summaries + scores:
            out.write(b"# " + os.fsencode(path) + b"\n")
            copy(path, out)
            out.write(b"\n")
    for number, path in enumerate(summaries, 1):
        report.append("%d: %s" % (number, path))
        detail = os.path.join(os.path.dirname(path), DETAIL)
        if detail in new:
            with gzip.open("%d-%s.gz" % (number, DETAIL), "wb") as packed:
                copy(detail, packed)
    for number, path in enumerate(scores, 1):
        report.append("accuracy %d: %s" % (number, path))
        shutil.copyfile(path, "%d-%s" % (number, ACCURACY))
    return report


def main(logs, command, environment=""):
    for old in glob.glob("*" + DETAIL + ".gz") + glob.glob("*-" + ACCURACY) + glob.glob(SUMMARY):
        os.unlink(old)
    folder = os.path.expanduser(logs)
    before = logs_below(folder)
    status = run(command, environment)
    try:
        new = sorted(path for path, state in logs_below(folder).items() if before.get(path) != state)
        report = gather(new, folder)
    except OSError as error:
        sys.exit("the logs below %s could not be brought together: %s" % (folder, error))
    sys.stdout.write("".join(line + "\n" for line in report))
    if os.path.getsize(SUMMARY):
        return status
    os.unlink(SUMMARY)
    if status == 0:
        lack = "has no new %s below it" % SUMMARY if os.path.isdir(folder) else "is not a folder on this host"
        sys.exit("the command ended well, but %s %s: set mlperf_inference.logs" % (folder, lack))
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
