"""Put load on an endpoint: concurrent requests (closed loop), Poisson arrivals (open loop), or a trace at its times.

Imported by client.py on the host. Standard library only, Python 3.6 and later. All loads send new requests until all
requests of the measured window are answered, so that the last ones get the same load as the others.
"""

import heapq
import math
import random

from figures import e2e, failure, lateness, of_run, tpot, ttft
from stream import clock

BACKOFF = 0.1  # seconds between a failed request and the next one in a closed loop
LOOK = 0.1  # seconds between checks whether a run can be abandoned
VALUES = {"ttft": ttft, "tpot": lambda answer: tpot(answer) or 0.0, "e2e": e2e}
HOPELESS = 50  # failures without a single answer, after which a run ends


class Load:
    """Perform one run. ``make`` has ``next``, which returns the next request as an Answer, due at a given time (None:
    when it is sent), and ``ended``, which receives each answer.
    """

    def __init__(self, engine, make, exact):
        self.engine, self.make, self.exact = engine, make, exact
        self.ended, self.answered = [], 0

    def turn(self, until):
        finished = self.engine.turn(until)
        for answer in finished:
            is_answered = not failure(answer, self.exact)
            self.answered += is_answered
            if is_answered:
                self.make.ended(answer)
        self.ended += finished
        return finished

    def hopeless(self):
        """Return whether all requests failed."""
        return not self.answered and len(self.ended) >= HOPELESS

    def open_of(self, window):
        """Return the number of pending requests that were due within ``window``."""
        return sum(window[0] <= answer.due < window[1] for answer in self.engine.pending())

    def drain(self):
        """Wait for all pending requests, limited by the engine's patience."""
        while self.engine.pending():
            self.turn(clock() + 0.25)

    def figures(self, window, began, worked):
        wall = clock() - began
        return of_run(self.ended, window, self.exact, self.engine.worked - worked, wall)


def closed(engine, make, exact, streams, warmup, seconds, begun=None):
    """Keep ``streams`` requests running at any time. Return the results of the window after ``warmup``.

    ``begun``: called when the window begins, here and below.
    """
    load = Load(engine, make, exact)
    began, worked = clock(), engine.worked
    window = began + warmup, began + warmup + seconds
    places = [began] * streams  # the time when each free stream sends its next request
    prepared = make.next(None)
    while not load.hopeless():
        now = clock()
        if now >= window[1] and not load.open_of(window):
            break
        if begun and now >= window[0]:
            begun = begun()
        if places and places[0] <= now:  # send one at a time, so that answers need not wait for a burst
            places.pop(0)
            engine.send(prepared)
            prepared = make.next(None)
        for answer in load.turn(min(places[0] if places else now + 0.25, now + 0.25)):
            places.append(clock() + BACKOFF if answer.problem else 0.0)
        places.sort()
    load.drain()
    return load.figures(window, began, worked)


def poisson(engine, make, exact, rate, warmup, seconds, seed, give_up=None, begun=None):
    """Send ``rate`` requests per second at random times. Return the results of the window after ``warmup``.

    The window has exactly ``rate`` x ``seconds`` requests at uniformly random times. This is a Poisson process with a
    given count, so that chance does not change the measured load. ``give_up``: a function of the sent and the planned
    requests of the window that returns whether to abandon the rest.
    """
    load = Load(engine, make, exact)
    rng = random.Random("%s/arrivals" % seed)
    began, worked = clock() + 0.01, engine.worked
    window = began + warmup, began + warmup + seconds
    planned = max(1, round(rate * seconds))
    times = arrivals(rng, rate, began, window, planned)
    due, mine, looked = next(times), [], 0.0
    prepared = make.next(due)
    while not load.hopeless():
        now = clock()
        if now >= window[1] and not load.open_of(window):
            break
        if begun and now >= window[0]:
            begun = begun()
        if now >= due - engine.lead:
            if window[0] <= due < window[1]:
                mine.append(prepared)
            engine.send(prepared)
            due = next(times)
            prepared = make.next(due)
        load.turn(min(due - engine.lead, now + 0.25))
        if give_up and now > looked + LOOK:
            looked = now
            if give_up(mine, planned, now):
                engine.abandon()
                return None
    load.drain()
    return load.figures(window, began, worked)


class Trial:
    """Evaluate a rate by the results of an open loop's requests, in the order of their scheduled times.

    ``targets``: (name in VALUES, seconds) each. ``judge(series, count)`` returns a verdict on (values, target) of each
    target for the first ``count`` requests, at each of ``looks``.
    """

    def __init__(self, targets, looks, judge, exact):
        self.targets, self.looks, self.judge, self.exact = targets, list(looks), judge, exact
        self.series, self.waiting, self.count = [[] for _ in targets], [], 0
        self.lateness = []

    def sent(self, answer):
        self.waiting.append(answer)

    def settle(self, now):
        """Read the values of the requests that cannot change any more. A late request counts as a miss."""
        settled = 0
        for answer in self.waiting:
            if answer.end is None:  # this target is already missed; the others are still open
                values = [math.inf if self.is_missed(answer, *target, now=now) else 0.0 for target in self.targets]
                if not any(values):
                    break
            elif failure(answer, self.exact):
                values = [math.inf] * len(self.targets)
            else:
                values = [VALUES[name](answer) for name, _ in self.targets]
            if answer.end is not None and answer.sent is not None:
                self.lateness.append(lateness(answer))
            for series, value in zip(self.series, values):  # noqa: B905
                series.append(value)
            settled += 1
        del self.waiting[:settled]
        self.count += settled

    def is_missed(self, answer, name, target, now):
        """Return whether a pending request can no longer meet a target."""
        waits = name == "e2e" or (name == "ttft" and not answer.stamps)
        return waits and now - answer.due > target

    def verdict(self, now):
        """Return "kept", "missed", or "" if neither is shown yet; "" is final if ``looks`` is empty."""
        self.settle(now)
        while self.looks and self.count >= self.looks[0]:
            count = self.looks.pop(0)
            series = [(s[:count], target) for s, (_, target) in zip(self.series, self.targets)]  # noqa: B905
            word = self.judge(series, count)
            if word:
                return word
        return ""


