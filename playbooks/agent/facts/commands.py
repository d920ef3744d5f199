"""Find commands, run them in parallel, and collect their output within a time limit, for facts.py.

Standard library only, Python 3.6 and later.
"""

import os
import selectors
import subprocess
import threading
import time

MORE_PATH = ":/usr/sbin:/sbin:/usr/local/cuda/bin:/opt/rocm/bin"
LATE = "no answer in time"
MOST = 16 << 20  # maximum output of a command in bytes
CLOSED_S = 0.005  # polling interval for a command that has closed its streams


def find(command):
    """Return the command's path. Also search folders that are missing in the PATH of a plain user."""
    for folder in (os.environ.get("PATH", os.defpath) + MORE_PATH).split(os.pathsep):
        path = os.path.join(folder, command)
        if folder and os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return None


def environment():
    """Return the environment of commands: this process's, with untranslated messages."""
    return dict(os.environ, LC_ALL="C", LANG="C")


class Asked:
    """Run a command. The first of ``variants`` that succeeds counts.

    ``result``: argv, rc (None if there is no exit status), out and err; ``env``: ``environment()``, if shared.
    """

    def __init__(self, variants, seconds, env=None):
        self.variants, self.deadline = list(variants), time.monotonic() + max(seconds, 0.1)
        self.env = env or environment()
        self.begin()

    def begin(self):
        argv = self.variants.pop(0)
        self.result, self.parts = {"argv": argv, "rc": None, "out": "", "err": ""}, ([], [])
        self.process, self.streams, self.size = None, [], 0
        try:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self.env,
                start_new_session=True,  # no terminal for a password prompt, and one process group to kill
            )
        except OSError as error:
            self.result["err"] = str(error)
        else:
            self.streams = [self.process.stdout, self.process.stderr]

    def read(self, stream):
        """Read available output. Return whether the stream has ended."""
        more = os.read(stream.fileno(), 1 << 16)
        self.parts[stream is self.process.stderr].append(more)
        self.size += len(more)
        if not more:
            self.streams.remove(stream)
        return not more

    def has_ended(self):
        """Return whether the command has ended. Start the next variant if it failed and there is one."""
        if self.process and not self.streams:
            self.end(self.process.poll())
        return self.process is None

    def end(self, status):
        """Store the exit status, or None if the command has closed its streams without ending."""
        if status is None:
            return
        out, err = (b"".join(parts).decode("utf-8", "replace") for parts in self.parts)
        self.result.update(rc=status, out=out, err=err[:2000])
        self.process = None
        if status and self.variants:
            self.begin()

    def give_up(self, reason):
        """End the command without an answer. A command stuck in the kernel, for example in a GPU driver, remains."""
        try:
            os.killpg(self.process.pid, 9)
        except OSError:  # the command has just ended, or sudo runs it as another user
            pass
        self.process, self.result["err"] = None, reason


def answers(commands):
    """Return the results of the commands in ``asked`` by name, when all have ended or timed out."""
    waited = [command for command in commands.values() if not command.has_ended()]
    with selectors.DefaultSelector() as selector:
        while waited:
            for command in waited:
                for stream in command.streams:
                    if stream not in selector.get_map():
                        selector.register(stream, selectors.EVENT_READ, command)
            pause = max(0.0, min(command.deadline for command in waited) - time.monotonic())
            if not all(command.streams for command in waited):
                pause = min(pause, CLOSED_S)
            for key, _ in selector.select(pause):
                if key.data.read(key.fileobj):
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
            for command in [command for command in waited if not command.has_ended()]:
                if command.size > MOST or time.monotonic() >= command.deadline:
                    for stream in command.streams:
                        if stream in selector.get_map():
                            selector.unregister(stream)
                    command.give_up(LATE if command.size <= MOST else "printed more than %d MiB" % (MOST >> 20))
            waited = [command for command in waited if not command.has_ended()]
    return {name: command.result for name, command in commands.items()}


def answer(argv, seconds):
    """Run one command for at most ``seconds``, and return its result."""
    return answers({"": Asked([argv], seconds)})[""]


def collect(commands):
    """Collect results in a thread, so that no command blocks on a full pipe. Return a function that waits for them."""
    results = {}
    thread = threading.Thread(target=lambda: results.update(answers(commands)), daemon=True)
    if commands:
        thread.start()

    def wait():
        if commands:
            thread.join()
        return results

    return wait
