"""Run a load from several processes: each has its own Engine, and this process hands requests over in advance.

Imported by client.py on the host. Standard library only, Python 3.6 and later. A Pool is used like an Engine. All
processes use the system's monotonic clock.
"""

import heapq
import os
import pickle
import selectors
import socket
import struct

import answers
from stream import Engine, clock

LEAD = 0.02  # time in seconds for a request to reach the sending process
MOST_READ = 1 << 20
_SIZE = struct.Struct("!I")


class Ended(Exception):
    """Report that a process of the client ended."""


class Channel:
    """Carry values between two processes without blocking."""

    def __init__(self, sock):
        self.sock, self.rest, self.out = sock, b"", bytearray()
        sock.setblocking(False)

    def send(self, value):
        data = pickle.dumps(value, protocol=4)
        self.out += _SIZE.pack(len(data)) + data
        self.flush()

    def flush(self):
        while self.out:
            try:
                del self.out[: self.sock.send(self.out)]
            except BlockingIOError:
                return
            except OSError:
                raise Ended from None

    def received(self):
        """Return the values that have come. Raise Ended if the other process has ended."""
        parts, is_over = [self.rest], False
        while True:
            try:
                data = self.sock.recv(MOST_READ)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                is_over = True
                break
            parts.append(data)
        text, place, values = b"".join(parts), 0, []
        while len(text) - place >= _SIZE.size:
            end = place + _SIZE.size + _SIZE.unpack_from(text, place)[0]
            if end > len(text):
                break
            values.append(pickle.loads(text[place + _SIZE.size : end]))  # of a process of this program
            place = end
        self.rest = text[place:]
        if is_over and not values:
            raise Ended
        return values


class Pool:
    """Send requests from ``count`` processes in rotation. ``endpoint`` must have been resolved."""

    lead = LEAD

    def __init__(self, endpoint, patience, count):
        self.selector, self.channels, self.works = selectors.DefaultSelector(), [], [0.0] * count
        self.running, self.next, self.finished = {}, 0, []
        for number in range(count):
            mine, other = socket.socketpair()
            child = os.fork()
            if not child:
                try:
                    for channel in self.channels:
                        channel.sock.close()
                    mine.close()
                    work(Channel(other), endpoint, patience)
                finally:
                    os._exit(0)
            other.close()
            self.channels.append(Channel(mine))
            self.selector.register(mine, selectors.EVENT_READ, number)

    @property
    def worked(self):
        """Return the seconds for which the busiest process was at work."""
        return max(self.works)

    def send(self, answer):
        key, self.next = self.next, self.next + 1
        answer.sent = clock()  # until the sending process reports the actual time
        if answer.due is None:
            answer.due = answer.sent
            due = None
        else:
            due = answer.due
        self.running[key] = answer
        flags = answer.words is not None, answer.calls is not None
        self.say(key % len(self.channels), ("send", key, answer.body, answer.wanted, due, flags))

    def say(self, number, value):
        try:
            self.channels[number].send(value)
        except Ended:
            raise Ended("a process of the client ended: its host may be out of memory") from None

    def turn(self, until):
        """Handle events until ``until``, at least once. Return the answers that ended."""
        for channel in self.channels:
            channel.flush()
        wait = 0.005 if any(channel.out for channel in self.channels) else max(0.0, until - clock())
        for key, _ in self.selector.select(wait):
            try:
                values = self.channels[key.data].received()
            except Ended:
                raise Ended("a process of the client ended: its host may be out of memory") from None
            for value in values:
                self.take(key.data, *value)
        finished, self.finished = self.finished, []
        return finished

    def take(self, number, key, stamp, due, result, worked):
        self.works[number] = worked
        answer = self.running.get(key)
        if answer is None:
            return  # it was abandoned
        if result is None:
            answer.stamps.append(stamp)
            return
        for name, value in zip(answers.Answer.RESULT, result):  # noqa: B905
            setattr(answer, name, value)
        answer.due = due
        del self.running[key]
        self.finished.append(answer)

    def pending(self):
        return list(self.running.values())

    def abandon(self):
        self.running.clear()
        for number in range(len(self.channels)):
            self.say(number, ("abandon",))

    def close(self):
        for channel in self.channels:
            channel.sock.close()
        for _ in self.channels:
            os.wait()


def work(channel, endpoint, patience):
    """Send the other process's requests at their scheduled times and report the answers, until that process ends."""
    engine, held, keys = Engine(endpoint, patience), [], {}

    def notify(answer):
        channel.send((keys[answer], answer.stamps[0], None, None, engine.worked))

    def ordered():
        for value in channel.received():
            if value[0] == "abandon":
                engine.abandon()
                del held[:]
                keys.clear()
                continue
            _, key, body, wanted, due, (has_words, has_calls) = value
            answer = answers.Answer(body, wanted, due)
            answer.words, answer.calls, answer.notify = [] if has_words else None, {} if has_calls else None, notify
            keys[answer] = key
            heapq.heappush(held, (due or 0.0, key, answer))

    engine.selector.register(channel.sock, selectors.EVENT_READ, ordered)
    try:
        while True:
            while held and held[0][0] <= clock():
                engine.send(heapq.heappop(held)[-1])
            until = held[0][0] if held else clock() + 0.25
            for answer in engine.turn(min(until, clock() + (0.005 if channel.out else 0.25))):
                key = keys.pop(answer, None)
                if key is not None:
                    result = [getattr(answer, name) for name in answers.Answer.RESULT]
                    channel.send((key, None, answer.due, result, engine.worked))
            channel.flush()
    except Ended:
        pass  # the run is over