def judged(engine, make, exact, rate, warmup, seed, trial, until):
    """Send Poisson arrivals of ``rate`` per second until ``trial`` has a verdict, or the clock is at ``until``.

    Return (the verdict, "ended" if no time was left, and the results of the requests that were judged).
    """
    load = Load(engine, make, exact)
    rng = random.Random("%s/arrivals" % seed)
    began, worked = clock() + 0.01, engine.worked
    due, word = began + rng.expovariate(rate), ""
    prepared = make.next(due)
    while not load.hopeless():
        now = clock()
        if now >= due - engine.lead:
            if due >= began + warmup:
                trial.sent(prepared)
            engine.send(prepared)
            due += rng.expovariate(rate)
            prepared = make.next(due)
        load.turn(min(due - engine.lead, now + 0.25))
        word = trial.verdict(clock())
        if word or not trial.looks:
            break
        if now > until:
            word = "ended"
            break
    if load.hopeless():
        word = "missed"
    last = clock()
    window = began + warmup, max(last, began + warmup + 1e-9)
    if word != "kept":
        engine.abandon()
        return word, None
    while load.open_of(window):  # the last requests get the same load as the others
        now = clock()
        if now >= due - engine.lead:
            engine.send(prepared)
            due += rng.expovariate(rate)
            prepared = make.next(due)
        load.turn(min(due - engine.lead, now + 0.25))
    load.drain()
    return word, load.figures(window, began, worked)


def replay(engine, make, exact, trace, speed, warmup, seconds, begun=None):
    """Send the requests of a trace at its times, ``speed`` times as fast. Return the results of the window.

    A turn of a conversation is due at its own time, but not before the answer to the turn before it, and its ``delay``.
    Requests continue until those of the window are answered. If a turn fails, the turns after it are dropped.
    """
    load = Load(engine, make, exact)
    began, worked = clock() + 0.05, engine.worked
    window = began + warmup, began + min(warmup + seconds, trace.seconds / speed + 1e-3)
    turns, due = {}, []  # the later turns of each conversation; (time, number, entry) of the requests that can be sent
    for number, entry in enumerate(trace.entries):
        if entry.session is not None and entry.session in turns:
            turns[entry.session].append((number, entry))
            continue
        if entry.session is not None:
            turns[entry.session] = []
        due.append((began + entry.time / speed, number, entry))
    heapq.heapify(due)
    for later in turns.values():
        later.reverse()
    running = {}  # entries by the mark of their request
    dropped = 0
    while not load.hopeless():
        now = clock()
        if now >= window[1] and not load.open_of(window) and not (due and due[0][0] < window[1]):
            break
        if begun and now >= window[0]:
            begun = begun()
        if due and now >= due[0][0] - engine.lead:
            time, _, entry = heapq.heappop(due)
            answer = make.replayed(entry, time)
            running[answer.mark] = entry
            engine.send(answer)
        for answer in load.turn(min(due[0][0] - engine.lead if due else now + 0.25, now + 0.25)):
            entry = running.pop(answer.mark, None)
            later = turns.get(entry.session) if entry is not None else None
            if later and failure(answer, exact):
                dropped += len(later)
                del later[:]
            elif later:
                number, following = later.pop()
                ready = answer.end + (following.delay or 0.0) / speed
                heapq.heappush(
                    due, (max(ready, began + following.time / speed if following.time else ready), number, following)
                )
    load.drain()
    result = load.figures(window, began, worked)
    result["dropped_turns"] = dropped
    return result


def arrivals(rng, rate, began, window, planned):
    """Yield arrival times: before the window, ``planned`` times within it, and endlessly after it."""
    time = began + rng.expovariate(rate)
    while time < window[0]:
        yield time
        time += rng.expovariate(rate)
    yield from sorted(rng.uniform(*window) for _ in range(planned))
    time = window[1]
    while True:
        time += rng.expovariate(rate)
        yield time


def highest(probe, start, least, coarse=1.3, limit=1e6):
    """Return the highest rate that ``probe`` accepts, within a factor of ``coarse``, or None if ``least`` fails too.

    Double or halve from ``start`` until one rate passes and one fails, then bisect. Each rate is tried once, because
    the result only starts a search with a stated error.
    """
    kept = broken = None
    rate = max(start, least)
    while True:
        if probe(rate):
            kept = rate
        else:
            broken = rate
        if broken is None:
            if rate >= limit:
                return kept
            rate = min(2 * rate, limit)
        elif kept is None:
            if rate <= least:
                return None
            rate = max(rate / 2, least)
        elif broken <= coarse * kept:
            return kept
        else:
            rate = (kept * broken) ** 0.5
