"""Report a job's events over one idle connection, and send finished steps with their files.

``python3 follow.py DIR``: one JSON document per line on stdout, and on stdin: ``{"order": "have", "steps": [...]}``
(the first order), ``{"order": WORD, "step": ID}`` with ``go``, ``skip`` (ends as lost), ``fail``, ``cancel`` or
``drop`` (no longer needed), ``{"order": "here"}`` (a trial continues only while its controller sends this),
``{"order": "stop"}``, and ``{"order": "clean"}``, which removes the job's folder and ends. Invalid orders and orders
for steps of other jobs are ignored. Only the word of an order is stored.
"""

import binascii
import errno
import json
import os
import select
import shutil
import signal
import stat
import sys
import time
import zlib

from files import write_atomic
from groups import remove as remove_groups
from lock import GONE, connect, holder_of, lock_holder
from steps import ORDERS, is_kept, remaining, stored_result, work_of

SETTING = "setting.json"  # the file of a trial whose setting is not restored yet
KEEPER_S = 10.0  # time in which the keeper of a killed runner restores a setting
DAMAGED = "its result.json is damaged on the host, so its result is lost"
PART = 256 << 10  # maximum bytes of a file per line, as accepted by the controller


class Follower:
    """Writes a job's events to stdout and reads the controller's orders from stdin."""

    def __init__(self, folder):
        self.folder, self.work = folder, work_of(folder)
        self.offset = 0
        self.have = set()
        self.sock = None
        self.steps = {step["id"]: step for step in self.load()["steps"]}

    def run(self):
        self.attach()
        heard = b""
        telling = False
        while True:
            if telling:
                running = self.sock is not None
                left = [] if running else self.left_setting()
                self.tell_new()
                if not running:
                    self.tell_finished()
                    if left:
                        say({"e": "finish", "state": ("left: " + "; ".join(left))[:1000]})
                    say({"e": "over", "remaining": self.count_remaining()})
                    telling = False
            ready = select.select([0] + ([self.sock] if self.sock else []), [], [])[0]
            if self.sock in ready:
                self.drain()
            if 0 not in ready:
                continue
            data = os.read(0, 65536)
            if not data:
                return  # the controller disconnected: the job continues
            *lines, heard = (heard + data).split(b"\n")
            for line in lines:
                order = order_in(line)
                if order.get("order") == "have":
                    self.have.update(step for step in order["steps"] if step in self.steps)
                    self.wake_runner()
                    self.tell_finished()
                    telling = True
                elif order.get("order") == "clean":
                    self.clean()
                    return
                else:
                    self.obey(order)

    def load(self):
        with open(os.path.join(self.folder, "job.json")) as source:
            return json.load(source)

    def count_remaining(self):
        try:
            return len(remaining(self.folder, self.load()))
        except FileNotFoundError:
            return None  # the job's folder was removed

    def left_setting(self):
        """Wait until the keeper of an ended runner has restored the setting; if the keeper has also ended, restore it
        here. Return a sentence for each value that could not be restored.
        """
        path = os.path.join(self.folder, SETTING)
        deadline = time.monotonic() + KEEPER_S
        while os.path.exists(path) and not self.is_left_told():
            holder = lock_holder(self.work)
            if holder and holder.get("dir") == self.folder:
                return []  # the runner is alive, and already has the maximum number of followers
            if time.monotonic() > deadline:
                return self.restore_setting()
            time.sleep(0.1)
        return []

    def restore_setting(self):
        if not os.path.exists(os.path.join(self.folder, SETTING)):
            return []
        import setting

        return setting.restore(self.folder)

    def is_left_told(self):
        """Return whether the runner or its keeper reported a setting that they could not restore."""
        try:
            with open(os.path.join(self.folder, "events.jsonl"), "rb") as source:
                return b'"state": "left: ' in source.read()
        except FileNotFoundError:
            return False

    def clean(self):
        if self.restore_setting():
            return  # the setting cannot be restored, so the old values stay here
        remove_groups(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        try:
            os.rmdir(os.path.dirname(self.folder))  # the campaign's, unless another name of this machine is in it
        except OSError:
            pass  # it is

    def attach(self):
        """Connect to the runner's socket if this job has a runner.

        End this process if the runner hangs; the controller then connects again.
        """
        try:
            sock = connect(self.work)
            holder = holder_of(sock)
        except GONE:
            return  # there is no runner, so use only the files on disk
        except OSError as error:
            sys.exit("%s: the runner of this work directory accepts no connection (%s)" % (self.work, error.strerror))
        if "dir" not in holder:
            sys.exit("%s: the runner of this work directory does not answer (%s)" % (self.work, holder["process"]))
        if holder["dir"] == self.folder:
            sock.setblocking(False)
            self.sock = sock

    def drain(self):
        try:
            if not self.sock.recv(4096):
                self.sock = None
        except BlockingIOError:
            pass  # a spurious wake
        except OSError:
            self.sock = None

    def obey(self, order):
        word, step = order.get("order"), order.get("step")
        if word in ORDERS and step in self.steps:
            try:
                write_atomic(os.path.join(self.folder, "go", step), word.encode())
            except OSError:
                return  # the folder was removed, or the disk is full; the controller does not wait forever
            self.wake_runner()
        elif word == "here":
            self.wake_runner()
        elif word == "stop":
            holder = lock_holder(self.work)
            if holder and holder.get("dir") == self.folder:
                os.kill(holder["pid"], signal.SIGTERM)

    def wake_runner(self):
        try:
            if self.sock:
                self.sock.send(b"!")
        except OSError:
            pass  # it is ending, which ``drain`` notices

    def tell_new(self):
        """Print the events since the last call."""
        try:
            with open(os.path.join(self.folder, "events.jsonl"), "rb") as source:
                if os.fstat(source.fileno()).st_size < self.offset:
                    self.offset = 0  # the file was removed and started again
                source.seek(self.offset)
                data = source.read()
        except FileNotFoundError:
            return
        data = data[: data.rfind(b"\n") + 1]
        self.offset += len(data)
        for line in data.splitlines():
            event = order_in(line)  # empty for the rest of a line of a file that was removed and started again
            if event.get("e") == "end":
                self.tell_end(event["step"])
            elif event:
                say(event)

    def tell_finished(self):
        """Return the finished steps on disk, reported or not, because a runner can be killed between storing and
        reporting a step.
        """
        steps = os.path.join(self.folder, "steps")
        try:
            names = sorted(os.listdir(steps))
        except FileNotFoundError:
            return  # the job's folder was removed
        for step in names:
            if step in self.steps and os.path.exists(os.path.join(steps, step, "result.json")):
                self.tell_end(step)

    def tell_end(self, step):
        """Yield a finished step with its files, in parts that fit into memory on both sides."""
        if step in self.have or step not in self.steps:
            return
        folder = os.path.join(self.folder, "steps", step)
        if not is_whole(step, folder):
            return
        self.have.add(step)
        sizes = {}
        for name in sorted(os.listdir(folder)):
            size = tell_file(step, folder, name) if is_kept(self.steps[step], name) else None
            if size is not None:
                sizes[name] = size
        say({"e": "end", "step": step, "files": sizes})


def is_whole(step, folder):
    """Return whether the result of a finished step can be sent.

    Replace a damaged result with one that reports the damage. The step then counts as lost, and runs again when the
    campaign is resumed after this job.
    """
    if stored_result(folder):
        return True
    lost = {"id": step, "ended": "lost", "reason": DAMAGED, "started": time.time(), "wall_s": 0.0}
    try:
        write_atomic(os.path.join(folder, "result.json"), json.dumps(lost).encode())
    except OSError:
        return False  # the disk is full, or the folder no longer exists
    return True


def order_in(line):
    """Return the object in a line: an order of the controller or an event of the runner; empty for anything else."""
    try:
        order = json.loads(line.decode())
    except ValueError:
        return {}
    return order if isinstance(order, dict) else {}


def tell_file(step, folder, name):
    """Print a file in parts. Return its size, or None if it is not a plain file, which stays in place."""
    try:
        # Do not follow a link, and do not wait for a pipe or device, that a tool left.
        source = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            return None
        raise
    try:
        if not stat.S_ISREG(os.fstat(source).st_mode):
            return None
        size = 0
        while True:
            data = os.read(source, PART)
            if not data and size:
                return size
            packed = binascii.b2a_base64(zlib.compress(data, 6), newline=False)
            say({"e": "part", "step": step, "name": name, "data": packed.decode()})
            if not data:
                return size
            size += len(data)
    finally:
        os.close(source)


def say(doc):
    sys.stdout.write(json.dumps(doc) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    Follower(sys.argv[1]).run()
