"""Tells what a job did and does, over one idle connection; finished steps go with their files.

``python3 follow.py DIR``: one JSON document a line on stdout; on stdin ``have STEP...`` (then it begins), ``go STEP``,
``skip STEP REASON`` (lost), ``fail STEP REASON``, ``cancel STEP``, ``drop STEP`` (not needed any more), ``stop``, and
``clean``, which removes the job's folder and ends.
"""

import base64
import gzip
import json
import os
import select
import shutil
import signal
import sys

from job import GONE, connect, greeting_of, lock_holder, remaining, write_atomic


class Follower:
    """Tells on stdout what a job did and does; takes the controller's words from stdin."""

    def __init__(self, folder):
        self.folder = folder
        self.offset = 0
        self.have = set()
        self.sock = None

    def run(self):
        self.attach()
        heard = b""
        telling = False
        while True:
            if telling:
                running = self.sock is not None
                self.tell_new()
                if not running:
                    self.tell_finished()
                    say({"e": "over", "remaining": len(remaining(self.folder, self.load()))})
                    telling = False
            ready = select.select([0] + ([self.sock] if self.sock else []), [], [])[0]
            if self.sock in ready:
                self.drain()
            if 0 not in ready:
                continue
            data = os.read(0, 65536)
            if not data:
                return  # the controller went away: the job goes on
            *lines, heard = (heard + data).split(b"\n")
            for line in lines:
                word, _, rest = line.decode().partition(" ")
                if word == "have":
                    self.have.update(rest.split())
                    self.tell_finished()
                    telling = True
                elif word == "clean":
                    shutil.rmtree(self.folder, ignore_errors=True)
                    try:
                        os.rmdir(
                            os.path.dirname(self.folder)
                        )  # the campaign's, if no other name of this machine is in it
                    except OSError:
                        pass  # it is
                    return
                else:
                    self.obey(word, rest)

    def load(self):
        with open(os.path.join(self.folder, "job.json")) as source:
            return json.load(source)

    def attach(self):
        """Wait on the runner's socket, if the runner of this job is there."""
        try:
            sock = connect()
            if greeting_of(sock).get("dir") == self.folder:
                sock.setblocking(False)
                self.sock = sock
        except GONE:
            pass  # nobody runs here: what is on disk is all there will be

    def drain(self):
        try:
            if not self.sock.recv(4096):
                self.sock = None
        except BlockingIOError:
            pass  # a spurious wake
        except OSError:
            self.sock = None

    def obey(self, word, rest):
        if word in ("go", "skip", "fail", "cancel", "drop"):
            step, _, reason = rest.partition(" ")
            write_atomic(os.path.join(self.folder, "go", step), ("%s %s" % (word, reason)).encode())
            if self.sock:
                self.sock.send(b"!")
        elif word == "stop":
            holder = lock_holder()
            if holder and holder.get("dir") == self.folder:
                os.kill(holder["pid"], signal.SIGTERM)

    def tell_new(self):
        """Say the events since the last time."""
        try:
            with open(os.path.join(self.folder, "events.jsonl"), "rb") as source:
                source.seek(self.offset)
                data = source.read()
        except FileNotFoundError:
            return
        data = data[: data.rfind(b"\n") + 1]
        self.offset += len(data)
        for line in data.splitlines():
            event = json.loads(line.decode())
            if event["e"] == "end":
                self.tell_end(event["step"])
            else:
                say(event)

    def tell_finished(self):
        """Whatever lies finished on disk, told or not: a runner can be killed between keeping a step and saying so."""
        steps = os.path.join(self.folder, "steps")
        for step in sorted(os.listdir(steps)):
            if os.path.exists(os.path.join(steps, step, "result.json")) and not step.endswith(".part"):
                self.tell_end(step)

    def tell_end(self, step):
        if step not in self.have:
            self.have.add(step)
            say({"e": "end", "step": step, "files": packed(os.path.join(self.folder, "steps", step))})


def packed(path):
    files = {}
    for name in sorted(os.listdir(path)):
        with open(os.path.join(path, name), "rb") as source:
            files[name] = base64.b64encode(gzip.compress(source.read(), 6)).decode()
    return files


def say(doc):
    sys.stdout.write(json.dumps(doc) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    Follower(sys.argv[1]).run()
