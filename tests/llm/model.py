"""A small language model of bytes in plain Python, whose weights can be rounded to fewer bits or damaged."""

from __future__ import annotations

import math
import random
from functools import cache

WIDTH, CONTEXT = 24, 3  # hidden units, bytes that tell the next one
FIRST, LETTERS = 32, 95  # printable ASCII


class Model:
    """``bits``: to which weights are rounded, 0 for none; ``is_broken``: a row of weights has the wrong sign."""

    def __init__(self, bits: int = 0, is_broken: bool = False) -> None:
        rng = random.Random(7)
        self.inner = [[rng.gauss(0, 1) for _ in range(CONTEXT * LETTERS)] for _ in range(WIDTH)]
        self.outer = [[rng.gauss(0, 1) for _ in range(WIDTH)] for _ in range(LETTERS)]
        if bits:
            self.inner, self.outer = (
                [[round(w * scale) / scale for w in row] for row in rows]
                for rows in (self.inner, self.outer)
                for scale in [(2 ** (bits - 1) - 1) / max(abs(w) for row in rows for w in row)]
            )
        if is_broken:
            self.inner[0] = [-w for w in self.inner[0]]

    def following(self, before: str) -> list[float]:
        """Return the log-probability of each letter after the last letters of ``before``."""
        places = [(ord(c) - FIRST) % LETTERS + n * LETTERS for n, c in enumerate(before[-CONTEXT:].rjust(CONTEXT))]
        hidden = [math.tanh(sum(row[place] for place in places)) for row in self.inner]
        logits = [sum(w * h for w, h in zip(row, hidden, strict=True)) for row in self.outer]
        largest = max(logits)
        total = largest + math.log(sum(math.exp(logit - largest) for logit in logits))
        return [logit - total for logit in logits]

    def tops(self, prompt: str, count: int) -> dict[str, float]:
        """Return the likeliest next letters with their log-probabilities, the likeliest first."""
        likely = self.following(prompt)
        best = sorted(range(LETTERS), key=likely.__getitem__, reverse=True)[:count]
        return {chr(n + FIRST): likely[n] for n in best}

    def echo(self, prompt: str) -> dict[str, list[object]]:
        """Return the log-probabilities of ``prompt`` and of one more letter, as OpenAI's interface has them."""
        text = prompt + " "
        tops: list[object] = [None]
        values: list[object] = [None]
        for n in range(1, len(text)):
            likely = self.following(text[:n])
            best, letter = max(range(LETTERS), key=likely.__getitem__), (ord(text[n]) - FIRST) % LETTERS
            tops.append({chr(best + FIRST): likely[best], text[n]: likely[letter]})
            values.append(likely[letter])
        return {"tokens": list(text), "token_logprobs": values, "top_logprobs": tops}


@cache
def named(name: str) -> Model:
    """Return the model of ``name``: bytes, bytes-8bit, bytes-4bit or bytes-broken."""
    kind = name.removeprefix("bytes").removeprefix("-")
    return Model(bits=int(kind[0]) if kind.endswith("bit") else 0, is_broken=kind == "broken")
