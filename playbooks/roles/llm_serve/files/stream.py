"""Stream from an OpenAI-compatible endpoint: many concurrent requests on one thread, with the time of each piece.

Imported by client.py on the host. Standard library only, Python 3.6 and later. All sockets with data are emptied
before any data is parsed, and get the time at which the kernel reported them, so that parsing many answers does not
delay timestamps. The kernel's arrival time shows the delay of this time. Times are in seconds of ``clock``.
"""

import errno
import selectors
import socket
import ssl
import struct
import time
from urllib.parse import urlsplit

from answers import Broken, Reader

clock = time.perf_counter
PIECE = 16 << 10
STAMP = 35  # SO_TIMESTAMPNS of Linux: the kernel's arrival time of the data (socket(7))
_STAMP = struct.Struct("ll")
SPIN = 0.0015  # seconds before a scheduled time in which the kernel's timer is too coarse
_AGAIN = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Endpoint:
    """The address of requests. ``url``: with or without a trailing /v1. Raise ValueError unless it is an
    http(s) URL.
    """

    def __init__(self, url, secret=""):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("%s is not a URL of http or https" % url)
        self.host, self.port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        path = parts.path.rstrip("/")
        self.base = path if path.endswith("/v1") else path + "/v1"
        self.tls = ssl.create_default_context() if parts.scheme == "https" else None
        self.secret = secret
        self.address = None
        self.here = None  # whether the server is on this machine; None before the first connection

    def resolve(self):
        """Resolve the host name once. Raise OSError."""
        family, kind, _, _, address = socket.getaddrinfo(self.host, self.port, 0, socket.SOCK_STREAM)[0]
        self.address = family, kind, address

    def request(self, method, path, body=b"", mark=None):
        """Return the bytes of a request. ``mark``: the name that the server's log may show for it.

        ``path`` is below /v1, or from the root if it begins with //.
        """
        host = "[%s]" % self.host if ":" in self.host else self.host
        path = self.base[: -len("/v1")] + path[1:] if path.startswith("//") else self.base + path
        lines = ["%s %s HTTP/1.1" % (method, path), "Host: %s:%d" % (host, self.port)]
        lines += ["User-Agent: fleetmark", "Accept: text/event-stream, application/json"]
        if self.secret:
            lines.append("Authorization: Bearer " + self.secret)
        if mark is not None:
            lines.append("X-Request-Id: fleetmark-%d" % mark)
        if body:
            lines += ["Content-Type: application/json", "Content-Length: %d" % len(body)]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body

    def hidden(self, text):
        """Return ``text`` without the key, because servers may quote it in error messages."""
        return text.replace(self.secret, "***") if self.secret else text


class Connection:
    """One connection and the answer on it."""

    __slots__ = ("answer", "fresh", "out", "reader", "sock", "stage", "touched")

    def __init__(self, sock, stage):
        self.sock, self.stage, self.out, self.fresh = sock, stage, b"", True
        self.answer = self.reader = None
        self.touched = clock()


