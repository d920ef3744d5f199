"""Run the user's own training, and collect the logs that it writes below a folder:

    training.py --command=SHELL [--logs=FOLDER] [--env=LINES] [--seeds=A,B,...]

LINES are NAME=VALUE. FLEETMARK_REPEAT selects one of the seeds, which becomes SEED. FOLDER may contain variables
($NAME). Without FOLDER, the command's own output is the log, and the command replaces this program.

Older files below FOLDER are ignored. If a log grew, only the added part counts. The folder ./collected gets
mllog.txt.gz and every new text file as N-NAME.gz. mllog.txt.gz has the MLPerf lines of all new logs, each between a
line with the log's name and the log's last line. Exits with the command's status. Python 3.6 and later, standard
library only.
"""

import argparse
import gzip
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import zlib

OUT, MLLOG = "collected", "mllog.txt.gz"
MARK = re.compile(rb":::(?:ML|SYSJSON)")
GZIP = b"\x1f\x8b"
SPAN = 4096  # number of bytes at both ends of a file to compare, to detect changes
LONGEST = 1 << 20  # maximum bytes of a line; longer lines are truncated
MOST_FILES, MOST_BYTES = 100, 256 << 20  # limits of collected files
GRACE_S = 1.0  # timeout for the command after SIGTERM; of the runner's 3 s, the rest is for collecting logs
UNREADABLE = (OSError, EOFError, zlib.error)


class TerminatedError(Exception):
    """Report SIGTERM, which means that the training took too long."""


# ------------------------------------------------------------ the command


def environment(lines, seeds):
    """Return the command's environment."""
    env = dict(os.environ)
    for line in filter(None, lines.splitlines()):
        name, equals, value = line.partition("=")
        if not (name and equals):
            sys.exit("mlperf_training.env: %r is not NAME=VALUE" % line)
        env[name] = value
    repeat = int(env["FLEETMARK_REPEAT"])
    if len(seeds) > repeat:
        env["SEED"] = seeds[repeat]
    elif seeds:
        message = "mlperf_training.seeds names %d seeds, and this is run %d: give as many seeds as there are repeats"
        sys.exit(message % (len(seeds), repeat + 1))
    return env


