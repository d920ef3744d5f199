"""Streams of an OpenAI-compatible endpoint: many requests at once on one thread, each piece of an answer with its time.

Imported by client.py on the host. Standard library only, Python 3.6 and later. All sockets that have data are emptied
before any of it is read, and stamped with the moment at which the kernel reported them, so that reading many answers
makes none look late. Times are in seconds of ``clock``.
"""

import errno
import json
import re
import selectors
import socket
import ssl
import time
from urllib.parse import urlsplit

clock = time.perf_counter
MOST_HEAD = 64 << 10  # bytes of a response's head
MOST_LINE = 4 << 20  # bytes of one event
MOST_ERROR = 4 << 10  # bytes of an error's body that are kept
MOST_TOKENS = 1 << 40  # of a request, by the server's count
MOST_PIECES = 64  # events with text for each token that was asked for, after which a stream has no end
MOST_WORD = 60  # characters of a finish_reason
STATUS = re.compile(r"[0-9]{3}$")
LENGTH = re.compile(r"[0-9]{1,18}$")
CHUNK = re.compile(rb"[0-9A-Fa-f]{1,15}$")
PIECE = 256 << 10
SPIN = 0.0015  # seconds before an appointed time in which the kernel's timer is too coarse
_AGAIN = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Broken(Exception):
    """The response breaks HTTP or the event stream; the message says how."""


class Endpoint:
    """Where requests go. ``url``: with or without a trailing /v1. Raises ValueError for what is no http(s) URL."""

    def __init__(self, url, secret=""):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("%s is no URL of http or https" % url)
        self.host, self.port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        path = parts.path.rstrip("/")
        self.base = path if path.endswith("/v1") else path + "/v1"
        self.tls = ssl.create_default_context() if parts.scheme == "https" else None
        self.secret = secret
        self.address = None

    def resolve(self):
        """Look the host up once. Raises OSError."""
        family, kind, _, _, address = socket.getaddrinfo(self.host, self.port, 0, socket.SOCK_STREAM)[0]
        self.address = family, kind, address

    def request(self, method, path, body=b"", mark=None):
        """The bytes of a request; ``mark``: what the server's log may call it."""
        host = "[%s]" % self.host if ":" in self.host else self.host
        lines = ["%s %s%s HTTP/1.1" % (method, self.base, path), "Host: %s:%d" % (host, self.port)]
        lines += ["User-Agent: fleetmark", "Accept: text/event-stream, application/json"]
        if self.secret:
            lines.append("Authorization: Bearer " + self.secret)
        if mark is not None:
            lines.append("X-Request-Id: fleetmark-%d" % mark)
        if body:
            lines += ["Content-Type: application/json", "Content-Length: %d" % len(body)]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body

    def hidden(self, text):
        """``text`` without the key: servers quote it in their complaints."""
        return text.replace(self.secret, "***") if self.secret else text


class Answer:
    """One request and what came of it.

    ``due``: when it was to be sent; ``sent``: when it was. ``stamps``: when a piece with text came. ``used``: tokens of
    the prompt and of the answer by the server's count. ``problem``: why there is no whole answer.
    """

    __slots__ = (
        *("wanted", "body", "due", "sent", "stamps", "used", "finish", "done", "status", "problem", "detail", "end"),
        *("tried", "mark"),
    )

    def __init__(self, body, wanted=0, due=None, mark=None):
        self.body, self.wanted, self.due, self.mark = body, wanted, due, mark
        self.sent = self.end = None
        self.stamps, self.used, self.finish, self.done = [], None, None, False
        self.status, self.problem, self.detail, self.tried = 0, "", "", 0

    def event(self, text, now):
        """One event of the stream. Raises Broken for what is none of a completion."""
        if text == b"[DONE]":
            self.done = True
            return
        try:
            event = json.loads(text.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise Broken("an event that is no JSON") from None
        if not isinstance(event, dict):
            raise Broken("an event that is no JSON object")
        if event.get("error"):
            self.problem, self.detail = "error in the stream", complaint(text)
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        delta = choice.get("delta") if isinstance(choice.get("delta"), dict) else choice
        if delta.get("content") or delta.get("text") or delta.get("reasoning_content") or delta.get("reasoning"):
            self.stamps.append(now)
            if len(self.stamps) > MOST_PIECES * max(1, self.wanted):
                raise Broken("%d pieces of text for %d tokens" % (len(self.stamps), self.wanted))
        self.finish = ("%s" % choice["finish_reason"])[:MOST_WORD] if choice.get("finish_reason") else self.finish
        usage = event.get("usage")
        if isinstance(usage, dict):
            counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
            if all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= MOST_TOKENS for n in counts):
                self.used = counts


