"""Runs commands beside each other, and collects what they answer in time. facts.py asks this way what a host is.

Standard library only, Python 3.6 and later.
"""

import os
import selectors
import subprocess
import time

LATE = "no answer in time"


class Asked:
    """A command that was started: the first of ``variants`` that succeeds counts. ``result``: argv, rc (None where it
    gave none), out and err.
    """

    def __init__(self, variants, seconds):
        self.variants, self.deadline = list(variants), time.monotonic() + max(seconds, 0.1)
        self.begin()

    def begin(self):
        argv = self.variants.pop(0)
        self.result, self.parts, self.streams = {"argv": argv, "rc": None, "out": "", "err": ""}, ([], []), []
        try:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(os.environ, LC_ALL="C", LANG="C"),
                start_new_session=True,  # no terminal for a password prompt, and one process group to kill
            )
        except OSError as error:
            self.result["err"] = str(error)
        else:
            self.streams = [self.process.stdout, self.process.stderr]

    def has_ended(self):
        """Whether it has, and no other variant is to be tried: that is begun."""
        if not self.streams and self.variants and self.result["rc"] not in (0, None):
            self.begin()
        return not self.streams

    def read(self, stream):
        """Take what it wrote. Returns whether that was the end of the stream."""
        more = os.read(stream.fileno(), 1 << 16)
        self.parts[stream is self.process.stderr].append(more)
        if more:
            return False
        self.streams.remove(stream)
        if not self.streams:
            try:
                status = self.process.wait(max(0.0, self.deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.give_up()
            else:
                out, err = (b"".join(parts).decode("utf-8", "replace") for parts in self.parts)
                self.result.update(rc=status, out=out, err=err[:2000])
        return True

    def give_up(self):
        """It gave no answer in time. One that is stuck in the kernel (in a GPU's driver, say) stays behind."""
        try:
            os.killpg(self.process.pid, 9)
        except OSError:  # it has just ended, or sudo runs it as another user
            pass
        self.streams, self.result["err"] = [], LATE


def answers(asked):
    """What the commands in ``asked``, by name, answer: when all have ended, or are late."""
    waited = unended(asked.values())
    with selectors.DefaultSelector() as selector:
        while waited:
            for command in waited:
                for stream in command.streams:
                    if stream not in selector.get_map():
                        selector.register(stream, selectors.EVENT_READ, command)
            nearest = min(command.deadline for command in waited)
            for key, _ in selector.select(max(0.0, nearest - time.monotonic())):
                if key.data.read(key.fileobj):
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
            for command in waited:
                if command.streams and time.monotonic() >= command.deadline:
                    for stream in command.streams:
                        selector.unregister(stream)
                    command.give_up()
            waited = unended(waited)
    return {name: command.result for name, command in asked.items()}


def unended(commands):
    return [command for command in commands if not command.has_ended()]


def answer(argv, seconds):
    """One command's result within ``seconds``."""
    return answers({"": Asked([argv], seconds)})[""]
