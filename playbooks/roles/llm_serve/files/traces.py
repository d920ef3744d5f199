"""Read traces of requests: Mooncake's JSON lines, CSV of Azure's LLM inference traces and of BurstGPT, own JSON lines.

Imported by prompts.py on the host. Standard library only, Python 3.6 and later. The format is detected by its
fields. Every line is checked, and an error names the line.
"""

import calendar
import csv
import json
import math
import re
import time

MOST_TOKENS = 10000000
MOST_LINES = 1000000
MOST_LINE = 1 << 20  # characters
MOST_BLOCKS = 100000  # of one prompt
MOST_NAME = 100  # characters of a session
LATEST = 1e11  # seconds
BLOCK = 512  # tokens of one of Mooncake's blocks
NAMES = (
    ("prompt_tokens", "input_length", "input_tokens"),
    ("output_tokens", "output_length", "max_tokens"),
)
AZURE = ("timestamp", "contexttokens", "generatedtokens")
BURST = ("timestamp", "request tokens", "response tokens")
DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?(\+00:00|Z)?$")


class Mistake(Exception):
    """Report that the user's input cannot be used; the message says why."""


class Entry:
    """One request of a trace.

    ``time``: seconds since the trace's first request, None if unknown. ``blocks``: ids of the prompt's blocks of 512
    tokens, equal where the text is equal. ``session``: name of its conversation. ``delay``: seconds after the end of
    the turn before, None if there is no pause. ``is_whole``: whether ``tokens`` includes the turns before.
    """

    __slots__ = ("blocks", "delay", "is_whole", "prompt", "session", "time", "tokens", "wanted")

    def __init__(self, prompt, tokens, wanted):
        self.prompt, self.tokens, self.wanted = prompt, tokens, wanted
        self.time = self.session = self.delay = None
        self.blocks, self.is_whole = (), False


class Trace:
    """A trace: its ``entries``, the requests ``left_out`` (without an answer), and the ``seconds`` that it lasts.

    ``is_timed``: whether it can be replayed: each request has a time, or follows a turn of its conversation.
    """

    def __init__(self, path):
        self.entries, self.left_out = [], 0
        try:
            with open(path, encoding="utf-8-sig", newline="") as lines:
                self.read(lines, path)
        except OSError as error:
            raise Mistake("%s: %s: give a trace that the client's host has" % (path, error.strerror)) from None
        except UnicodeDecodeError:
            raise Mistake("%s is not UTF-8 text; a trace is JSON lines or CSV" % path) from None
        if not self.entries:
            raise Mistake("%s has no requests: a trace is a JSON object a line, or CSV" % path)
        times = [e.time for e in self.entries if e.time is not None]
        first, opened = min(times) if times else 0.0, set()
        self.is_timed = True
        for entry in self.entries:
            is_later = entry.session is not None and entry.session in opened
            opened.add(entry.session)
            self.is_timed = self.is_timed and (entry.time is not None or (is_later and entry.delay is not None))
            entry.time = None if entry.time is None else entry.time - first
        self.seconds = max(times) - first if times else 0.0

    def read(self, lines, path):
        columns, make = None, None
        for number in range(1, MOST_LINES + 2):
            line = lines.readline(MOST_LINE + 1)
            if not line:
                return
            place = "line %d of %s" % (number, path)
            if number > MOST_LINES:
                raise Mistake("%s has more than %d lines: give a part of it" % (path, MOST_LINES))
            if len(line) > MOST_LINE:
                raise Mistake("%s has more than %d characters" % (place, MOST_LINE))
            if not line.strip():
                continue
            if columns is None and not self.entries:
                columns, make = header(line)
                if columns:
                    continue
            entry = make(columns, line, place) if make else of_json(line, place)
            if entry is None:
                self.left_out += 1
            else:
                self.entries.append(entry)


def header(line):
    """Return the columns of a CSV header and the reader of its rows; (None, None) if the line is no such header."""
    names = [name.strip().strip('"').lower() for name in line.split(",")]
    for needed, make in ((AZURE, of_azure), (BURST, of_burst)):
        if all(name in names for name in needed):
            return {name: k for k, name in enumerate(names)}, make
    return None, None


