"""Make prompts of given lengths, from a distribution or from a trace, with shared prefixes and conversations.

Imported by client.py on the host. Standard library only, Python 3.6 and later. A prompt consists of common words,
whose number gives the requested tokens as counted by the server. Unless the user requests shared prefixes or
conversations, no two prompts begin with the same words, so a prefix cache has no effect. The seed determines the
lengths. The words differ each time the client starts, because servers keep prompts of earlier cases.
"""

import random
from collections import OrderedDict, deque

from traces import BLOCK, MOST_TOKENS, Mistake

MOST_TEXTS = 4096  # maximum number of blocks whose text is stored
MOST_SEEN = 1000000  # maximum number of sent blocks to remember
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


class Conversation:
    """A conversation: ``texts`` of user and model, their ``tokens`` by the server's count, and turns ``left``."""

    __slots__ = ("left", "texts", "tokens")

    def __init__(self, left):
        self.texts, self.tokens, self.left = [], 0, left


class Prompt:
    """One prompt: alternating ``texts`` of user and model, and the requested answer.

    ``wanted``: tokens of the answer; ``thinking``: those of them before the visible answer.
    ``reusable``: tokens at its beginning that an earlier request already had.
    """

    __slots__ = ("conversation", "reusable", "texts", "thinking", "wanted")

    def __init__(self, texts, wanted, reusable=0, thinking=0, conversation=None):
        self.texts, self.wanted, self.reusable = texts, wanted, reusable
        self.thinking, self.conversation = thinking, conversation