def run(command, env):
    """Run the command. Return its exit status, or 128 plus the signal number if it was killed, as shells do."""

    def on_sigterm(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise TerminatedError

    sys.stdout.flush()
    child = subprocess.Popen(["/bin/sh", "-c", command], env=env)
    try:
        signal.signal(signal.SIGTERM, on_sigterm)
        status = child.wait()
    except TerminatedError:  # the command gets SIGTERM too, as it is in the same process group
        try:
            status = child.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            status = child.wait()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the remaining work is short
    return status if status >= 0 else 128 - status


# ------------------------------------------------------------ new files


def files_below(folder):
    """Return the path and size of every file below ``folder`` by device and inode, so that each counts once."""
    files = {}
    for here, folders, names in os.walk(folder):
        folders.sort()
        for path in [os.path.join(here, name) for name in sorted(names)]:
            try:
                info = os.stat(path)
            except OSError:
                continue  # a dangling link, or a file that disappeared meanwhile
            if stat.S_ISREG(info.st_mode):  # opening a pipe would block
                files.setdefault((info.st_dev, info.st_ino), (path, info.st_size))
    return files


def ends(path, size):
    """Return the first and last of the first ``size`` bytes of a file, or None if they cannot be read."""
    try:
        with open(path, "rb") as file:
            head = file.read(min(size, SPAN))
            file.seek(max(size - SPAN, 0))
            return head + file.read(min(size, SPAN))
    except OSError:
        return None


def remember(folder):
    """Return the current files below ``folder`` in the form that ``written`` expects."""
    return {inode: (size, ends(path, size)) for inode, (path, size) in files_below(folder).items()}


def written(folder, before):
    """Return the paths of new, rewritten and grown files, sorted, with the offset of the new content."""
    result = []
    for inode, (path, size) in files_below(folder).items():
        old_size, old_ends = before.get(inode, (0, b""))
        grew = size >= old_size and ends(path, old_size) == old_ends
        start = old_size if grew else 0
        if size > start:
            result.append((path, start))
    return sorted(result)


# ------------------------------------------------------------ content of new files


def lines(source):
    return iter(lambda: source.readline(LONGEST), b"")


def extract(path, start, out):
    """Write the MLPerf lines of a file to ``out``. Return whether there are any, or None if it is not text."""
    with open(path, "rb") as raw:
        raw.seek(start)
        source = gzip.GzipFile(fileobj=raw) if raw.peek(2).startswith(GZIP) else raw
        if b"\0" in source.peek(SPAN)[:SPAN]:
            return None
        some, last = False, b""
        try:
            for line in lines(source):
                if MARK.search(line):
                    if not some:
                        out.write(b"# " + os.fsencode(path) + b"\n")
                    some, last = True, b""
                    out.write(line if line.endswith(b"\n") else line + b"\n")
                elif not line.isspace():
                    last = line
        finally:
            if some:  # the last line often says why a run ended
                out.write(last if not last or last.endswith(b"\n") else last + b"\n")
        return some


def pack(path, start, target):
    """Copy a file from offset ``start`` and compress it, unless it is compressed already."""
    with open(path, "rb") as source:
        source.seek(start)
        packed = source.peek(2).startswith(GZIP)
        with open(target + ".part", "wb") if packed else gzip.open(target + ".part", "wb", 6) as out:
            shutil.copyfileobj(source, out)
    os.rename(target + ".part", target)  # a collected file is complete even if this process is killed


def collect(new):
    """Collect new files in OUT. Return whether there are MLPerf lines, and the files that cannot be read."""
    os.makedirs(OUT)
    mllog = os.path.join(OUT, MLLOG)
    bad, texts = [], []
    with gzip.open(mllog + ".part", "wb", 6) as out:
        for path, start in new:
            offset = out.tell()
            try:
                some = extract(path, start, out)
            except UNREADABLE as error:
                bad.append("%s: %s" % (path, getattr(error, "strerror", None) or error))
                some = out.tell() > offset
            if some is not None:
                texts.append((not some, path, start))
    logs = [path for other, path, _ in texts if not other]
    if logs:
        os.rename(mllog + ".part", mllog)
    else:
        os.unlink(mllog + ".part")
    for line in bad + bring(sorted(texts)):
        sys.stdout.write(line + "\n")
    return bool(logs), bad


def bring(texts):
    """Compress text files, logs first, within the limits. Return one line for each file."""
    report = []
    room = MOST_BYTES
    for number, (_, path, start) in enumerate(texts, 1):
        try:
            size = os.path.getsize(path) - start
            if number > MOST_FILES or size > room:
                report.append("not brought back whole: " + path)
                continue
            room -= size
            name = re.sub(r"[^\w.+-]", "_", os.path.basename(path), flags=re.ASCII)[-100:]
            pack(path, start, os.path.join(OUT, "%d-%s%s" % (number, name, "" if name.endswith(".gz") else ".gz")))
            report.append("%d: %s" % (number, path))
        except OSError as error:
            report.append("not brought back, %s: %s" % (error.strerror, path))
    return report


def why_none(folder, bad):
    """Return why a successful command left no log, and what to do."""
    if not os.path.isdir(folder):
        return "%s is not a folder on this host: set mlperf_training.logs to where it writes its logs" % folder
    return (
        "no new MLPerf log below %s%s: set mlperf_training.logs to where it writes them, and let it end only when "
        "the training has (sbatch --wait)" % (folder, " (%s)" % bad[0] if bad else "")
    )


def main(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", required=True)
    for name in ("--logs", "--env", "--seeds"):
        parser.add_argument(name, default="")
    options = parser.parse_args(words)
    env = environment(options.env, options.seeds.split(",") if options.seeds else [])
    if not options.logs:
        os.execve("/bin/sh", ["/bin/sh", "-c", options.command], env)
    os.environ.update(env)
    folder = os.path.expandvars(os.path.expanduser(options.logs))
    shutil.rmtree(OUT, ignore_errors=True)
    before = remember(folder)
    status = run(options.command, env)
    try:
        some, bad = collect(written(folder, before))
    except OSError as error:
        sys.exit("the logs below %s could not be brought together: %s" % (folder, error))
    if not some and status == 0:
        sys.exit("the command ended well, but %s" % why_none(folder, bad))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