def row(columns, line, place):
    values = next(csv.reader([line]), [])
    if len(values) != len(columns):
        raise Mistake("%s has %d columns, and the header %d" % (place, len(values), len(columns)))
    return {name: values[k].strip() for name, k in columns.items()}


def of_azure(columns, line, place):
    """Return a request of Azure's traces (2023, 2024): TIMESTAMP, ContextTokens, GeneratedTokens."""
    values = row(columns, line, place)
    entry = counted(values, "contexttokens", "generatedtokens", place)
    if entry:
        entry.time = moment(values["timestamp"], place)
    return entry


def of_burst(columns, line, place):
    """Return a request of BurstGPT: Timestamp in seconds, Request tokens, Response tokens, and perhaps Session ID."""
    values = row(columns, line, place)
    entry = counted(values, "request tokens", "response tokens", place)
    if entry:
        entry.time, entry.is_whole = seconds(values["timestamp"], place, "Timestamp"), True
        entry.session = (values.get("session id") or values.get("sessionid") or "")[:MOST_NAME] or None
    return entry


def counted(values, prompt, answer, place):
    """Return a request with two token counts, or None if it had no answer."""
    counts = []
    for name in (prompt, answer):
        text = values[name]
        if not re.match("[0-9]{1,9}$", text) or int(text) > MOST_TOKENS:
            raise Mistake("%s: %s is not a whole number: %s" % (place, name, text[:40]))
        counts.append(int(text))
    return Entry(None, *counts) if all(counts) else None


def moment(text, place):
    """Return Unix seconds of a date in UTC such as 2023-11-16 18:15:46.6805900."""
    match = DATE.match(text)
    try:
        date = calendar.timegm(time.strptime("%s %s" % match.group(1, 2), "%Y-%m-%d %H:%M:%S"))
    except (ValueError, AttributeError):
        raise Mistake("%s: TIMESTAMP is not a date and time in UTC: %s" % (place, text[:40])) from None
    return date + float(match.group(3) or 0)


def seconds(value, place, name, factor=1.0):
    """Return seconds from a number; ``factor``: seconds of its unit."""
    try:
        result = float(value) * factor
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if isinstance(value, bool) or not 0 <= result <= LATEST:
        raise Mistake("%s: %s is not a time of 0 or more: %s" % (place, name, str(value)[:40]))
    return result


def of_json(line, place):
    """Return a request of JSON lines: Mooncake's fields, or prompt and output_tokens."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise Mistake('%s is not JSON object: write {"prompt_tokens": 512, "output_tokens": 128}' % place)
    prompt = values.get("prompt")
    if prompt is not None and (not isinstance(prompt, str) or not prompt):
        raise Mistake("%s: prompt is not text" % place)
    counts = []
    for names, needed in zip(NAMES, (prompt is None, True)):  # noqa: B905
        name = next((n for n in names if n in values), names[0])
        count = values.get(name)
        if count is None and not needed:
            counts.append(None)
            continue
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_TOKENS:
            raise Mistake("%s: %s is not a whole number of 1 or more" % (place, name))
        counts.append(count)
    entry = Entry(prompt, *counts)
    if values.get("timestamp") is not None:
        entry.time = seconds(values["timestamp"], place, "timestamp", 1e-3)
    if values.get("delay") is not None:
        entry.delay = seconds(values["delay"], place, "delay", 1e-3)
    session = values.get("session_id")
    if session is not None:
        if not isinstance(session, (str, int)) or not str(session):
            raise Mistake("%s: session_id is not a name" % place)
        entry.session = str(session)[:MOST_NAME]
    if entry.time is None and entry.delay is not None and entry.session is None:
        raise Mistake("%s: delay needs a session_id: it follows a turn of a conversation" % place)
    entry.blocks = blocks(values.get("hash_ids"), entry, place)
    return entry


def blocks(ids, entry, place):
    if ids is None:
        return ()
    if not isinstance(ids, list) or len(ids) > MOST_BLOCKS or not all(type(n) is int for n in ids):
        raise Mistake("%s: hash_ids is not a list of at most %d whole numbers" % (place, MOST_BLOCKS))
    if entry.prompt is None and ids and len(ids) != -(-entry.tokens // BLOCK):
        raise Mistake("%s: %d hash_ids for %d tokens: one stands for %d" % (place, len(ids), entry.tokens, BLOCK))
    return tuple(ids)