def complaint(body):
    """What a server says of an error, on one line."""
    text = body.decode("utf-8", "replace")
    try:
        doc = json.loads(text)
    except (ValueError, RecursionError):
        doc = None
    for key in ("error", "message", "detail"):
        doc = doc.get(key, doc) if isinstance(doc, dict) else doc
    return " ".join((doc if isinstance(doc, str) else text).split())[:300]


class Reader:
    """A response from its bytes: head, then the body by chunks, by length, or to the end of the connection."""

    def __init__(self, answer):
        self.answer, self.rest, self.lines, self.error = answer, b"", b"", b""
        self.left, self.mode, self.keeps, self.over = 0, "head", True, False

    def feed(self, data, now):
        """More bytes, which came at ``now``; none at the end of the connection. Raises Broken."""
        if not data:
            if self.mode != "close":
                raise Broken("the connection was closed before the answer's end")
            self.finish(now)
            return
        self.rest += data
        while self.rest and not self.over and self.step(now):
            pass

    def step(self, now):
        """One part of the response, where all of it has come."""
        if self.mode == "head":
            return self.head(now)
        if self.mode in ("size", "trailer"):
            return self.size(now)
        if self.mode == "close":
            body, self.rest = self.rest, b""
            self.body(body, now)
            return True
        body, self.rest = self.rest[: self.left], self.rest[self.left :]
        self.left -= len(body)
        if self.mode == "after":  # the line break behind a chunk
            self.mode = "after" if self.left else "size"
            return True
        self.body(body, now)
        if not self.left:
            if self.mode == "length":
                self.finish(now)
            else:
                self.mode, self.left = "after", 2
        return True

    def head(self, now):
        end = self.rest.find(b"\r\n\r\n")
        if end < 0:
            if len(self.rest) > MOST_HEAD:
                raise Broken("a head of more than %d KiB" % (MOST_HEAD >> 10))
            return False
        lines = self.rest[:end].decode("latin-1").split("\r\n")
        self.rest = self.rest[end + 4 :]
        words = lines[0].split()
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not STATUS.match(words[1]):
            raise Broken("no answer of HTTP/1")
        if words[1].startswith("1"):  # 100 Continue
            return True
        self.answer.status = int(words[1])
        named = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        self.keeps = named.get("connection", "").lower() != "close" and words[0] != "HTTP/1.0"
        length = named.get("content-length", "")
        if named.get("transfer-encoding", "").lower() == "chunked":
            self.mode = "size"
        elif LENGTH.match(length):
            self.mode, self.left = "length", int(length)
            if not self.left:
                self.finish(now)
        else:
            self.mode, self.keeps = "close", False
        return True

    def size(self, now):
        end = self.rest.find(b"\r\n")
        if end < 0:
            if len(self.rest) > MOST_HEAD:
                raise Broken("a chunk without a size")
            return False
        line, self.rest = self.rest[:end], self.rest[end + 2 :]
        if self.mode == "trailer":
            if not line:
                self.finish(now)
            return True
        digits = line.partition(b";")[0].strip()
        if not CHUNK.match(digits):  # int() would take a sign, with which the chunk never ends
            raise Broken("a chunk without a size")
        self.left = int(digits, 16)
        self.mode = "chunk" if self.left else "trailer"
        return True

    def body(self, data, now):
        answer = self.answer
        if answer.status != 200:
            self.error = (self.error + data)[:MOST_ERROR]
            return
        if not answer.wanted:
            answer.plain(data)
            return
        lines = (self.lines + data).split(b"\n")
        self.lines = lines.pop()
        if len(self.lines) > MOST_LINE:
            raise Broken("an event of more than %d MiB" % (MOST_LINE >> 20))
        for line in lines:
            if line.startswith(b"data:"):
                answer.event(line[5:].strip(), now)

    def finish(self, now):
        self.over = True
        answer = self.answer
        if answer.status != 200:
            answer.problem, answer.detail = "HTTP %d" % answer.status, complaint(self.error)
        elif self.lines.startswith(b"data:"):
            answer.event(self.lines[5:].strip(), now)


