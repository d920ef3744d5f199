"""Batch queueing: what a closed loop of streams sees of a server that prefills and decodes in turn.

Each stream asks again when its answer is complete. In one cycle of a stream the server makes a decode step for each
token of its answer and prefills one prompt of every other stream, so a stream's tokens are further apart than a step
takes. A prompt waits for the step in progress and for prompts before it (M/D/1, Pollaczek-Khinchine).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fleetmark.planner.predict.serving.roofline import Efficiency

_HIGHEST = 0.95  # share of time in prefill beyond which a queue's formula no longer holds in a closed loop


@dataclass(frozen=True, slots=True)
class Service:
    """What a stream sees: time to the first token and per further token (s), and its tokens a second; or arrays."""

    ttft: Any
    tpot: Any
    rate: Any


def service(prefill: Any, decode: Any, streams: Any, answer: Any, e: Efficiency) -> Service:
    """Return the service of ``streams`` of one replica, whose answers have ``answer`` tokens.

    ``prefill``: seconds for one prompt; ``decode``: seconds for a step of all streams. ``rate`` is that of one stream's
    answers, in tokens a second.
    """
    alone = prefill + e.prefill
    tpot = decode + e.overlap * (streams - 1) * prefill / answer
    load = np.minimum(streams * prefill / (answer * tpot + alone), _HIGHEST)
    wait = decode / 2 + e.waiting * prefill * load / (2 * (1 - load))
    ttft = alone + wait
    return Service(ttft, tpot, answer / (ttft + (answer - 1) * tpot))
