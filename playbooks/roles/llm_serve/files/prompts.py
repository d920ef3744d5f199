"""Make requests of given lengths, from a distribution or from the user's own trace (JSON lines).

Imported by client.py on the host. Standard library only, Python 3.6 and later. A prompt is made of common words, as
many as give its tokens by the server's own count, and begins with words that no other prompt begins with: a cache of
prefixes serves none of it.
"""

import json
import random

MOST_TOKENS = 10000000
MOST_LINES = 1000000
WORDS = (  # noqa: SIM905
    "time year people way day man thing woman life child world school state family student group country problem hand "
    "part place case week company system program question work number night point home water room mother area money "
    "story fact month lot right study book eye job word business issue side kind head house service friend father "
    "power hour game line end member law car city community name president team minute idea body information back "
    "parent face others level office door health person art war history party result change morning reason research "
    "girl guy moment air teacher force education foot boy age policy music market sense nation plan college interest "
    "death experience effect use class control care field development role effort rate heart drug show leader light "
    "voice wife police mind price report decision son view relationship town road arm difference value building "
    "action season society tax"
).split()
HEAD = 6  # words that tell one prompt from all others


class Mistake(Exception):
    """Report that the user's input cannot be used; the message says why."""


def lengths(text):
    """Return a function that draws a number of tokens: ``512``, ``128-1024`` (uniform), ``512~100`` (normal)."""
    try:
        if "~" in text:
            middle, spread = map(float, text.split("~"))
            check(text, middle, spread + 1)
            return lambda rng: max(1, min(MOST_TOKENS, round(rng.gauss(middle, spread))))
        low, _, high = text.partition("-")
        low, high = int(low), int(high or low)
        check(text, low, high)
    except ValueError:
        raise Mistake("%s is not a length: write 512, 128-1024 or 512~100 (mean and deviation)" % text) from None
    return lambda rng: rng.randint(low, high)


def check(text, *numbers):
    if not all(1 <= n <= MOST_TOKENS for n in numbers) or (
        len(numbers) > 1 and "-" in text and numbers[0] > numbers[1]
    ):
        raise ValueError(text)


NAMES = (
    ("prompt_tokens", "input_length", "input_tokens"),
    ("output_tokens", "output_length", "max_tokens"),
)


def trace(path):
    """Return the requests of a trace, as (prompt or None, its tokens or None, tokens of the answer).

    Raise Mistake for the first line that is none.
    """
    requests = []
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if number > MOST_LINES:
                    raise Mistake("%s has more than %d lines: give a part of it" % (path, MOST_LINES))
                if line.strip():
                    requests.append(entry(line, "line %d of %s" % (number, path)))
    except OSError as error:
        raise Mistake("%s: %s: give a trace that the client's host has" % (path, error.strerror)) from None
    except UnicodeDecodeError:
        raise Mistake("%s is not UTF-8 text; a trace has one JSON object per line" % path) from None
    if not requests:
        raise Mistake("%s has no requests: a trace is a JSON object a line" % path)
    return requests


def entry(line, place):
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
    return prompt, counts[0], counts[1]


class Source:
    """Requests, one after another, the same for the same ``seed``. ``scale``: words of a prompt by its tokens."""

    def __init__(self, seed, prompt, answer, listed):
        self.seed, self.prompt, self.answer, self.listed = seed, prompt, answer, listed
        self.words, self.fixed, self.count = 0.75, 0.0, 0

    def next(self):
        """Return the next prompt and the tokens of its answer."""
        rng = random.Random("%s/%d" % (self.seed, self.count))
        self.count += 1
        if self.listed:
            prompt, tokens, wanted = self.listed[(self.count - 1) % len(self.listed)]
            return (prompt if prompt is not None else self.text(tokens, rng)), wanted
        return self.text(self.prompt(rng), rng), self.answer(rng)

    def text(self, tokens, rng):
        return self.of_words(round((tokens - self.fixed) * self.words), rng)

    def of_words(self, count, rng=None):
        rng = rng or random.Random("%s/words/%d" % (self.seed, count))
        return " ".join(rng.choices(WORDS, k=max(1, count)))

    def middle(self):
        """Return the tokens of a usual prompt."""
        rng = random.Random("middle")
        few = [p for _, p, _ in self.listed[:1000] if p] if self.listed else [self.prompt(rng) for _ in range(99)]
        return sorted(few)[len(few) // 2] if few else 0

    def fit(self, small, large):
        """Learn the words of a token from two prompts: (words, tokens) each."""
        more = large[1] - small[1]
        if more > 0 and large[0] > small[0]:
            self.words = (large[0] - small[0]) / more
            self.fixed = max(0.0, small[1] - small[0] / self.words)
