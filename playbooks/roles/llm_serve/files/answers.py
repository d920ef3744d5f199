"""Read one answer from the bytes of an HTTP response: its events, each with its arrival time.

Imported by stream.py and client.py on the host. Standard library only, Python 3.6 and later. This module neither
waits nor uses sockets. It limits the size of server data, and reports violations of HTTP or of the event stream.
"""

import json
import re

MOST_HEAD = 64 << 10  # maximum bytes of a response's head
MOST_LINE = 4 << 20  # maximum bytes of one event
MOST_ERROR = 4 << 10  # maximum stored bytes of an error's body
MOST_TOKENS = 1 << 40  # maximum tokens of a request, as counted by the server
MOST_PIECES = 64  # events with text per requested token above which a stream counts as endless
MOST_WORD = 60  # maximum characters of a finish_reason
MOST_WORDS = 4096  # maximum characters of a piece stored for a conversation
MOST_CALLS = 64  # maximum tool calls of an answer
STATUS = re.compile(r"[0-9]{3}$")
LENGTH = re.compile(r"[0-9]{1,18}$")
CHUNK = re.compile(rb"[0-9A-Fa-f]{1,15}$")


class Broken(Exception):
    """Report that the response breaks HTTP or the event stream; the message says how."""


class Answer:
    """One request and its result.

    ``due``: its scheduled time; ``sent``: its actual time. ``stamps``: arrival times of pieces with text. ``used``:
    tokens of the prompt and of the answer as counted by the server. ``problem``: why the answer is incomplete.
    ``delays``: seconds that the first and the last piece waited in this machine's kernel; None if unknown.

    ``prompt``: its Prompt. ``thought``: pieces of thinking; ``replied``: arrival of the first other piece.
    ``cached``: prompt tokens from the server's cache. ``words``: pieces of text, kept for conversations. ``calls``:
    [name, arguments] of tool calls. ``notify``: called at the first piece.
    """

    __slots__ = (
        *("wanted", "body", "due", "sent", "stamps", "used", "finish", "done", "status", "problem", "detail", "end"),
        *("tried", "mark", "prompt", "delay", "delays", "thought", "replied", "reasoned", "cached", "words", "calls"),
        "notify",
    )
    RESULT = (
        *("sent", "stamps", "used", "finish", "done", "status", "problem", "detail", "end", "tried", "delays"),
        *("thought", "replied", "reasoned", "cached", "words", "calls"),
    )

    def __init__(self, body, wanted=0, due=None, mark=None, prompt=None):
        self.body, self.wanted, self.due, self.mark, self.prompt = body, wanted, due, mark, prompt
        self.delay = self.delays = self.replied = self.reasoned = self.cached = self.words = self.calls = None
        self.thought, self.notify = 0, None
        self.sent = self.end = None
        self.stamps, self.used, self.finish, self.done = [], None, None, False
        self.status, self.problem, self.detail, self.tried = 0, "", "", 0

    def event(self, text, now):
        """Process one event of the stream. Raise Broken if it does not belong to a completion."""
        if text == b"[DONE]":
            self.done = True
            return
        try:
            event = json.loads(text.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise Broken("an event that is not JSON") from None
        if not isinstance(event, dict):
            raise Broken("an event that is not a JSON object")
        if event.get("error"):
            self.problem, self.detail = "error in the stream", complaint(text)
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        delta = choice.get("delta") if isinstance(choice.get("delta"), dict) else choice
        is_thought = bool(delta.get("reasoning_content") or delta.get("reasoning"))
        text = delta.get("content") or delta.get("text")
        if text or is_thought or self.call(delta.get("tool_calls")):
            self.piece(text, is_thought and not text, now)
        self.finish = ("%s" % choice["finish_reason"])[:MOST_WORD] if choice.get("finish_reason") else self.finish
        usage = event.get("usage")
        if isinstance(usage, dict):
            counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
            if all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= MOST_TOKENS for n in counts):
                self.used = counts
                self.cached = detail_count(usage, "prompt_tokens_details", "cached_tokens")
                self.reasoned = detail_count(usage, "completion_tokens_details", "reasoning_tokens")

    def piece(self, text, is_thought, now):
        """Store a piece with text that arrived at ``now``."""
        self.stamps.append(now)
        if self.delay is not None:
            self.delays = (self.delays[0] if self.delays else self.delay), self.delay
        if len(self.stamps) > MOST_PIECES * max(1, self.wanted):
            raise Broken("%d pieces of text for %d tokens" % (len(self.stamps), self.wanted))
        if is_thought:
            self.thought += 1
        elif self.replied is None:
            self.replied = now
        if self.words is not None and isinstance(text, str):
            self.words.append(text[:MOST_WORDS])
        if self.notify and len(self.stamps) == 1:
            self.notify(self)

    def call(self, calls):
        """Store pieces of tool calls. Return whether there are any."""
        any_piece = False
        for call in calls[:MOST_CALLS] if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                continue
            name, text, index = function.get("name"), function.get("arguments"), call.get("index") or 0
            if not (name or text) or not isinstance(index, int) or not 0 <= index < MOST_CALLS:
                continue
            any_piece = True
            if self.calls is not None:
                mine = self.calls.setdefault(index, ["", ""])
                mine[0] = name[:MOST_WORD] if isinstance(name, str) and name else mine[0]
                mine[1] += text if isinstance(text, str) and len(mine[1]) + len(text) < MOST_LINE else ""
        return any_piece


def detail_count(usage, group, name):
    """Return a count of tokens among the details of ``usage``; None if it is not there."""
    details = usage.get(group)
    count = details.get(name) if isinstance(details, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MOST_TOKENS else None


def complaint(body):
    """Return a server's error message on one line."""
    text = body.decode("utf-8", "replace")
    try:
        doc = json.loads(text)
    except (ValueError, RecursionError):
        doc = None
    for key in ("error", "message", "detail"):
        doc = doc.get(key, doc) if isinstance(doc, dict) else doc
    return " ".join((doc if isinstance(doc, str) else text).split())[:300]


class Reader:
    """Parse a response: the head, then the body in chunks, with a length, or up to the end of the connection."""

    def __init__(self, answer):
        self.answer, self.rest, self.lines, self.error = answer, b"", b"", b""
        self.left, self.mode, self.keeps, self.over = 0, "head", True, False

    def feed(self, data, now):
        """Process bytes that arrived at ``now``; empty bytes mark the end of the connection. Raise Broken."""
        if not data:
            if self.mode != "close":
                raise Broken("the connection was closed before the answer's end")
            self.finish(now)
            return
        self.rest += data
        while self.rest and not self.over and self.step(now):
            pass

    def step(self, now):
        """Return one part of the response, once it is complete."""
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
        if self.mode == "after":  # the line break after a chunk
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
        if not CHUNK.match(digits):  # int() would accept a sign, and the chunk would never end
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
