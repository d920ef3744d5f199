"""Compute the maximum utilisation that meets a latency target, by inverting Erlang C and Allen-Cunneen.

A pool has ``slots``, the number of requests that one queue serves at the same time. If every server has its own queue
(a load balancer that ignores queues), these are the slots of one server, such as its worker threads. If several servers
share a queue, they are the slots of all of them. Separate queues are the conservative choice, because one queue over
more slots allows a higher utilisation.

``load`` is the mean number of busy slots in erlangs: arrivals per second x seconds of service. Utilisation is load /
slots.

Sources: Erlang 1917; Allen, Probability, Statistics and Queueing Theory (2nd ed. 1990), for the approximation of queues
with arrivals or service that are not exponential.
"""

from __future__ import annotations

import math

from scipy import integrate, special

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import message
from fleetmark.base.units import human

CAP = 0.85  # above this utilisation, small errors of load or service time cause large errors of latency
_TOLERANCE = 1e-7  # tolerance of the utilisation


def erlang_c(servers: int, load: float) -> float:
    """Return the probability that a request must wait in an M/M/c queue.

    The ``load`` is in erlangs, below the number of ``servers`` (slots). The Poisson form of Erlang B keeps the cost
    independent of the slots. Raise ValueError for fewer than one slot, or a load without a steady state.
    """
    if servers < 1 or not 0 <= load < servers:
        raise ValueError(f"no steady state: a load of {load:g} on {servers} slots")
    if load == 0:
        return 0.0
    log_pmf = servers * math.log(load) - load - math.lgamma(servers + 1)
    blocked = math.exp(log_pmf) / float(special.pdtr(servers, load))  # Erlang B
    return blocked / (1 - load / servers * (1 - blocked))


def mean_wait(servers: int, load: float, service_s: float, arrival_cv2: float = 1, service_cv2: float = 1) -> float:
    """Return the mean wait in seconds: Wq = C / (c mu - lambda) x (ca2 + cs2) / 2.

    The formula is Allen-Cunneen's, which is exact for M/M/c.
    """
    return erlang_c(servers, load) * _drain(servers, load, service_s, arrival_cv2, service_cv2)


def waits_longer(
    seconds: float, servers: int, load: float, service_s: float, arrival_cv2: float = 1, service_cv2: float = 1
) -> float:
    """Return P(W > ``seconds``) = C exp(-``seconds`` / w), where w is the mean wait of the requests that wait.

    In M/M/c this is exactly C exp(-(c mu - lambda) t). In other queues, w is Allen-Cunneen's and the shape is
    approximate.
    """
    held = _drain(servers, load, service_s, arrival_cv2, service_cv2)
    decay = math.exp(-seconds / held) if held > 0 else float(seconds <= 0)
    return erlang_c(servers, load) * decay


def _drain(servers: int, load: float, service_s: float, arrival_cv2: float, service_cv2: float) -> float:
    """Return the mean wait in seconds of requests that must wait."""
    return service_s / (servers - load) * (arrival_cv2 + service_cv2) / 2


def takes_longer(
    seconds: float, servers: int, load: float, service_s: float, arrival_cv2: float = 1, service_cv2: float = 1
) -> float:
    """Return P(wait + service > ``seconds``).

    The wait is distributed as in ``waits_longer``. The service time is gamma distributed and independent of it. Gamma
    is exact for exponential (``service_cv2`` 1) and constant (0) service.
    """
    waits = erlang_c(servers, load)
    held = _drain(servers, load, service_s, arrival_cv2, service_cv2)
    alone = _serves_longer(seconds, service_s, service_cv2)
    if waits == 0 or held == 0:
        return alone
    if service_cv2 == 0:
        return waits * math.exp(-max(seconds - service_s, 0) / held) if seconds >= service_s else 1.0
    shape = 1 / service_cv2
    scale = service_s * service_cv2

    def late(part: float) -> float:
        """Return P(wait > the time left after service), integrated over quantiles of service, because its density is
        singular at 0.
        """
        return math.exp(-(seconds - float(special.gammaincinv(shape, part)) * scale) / held)

    short, _ = integrate.quad(late, 0, 1 - alone, limit=200)
    return waits * (alone + short) + (1 - waits) * alone


