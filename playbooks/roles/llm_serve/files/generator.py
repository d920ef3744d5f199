"""Make the requests of a load: prompts as documents of OpenAI's interfaces, and conversations.

Imported by client.py on the host. Standard library only, Python 3.6 and later.
"""

import json

import prompts
from answers import Answer

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "%s the %s." % (verb, thing),
            "parameters": {
                "type": "object",
                "properties": {key: {"type": kind} for key, kind in fields},
                "required": [key for key, _ in fields],
            },
        },
    }
    for name, verb, thing, fields in (
        ("search_files", "Search", "files of a project", (("pattern", "string"), ("folder", "string"))),
        ("read_file", "Read", "lines of a file", (("path", "string"), ("first", "integer"), ("last", "integer"))),
        ("run_command", "Run", "command in a shell", (("command", "string"), ("timeout", "number"))),
        ("get_weather", "Tell", "weather of a city", (("city", "string"), ("date", "string"))),
    )
]


class Generator:
    """Make requests to ``endpoint`` as the command line ``chosen`` wants them, from ``source``."""

    def __init__(self, chosen, endpoint, source):
        self.chosen, self.endpoint, self.source = chosen, endpoint, source
        self.model, self.count = chosen.model, 0
        self.exact = not chosen.natural and not chosen.tools  # a tool call has its own end

    def next(self, due=None):
        """Return the next request."""
        return self.request(self.source.next(), due)

    def single(self, text, wanted):
        """Return a request outside of any load."""
        return self.request(prompts.Prompt([text], wanted), None)

    def replayed(self, entry, due):
        """Return the request of a trace's ``entry``; the turns of a session share a conversation."""
        conversation = None
        if entry.session is not None and not entry.blocks:
            conversation = self.source.session(entry.session)
        return self.request(self.source.replayed(entry, conversation), due)

    def ended(self, answer):
        """Receive a complete answer, so that its conversation can continue."""
        if answer.prompt.conversation is not None:
            self.source.ended(answer.prompt.conversation, "".join(answer.words or ()), sum(answer.used))

    def request(self, prompt, due):
        doc = {"model": self.model, "max_tokens": prompt.wanted, "temperature": 0, "stream": True}
        doc["stream_options"] = {"include_usage": True}
        if self.exact:
            doc["ignore_eos"] = True
        path = "/completions"
        if self.chosen.api == "chat":
            roles = "user", "assistant"
            doc["messages"] = [{"role": roles[n % 2], "content": text} for n, text in enumerate(prompt.texts)]
            path = "/chat/completions"
        else:
            doc["prompt"] = " ".join(prompt.texts)
        is_load = prompt.wanted > 1
        if self.chosen.tools and is_load:
            doc.update(tools=TOOLS, tool_choice="required")
        self.count += 1
        body = self.endpoint.request("POST", path, json.dumps(doc).encode(), self.count)
        answer = Answer(body, prompt.wanted, due, self.count, prompt)
        answer.words = [] if prompt.conversation is not None else None
        answer.calls = {} if self.chosen.tools and is_load else None
        return answer
