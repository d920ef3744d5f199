"""Decide whether a rate meets its targets, and search for the highest rate that

does. A percentile is met if few enough requests miss its target. Requests are evaluated in the order of their scheduled
times, after fixed numbers of requests, by a test with stated errors: ``ERROR`` is the probability that the rate
reported as kept misses a target, and that the rate reported as missed meets both. Misses occur in clusters, because
long queues persist. A request therefore counts as 1 / design effect of an independent one (Kish, Survey Sampling,
1965). The effect is estimated from batch means of the slowest tenth. Imported by client.py on the host. Standard
library only, Python 3.6 and later.
"""

import math

ERROR = 0.05
ENOUGH = 10  # minimum expected misses at the target's share to show that a target is met
EARLY = (1 / 16.0, 1 / 8.0, 1 / 4.0, 1 / 2.0)  # share of the minimum requests; a clear miss is detected earlier
LOOKS = (1, 2, 4)  # multiple of the minimum requests
BATCHES = 20
FEWEST = 100  # minimum requests to estimate the clustering of misses
WHOLE = 250  # minimum requests for an estimate that can show that a rate is met
SLOW = 0.9  # share above which the slowest requests show the clustering of misses
STEP = 1.1  # ratio of consecutive rates
FALL = 0.75  # ratio to the next start if the first rate of a climb is not met
CLIMBS = 5
ALONE = 25  # sequential requests before a search; if these miss the target, every rate misses it
MOST_RATES = 16  # maximum number of rates


def least(share):
    """Return the minimum number of requests that can show that a percentile is met: 1,000 for the 99th."""
    return max(WHOLE, math.ceil(ENOUGH / (1 - share) - 1e-6))


def looks(share):
    """Return the numbers of requests after which a rate is evaluated."""
    counts = [int(least(share) * part) for part in EARLY + LOOKS]
    return [count for count in counts if count >= FEWEST]


def upper_gamma(a, x):
    """Return the regularised upper incomplete gamma function: the chance that Poisson(x) is below a."""
    if x <= 0:
        return 1.0
    scale = math.exp(-x + a * math.log(x) - math.lgamma(a))
    if x < a + 1:  # series
        term = total = 1.0 / a
        n = a
        while abs(term) > 1e-14 * abs(total):
            n += 1
            term *= x / n
            total += term
        return 1 - scale * total
    tiny = 1e-300  # continued fraction, by Lentz
    b = x + 1 - a
    c, d = 1 / tiny, 1 / b
    value = d
    for n in range(1, 1000):
        factor = -n * (n - a)
        b += 2
        d = 1 / (factor * d + b or tiny)
        c = b + factor / c or tiny
        value *= d * c
        if abs(d * c - 1) < 1e-13:
            break
    return scale * value


def at_most(count, mean):
    """Return the chance that Poisson(mean) is at most ``count``, which need not be whole."""
    return upper_gamma(count + 1, mean)


def at_least(count, mean):
    return 1 - upper_gamma(count, mean) if count > 0 else 1.0


def effect(values):
    """Return how many requests count as one independent request, at least 1. ``values``: in scheduled order."""
    size = len(values) // BATCHES
    if size < 2:
        return 1.0
    edge = sorted(values)[int(SLOW * len(values))]
    shares = [sum(v > edge for v in values[k * size : (k + 1) * size]) / size for k in range(BATCHES)]
    mean = sum(shares) / BATCHES
    if not 0 < mean < 1:
        return 1.0  # no request is slower than the others
    spread = sum((share - mean) ** 2 for share in shares) / (BATCHES - 1)
    return max(1.0, spread * size / (mean * (1 - mean)))


def verdict(series, share, kept_error, missed_error, is_early):
    """Return "kept", "missed" or "" for (values, target) of each target: values in order, infinite for a failure."""
    allowed, every = 1 - share, True
    for values, target in series:
        count, weight = len(values), effect(values)
        misses = sum(value > target for value in values)
        mean = allowed * count / weight
        if misses > allowed * count and at_least(misses / weight, mean) <= missed_error / (
            len(series) * len(EARLY + LOOKS)
        ):
            return "missed"
        every = every and at_most(misses / weight, mean) <= kept_error / len(LOOKS)
    return "kept" if every and not is_early else ""


class Interval:
    """The result of a search: the highest rate shown to meet the targets, and the lowest rate shown to miss one
    (None: not shown).
    """

    def __init__(self):
        self.kept = self.missed = self.figures = None
        self.lowest = None  # that was tried
        self.tried = 0


def climb(trial, start, minimum=1e-4):
    """Search from ``start`` upwards. ``trial(rate, kept_error, missed_error)`` returns a verdict and its figures.

    A verdict is "kept", "missed", "" (neither is shown), or "ended" (no time is left).

    Each rate is tried once. A climb ends at the first rate that is not met, so that its error is that of one test
    (fixed-sequence testing: Maurer, Hothorn and Lehmacher, 1995). If its first rate is not met, another climb
    starts lower, with half of the remaining error. After the climb, higher rates are tried until one is missed.
    """
    ends, rate, error = Interval(), start, ERROR / 2
    for _ in range(CLIMBS):
        while ends.tried < MOST_RATES and (ends.missed is None or rate < ends.missed):
            word, figures = trial(rate, error, ERROR / MOST_RATES)
            ends.tried += 1
            ends.lowest = min(rate, ends.lowest or rate)
            if word == "missed":
                ends.missed = min(rate, ends.missed or rate)
            if word == "ended":
                return ends
            if word != "kept":
                break
            ends.kept, ends.figures = rate, figures
            rate *= STEP
        if ends.kept or ends.tried >= MOST_RATES or rate * FALL < minimum:
            break
        rate, error = rate * FALL, error / 2
    while ends.kept and ends.missed is None and ends.tried < MOST_RATES:
        rate *= STEP
        word, _ = trial(rate, 0.0, ERROR / MOST_RATES)
        ends.tried += 1
        if word == "missed":
            ends.missed = rate
        elif word == "ended":
            break
    return ends
