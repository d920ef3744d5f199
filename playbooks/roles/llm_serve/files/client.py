"""Put load on an OpenAI-compatible endpoint, and measure what its users would see: client.py --url URL OPTIONS

Runs on the client's host. Standard library only, Python 3.6 and later. Prints one JSON object per line, which
parsers/llm_serve.py reads. Exits with one sentence on standard error if nothing can be measured.
"""

import argparse
import json
import math
import os
import resource
import socket
import subprocess
import sys
import time

import answers
import figures
import loads
import prompts
import quality
import service
import stream

START = 0.8  # of the rate that short probes find, where the search with a stated error begins
WARM = 0.1  # of the fewest requests that are judged, sent before them
RECORDED = 200000  # maximum number of recorded requests
SECRET_MOST = 4096  # maximum bytes of a key
MOST_NAME = 200  # maximum characters of a model's name


def options():
    """Parse the command line."""
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("--url", required=True, help="URL of the endpoint, with or without /v1")
    add("--model", default="", help="name of the model; empty: the first one that the endpoint lists")
    add("--api", choices=["completions", "chat"], default="completions")
    add("--prompt", default="512", help="tokens: 512, 128-1024, 512~100")
    add("--answer", default="128", help="tokens, likewise")
    add("--trace", default="", help="a file of JSON lines instead of both")
    add("--natural", action="store_true", help="let the model end its answers")
    add("--concurrency", default="", help="closed loops: 1,8,64")
    add("--rates", default="", help="open loops, requests per second: 0.5,2")
    add("--ttft", type=float, default=0.0, help="with --tpot: search the highest rate that keeps both, s")
    add("--tpot", type=float, default=0.0)
    add("--seconds", type=float, default=30.0, help="measured time of each run")
    add("--warmup", type=float, default=5.0)
    add("--probe", type=float, default=15.0, help="measured time of each step of the search")
    add("--share", type=float, default=0.99, help="of requests that must keep each target")
    add("--effort", type=float, default=1800.0, help="seconds after which a search ends with what it has shown")
    add("--quality", action="store_true", help="check answers before and after the runs")
    add("--perplexity", type=float, default=0.0, help="that of the same model elsewhere, for comparison")
    add("--patience", type=float, default=60.0, help="seconds without a byte after which a request has failed")
    add("--ready", type=float, default=10.0, help="seconds in which the endpoint must be up")
    add("--watch", default="", help="HOST:PORT of server.py, which reports why a server ended")
    add("--key-env", default="", help="the environment variable that holds the API key")
    add("--key-file", default="", help="the file that contains the API key")
    add("--record", default="", help="file that gets one line per request with the options of its run")
    add("--gpus", type=int, default=0, help="accelerators behind the endpoint, for the record")
    add("--seed", default="1")
    return parser.parse_args()


def secret(chosen):
    """Return the API key. Raise Mistake if the given source has no valid key."""
    text = ""
    if chosen.key_file:
        try:
            with open(os.path.expanduser(chosen.key_file), encoding="utf-8") as file:
                text = file.read(SECRET_MOST).strip()
        except (OSError, UnicodeDecodeError) as error:
            raise prompts.Mistake("the key file %s cannot be read (%s)" % (chosen.key_file, error)) from None
    elif chosen.key_env:
        text = variable(chosen.key_env)
        if not text:
            raise prompts.Mistake("the environment variable %s of the client's host is not set" % chosen.key_env)
    if not text.isprintable() or any(ord(c) > 126 for c in text):
        raise prompts.Mistake("the API key is not a single line of ASCII")
    return text


def variable(name):
    """Return an environment variable of this process, or else of a login shell of this account."""
    if name in os.environ:
        return os.environ[name].strip()
    words = ["/bin/sh", "-l", "-c", 'eval "printf %s \\"\\$$1\\""', "sh", name]
    if not name.replace("_", "a").isalnum():
        raise prompts.Mistake("the name of the key's environment variable is invalid")
    try:
        shell = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30, check=False)
    except subprocess.TimeoutExpired:
        return ""
    return shell.stdout.decode("utf-8", "replace").strip()


def show(**values):
    print(json.dumps(values), flush=True)