def _serves_longer(seconds: float, service_s: float, service_cv2: float) -> float:
    """Return P(service > ``seconds``)."""
    if service_cv2 == 0:
        return float(service_s > seconds)
    return float(special.gammaincc(1 / service_cv2, seconds / (service_s * service_cv2)))


def utilisation_for(
    target_s: float,
    quantile: float | None,
    service_s: float,
    slots: int,
    arrival_cv2: float = 1,
    service_cv2: float = 1,
    cap: float = CAP,
    *,
    wait: bool = False,
) -> tuple[float, str]:
    """Return the maximum utilisation that meets a latency target, and the reason in words: the target or the ``cap``.

    At this utilisation, a share ``quantile`` of requests (None: their mean) takes at most ``target_s`` seconds from
    arrival to answer. If ``wait`` is True, the target applies to the time in the queue alone.

    ``service_s`` is the mean service time in seconds without a wait. ``arrival_cv2`` and ``service_cv2`` are the
    squared coefficients of variation of the times between arrivals and of service (1: exponential).

    Raise FleetmarkError for a target that no load meets, and for invalid figures.
    """
    _refuse(target_s, quantile, service_s, slots, (arrival_cv2, service_cv2), cap)
    target = _target(target_s, quantile, wait)
    least = 0.0 if wait else service_s
    if target_s <= least:
        raise FleetmarkError(
            f"{target} cannot be met: service alone takes {human(service_s, 's')} on average; "
            "give a longer target, or a faster server's service time"
        )
    if quantile is not None and not wait and (alone := _serves_longer(target_s, service_s, service_cv2)) > 1 - quantile:
        raise FleetmarkError(
            f"{target} cannot be met: with a mean of {human(service_s, 's')} and a squared coefficient of "
            f"variation of {service_cv2:g}, {alone:.1%} of requests take longer in service alone; "
            "give a longer target, or the service time's own variation if that is smaller"
        )

    def meets(utilisation: float) -> bool:
        station = (slots, utilisation * slots, service_s, arrival_cv2, service_cv2)
        if quantile is None:
            return mean_wait(*station) <= target_s - least
        return (waits_longer if wait else takes_longer)(target_s, *station) <= 1 - quantile

    if meets(cap):
        return cap, message("the cap of {cap}: {target} would allow more", cap=f"{cap:g}", target=target)
    low, high = 0.0, cap
    while high - low > _TOLERANCE:
        middle = (low + high) / 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    if low == 0:
        raise FleetmarkError(
            f"{target} cannot be met at any useful load on {slots} slots with a service time of "
            f"{human(service_s, 's')}; give a longer target, or more slots to one queue"
        )
    return low, message("{target}, with {slots} slots to a queue", target=target, slots=slots)


def _target(target_s: float, quantile: float | None, wait: bool) -> str:
    statistic = f"p{quantile * 100:g}" if quantile is not None else message("mean")
    time = human(target_s, "s")
    if wait:
        return message("{what} wait of {time}", what=statistic, time=time)
    return message("{what} latency of {time}", what=statistic, time=time)


def _refuse(
    target_s: float, quantile: float | None, service_s: float, slots: int, cv2: tuple[float, float], cap: float
) -> None:
    for name, value in (("target", target_s), ("service time", service_s)):
        if not (math.isfinite(value) and value > 0):
            raise FleetmarkError(f"latency: a {name} of {value:g} s; it is a positive number of seconds")
    if quantile is not None and not 0 < quantile < 1:
        raise FleetmarkError(f"latency: a quantile of {quantile:g}; it must be between 0 and 1, such as 0.99")
    if slots < 1:
        raise FleetmarkError(f"latency: {slots} slots; a queue has 1 or more")
    for name, value in zip(("arrivals", "service"), cv2, strict=True):
        if not (math.isfinite(value) and value >= 0):
            raise FleetmarkError(
                f"latency: a squared coefficient of variation of {value:g} for {name}; it is 0 or more"
            )
    if not 0 < cap < 1:
        raise FleetmarkError(f"latency: a utilisation cap of {cap:g}; it must be between 0 and 1, such as {CAP:g}")