class Source:
    """Generate prompts; the same ``seed`` gives the same lengths.

    ``listed``: requests of a trace, or None. ``thinking``: draws the tokens of thinking, or None. ``shared``: share of
    a prompt's tokens that are one of ``prefixes`` common beginnings. ``turns``: of each conversation.
    """

    def __init__(self, seed, prompt, answer, listed, thinking=None, shared=0.0, prefixes=1, turns=1):
        self.seed, self.prompt, self.answer, self.listed = seed, prompt, answer, listed
        self.thinking, self.shared, self.prefixes, self.turns = thinking, shared, prefixes, turns
        self.words, self.fixed = 0.75, 0.0  # words per token, and tokens that every prompt has
        self.count = self.epoch = 0  # prompts, and runs
        # salt of the words, so that no cache contains them from an earlier case
        self.salt = random.SystemRandom().getrandbits(64)
        self.waiting = deque()  # conversations whose turn has ended
        self.texts, self.seen = OrderedDict(), set()  # blocks of text, and the ids of the sent blocks
        self.sessions = {}  # conversations of a trace that is replayed
        self.longest = {}  # tokens of each common beginning that were sent

    def begin(self):
        """Begin a run with new conversations and blocks of text, so that no cache has them from an earlier run."""
        self.epoch += 1
        self.waiting.clear()
        self.texts.clear()
        self.seen, self.sessions = set(), {}

    def next(self):
        """Return the next prompt: the next turn of the conversation that waits longest, or a new one."""
        rng = random.Random("%s/%d" % (self.seed, self.count))
        self.count += 1
        if self.listed:
            return self.of_entry(self.listed[(self.count - 1) % len(self.listed)], rng)
        thinking = self.thinking(rng) if self.thinking else 0
        tokens, wanted = self.prompt(rng), self.answer(rng) + thinking
        if self.waiting:
            conversation = self.waiting.popleft()
            return self.turn(conversation, tokens, wanted, rng, thinking)
        texts, reusable = self.opening(tokens, rng)
        if self.turns < 2:
            return Prompt([texts], wanted, reusable, thinking)
        conversation = Conversation(self.turns - 1)
        conversation.texts.append(texts)
        return Prompt([texts], wanted, reusable, thinking, conversation)

    def opening(self, tokens, rng):
        """Return the text of a first turn, and its tokens that were sent before."""
        common = round(self.shared * tokens)
        if not common:
            return self.text(tokens, rng), 0
        number = rng.randrange(self.prefixes)
        reusable = min(common, self.longest.get(number, 0))
        self.longest[number] = max(common, self.longest.get(number, 0))
        prefix = self.some(common, random.Random("%s/prefix/%d" % (self.seed, number)))
        return prefix + " " + self.text(max(1, tokens - common), rng), reusable

    def turn(self, conversation, tokens, wanted, rng, thinking=0):
        """Return the next turn: all earlier text, and ``tokens`` of new text."""
        conversation.left -= 1
        reusable = conversation.tokens
        conversation.texts.append(self.some(max(1, tokens), rng))
        return Prompt(list(conversation.texts), wanted, reusable, thinking, conversation)

    def ended(self, conversation, text, tokens):
        """Receive a turn's answer: its ``text``, and the ``tokens`` of prompt and answer by the server's count."""
        conversation.texts.append(text)
        conversation.tokens = tokens
        if conversation.left > 0 and not self.listed:
            self.waiting.append(conversation)

    def session(self, name):
        """Return the conversation of a trace's session."""
        return self.sessions.setdefault(name, Conversation(0))

    def replayed(self, entry, conversation):
        """Return the prompt of a trace's request at its own time."""
        rng = random.Random("%s/%d" % (self.seed, self.count))
        self.count += 1
        return self.of_entry(entry, rng, conversation)

    def of_entry(self, entry, rng, conversation=None):
        """Return the prompt of a trace's request; ``conversation``: that of its session, if it is replayed."""
        if entry.prompt is not None:
            return Prompt([entry.prompt], entry.wanted, 0, 0, conversation)
        if entry.blocks:
            return self.of_blocks(entry, conversation)
        if conversation is not None and conversation.texts:
            more = entry.tokens - conversation.tokens if entry.is_whole else entry.tokens
            if more > 0:
                return self.turn(conversation, more, entry.wanted, rng)
            conversation.texts, conversation.tokens = [], 0  # the user of the trace started a new conversation
        text = self.text(entry.tokens, rng)
        if conversation is not None:
            conversation.texts.append(text)
        return Prompt([text], entry.wanted, 0, 0, conversation)

    def of_blocks(self, entry, conversation):
        """Return a prompt of blocks: equal ids give equal text."""
        left, texts, reusable, is_first = entry.tokens, [], 0, True
        for block in entry.blocks:
            size = min(BLOCK, left)
            left -= size
            is_first = is_first and block in self.seen
            reusable += size if is_first else 0
            if len(self.seen) < MOST_SEEN:
                self.seen.add(block)
            text = self.block(block)
            texts.append(text if size == BLOCK else " ".join(text.split()[: max(1, round(size * self.words))]))
        return Prompt([" ".join(texts)], entry.wanted, reusable, 0, conversation)

    def block(self, number):
        text = self.texts.pop(number, None)
        if text is None:
            text = self.some(BLOCK, random.Random("%s/block/%d/%d" % (self.seed, self.epoch, number)))
        self.texts[number] = text
        if len(self.texts) > MOST_TEXTS:
            self.texts.popitem(last=False)
        return text

    def text(self, tokens, rng):
        return self.of_words(round((tokens - self.fixed) * self.words), rng)

    def some(self, tokens, rng):
        """Return text with this number of tokens, without the tokens that every prompt has."""
        return self.of_words(round(tokens * self.words), rng)

    def of_words(self, count, rng=None):
        drawn = (rng or random.Random("%s/words/%d" % (self.seed, count))).random()
        rng = random.Random("%d/%r" % (self.salt, drawn))
        return " ".join(rng.choices(WORDS, k=max(1, count)))

    def middle(self):
        """Return the tokens of a usual prompt."""
        rng = random.Random("middle")
        few = (
            [e.tokens for e in self.listed[:1000] if e.tokens] if self.listed else [self.prompt(rng) for _ in range(99)]
        )
        return sorted(few)[len(few) // 2] if few else 0

    def fit(self, small, large):
        """Learn the words of a token from two prompts: (words, tokens) each."""
        more = large[1] - small[1]
        if more > 0 and large[0] > small[0]:
            self.words = (large[0] - small[0]) / more
            self.fixed = max(0.0, small[1] - small[0] / self.words)
