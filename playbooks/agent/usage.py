"""Report who else uses this host: runnable threads, users at a terminal, and TCP ports on which something listens.

Standard library only, Python 3.6 and later. ``root`` is the parent folder of /proc and /run.
"""

import glob
import os
import re
import struct

INITIAL = "pid:[4026531836]"  # the initial PID namespace, include/linux/proc_ns.h
LISTENS = "0A"
MOST_PORTS = 1000


def read(path):
    """Return the text of a small file, or nothing if it cannot be read."""
    try:
        with open(path, errors="replace") as file:
            return file.read(1 << 20)
    except (OSError, ValueError):
        return ""


def running(root=""):
    """Return the number of runnable threads besides this one; None in a container, whose kernel counts those of all."""
    try:
        if os.readlink(root + "/proc/self/ns/pid") != INITIAL:
            return None
    except OSError:
        return None
    threads = re.match(r"(?:\S+ ){3}(\d+)/", read(root + "/proc/loadavg"))
    return max(0, int(threads.group(1)) - 1) if threads else None


def sessions(root=""):
    """Return the number of users at a terminal, by logind, or else by utmp(5); 0 if the host has neither."""
    folder = root + "/run/systemd/sessions"
    if os.path.isdir(folder):  # a session without a terminal may be the one that asks
        files = [read(path) for path in glob.glob(folder + "/*") if not path.endswith(".ref")]
        return sum(1 for file in files if re.search("^CLASS=user", file, re.M) and re.search("^TTY=.", file, re.M))
    try:
        with open(root + "/run/utmp", "rb") as file:
            data = file.read(1 << 20)
    except OSError:
        return 0
    # A record of type 7 is a user process.
    size = 384 if len(data) % 384 == 0 else 400
    return sum(1 for n in range(0, len(data) - 1, size) if struct.unpack_from("=h", data, n)[0] == 7)


def ports(root=""):
    """Return the TCP ports that other machines can reach, in order."""
    numbers = set()
    for name in ("tcp", "tcp6"):
        for line in read(root + "/proc/net/" + name).splitlines()[1:]:
            fields = line.split()
            if len(fields) > 3 and fields[3] == LISTENS and not is_loopback(fields[1].partition(":")[0]):
                numbers.add(int(fields[1].rpartition(":")[2], 16))
    return sorted(numbers)[:MOST_PORTS]


def is_loopback(address):
    """Return whether an address is 127.0.0.0/8 or ::1, as /proc/net/tcp writes it: words in the host's byte order."""
    words = [address[n : n + 8] for n in range(0, len(address), 8)]
    if words[:-1] in ([], ["00000000", "00000000", "FFFF0000"], ["00000000", "00000000", "0000FFFF"]):
        return "7F" in (words[-1][:2], words[-1][-2:])  # of either byte order
    return words[:3] == ["00000000"] * 3 and words[3] in ("01000000", "00000001")
