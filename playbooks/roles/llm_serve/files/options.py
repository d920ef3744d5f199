"""Read the client's command line and its API key.

Imported by client.py on the host. Standard library only, Python 3.6 and later.
"""

import argparse
import os
import subprocess

from traces import Mistake

SECRET_MOST = 4096  # maximum bytes of a key
MOST_PROCESSES = 256


def options():
    """Parse the command line."""
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("--url", required=True, help="URL of the endpoint, with or without /v1")
    add("--model", default="", help="name of the model; empty: the first one that the endpoint lists")
    add("--api", choices=["completions", "chat"], default="completions")
    add("--prompt", default="512", help="tokens: 512, 128-1024, 512~100")
    add("--answer", default="128", help="tokens, likewise")
    add("--trace", default="", help="file of requests that replaces both lengths: traces.py")
    add("--natural", action="store_true", help="let the model end its answers")
    add("--concurrency", default="", help="closed loops: 1,8,64")
    add("--rates", default="", help="open loops, requests per second: 0.5,2")
    add("--speeds", default="", help="replay the trace at these multiples of its speed: 1,2")
    add("--thinking", default="", help="thinking tokens before each answer, in the same form")
    add("--tools", action="store_true", help="ask for tool calls (chat)")
    add("--shared", type=float, default=0.0, help="share of a prompt that is one of the common prefixes")
    add("--prefixes", type=int, default=1, help="number of common prefixes")
    add("--turns", type=int, default=1, help="turns of each conversation")
    add(
        "--ttft",
        type=float,
        default=0.0,
        help="targets in s: search for the highest rate that meets all targets above 0",
    )
    add("--tpot", type=float, default=0.0)
    add("--e2e", type=float, default=0.0)
    add("--seconds", type=float, default=30.0, help="measured time of each run")
    add("--warmup", type=float, default=5.0)
    add("--probe", type=float, default=15.0, help="measured time of each step of the search")
    add("--share", type=float, default=0.99, help="percentage of requests that must meet each target")
    add("--effort", type=float, default=1800.0, help="seconds after which a search ends with its current result")
    add("--quality", action="store_true", help="check answers before and after the runs")
    add("--perplexity", type=float, default=0.0, help="perplexity of the same model on another server, for comparison")
    add("--reference", default="", help="file with log-probabilities of the same model, for comparison")
    add("--bound", type=float, default=0.05, help="mean difference from the reference above which a run does not count")
    add("--logprobs", default="", help="file that gets the log-probabilities of the fixed text")
    add("--patience", type=float, default=60.0, help="seconds without a byte after which a request has failed")
    add("--ready", type=float, default=10.0, help="seconds in which the endpoint must be up")
    add("--watch", default="", help="HOST:PORT of server.py, which reports why a server ended")
    add("--key-env", default="", help="the environment variable that holds the API key")
    add("--key-file", default="", help="the file that contains the API key")
    add("--record", default="", help="file that gets one line per request with the options of its run")
    add("--gpus", type=int, default=0, help="number of accelerators behind the endpoint, to record")
    add("--processes", type=int, default=0, help="processes that handle the streams; 0: chosen by the concurrency")
    add("--late", type=float, default=0.01, help="lateness of the client (99%%) above which a run does not count, s")
    add("--seed", default="1")
    chosen = parser.parse_args()
    check(chosen)
    return chosen


def check(chosen):
    """Raise Mistake for conflicting options."""
    if chosen.tools and chosen.api != "chat":
        raise Mistake("tool calls need the chat interface: set llm_serve.api=chat")
    if not 0 <= chosen.shared < 1:
        raise Mistake("%g: the shared part of a prompt must be at least 0 and below 1" % chosen.shared)
    if chosen.prefixes < 1 or chosen.turns < 1 or not 0 <= chosen.processes <= MOST_PROCESSES:
        raise Mistake("prefixes and turns must be at least 1, and processes from 0 to %d" % MOST_PROCESSES)
    if chosen.speeds and not chosen.trace:
        raise Mistake("only a trace can be replayed: set llm_serve.trace")


def secret(chosen):
    """Return the API key. Raise Mistake if the given source has no valid key."""
    text = ""
    if chosen.key_file:
        try:
            with open(os.path.expanduser(chosen.key_file), encoding="utf-8") as file:
                text = file.read(SECRET_MOST).strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Mistake("the key file %s cannot be read (%s)" % (chosen.key_file, error)) from None
    elif chosen.key_env:
        text = variable(chosen.key_env)
        if not text:
            raise Mistake("the environment variable %s of the client's host is not set" % chosen.key_env)
    if not text.isprintable() or any(ord(c) > 126 for c in text):
        raise Mistake("the API key is not a single line of ASCII")
    return text


def variable(name):
    """Return an environment variable of this process, or else of a login shell of this account."""
    if name in os.environ:
        return os.environ[name].strip()
    words = ["/bin/sh", "-l", "-c", 'eval "printf %s \\"\\$$1\\""', "sh", name]
    if not name.replace("_", "a").isalnum():
        raise Mistake("the name of the key's environment variable is invalid")
    try:
        shell = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30, check=False)
    except subprocess.TimeoutExpired:
        return ""
    return shell.stdout.decode("utf-8", "replace").strip()
