"""Loads on an endpoint: a fixed number of requests at once (closed loop), or arrivals of a Poisson process (open loop).

Imported by client.py on the host. Standard library only, Python 3.6 and later. Both go on with new requests until all
that were due within the measured window are answered, so that the last ones have the load of the others.
"""

import random

from figures import failure, of_run
from stream import clock

BACKOFF = 0.1  # seconds until a place of the closed loop, whose request failed, sends the next
LOOK = 0.1  # seconds between looks at whether a run can be given up
HOPELESS = 50  # failures without a single answer, after which a run ends


class Load:
    """One run. ``make`` gives the next request as an Answer, due at the time it is given (None: when it is sent)."""

    def __init__(self, engine, make, exact):
        self.engine, self.make, self.exact = engine, make, exact
        self.ended, self.sent, self.waiting = [], 0, []
        self.answered = 0

    def turn(self, until):
        finished = self.engine.turn(until)
        for answer in finished:
            self.answered += not failure(answer, self.exact)
        self.ended += finished
        return finished

    def hopeless(self):
        """Whether nothing but failures came."""
        return not self.answered and len(self.ended) >= HOPELESS

    def open_of(self, window):
        """How many requests that were due within ``window`` are under way."""
        return sum(window[0] <= c.answer.due < window[1] for c in self.engine.busy)

    def drain(self):
        """Wait for all that is under way; the engine's patience bounds it."""
        while self.engine.busy:
            self.turn(clock() + 0.25)

    def figures(self, window, began, worked):
        wall = clock() - began
        return of_run(self.ended, window, self.exact, self.engine.worked - worked, wall)


def closed(engine, make, exact, streams, warmup, seconds):
    """``streams`` requests at any time, each followed by another; the figures of the window after ``warmup``."""
    load = Load(engine, make, exact)
    began, worked = clock(), engine.worked
    window = began + warmup, began + warmup + seconds
    places = [began] * streams  # when each free place sends its next request
    prepared = make(None)
    while not load.hopeless():
        now = clock()
        if now >= window[1] and not load.open_of(window):
            break
        if places and places[0] <= now:  # one at a time: what comes meanwhile must not wait for a burst of requests
            places.pop(0)
            engine.send(prepared)
            prepared = make(None)
        for answer in load.turn(min(places[0] if places else now + 0.25, now + 0.25)):
            places.append(clock() + BACKOFF if answer.problem else 0.0)
        places.sort()
    load.drain()
    return load.figures(window, began, worked)


def poisson(engine, make, exact, rate, warmup, seconds, seed, give_up=None):
    """Requests at random times, ``rate`` a second; the figures of the window after ``warmup``.

    In the window there are exactly ``rate`` x ``seconds`` of them, at times drawn alike: a Poisson process, given its
    count, so that chance does not change the load that is measured. ``give_up``: a function of the requests of the
    window that were sent, and those planned, which says that the rest need not be waited for.
    """
    load = Load(engine, make, exact)
    rng = random.Random("%s/arrivals" % seed)
    began, worked = clock() + 0.01, engine.worked
    window = began + warmup, began + warmup + seconds
    planned = max(1, round(rate * seconds))
    times = arrivals(rng, rate, began, window, planned)
    due, mine, looked = next(times), [], 0.0
    prepared = make(due)
    while not load.hopeless():
        now = clock()
        if now >= window[1] and not load.open_of(window):
            break
        if now >= due:
            if window[0] <= due < window[1]:
                mine.append(prepared)
            engine.send(prepared)
            due = next(times)
            prepared = make(due)
        load.turn(min(due, now + 0.25))
        if give_up and now > looked + LOOK:
            looked = now
            if give_up(mine, planned, now):
                engine.abandon()
                return None
    load.drain()
    return load.figures(window, began, worked)


def arrivals(rng, rate, began, window, planned):
    """The times of arrivals: before the window, ``planned`` within it, and behind it without end."""
    time = began + rng.expovariate(rate)
    while time < window[0]:
        yield time
        time += rng.expovariate(rate)
    yield from sorted(rng.uniform(*window) for _ in range(planned))
    time = window[1]
    while True:
        time += rng.expovariate(rate)
        yield time


def highest(probe, start, least, coarse=1.1, limit=1e6):
    """The highest rate that ``probe`` keeps, within a factor of ``coarse``; None where ``least`` is not kept either.

    Doubles or halves from ``start`` until one rate is kept and one is not, then halves what lies between. A rate that
    is not kept is tried twice: one stall of the host is no limit of the server.
    """
    kept = broken = None
    rate = max(start, least)
    while True:
        if probe(rate) or probe(rate):
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
