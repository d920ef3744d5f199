"""Run processes on a Slurm node for a controller that shares only a folder with it; this replaces SSH.

srun starts this program on every node of an allocation. Its code comes from the job script, not from the shared
folder, and calls ``main(SHARED, NODE, TOKEN)``. ``SHARED/nodes/NODE`` contains ``up`` (the number of this start of the
Slurm job) and a numbered folder per process: ``request`` (argv; ``again``: restart after a requeue), ``in`` (the
controller's input; ``in.end`` marks its end), ``out``, ``err``, and finally ``rc``.
The controller renames ``SHARED/alive`` into place every two seconds, and creates ``SHARED/done`` at the end.

Processes continue without the controller, and ``out`` keeps their output for the next controller. Files are reopened
for every read and synced after every write, because network file systems only promise fresh data at open.

Standard library only, Python 3.6 and later.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

from files import write_atomic
from lock import lock_holder
from private import NotPrivate, open_private
from steps import work_of

UNSAFE, UNSEEN = 96, 97  # exit status: others can replace the shared folder; it is missing or the wrong one
LOOK_S = 0.25  # polling interval; each poll takes 0.1 ms of one core
ALONE_S = 300.0  # exit after this time without a controller and a job
WAITED_S = 900.0  # like ``runner.ABANDONED_S``: no controller releases a waiting step
LAST_S = 20.0  # after Slurm's termination signal; Slurm kills the job after 30 s
LOST = "lost"
NUMBER = re.compile(r"\d{1,9}\Z", re.ASCII)  # the folder of a process
# Slurm sends the signal to every process of the step, but only the job itself must end: a follower would report its own
# end as the end of the job.
UNTIL_ASKED = ["/bin/sh", "-c", 'trap "" TERM; exec "$@"', "sh"]


class Node:
    """The processes of one node. Each process has a thread that copies its input."""

    def __init__(self, shared, name):
        self.shared, self.folder = shared, os.path.join(shared, "nodes", name)
        self.running = {}  # number -> process
        self.seen = set()
        self.begun = {}  # number -> folder of the job that this process started or followed
        self.ending = None  # when Slurm sent its termination signal
        self.alive, self.heard = None, time.monotonic()

    def run(self):
        os.makedirs(self.folder, exist_ok=True)
        signal.signal(signal.SIGTERM, self.on_term)
        restart = int(os.environ.get("SLURM_RESTART_COUNT", "0"))
        again = self.bury()
        write_atomic(os.path.join(self.folder, "up"), json.dumps({"restart": restart}).encode())
        if again:
            self.begin(again, "restart-%d-" % restart)
        while not self.is_over():
            for number in self.numbers():
                if number not in self.seen and not self.ending:
                    self.begin(number)
            time.sleep(LOOK_S)
        for process in list(self.running.values()):
            process.kill()
        if not (self.ending or os.path.exists(os.path.join(self.shared, "done")) or self.is_begun()):
            self.forget()

    def is_begun(self):
        """Return whether a controller started a job on any node."""
        nodes = os.path.join(self.shared, "nodes")
        return any(
            Node(self.shared, name).request(number).get("again")
            for name in os.listdir(nodes)
            for number in os.listdir(os.path.join(nodes, name))
        )

    def forget(self):
        """Remove this node's files; the last node removes the folder and its parents if they are then empty.

        The controller was killed before it recorded a campaign, so nobody will ever collect or remove them.
        """
        null = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(null, stream)  # NFS keeps an open file
        path = os.path.realpath(self.shared)
        shutil.rmtree(self.folder, ignore_errors=True)
        try:
            os.unlink(os.path.join(self.shared, "log." + os.path.basename(self.folder)))
            os.rmdir(os.path.join(self.shared, "nodes"))  # fails if another node's files are there
            for name in os.listdir(self.shared):
                os.unlink(os.path.join(self.shared, name))
            for folder in (path, os.path.dirname(path), os.path.dirname(os.path.dirname(path))):
                os.rmdir(folder)
        except OSError:
            pass  # files of another node, job or campaign

    def bury(self):
        """Mark the processes of an earlier start of this Slurm job as lost. Return the request to start the job, if
        any.
        """
        again = None
        for number in self.numbers():
            self.seen.add(number)
            if self.request(number).get("again"):
                again = number
            if not os.path.exists(os.path.join(self.folder, number, "rc")):
                self.end(number, LOST)
        return again

    def on_term(self, *_):
        """Stop, because Slurm ends this start of its job and may start it again. Followers stop first, because the
        job's next messages do not mean its end.
        """
        self.ending = self.ending or time.monotonic()
        for process in list(self.running.values()):
            process.kill()
        self.stop_job()

    def stop_job(self):
        holder = self.holder()
        if holder:
            try:
                os.kill(holder["pid"], signal.SIGTERM)
            except OSError:
                pass  # the process has just ended

    def holder(self):
        """Return the holder of the host's lock if this program started or followed its job."""
        jobs = self.jobs()
        holders = [lock_holder(work) for work in sorted({work_of(folder) for folder in jobs})]
        return next((holder for holder in holders if holder and holder.get("dir") in jobs), None)

    def jobs(self):
        """Return the folders of jobs that were started or followed here. Another job on this machine may hold the
        lock.
        """
        for number in self.numbers():
            if number in self.begun:
                continue
            request = self.request(number)
            argv = request.get("argv") or [""]
            if os.path.basename(argv[-2:][0]) == "follow.py":
                self.begun[number] = argv[-1]
            if request.get("again"):
                try:
                    payload = json.loads(read_from(os.path.join(self.folder, number, "in"), 0).decode())
                    self.begun[number] = payload["job"]["folder"]
                except (OSError, ValueError, KeyError, TypeError):
                    pass  # the controller had not written all of it
        return set(self.begun.values())

    def numbers(self):
        """Return the processes that were ever requested."""
        return sorted(name for name in os.listdir(self.folder) if NUMBER.match(name))

    def is_over(self):
        now = time.monotonic()
        if os.path.exists(os.path.join(self.shared, "done")):
            return True
        if self.ending:
            return now - self.ending > LAST_S or (now - self.ending > 2 and self.holder() is None)
        try:
            alive = os.stat(os.path.join(self.shared, "alive")).st_mtime
        except OSError:
            alive = None
        if alive != self.alive:
            self.alive, self.heard = alive, now
        if now - self.heard < ALONE_S:
            return False
        if now - self.heard > WAITED_S and self.is_waiting():
            self.stop_job()
        return self.holder() is None

    def is_waiting(self):
        """Return whether the last event of a job shows that it waits for other hosts, although no controller
        coordinates them.
        """
        for number in list(self.running):
            with open(os.path.join(self.folder, number, "out"), "rb") as out:
                out.seek(max(0, os.fstat(out.fileno()).st_size - 200))
                if b'"wait"' in out.read().strip().rpartition(b"\n")[2]:
                    return True
        return False

    def request(self, number):
        try:
            with open(os.path.join(self.folder, number, "request")) as source:
                return json.load(source)
        except (OSError, ValueError):
            return {}

    def begin(self, number, prefix=""):
        """Start a process as requested. With ``prefix``, start it again with its own output files."""
        self.seen.add(number)
        folder = os.path.join(self.folder, number)
        argv = self.request(number).get("argv")
        for other, process in list(self.running.items()):
            if self.request(other).get("argv") == argv:
                process.kill()  # of a controller that has ended
        try:
            process = subprocess.Popen(
                UNTIL_ASKED + argv,
                stdin=subprocess.PIPE,
                stdout=open(os.path.join(folder, prefix + "out"), "ab"),
                stderr=open(os.path.join(folder, prefix + "err"), "ab"),
                start_new_session=True,
            )
        except (OSError, TypeError) as error:
            with open(os.path.join(folder, prefix + "err"), "a") as err:
                err.write("%s\n" % error)
            self.end(number, "127", prefix)
            return
        self.running[prefix + number] = process
        threading.Thread(target=self.carry, args=(number, prefix, process), daemon=True).start()

    def carry(self, number, prefix, process):
        """Copy the controller's input to a process until the process ends."""
        folder = os.path.join(self.folder, number)
        offset, open_ = 0, True
        while process.poll() is None:
            # Check before reading, because the data is written before the end marker.
            last = os.path.exists(os.path.join(folder, "in.end"))
            data = read_from(os.path.join(folder, "in"), offset)
            offset += len(data)
            try:
                if data:
                    process.stdin.write(data)
                    process.stdin.flush()
                elif last and open_:
                    open_ = False
                    process.stdin.close()
            except OSError:
                open_ = False  # the process reads no more input
            sync(os.path.join(folder, prefix + "out"))
            if not data:
                time.sleep(LOOK_S)
        for name in ("out", "err"):
            sync(os.path.join(folder, prefix + name))
        self.end(number, str(process.returncode), prefix)
        self.running.pop(prefix + number, None)

    def end(self, number, result, prefix=""):
        write_atomic(os.path.join(self.folder, number, prefix + "rc"), result.encode())


def read_from(path, offset):
    try:
        with open(path, "rb") as source:
            source.seek(offset)
            return source.read()
    except FileNotFoundError:
        return b""


def sync(path):
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def main(shared, name, token):
    """Serve the controller in the folder ``shared``. ``token``: the SHA-256 of the file ``token`` in it, as hex.

    The folder is opened once and used through that descriptor, so that nobody can replace it.
    """
    try:
        folder = open_private(shared, create=False)
        handle = os.open("token", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        if hashlib.sha256(os.read(handle, 4096)).hexdigest() != token:
            sys.exit(UNSEEN)
        os.close(handle)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        log = os.open("log.%s" % name, flags, 0o600, dir_fd=folder)
    except NotPrivate:
        sys.exit(UNSAFE)
    except OSError:
        sys.exit(UNSEEN)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.chdir("/")
    Node("/proc/self/fd/%d" % folder, name).run()
