"""A small OpenAI-compatible server whose delays are known, and what it did with its own times: server.py OPTIONS

The model of a request says how the server behaves; its log has a line a request: when it came, the delay that its first
piece was to have, and when each piece was written, in seconds of the monotonic clock that the client reads too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

MODELS = (
    "tiny",
    "cut",
    "busy",
    "broken",
    "hang",
    "pieces",
    "silent",
    "closes",
    "garbage",
    "short",
    "later",
    "uncounted",
    "quantised",
    "thinks",
    "calls",
    "miscalls",
    "bytes",
    "bytes-8bit",
    "bytes-4bit",
    "bytes-broken",
)
BLOCK = 16  # words of a block of the cache of prefixes
SUM = re.compile(r"(\d+) ([+*-]) (\d+) =$")
ENTRY = re.compile(r"number of (\w+)(?: is$|\?)")


class Reader(asyncio.StreamReader):
    """A reader that knows when its latest bytes came, before anything else is done with them."""

    came = 0.0

    def feed_data(self, data: bytes) -> None:
        self.came = time.perf_counter()
        super().feed_data(data)


class Server:
    """``first``: the fewest seconds to the first token; ``gap``: between tokens; ``places``: answers at once, others wait."""

    def __init__(self, first: float, gap: float, places: int, key: str, log: str, decays: bool) -> None:
        self.first, self.gap, self.key = first, gap, key
        self.places = asyncio.Semaphore(places)
        self.log = Path(log).open("a", buffering=1) if log else None  # noqa: SIM115
        self.count = self.checks = 0
        self.cached: set[int] = set()  # hashes of the beginnings of prompts, a block longer each
        self.hits = self.queries = 0  # tokens
        self.engine = ""
        self.decays = decays
        self.repeats = True  # prompts, with echo

    async def serve(self, reader: Reader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self.one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def one(self, reader: Reader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        came = reader.came
        lines = head.split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if self.key and headers.get("authorization") != f"Bearer {self.key}":
            shown = headers.get("authorization", "none")
            return self.reply(writer, 401, {"error": {"message": f"Incorrect API key provided: {shown}"}})
        if lines[0].startswith("GET /v1/models"):
            return self.reply(writer, 200, {"object": "list", "data": [{"id": m} for m in MODELS]})
        if lines[0].startswith("GET /health"):
            return self.reply(writer, 200, {})
        if lines[0].startswith("GET /metrics"):
            return self.metrics(writer)
        doc = {**json.loads(body), "id": headers.get("x-request-id", "")}
        return await self.complete(doc, came, writer, "chat" in lines[0])

    def metrics(self, writer: asyncio.StreamWriter) -> bool:
        """The counts of the cache as vLLM or SGLang name them."""
        names = {
            "vllm": ("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"),
            "sglang": ("sglang:cached_tokens_total", "sglang:prompt_tokens_total"),
        }.get(self.engine)
        if names is None:
            return self.reply(writer, 404, {"error": "Not Found"})
        label = '{engine="0",model_name="tiny"}'
        text = "".join(
            f"# TYPE {name} counter\n{name}{label} {float(value)!r}\n"
            for name, value in zip(names, (self.hits, self.queries), strict=True)
        )
        text += f'{names[1]}{{model_name="another"}} 1e9\n'
        data = text.encode()
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        return True

    def look_up(self, prompt: str) -> int:
        """Return the tokens at the beginning of a prompt that are in the cache, and count them."""
        hits = self.keep(prompt)
        self.hits, self.queries = self.hits + hits, self.queries + len(prompt.split())
        return hits

    def keep(self, prompt: str) -> int:
        """Put a text into the cache, in whole blocks. Return how many tokens at its beginning were cached."""
        words, state, hits, is_first = prompt.split(), 0, 0, True
        for n in range(0, len(words) - BLOCK + 1, BLOCK):
            state = hash((state, *words[n : n + BLOCK]))
            is_first = is_first and state in self.cached
            hits += BLOCK if is_first else 0
            self.cached.add(state)
        return hits

    def reply(self, writer: asyncio.StreamWriter, status: int, doc: dict[str, Any]) -> bool:
        data = json.dumps(doc).encode()
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        return True

    async def complete(self, doc: dict[str, Any], came: float, writer: asyncio.StreamWriter, chat: bool) -> bool:
        model, wanted = doc["model"], doc.get("max_tokens") or doc["max_completion_tokens"]
        prompt = doc.get("prompt") or " ".join(m["content"] for m in doc.get("messages", []))
        tokens = len(prompt.split()) + (3 if chat else 0)
        alone = wanted == 1  # what the client learns the server's tokens from
        self.count += not alone
        if model not in MODELS:
            return self.reply(writer, 404, {"error": {"message": f"The model `{model}` does not exist."}})
        if tokens + wanted > 100000:
            text = f"This model's maximum context length is 100000 tokens, not {tokens + wanted}."
            return self.reply(writer, 400, {"error": {"message": text}})
        if not doc.get("stream"):
            return self.reply(writer, 200, self.document(doc, prompt, chat))
        if not alone and model in ("busy", "broken") and self.count % 2 == 0:
            return self.reply(writer, 429 if model == "busy" else 500, {"error": {"message": f"{model} indeed"}})
        if not alone and model == "hang" and self.count % 2 == 0:
            await asyncio.sleep(3600)
        cached = self.look_up(prompt)
        async with self.places:
            await self.stream(doc, model if not alone else "tiny", came, writer, chat, tokens, wanted, cached)
        self.keep(prompt + " word" * wanted)
        return model != "closes" or alone

    def document(self, doc: dict[str, Any], prompt: str, chat: bool) -> dict[str, Any]:
        """Answer without a stream, as a model that can calculate and knows the text; ``quantised`` can less well."""
        self.checks += 1
        is_worse = doc["model"] == "quantised" or (self.decays and self.checks > 61)
        sign = SUM.search(prompt.strip())
        text = "word"
        if sign:
            a, b = int(sign[1]), int(sign[3])
            result = {"+": a + b, "-": a - b, "*": a * b}[sign[2]]
            text = str(result + (is_worse and b % 2))
        elif entry := ENTRY.search(prompt.strip().rpartition("\n")[2]):
            number = re.search(rf"The number of {entry[1]} is (\d+)", prompt)
            text = str(int(number[1]) + (is_worse and int(number[1]) % 2)) if number else "word"
        choice: dict[str, Any] = {"message": {"content": text}} if chat else {"text": text}
        if doc.get("logprobs") and doc["model"].startswith("bytes") and not (doc.get("echo") and self.repeats):
            from model import named  # type: ignore[import-not-found]  # beside this file

            tops = named(doc["model"]).tops(prompt, doc.get("top_logprobs") or doc["logprobs"])
            listed = [{"token": token, "logprob": value} for token, value in tops.items()]
            if chat or not self.repeats:  # as llama.cpp does
                choice["logprobs"] = {"content": [{**listed[0], "top_logprobs": listed}]}
            else:
                choice["logprobs"] = {"tokens": [listed[0]["token"]], "top_logprobs": [tops]}
        elif doc.get("echo") and self.repeats:
            each = -1.1 if is_worse else -1.0
            choice["logprobs"] = {"token_logprobs": [None, *[each] * (len(prompt.split()) - 1), -0.1]}
            if doc["model"].startswith("bytes"):
                from model import named

                choice["logprobs"] = named(doc["model"]).echo(prompt)
        return {"choices": [choice]}

    async def stream(
        self,
        doc: dict[str, Any],
        model: str,
        came: float,
        writer: asyncio.StreamWriter,
        chat: bool,
        tokens: int,
        n: int,
        cached: int,
    ) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        if chat:
            self.event(writer, {"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        delay = self.first * (1 + self.count % 10 / 100)  # so that streams do not go in step
        due = time.perf_counter() + delay
        given = n if model not in ("cut", "short") else max(1, n // 4)
        each = 4 if model == "pieces" else 1
        stamps = []
        for k in range(0, given, each):
            await asyncio.sleep(due - time.perf_counter())
            text = " ".join(["word"] * min(each, given - k)) + " "
            choice = self.choice(model, text, k, given) if chat else {"text": text}
            stamps.append(time.perf_counter())
            self.event(writer, {"choices": [{**choice, "finish_reason": None}]})
            due += self.gap * each
            if model == "closes" and k >= n // 2:
                writer.close()
                return
            if model == "garbage" and k >= n // 2:
                writer.write(b"9\r\ndata: {{\n\r\n")
        ends = {"short": "stop", "cut": None, "silent": None, "calls": "tool_calls", "miscalls": "tool_calls"}
        finish = ends.get(model, "length")
        self.event(writer, {"choices": [{**({"delta": {}} if chat else {"text": ""}), "finish_reason": finish}]})
        usage: dict[str, Any] = {"prompt_tokens": tokens, "completion_tokens": given + (n if model == "later" else 0)}
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
        if doc.get("stream_options", {}).get("include_usage") and model != "uncounted":
            self.event(writer, {"choices": [], "usage": usage})
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        if self.log and n > 1:
            line = {"id": doc["id"], "came": came, "delay": delay, "stamps": stamps, "model": model}
            line |= {"cached": cached, "tokens": tokens, "messages": len(doc.get("messages", []))}
            self.log.write(json.dumps(line) + "\n")

    def choice(self, model: str, text: str, place: int, given: int) -> dict[str, Any]:
        """A piece of a chat: of ``thinks`` the first half is thinking; ``calls`` calls a tool, ``miscalls`` fails to."""
        if model == "thinks" and place < given // 2:
            return {"delta": {"reasoning_content": text}}
        if model in ("calls", "miscalls"):
            first, last = '{"path": "', ('"}' if model == "calls" else "")
            part = first if not place else last or "x" if place == given - 1 else text.strip()
            function = {"arguments": part, **({"name": "read_file"} if not place else {})}
            return {"delta": {"tool_calls": [{"index": 0, "function": function}]}}
        return {"delta": {"content": text}}

    def event(self, writer: asyncio.StreamWriter, doc: dict[str, Any]) -> None:
        is_chat = any("delta" in choice for choice in doc["choices"])
        kind = {"object": "chat.completion.chunk" if is_chat else "text_completion", "model": "tiny"}
        data = b"data: " + json.dumps({**kind, **doc}).encode() + b"\n\n"
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--first", type=float, default=0.04)
    parser.add_argument("--gap", type=float, default=0.015)
    parser.add_argument("--places", type=int, default=100000)
    parser.add_argument("--key", default="")
    parser.add_argument("--log", default="")
    parser.add_argument("--engine", default="", choices=["", "vllm", "sglang"], help="whose metrics it tells")
    parser.add_argument("--decays", action="store_true", help="answer worse after the first check")
    parser.add_argument("--no-echo", action="store_true", help="repeat no prompt")
    chosen = parser.parse_args()
    server = Server(chosen.first, chosen.gap, chosen.places, chosen.key, chosen.log, chosen.decays)
    server.engine, server.repeats = chosen.engine, not chosen.no_echo

    def connection() -> asyncio.StreamReaderProtocol:
        return asyncio.StreamReaderProtocol(Reader(limit=1 << 24), server.serve)

    loop = asyncio.get_running_loop()
    listening = await loop.create_server(connection, chosen.address, chosen.port, backlog=4096)
    sys.stdout.write(f"{listening.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with listening:
        await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