class Client:
    """Put load on an endpoint. Raise Mistake with a sentence for the user on failure."""

    def __init__(self, chosen):
        self.chosen = chosen
        try:
            self.endpoint = stream.Endpoint(chosen.url, secret(chosen))
        except ValueError as error:
            raise prompts.Mistake("%s" % error) from None
        listed = prompts.trace(chosen.trace) if chosen.trace else None
        lengths = prompts.lengths(chosen.prompt), prompts.lengths(chosen.answer)
        self.source = prompts.Source(chosen.seed, lengths[0], lengths[1], listed)
        self.engine = stream.Engine(self.endpoint, chosen.patience)
        self.model, self.exact = chosen.model, not chosen.natural
        self.count = self.recorded = 0

    # -- one request

    def make(self, due=None):
        """Return the next request."""
        prompt, wanted = self.source.next()
        return self.answer(prompt, wanted, due)

    def answer(self, prompt, wanted, due=None):
        doc = {"model": self.model, "max_tokens": wanted, "temperature": 0, "stream": True}
        doc["stream_options"] = {"include_usage": True}
        if self.exact:
            doc["ignore_eos"] = True
        if self.chosen.api == "chat":
            doc["messages"] = [{"role": "user", "content": prompt}]
        else:
            doc["prompt"] = prompt
        path = "/chat/completions" if self.chosen.api == "chat" else "/completions"
        self.count += 1
        body = self.endpoint.request("POST", path, json.dumps(doc).encode(), self.count)
        return answers.Answer(body, wanted, due, self.count)

    def must_answer(self, answer, subject):
        """Wait for a valid answer. Raise Mistake with the endpoint's message if there is none."""
        self.engine.ask(answer)
        if not figures.failure(answer, exact=False):
            return answer
        raise prompts.Mistake(self.sentence(answer, subject))

    def sentence(self, answer, subject):
        problem = figures.failure(answer, exact=False)
        url, detail = self.chosen.url, self.endpoint.hidden(figures.detail(answer, problem))
        if answer.status in (401, 403):
            key = "refuses the key" if self.endpoint.secret else "wants a key: set llm_serve.key_file or key_env"
            return "%s %s (HTTP %d)" % (url, key, answer.status)
        if answer.status == 404:
            return "%s does not know %s, or the model %s: %s" % (url, subject, self.model, detail)
        if problem == "no usage":
            return "%s counts no tokens (stream_options.include_usage), so nothing can be measured" % url
        return "%s does not answer %s: %s%s" % (url, subject, problem, ": " + detail if detail else "")

    # -- before any load

    def wait(self):
        """Wait until the endpoint is up, and learn the name of the model."""
        until = stream.clock() + self.chosen.ready
        while True:
            answer = self.listed()
            if answer.status == 200 and not answer.problem:
                return
            if answer.status in (401, 403):
                raise prompts.Mistake(self.sentence(answer, "/models"))
            if answer.status in (404, 405, 501) and self.model:
                return  # the endpoint lists no models; the first request will show whether it knows this one
            self.ended()
            if stream.clock() > until:
                reason = answer.problem + (": " + self.endpoint.hidden(answer.detail) if answer.detail else "")
                raise prompts.Mistake("%s is not there after %g s (%s)" % (self.chosen.url, self.chosen.ready, reason))
            time.sleep(0.25)

    def listed(self):
        answer = Listing(self.endpoint.request("GET", "/models"))
        try:
            self.endpoint.resolve()
        except OSError as error:
            answer.problem, answer.detail = "unknown host", error.strerror or ""
            return answer
        self.engine.ask(answer)
        if answer.status == 200 and not answer.problem:
            names = [self.endpoint.hidden(name)[:MOST_NAME] for name in answer.names()]
            if self.model and names and self.model not in names:
                more = ", ".join(names[:5]) + (" and %d more" % (len(names) - 5) if len(names) > 5 else "")
                raise prompts.Mistake("%s has no model %s; it has %s" % (self.chosen.url, self.model, more))
            if not self.model and not names:
                raise prompts.Mistake("%s lists no models: name one" % self.chosen.url)
            self.model = self.model or names[0]
        return answer

    def ended(self):
        """Raise Mistake if the server that was started for this test has ended."""
        if not self.chosen.watch:
            return
        host, _, port = self.chosen.watch.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), 5) as sock:
                text = sock.recv(4096).decode("utf-8", "replace").strip()
        except (OSError, ValueError):
            return
        if text:
            raise prompts.Mistake("the server ended before it served: " + self.endpoint.hidden(text))

    def calibrate(self):
        """Learn the number of words per token from two prompts. Return the duration of a single request."""
        middle = self.source.middle()
        if middle:
            counts = []
            for words in (max(1, middle // 8), max(2, middle // 2)):
                answer = self.must_answer(self.answer(self.source.of_words(words), 1), "a request")
                counts.append((words, answer.used[0]))
            self.source.fit(*counts)
        began = stream.clock()
        alone = self.must_answer(self.make(), "a request of the wanted length")
        return stream.clock() - began, alone

    def check_quality(self, moment):
        """Print how well the endpoint answers now: ``moment`` is before or after the runs."""
        is_chat = self.chosen.api == "chat"
        path = "/chat/completions" if is_chat else "/completions"

        def ask(values):
            self.count += 1
            values = dict(values, model=self.model, temperature=0)
            answer = Document(self.endpoint.request("POST", path, json.dumps(values).encode(), self.count))
            self.engine.ask(answer)
            return quality.document(answer.text) if answer.status == 200 and not answer.problem else None

        likely = None if is_chat else quality.perplexity(ask)
        show(
            quality=moment,
            exact_match=quality.arithmetic(ask, is_chat),
            questions=quality.QUESTIONS,
            perplexity=likely[0] if likely else None,
            tokens=likely[1] if likely else None,
            expected=self.chosen.perplexity or None,
        )

    # -- runs

    def run(self, phase, **values):
        """Perform one run with ``values``, and print its results."""
        chosen = self.chosen
        seconds = chosen.probe if phase == "probe" else chosen.seconds
        common = self.engine, self.make, self.exact
        give_up = None
        if phase == "probe":
            warmup = min(chosen.warmup, seconds / 2)
            give_up = self.hopeless
        else:
            warmup = chosen.warmup
        if "concurrency" in values:
            result = loads.closed(*common, values["concurrency"], warmup, seconds)
        else:
            seed = "%s/%g" % (chosen.seed, values["rate"])
            result = loads.poisson(*common, values["rate"], warmup, seconds, seed, give_up)
        if result is None:
            show(run=phase, **values, given_up=True)
            self.settle()
            return None
        return self.tell(phase, result, values)

    def tell(self, phase, result, values):
        """Record the requests of a run, print its results, and return them."""
        self.record(result.pop("answers"), values)
        offset = time.time() - stream.clock()
        result["window"] = [offset + moment for moment in result["window"]]
        hidden = {k: self.endpoint.hidden(v) for k, v in result.pop("details").items()}
        show(run=phase, **values, **result, details=hidden)
        return result

    def record(self, answers, values):
        """Append the result of each request in the measured time. Its id is the one in the header X-Request-Id."""
        if not self.chosen.record:
            return
        with open(self.chosen.record, "a") as file:
            for answer in answers[: max(0, RECORDED - self.recorded)]:
                times = answer.due, answer.sent, answer.stamps[:1], answer.stamps[-1:], answer.end
                doc = dict(zip(("due", "sent", "first", "last", "end"), times), id=answer.mark, **values)  # noqa: B905
                used = answer.used or (None, None)
                doc.update(prompt_tokens=used[0], output_tokens=used[1], failure=figures.failure(answer, self.exact))
                file.write(json.dumps(doc) + "\n")
        self.recorded += len(answers)

    def settle(self):
        """Wait until a single request is answered again."""
        until = stream.clock() + self.chosen.patience
        while figures.failure(self.engine.ask(self.answer("time", 1)), exact=False) and stream.clock() < until:
            time.sleep(0.25)

    def hopeless(self, sent, planned, now):
        """Return whether more requests have already missed a target than its percentile allows."""
        allowed = planned - math.ceil(self.chosen.share * planned - 1e-9)
        if len(sent) <= allowed:
            return False
        broken = 0
        for answer in sent:
            first = answer.stamps[0] if answer.stamps else now if answer.end is None else math.inf
            broken += first - answer.due > self.chosen.ttft or bool(answer.end and figures.failure(answer, self.exact))
        return broken > allowed

    def misses_alone(self, targets):
        """Return whether requests one after another, which never queue, already miss a target too often."""
        misses = [0] * len(targets)
        for _ in range(service.ALONE):
            answer = self.must_answer(self.make(), "a request of the wanted length")
            values = figures.ttft(answer), figures.tpot(answer) or 0.0
            misses = [n + (v > target) for n, v, target in zip(misses, values, targets)]  # noqa: B905
        allowed = service.ALONE * (1 - self.chosen.share)
        return any(service.at_least(n, allowed) <= service.ERROR / service.MOST_RATES for n in misses)

    def search(self, alone):
        """Search the highest rate that keeps both targets, with its interval. ``alone``: seconds of one request.

        Short probes find where to begin and show nothing by themselves.
        """
        chosen = self.chosen
        targets, until = (chosen.ttft, chosen.tpot), stream.clock() + chosen.effort
        minimum = max(1 / chosen.probe, 1e-4)

        def probe(rate):
            result = self.run("probe", rate=rate)
            return result is not None and figures.kept(result, targets, chosen.share)

        def trial(rate, kept_error, missed_error):
            def judge(series, count):
                is_early = count < service.least(chosen.share)
                return service.verdict(series, chosen.share, kept_error, missed_error, is_early)

            judging = loads.Trial(targets, service.looks(chosen.share), judge, self.exact)
            seed = "%s/trial/%g" % (chosen.seed, rate)
            warmup = max(chosen.warmup, WARM * service.least(chosen.share) / rate)
            common = self.engine, self.make, self.exact, rate, warmup, seed
            word, result = loads.judged(*common, judging, until)
            show(run="trial", rate=rate, verdict=word or "open", requests=len(judging.firsts))
            if result is None:
                self.settle()
            return word, result

        if self.misses_alone(targets):
            rate = 1 / alone
            show(run="not kept", rate=rate, missed=rate, error=service.ERROR, share=chosen.share)
            return
        start = loads.highest(probe, max(0.5 / alone, minimum), minimum)
        ends = service.climb(trial, START * start if start else minimum)
        values = {"rate": ends.kept, "missed": ends.missed, "error": service.ERROR, "share": chosen.share}
        if ends.kept:
            self.tell("goodput", ends.figures, values)
        else:
            needed = service.least(chosen.share)
            show(run="not kept", **dict(values, rate=ends.lowest or minimum), requests=needed, effort=chosen.effort)

    def go(self):
        """Perform the runs that the command line selects."""
        chosen = self.chosen
        self.wait()
        alone, answer = self.calibrate()
        show(
            llm_serve=1,
            model=self.model,
            api=chosen.api,
            prompt=chosen.trace or chosen.prompt,
            answer=chosen.trace or chosen.answer,
            exact=self.exact,
            targets=[chosen.ttft, chosen.tpot],
            gpus=chosen.gpus,
            alone=alone,
            prompt_tokens=answer.used[0],
            here=self.endpoint.here,
            python="%d.%d.%d" % sys.version_info[:3],
        )
        if chosen.quality:
            self.check_quality("before")
        for streams in numbers(chosen.concurrency, int):
            self.run("closed", concurrency=streams)
        for rate in numbers(chosen.rates, float):
            self.run("open", rate=rate)
        if chosen.ttft and chosen.tpot:
            self.search(alone)
        if chosen.quality:
            self.check_quality("after")
        show(end=True)


class Document(answers.Answer):
    """Read an answer that is one JSON document and no stream."""

    __slots__ = ("text",)

    def __init__(self, body):
        super().__init__(body)
        self.text = b""

    def plain(self, data):
        """Receive a part of a body that is not a stream."""
        self.text = (self.text + data)[: answers.MOST_LINE]


class Listing(Document):
    """Read the answer to GET /v1/models."""

    __slots__ = ()

    def names(self):
        """Return the names of the models; empty if the answer is not in OpenAI's format."""
        try:
            models = json.loads(self.text.decode("utf-8", "replace"))["data"]
            return [m["id"] for m in models if isinstance(m["id"], str)]
        except (ValueError, KeyError, TypeError, RecursionError):
            return []


def numbers(text, kind):
    """Parse numbers separated by commas."""
    try:
        values = [kind(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise prompts.Mistake("%s is not a list of numbers" % text) from None
    if any(not value > 0 for value in values):
        raise prompts.Mistake("%s: each must be above 0" % text)
    return values


def main():
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))  # each stream needs a file descriptor
    chosen = options()
    try:
        if chosen.record:
            open(chosen.record, "w").close()
        Client(chosen).go()
    except prompts.Mistake as mistake:
        sys.exit("%s" % mistake)


if __name__ == "__main__":
    main()