class Engine:
    """Send requests to ``endpoint`` and read their answers. ``patience``: the longest time without a byte, in
    seconds.
    """

    lead = 0.0  # minimum seconds between handing a request over and its scheduled time

    def __init__(self, endpoint, patience):
        self.endpoint, self.patience = endpoint, patience
        self.selector = selectors.DefaultSelector()
        self.busy, self.idle, self.finished = set(), [], []
        self.worked = 0.0  # seconds of processing, without waiting
        self._sweep_at = 0.0

    def send(self, answer):
        """Send a request now; a later call of ``turn`` returns its answer."""
        answer.sent = clock()
        if answer.due is None:
            answer.due = answer.sent
        try:
            connection = self.idle.pop() if self.idle else self.opened()
        except OSError as error:
            self.fail(answer, error)
            return
        connection.answer, connection.reader, connection.out = answer, Reader(answer), answer.body
        connection.touched = answer.sent
        self.busy.add(connection)
        if connection.stage == "ready":
            self.advance(connection)

    def opened(self):
        family, kind, address = self.endpoint.address
        sock = socket.socket(family, kind)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self.endpoint.tls:
            try:
                sock.setsockopt(socket.SOL_SOCKET, STAMP, 1)
            except OSError:
                pass  # this kernel has no timestamps; late sending is still detected
        code = sock.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            sock.close()
            raise OSError(code, errno.errorcode.get(code, "error"))
        connection = Connection(sock, "connect")
        self.selector.register(sock, selectors.EVENT_WRITE, connection)
        return connection

    def turn(self, until):
        """Handle events until ``until``, at least once. Return the answers that ended."""
        ready = self.selector.select(max(0.0, until - clock() - SPIN))
        began = clock()
        pieces = []
        while ready:
            now, date = clock(), time.time()
            for key, _ in ready:
                if isinstance(key.data, Connection):
                    self.receive(key.data, now, date, pieces)
                else:
                    key.data()
            ready = self.selector.select(0) if len(pieces) < 4096 else ()
        for connection, data, now, delay in pieces:
            if connection.reader is not None:
                connection.answer.delay = delay
                self.take(connection, data, now)
        now = clock()
        if now > self._sweep_at:
            self._sweep_at = now + min(0.25, self.patience / 4)
            for connection in [c for c in self.busy if now - c.touched > self.patience]:
                self.drop(connection, "timeout", "nothing came for %g s" % self.patience)
        finished, self.finished = self.finished, []
        if pieces or finished:
            self.worked += clock() - began
        return finished

    def receive(self, connection, now, date, pieces):
        if connection.stage != "ready" or connection.out:
            self.advance(connection)
            return
        try:
            data, delay = self.read(connection.sock, date)
        except _AGAIN:
            return
        except OSError as error:
            data, delay = error, None
        connection.touched = now
        if not data or isinstance(data, OSError):
            self.unwatch(connection)
        if connection.reader is None:  # a server closes an idle connection
            if connection in self.idle:
                self.idle.remove(connection)
            self.unwatch(connection)
            connection.sock.close()
            return
        pieces.append((connection, data, now, delay))

    def read(self, sock, date):
        """Return the data of a socket, and for how many seconds the kernel had it at ``date``, or None."""
        if self.endpoint.tls:
            data = sock.recv(PIECE)
            while data and sock.pending():
                data += sock.recv(PIECE)
            return data, None
        data, notes, _, _ = sock.recvmsg(PIECE, 64)
        for level, kind, value in notes:
            if level == socket.SOL_SOCKET and kind == STAMP and len(value) == _STAMP.size:
                seconds, nanoseconds = _STAMP.unpack(value)
                return data, max(0.0, date - seconds - 1e-9 * nanoseconds)
        return data, None

    def advance(self, connection):
        """Connect, complete the handshake, and send as much as possible."""
        events = selectors.EVENT_READ
        try:
            if connection.stage == "connect":
                code = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code:
                    raise OSError(code, errno.errorcode.get(code, "error"))
                self.endpoint.here = connection.sock.getsockname()[0] == connection.sock.getpeername()[0]
                if self.endpoint.tls:
                    self.unwatch(connection)
                    connection.sock = self.endpoint.tls.wrap_socket(
                        connection.sock, server_hostname=self.endpoint.host, do_handshake_on_connect=False
                    )
                connection.stage = "greet" if self.endpoint.tls else "ready"
            if connection.stage == "greet":
                connection.sock.do_handshake()
                connection.stage = "ready"
            while connection.out:
                connection.out = connection.out[connection.sock.send(connection.out) :]
        except ssl.SSLWantReadError:
            pass
        except _AGAIN:
            events = selectors.EVENT_WRITE
        except OSError as error:
            self.unwatch(connection)
            self.take(connection, error, clock())
            return
        self.watch(connection, events)

    def watch(self, connection, events):
        try:
            key = self.selector.get_key(connection.sock)
            if key.events != events:
                self.selector.modify(connection.sock, events, connection)
        except KeyError:
            self.selector.register(connection.sock, events, connection)

    def unwatch(self, connection):
        try:
            self.selector.unregister(connection.sock)
        except (KeyError, ValueError):
            pass  # the socket is no longer watched

    def take(self, connection, data, now):
        """Process a piece of an answer, or the reason for the end of its connection."""
        answer, reader = connection.answer, connection.reader
        if (not data or isinstance(data, OSError)) and self.again(connection, answer):
            return
        try:
            if isinstance(data, OSError):
                raise data
            reader.feed(data, now)
        except Broken as broken:
            self.drop(connection, "broken stream", "%s" % broken)
            return
        except OSError as error:
            self.leave(connection, keep=False)
            self.fail(answer, error)
            return
        if reader.over:
            answer.end = now
            self.leave(connection, keep=reader.keeps and not reader.rest)
            self.finished.append(answer)

    def again(self, connection, answer):
        """Return whether the request is sent again, because its reused connection had been closed in the meantime."""
        if connection.fresh or answer.status or answer.tried or connection.reader.rest:
            return False
        self.leave(connection, keep=False)
        answer.tried += 1
        sent, self_idle = answer.sent, self.idle
        self.idle = []
        self.send(answer)
        self.idle, answer.sent = self_idle, sent
        return True

    def fail(self, answer, error):
        reasons = {errno.ECONNREFUSED: "refused", errno.ECONNRESET: "reset", errno.EPIPE: "reset"}
        answer.problem = reasons.get(error.errno, "unreachable")
        answer.detail, answer.end = "%s" % (error.strerror or error), clock()
        self.finished.append(answer)

    def drop(self, connection, problem, detail):
        """Abandon an answer."""
        answer = connection.answer
        self.leave(connection, keep=False)
        answer.problem, answer.detail, answer.end = problem, detail, clock()
        self.finished.append(answer)

    def leave(self, connection, keep):
        self.busy.discard(connection)
        connection.answer = connection.reader = None
        connection.out, connection.fresh = b"", False
        if keep:
            self.idle.append(connection)
        else:
            self.unwatch(connection)
            connection.sock.close()

    def pending(self):
        """Return the pending requests."""
        return [connection.answer for connection in self.busy]

    def abandon(self):
        """Drop all pending requests silently."""
        for connection in list(self.busy):
            self.leave(connection, keep=False)

    def ask(self, answer):
        """Run one request alone, to its end."""
        self.send(answer)
        while True:
            finished = self.turn(clock() + 0.25)
            if answer in finished:
                return answer
