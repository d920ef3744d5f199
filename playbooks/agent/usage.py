"""Report other use of this host: runnable threads, users at terminals, and listening TCP ports.

Standard library only, Python 3.6 and later. ``root`` is the parent folder of /proc and /run.
"""

import glob
import os
import pwd
import re
import struct

INITIAL = "pid:[4026531836]"  # the initial PID namespace, include/linux/proc_ns.h
LISTENS = "0A"
MOST_PORTS, MOST_USERS = 1000, 1000


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


def users(root="", login=None):
    """Return the name of the user of each terminal, by logind, or else by utmp(5); nothing if the host has neither.

    ``login``: how this program came here, as ``own_login`` returns it. A terminal does not count if the same user
    opened it from the same address. None counts if the controller runs on this host, because its user is at one.
    """
    name, client, server = login or own_login()
    if client and client == server:
        return []
    entries = logind(root) if os.path.isdir(root + "/run/systemd/sessions") else utmp(root)
    return sorted(user for user, address in entries if (user, address) != (name, client))[:MOST_USERS]


def logind(root):
    """Return the user and the remote address of each session with a terminal."""
    entries = []
    for path in glob.glob(root + "/run/systemd/sessions/*"):
        fields = dict(re.findall("^([A-Z_]+)=(.+)$", read(path), re.M))
        is_open = fields.get("CLASS", "").startswith("user") and fields.get("STATE") != "closing"
        if is_open and "TTY" in fields:  # a session without a terminal may be the one that asks
            entries.append((fields.get("USER") or fields.get("UID", "?"), fields.get("REMOTE_HOST", "")))
    return entries


def utmp(root):
    """Return the user and the remote address of each record of a user's process (type 7) that still runs."""
    try:
        with open(root + "/run/utmp", "rb") as file:
            data = file.read(1 << 20)
    except OSError:
        return []
    size = 384 if len(data) % 384 == 0 else 400
    entries = []
    for start in range(0, len(data) - size + 1, size):
        kind, pid, user, address = struct.unpack_from("=h2xi36x32s256s", data, start)
        if kind == 7 and os.path.exists(root + "/proc/%d" % pid):
            entries.append(tuple(text.partition(b"\0")[0].decode(errors="replace") for text in (user, address)))
    return entries


def own_login():
    """Return the user who logged in to run this program, and the addresses of the SSH client and server, or ``""``.

    sudo hides the addresses from its commands, but not from root, who can read its own environment.
    """
    try:
        name = os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # in a container, the user id may have no name
        name = ""
    connection, pid = os.environ.get("SSH_CONNECTION", ""), os.getppid()
    while not connection and pid > 1:
        connection = (re.findall("(?:^|\0)SSH_CONNECTION=([^\0]*)", read("/proc/%d/environ" % pid)) or [""])[0]
        pid = int((re.findall(r"^PPid:\s*(\d+)", read("/proc/%d/status" % pid), re.M) or ["0"])[0])
    fields = (connection.split() + [""] * 4)[:4]
    return name, fields[0], fields[2]


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
