"""Model batch queueing: the service that a closed loop of streams gets from a server that alternates prefill and
decode.

Each stream sends its next request when its answer is complete. In one cycle of a stream, the server runs a decode step
for each token of its answer and prefills one prompt of every other stream. The time between a stream's tokens is
therefore longer than a step. A prompt waits for the step in progress and for earlier prompts (M/D/1,
Pollaczek-Khinchine).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fleetmark.planner.predict.serving.roofline import Efficiency

_HIGHEST = 0.95  # share of time in prefill above which the queueing formula is invalid in a closed loop


@dataclass(frozen=True, slots=True)
class Service:
    """The service of a stream: time to the first token, time per further token (s), and tokens per second; or
    arrays.
    """

    ttft: Any
    tpot: Any
    rate: Any


def service(prefill: Any, decode: Any, streams: Any, answer: Any, e: Efficiency) -> Service:
    """Return the service of ``streams`` of one replica, whose answers have ``answer`` tokens.

    ``prefill`` is the seconds for one prompt, and ``decode`` the seconds for a step of all streams. The resulting
    ``rate`` is the rate of one stream's answers, in tokens per second.
    """
    alone = prefill + e.prefill
    tpot = decode + e.overlap * (streams - 1) * prefill / answer
    load = np.minimum(streams * prefill / (answer * tpot + alone), _HIGHEST)
    wait = decode / 2 + e.waiting * prefill * load / (2 * (1 - load))
    ttft = alone + wait
    return Service(ttft, tpot, answer / (ttft + (answer - 1) * tpot))