class Connection:
    """One connection and the answer on it."""

    __slots__ = ("answer", "fresh", "out", "reader", "sock", "stage", "touched")

    def __init__(self, sock, stage):
        self.sock, self.stage, self.out, self.fresh = sock, stage, b"", True
        self.answer = self.reader = None
        self.touched = clock()


class Engine:
    """Requests to ``endpoint`` and their answers. ``patience``: seconds in which a byte must come."""

    def __init__(self, endpoint, patience):
        self.endpoint, self.patience = endpoint, patience
        self.selector = selectors.DefaultSelector()
        self.busy, self.idle, self.finished = set(), [], []
        self.worked = 0.0  # seconds that went into handling, rather than waiting
        self._sweep_at = 0.0

    def send(self, answer):
        """Send a request now; its answer is among those that ``turn`` gives, one time or other."""
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
        code = sock.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            sock.close()
            raise OSError(code, errno.errorcode.get(code, "error"))
        connection = Connection(sock, "connect")
        self.selector.register(sock, selectors.EVENT_WRITE, connection)
        return connection

    def turn(self, until):
        """Handle what comes before ``until``, at least once; the answers that ended."""
        ready = self.selector.select(max(0.0, until - clock() - SPIN))
        began = clock()
        pieces = []
        while ready:
            now = clock()
            for key, _ in ready:
                self.receive(key.data, now, pieces)
            ready = self.selector.select(0) if len(pieces) < 4096 else ()
        for connection, data, now in pieces:
            if connection.reader is not None:
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

    def receive(self, connection, now, pieces):
        if connection.stage != "ready" or connection.out:
            self.advance(connection)
            return
        try:
            data = connection.sock.recv(PIECE)
            while self.endpoint.tls and data and connection.sock.pending():
                data += connection.sock.recv(PIECE)
        except _AGAIN:
            return
        except OSError as error:
            data = error
        connection.touched = now
        if not data or isinstance(data, OSError):
            self.unwatch(connection)
        if connection.reader is None:  # a server closes a connection that nobody uses
            if connection in self.idle:
                self.idle.remove(connection)
            self.unwatch(connection)
            connection.sock.close()
            return
        pieces.append((connection, data, now))

    def advance(self, connection):
        """Connect, shake hands, and send what is to be sent, as far as that goes."""
        events = selectors.EVENT_READ
        try:
            if connection.stage == "connect":
                code = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code:
                    raise OSError(code, errno.errorcode.get(code, "error"))
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
            pass  # it is not watched any more

    def take(self, connection, data, now):
        """A piece of an answer, or what ended its connection."""
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
        """Whether the request is sent once more: its connection had been used before, and was closed meanwhile."""
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
        """Give an answer up."""
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

    def abandon(self):
        """Drop all that is under way, without a word."""
        for connection in list(self.busy):
            self.leave(connection, keep=False)

    def ask(self, answer):
        """One request alone, to its end."""
        self.send(answer)
        while True:
            finished = self.turn(clock() + 0.25)
            if answer in finished:
                return answer
