"""Check the answers of an endpoint without any download: generated arithmetic, retrieval, the likelihood of a text.

A server that is fast as its weights are broken, or quantised too far, shows here. Imported by client.py on the host.
Standard library only, Python 3.6 and later.
"""

import json
import math
import random
import re

QUESTIONS = 40
ENTRIES, LOOKUPS = 100, 20  # of the list that is searched, about 1,300 tokens; questions about it
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


def perplexity(ask):
    """Return (perplexity of the fixed text, its tokens), or None if the endpoint tells no log-probabilities."""
    reply = ask({"prompt": TEXT, "max_tokens": 1, "echo": True, "logprobs": 1})
    try:
        values = reply["choices"][0]["logprobs"]["token_logprobs"][:-1]  # the last token is the model's own
        values = [float(value) for value in values if value is not None]  # the first one has none
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    if len(values) < 20 or not all(math.isfinite(value) and value <= 0 for value in values):
        return None
    return math.exp(-sum(values) / len(values)), len(values)


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
