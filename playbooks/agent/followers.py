"""Hold the host's lock for one job, and wake the processes that follow the job when its event log gets an event.

Imported by the job runner on the host. Standard library only, Python 3.6 and later.
"""

import json
import os
import select
import threading
import time

from lock import Lock, is_trusted, peer_of

MOST_FOLLOWERS = 64
PUBLIC_S = 0.05  # minimum interval between public connections, which limits the cost of a flood


class Followers(object):
    """Track the processes that follow a job. A thread serves the lock's sockets; ``tell`` wakes the followers."""

    def __init__(self, job, folder):
        self.job, self.folder = job, folder
        self.connected = []  # sockets of trusted followers
        self.last_heard = time.monotonic()
        self.wake_r, self.wake_w = os.pipe()
        for pipe in (self.wake_r, self.wake_w):
            os.set_blocking(pipe, False)
        self.mutex = threading.Lock()

    def take_lock(self):
        """Take the host's lock and serve its sockets in a thread. Raise Busy if another job holds it, or OSError."""
        self.lock = Lock(self.job["work"])
        threading.Thread(target=self.serve, daemon=True).start()

    def silence(self):
        """Return the seconds since the last message from the controller."""
        return time.monotonic() - self.last_heard

    def greeting(self):
        job = self.job
        doc = {
            "campaign": job["campaign"],
            "owner": job["owner"],
            "dir": self.folder,
            "since": job.get("created"),
        }
        return json.dumps(doc).encode() + b"\n"

    def serve(self):
        public = self.lock.public
        public_at = 0.0  # time from which the next public connection is accepted
        while True:
            with self.mutex:
                watched = [self.lock.private, *self.connected]
            pause = max(0.0, public_at - time.monotonic())
            ready = select.select(watched + ([public] if public and not pause else []), [], [], pause or 60)[0]
            for sock in ready:
                if sock is public:
                    self.greet_public(sock)
                    public_at = time.monotonic() + PUBLIC_S
                    continue
                if sock is self.lock.private:
                    self.greet(sock.accept()[0])
                    continue
                try:
                    data = sock.recv(64)
                except OSError:
                    data = b""
                if not data:
                    with self.mutex:
                        self.connected = [f for f in self.connected if f is not sock]
                    sock.close()
                if data or not self.job.get("setting"):  # during a trial, a controller that is cut off stays connected
                    self.last_heard = time.monotonic()
                self.nudge()

    def greet(self, peer):
        """Tell a process who owns the job. Only the job's user and root may follow it: followers keep trials alive."""
        peer.setblocking(False)
        is_trusted_peer = is_trusted(peer_of(peer)[1])
        with self.mutex:  # otherwise an event between greeting and registration is lost
            self.tell_one(peer, self.greeting())
            if is_trusted_peer and len(self.connected) < MOST_FOLLOWERS:
                self.connected = [*self.connected, peer]
                return
        peer.close()

    def greet_public(self, listener):
        """Tell a process of any user who owns the job, then close the connection."""
        peer = listener.accept()[0]
        peer.setblocking(False)
        self.tell_one(peer, self.greeting())
        peer.close()

    def tell_one(self, sock, data):
        try:
            sock.send(data)
        except OSError:
            pass  # the follower disconnected; the server loop will notice

    def nudge(self):
        try:
            os.write(self.wake_w, b".")
        except BlockingIOError:
            pass  # already awake

    def tell(self, event, **more):
        """Append one event to the event log, then wake the followers."""
        more.update(e=event, t=time.time())
        with open(os.path.join(self.folder, "events.jsonl"), "a") as out:
            out.write(json.dumps(more) + "\n")
        with self.mutex:
            watched = list(self.connected)
        for sock in watched:
            self.tell_one(sock, b".")

    def sleep(self, seconds):
        """Wait at most ``seconds`` for an event: a child process ends, a follower writes, or a signal arrives."""
        select.select([self.wake_r], [], [], seconds)
        try:
            while os.read(self.wake_r, 4096):
                pass
        except BlockingIOError:
            pass
