"""Lock a host, so that it runs one job at a time.

The lock has two parts. flock(2) locks the file ``lock`` in the work directory; only its user and root can open it, so
no other user can keep a job from starting. The abstract socket NAME is visible to all users of the host, and any of
them can bind it, so it counts only if the kernel reports (SO_PEERCRED) that its holder is root or this user. The
kernel releases both parts when the runner exits. Followers connect to the runner through the socket ``socket`` in the
work directory: the runner sends a greeting, then one byte per event.

Standard library only, Python 3.6 and later.
"""

import errno
import fcntl
import json
import os
import socket
import struct
import time

NAME = b"\0fleetmark-host-job"
FILE, SOCKET = "lock", "socket"
GREETING_B = 8192  # maximum size of a greeting in bytes
GREETING_S, FOREIGN_S = 30.0, 5.0  # timeouts for a greeting: from this work directory's runner, and from others
CONNECT_S = 1.0  # timeout for a holder with a full queue to accept a connection
GONE = (ConnectionRefusedError, ConnectionResetError, BrokenPipeError, FileNotFoundError)  # no holder, or it is exiting


class Busy(Exception):
    """Another job of this user, or a job of root, holds the lock."""


class Lock(object):
    """The lock of this host until this process exits."""

    def __init__(self, work):
        """Take the lock for the work directory ``work``. Raise Busy, or OSError if the directory does not support
        locks.
        """
        self.folder = os.open(work, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        self.file = os.open(FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=self.folder)
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy() from None
        self.public = public_listener()  # None if another user holds the name
        self.private = private_listener(self.folder)


def private_listener(folder):
    try:
        os.unlink(SOCKET, dir_fd=folder)  # left by a dead runner, since this process holds the lock
    except FileNotFoundError:
        pass
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        listener.bind(path_of(folder))
    finally:
        os.umask(mask)
    listener.listen(16)
    return listener


def public_listener():
    """Bind the name that all users of this host see. Return None if another user holds it. Raise Busy."""
    for _ in range(10):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(NAME)
            listener.listen(16)
            return listener
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE:
                raise
        try:
            with connected(NAME) as sock:
                if is_trusted(peer_of(sock)[1]):
                    raise Busy()
                return None
        except GONE:
            time.sleep(0.05)  # its holder is exiting
        except OSError:
            return None  # its holder accepts no connections
    return None


def path_of(folder):
    """Return the socket address in a folder given by descriptor, because the folder's own path may be too long."""
    return "/proc/self/fd/%d/%s" % (folder, SOCKET)


def connect(work):
    """Connect to the runner of a work directory. Raise OSError; the error is one of GONE if there is no runner."""
    folder = os.open(work, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        return connected(path_of(folder))
    finally:
        os.close(folder)


def connected(address):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    deadline = time.monotonic() + CONNECT_S
    try:
        while True:
            try:
                sock.connect(address)
                return sock
            except BlockingIOError:  # the holder's queue is full
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
    except BaseException:
        sock.close()
        raise


def lock_holder(work):
    """Return the holder of the lock for a job in ``work``; None if the lock is free.

    The kernel provides ``pid``, ``uid`` and ``process`` (a description). The holder itself reports ``campaign``,
    ``owner``, ``since`` and ``dir``, which are missing if it does not answer. Another user's process never counts as
    the holder.
    """
    for address in (work, NAME):
        try:
            with connected(NAME) if address is NAME else connect(work) as sock:
                holder = holder_of(sock, FOREIGN_S if address is NAME else GREETING_S)
        except GONE:
            continue
        except OSError:
            if address is NAME:
                continue
            holder = {"pid": 0, "uid": os.geteuid(), "process": "a process of uid %d" % os.geteuid()}
        if is_trusted(holder["uid"]):
            return holder
    return None


def other_user():
    """Return a sentence about another user's process that holds the name of this host's lock; empty if none."""
    try:
        with connected(NAME) as sock:
            pid, uid = peer_of(sock)
    except GONE:
        return ""
    except OSError:
        return "an unresponsive process holds the lock that all users of this host share; %s" % BESIDE
    if is_trusted(uid):
        return ""
    return "process %d of uid %d holds the lock that all users of this host share; %s" % (pid, uid, BESIDE)


BESIDE = "this job runs under the lock of its own user, and a job of the other user may run at the same time"


def holder_of(sock, patience_s=GREETING_S):
    """Return the process at the other end, with its greeting if it belongs to this user or root."""
    pid, uid = peer_of(sock)
    holder = {"pid": pid, "uid": uid, "process": "process %d of uid %d" % (pid, uid)}
    return dict(greeting_of(sock, patience_s), **holder) if is_trusted(uid) else holder


def greeting_of(sock, patience_s):
    """Return the greeting received within ``patience_s``; empty if it is damaged or late. Raise one of GONE."""
    received, deadline = b"", time.monotonic() + patience_s
    while b"\n" not in received and len(received) < GREETING_B:
        left = deadline - time.monotonic()
        if left <= 0:
            return {}
        sock.settimeout(left)
        try:
            more = sock.recv(4096)
        except socket.timeout:
            return {}
        if not more:
            raise ConnectionRefusedError("the holder is exiting")
        received += more
    try:
        greeting = json.loads(received.partition(b"\n")[0].decode())
    except (ValueError, RecursionError):
        return {}
    return greeting if isinstance(greeting, dict) else {}


def is_trusted(uid):
    """Return whether a process of this uid may hold the lock and follow a job: only root and this user may."""
    return uid in (0, os.geteuid())


def peer_of(sock):
    """Return the process at the other end and its user, as reported by the kernel."""
    pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid
