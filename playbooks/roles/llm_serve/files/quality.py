"""Check the answers of an endpoint without any download: generated arithmetic, retrieval, the likelihood of a text.

This check detects a server that is fast only because its weights are broken or quantised too strongly. Imported by
client.py on the host. Standard library only, Python 3.6 and later.
"""

import json
import math
import random
import re

QUESTIONS = 40
ENTRIES, LOOKUPS = 100, 20  # entries of the searched list (about 1,300 tokens); questions about it
FEWEST_TOKENS, MOST_TOKENS = 20, 5000  # of the fixed text
MOST_STORED = 1 << 20  # bytes of a stored reference
PLACES, TOPS = 40, 5  # number of prefixes of the fixed text, and of the most likely next tokens requested for each
SILENT = 5  # maximum prefixes without an answer; a token that is part of a letter gives none
MOST_WORD = 200  # characters of a token
# The beginning of a text that models know well, in the public domain (A. Lincoln, 1863).
TEXT = (
    "Four score and seven years ago our fathers brought forth on this continent, a new nation, conceived in Liberty, "
    "and dedicated to the proposition that all men are created equal. Now we are engaged in a great civil war, testing "
    "whether that nation, or any nation so conceived and so dedicated, can long endure. We are met on a great "
    "battle-field of that war. We have come to dedicate a portion of that field, as a final resting place for those "
    "who here gave their lives that that nation might live."
)
EXAMPLES = "2 + 3 = 5\n10 - 4 = 6\n3 * 7 = 21\n"


def questions(seed=1):
    """Return (question, answer) pairs, the same in every run: sums, differences and products of small numbers."""
    rng, pairs = random.Random("arithmetic/%s" % seed), []
    for n in range(QUESTIONS):
        a, b, sign = rng.randint(2, 99), rng.randint(2, 99), "+-*"[n % 3]
        b = b % 9 + 2 if sign == "*" else b
        result = a + b if sign == "+" else a - b if sign == "-" else a * b
        pairs.append(("%d %s %d =" % (a, sign, b), result))
    return pairs


def first_number(text):
    """Return the first whole number of an answer, or None."""
    match = re.search(r"-?[0-9]{1,9}", text.replace(",", ""))
    return int(match.group()) if match else None


def arithmetic(ask, is_chat):
    """Return the share of questions that are answered exactly. ``ask(document)`` returns the reply or None."""
    right = 0
    for question, result in questions():
        if is_chat:
            words = "%s\nAnswer with the number alone: %s" % (EXAMPLES, question)
            reply = ask({"messages": [{"role": "user", "content": words}], "max_tokens": 16})
        else:
            reply = ask({"prompt": EXAMPLES + question, "max_tokens": 8})
        right += first_number(text_of(reply).split("\n")[0]) == result
    return right / float(QUESTIONS)


def entries(seed=1):
    """Return (name, number) pairs, the same in every run, with names that mean nothing."""
    rng, pairs = random.Random("retrieval/%s" % seed), {}
    while len(pairs) < ENTRIES:
        name = "".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(3)).capitalize()
        pairs.setdefault(name, rng.randint(1000, 9999))
    return list(pairs.items())


def retrieval(ask, is_chat):
    """Return the share of entries of a list that are found in it, or None if no question is answered at all, for
    example because the list does not fit the context. ``ask(document)`` returns the reply or None.
    """
    pairs, right, replies = entries(), 0, 0
    listed = "\n".join("The number of %s is %d." % pair for pair in pairs)
    for name, number in pairs[:: ENTRIES // LOOKUPS]:
        if is_chat:
            words = "%s\n\nWhat is the number of %s? Answer with the number alone." % (listed, name)
            reply = ask({"messages": [{"role": "user", "content": words}], "max_tokens": 16})
        else:
            reply = ask({"prompt": "%s\n\nThe number of %s is" % (listed, name), "max_tokens": 8})
        replies += reply is not None
        right += first_number(text_of(reply)) == number
    return right / float(LOOKUPS) if replies else None


def likelihood(ask, is_chat=False, reference=None):
    """Return log-probabilities: a Likelihood of the fixed text if the endpoint returns the prompt (echo), or
    Continuations otherwise, or if ``reference`` has them. None if the endpoint reports no log-probabilities.
    """
    is_like = is_chat or isinstance(reference, Continuations)
    return (None if is_like else echoed(ask)) or continuations(ask, is_chat)


def continuations(ask, is_chat):
    """Return the Continuations of the fixed text; None if the endpoint reports no log-probabilities."""
    words, places = TEXT.split(), []
    for n in range(PLACES):
        beginning = " ".join(words[: (n + 1) * len(words) // PLACES])
        if is_chat:
            content = "Continue this text, and write nothing else: " + beginning
            fields = {"messages": [{"role": "user", "content": content}], "logprobs": True, "top_logprobs": TOPS}
        else:
            fields = {"prompt": beginning, "logprobs": TOPS}
        places.append(next_tokens(ask(dict(fields, max_tokens=1))))
        if len(places) == SILENT and not any(places):
            return None  # further prefixes would give no result either
    known = Continuations(places, is_chat)
    return known if len(known.known) >= FEWEST_TOKENS else None


def next_tokens(reply):
    """Return the most likely tokens of a one-token reply, {token: log-probability}; None if there are none.

    The reply has the form of completions or of chats, as requested.
    """
    try:
        fields = reply["choices"][0]["logprobs"]
        if "content" in fields:
            return candidates([(top["token"], top["logprob"]) for top in fields["content"][0]["top_logprobs"]])
        return candidates(list(fields["top_logprobs"][0].items()))
    except (KeyError, IndexError, TypeError, AttributeError):
        return None


def candidates(pairs):
    """Return the valid entries of {token: log-probability} from a server or a file; None if there are none."""
    known = {}
    for token, value in pairs[: 4 * TOPS]:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value <= 0:
            known.setdefault(("%s" % token)[:MOST_WORD], float(value))
    return known or None


def echoed(ask):
    """Return the Likelihood of the fixed text; None if the endpoint does not repeat a prompt with log-probabilities."""
    reply = ask({"prompt": TEXT, "max_tokens": 1, "echo": True, "logprobs": 1})
    try:
        fields = reply["choices"][0]["logprobs"]
        values = fields["token_logprobs"][:-1]  # the last token is the model's own
    except (KeyError, IndexError, TypeError):
        return None
    return checked(values, listed(fields, "tokens"), listed(fields, "top_logprobs"))


def listed(document, key):
    return document[key] if isinstance(document.get(key), list) else []


def checked(values, tokens, tops):
    """Return a Likelihood of a server's lists, one entry a token; None if they are not log-probabilities."""
    try:
        values = [None if value is None else float(value) for value in values[:MOST_TOKENS]]
    except (TypeError, ValueError):
        return None
    known = [value for value in values if value is not None]  # the first token has none
    if len(known) < FEWEST_TOKENS or not all(math.isfinite(value) and value <= 0 for value in known):
        return None
    tokens = ["%s" % token for token in tokens[: len(values)]]
    tops = [likeliest(top) for top in tops[: len(values)]]
    return Likelihood(values, tokens if len(tokens) == len(values) else None, tops)


def likeliest(top):
    """Return the likeliest token of {token: log-probability}, or a token as a stored reference has it."""
    if isinstance(top, dict):
        known = {k: v for k, v in top.items() if isinstance(v, (int, float)) and math.isfinite(v)}
        return max(known, key=known.get) if known else None
    return top if isinstance(top, str) else None


class Likelihood:
    """The log-probability of each token of the fixed text, the tokens, and the most likely token at each

    position. ``tokens`` is None, and ``tops`` is empty or has None, if the endpoint does not report them.
    """

    def __init__(self, values, tokens, tops):
        self.values, self.tokens, self.tops = values, tokens, tops
        self.known = [value for value in values if value is not None]

    def perplexity(self):
        return math.exp(-sum(self.known) / len(self.known))

    def document(self, model):
        """Return the stored form, for later comparisons."""
        head = {"llm_serve_reference": 1, "model": model}
        return dict(head, tokens=self.tokens, logprobs=self.values, top=self.tops)

    def differences(self, reference):
        """Return the difference from ``reference``: figures by name, or ``unlike``, the reason if there are none."""
        if not self.tokens or not reference.tokens:
            return {"unlike": "the endpoint tells no tokens of the text"}
        if self.tokens != reference.tokens:
            shorter = min(len(self.tokens), len(reference.tokens))
            places = (n for n in range(shorter) if self.tokens[n] != reference.tokens[n])
            place = next(places, shorter) + 1
            return {"unlike": "its tokens differ from the reference's from number %d on: another tokenizer" % place}
        apart = [abs(a - b) for a, b in zip(self.values, reference.values) if None not in (a, b)]  # noqa: B905
        if len(apart) < FEWEST_TOKENS:
            return {"unlike": "the reference tells too few log-probabilities"}
        same = [a == b for a, b in zip(self.tops, reference.tops) if None not in (a, b)]  # noqa: B905
        agreement = sum(same) / float(len(same)) if same else None
        return {"difference": sum(apart) / len(apart), "largest": max(apart), "agreement": agreement}


class Continuations:
    """The most likely next tokens, {token: log-probability}, after some prefixes of the fixed text.

    ``places``: None if unknown. ``is_chat``: whether they are answers of a chat.
    """

    def __init__(self, places, is_chat):
        self.places, self.is_chat = places, is_chat
        self.known = [place for place in places if place]

    def perplexity(self):
        return None  # only the log-probabilities of the text itself give a perplexity

    def document(self, model):
        """Return the stored form, for later comparisons."""
        return {"llm_serve_reference": 1, "model": model, "chat": self.is_chat, "places": self.places}

    def differences(self, reference):
        """Return the difference from ``reference``: figures by name, or ``unlike``, the reason if there are none.

        At each position, the log-probability of the reference's most likely token counts. If it is not among the most
        likely tokens here, the least likely of these is used, so the true difference is at least as large.
        """
        if not isinstance(reference, Continuations):
            return {"unlike": "the endpoint does not repeat a prompt (echo), and the reference needs that"}
        if self.is_chat != reference.is_chat:
            return {"unlike": "the reference is of the other interface: set llm_serve.api as it was there"}
        apart, same = [], []
        for mine, other in zip(self.places, reference.places):  # noqa: B905
            if mine and other:
                best = max(other, key=other.get)
                apart.append(abs(other[best] - mine.get(best, min(mine.values()))))
                same.append(max(mine, key=mine.get) == best)
        if len(apart) < FEWEST_TOKENS:
            return {"unlike": "the reference tells too few log-probabilities"}
        agreement = sum(same) / float(len(same))
        return {"difference": sum(apart) / len(apart), "largest": max(apart), "agreement": agreement}


def stored(path):
    """Return the Likelihood or the Continuations in a file that an earlier case wrote.

    Raise ValueError with the reason if it has none.
    """
    try:
        with open(path, "rb") as file:
            fields = document(file.read(MOST_STORED)) or {}
    except OSError as error:
        raise ValueError(error.strerror) from None
    if fields.get("llm_serve_reference") != 1:
        raise ValueError("it is no logprobs.json of an earlier case")
    if "places" in fields:
        tops = [place if isinstance(place, dict) else {} for place in listed(fields, "places")[:PLACES]]
        known = Continuations([candidates(list(place.items())) for place in tops], fields.get("chat") is True)
        if len(known.known) < FEWEST_TOKENS:
            raise ValueError("it has too few log-probabilities")
        return known
    likely = checked(listed(fields, "logprobs"), listed(fields, "tokens"), listed(fields, "top"))
    if likely is None or not likely.tokens:
        raise ValueError("it has no log-probability for each token")
    return likely


def text_of(reply):
    try:
        choice = reply["choices"][0]
        text = choice["message"]["content"] if "message" in choice else choice["text"]
    except (KeyError, IndexError, TypeError):
        return ""
    return text.strip() if isinstance(text, str) else ""


def document(text):
    """Return the JSON object in ``text``, or None."""
    try:
        value = json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
