"""Find listening ports of this host, and end all processes that a step left behind.

Imported by the job runner on the host. Standard library only, Python 3.6 and later.
"""

import ctypes
import glob
import os
import signal
import subprocess
import time

GRACE_S = 3.0  # timeout for a process to end after SIGTERM


def listening(port):
    """Return whether something listens on ``port``, TCP or UDP. Reads /proc, because a probe would use up a one-shot
    server.
    """
    suffix = ":%04X" % port
    for table, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        try:
            with open("/proc/net/" + table) as source:
                rows = [line.split() for line in source]
        except OSError:
            continue  # no IPv6 here
        if any(r[3] == state and r[1].endswith(suffix) for r in rows):
            return True
    return False


def ended_within(child, patience_s):
    """Return whether a child exits by itself within this many seconds."""
    try:
        child.wait(patience_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def end(child):
    """End a child and its session: SIGTERM, then SIGKILL."""
    ended_within(child, 0)
    for sig, patience in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, 30)):
        try:
            os.killpg(child.pid, sig)
        except ProcessLookupError:
            pass  # the group is empty
        try:
            child.wait(patience)
            break
        except subprocess.TimeoutExpired:
            continue
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all ended with their leader


def become_subreaper():
    """Become the parent of a step's orphans, so that none outlives it (prctl(2), PR_SET_CHILD_SUBREAPER)."""
    ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)


def reap_orphans():
    """Kill and reap all leftovers of a step."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for pid in children_of(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # ended by itself
        try:
            pid = os.waitpid(-1, os.WNOHANG)[0]
        except ChildProcessError:
            return
        if not pid:
            time.sleep(0.01)


def end_marked(campaign):
    """Kill the processes with this campaign's mark that a launcher (mpirun, srun) on another host started here."""
    mark = b"FLEETMARK_CAMPAIGN=%s" % campaign.encode()
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as source:
                if mark in source.read().split(b"\0"):
                    os.kill(int(path.split("/")[2]), signal.SIGKILL)
        except OSError:
            continue  # it has ended, or is another user's


def born(pid):
    """Return the start time of a process in clock ticks since boot (proc(5)), or ``?`` if it has ended."""
    try:
        with open("/proc/%d/stat" % pid) as source:
            return source.read().rpartition(")")[2].split()[19]
    except OSError:
        return "?"


def children_of(parent):
    """Return the process ids of the children of all threads of a process."""
    try:
        children = []
        for thread in os.listdir("/proc/%d/task" % parent):
            with open("/proc/%d/task/%s/children" % (parent, thread)) as source:
                children += [int(pid) for pid in source.read().split()]
        return children
    except OSError:
        return children_by_parent(parent)  # a kernel without CONFIG_PROC_CHILDREN, or a thread that has just ended


def children_by_parent(parent):
    children = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as source:
                text = source.read()
        except OSError:
            continue  # gone meanwhile
        if int(text.rpartition(")")[2].split()[1]) == parent:
            children.append(int(text.split(" ", 1)[0]))
    return children
