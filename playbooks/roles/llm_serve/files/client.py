"""Put load on an OpenAI-compatible endpoint, and measure what its users would see: client.py --url URL OPTIONS

Runs on the client's host. Standard library only, Python 3.6 and later. Prints one JSON object per line, which
parsers/llm_serve.py reads. Exits with one sentence on standard error if nothing can be measured.
"""

import json
import math
import os
import resource
import socket
import sys
import threading
import time

import answers
import cache
import figures
import generator
import loads
import options
import pool
import prompts
import quality
import service
import stream
import traces

START = 0.8  # share of the rate found by short probes at which the search with a stated error starts
WARM = 0.1  # share of the minimum number of requests that is sent as warm-up
RECORDED = 200000  # maximum number of recorded requests
STREAMS = 400  # maximum streams of one process without delays
METRICS_PATIENCE = 10.0  # timeout in seconds for a server's metrics
MOST_NAME = 200  # maximum characters of a model's name


def show(**values):
    print(json.dumps(values), flush=True)


class Client:
    """Put load on an endpoint. Raise Mistake with a sentence for the user on failure."""

    def __init__(self, chosen):
        self.chosen = chosen
        try:
            self.endpoint = stream.Endpoint(chosen.url, options.secret(chosen))
        except ValueError as error:
            raise traces.Mistake("%s" % error) from None
        self.trace = traces.Trace(chosen.trace) if chosen.trace else None
        if chosen.speeds and not self.trace.is_timed:
            raise traces.Mistake("%s cannot be replayed: not each request has a timestamp" % chosen.trace)
        lengths = [prompts.lengths(text) for text in (chosen.prompt, chosen.answer)]
        listed = self.trace.entries if self.trace else None
        thinking = prompts.lengths(chosen.thinking) if chosen.thinking else None
        common = thinking, chosen.shared, chosen.prefixes, chosen.turns
        self.source = prompts.Source(chosen.seed, lengths[0], lengths[1], listed, *common)
        self.make = generator.Generator(chosen, self.endpoint, self.source)
        self.engine = stream.Engine(self.endpoint, chosen.patience)
        self.exact = self.make.exact
        self.targets = [(name, value) for name in ("ttft", "tpot", "e2e") for value in [getattr(chosen, name)] if value]
        self.recorded = 0
        try:
            self.reference = quality.stored(chosen.reference) if chosen.reference else None
        except ValueError as error:
            raise traces.Mistake("the reference %s cannot be used: %s" % (chosen.reference, error)) from None

    # -- one request

    def must_answer(self, answer, subject):
        """Wait for a valid answer. Raise Mistake with the endpoint's message if there is none."""
        if self.is_answered(self.engine.ask(answer)):
            return answer
        raise traces.Mistake(self.sentence(answer, subject))

    def is_answered(self, answer):
        """Return whether a request without other load is answered. A single token may be part of a letter."""
        problem = figures.failure(answer, exact=False)
        return not problem or (problem == "empty" and answer.wanted == 1 and answer.used[1] == 1)

    def sentence(self, answer, subject):
        problem = figures.failure(answer, exact=False)
        url, detail = self.chosen.url, self.endpoint.hidden(figures.detail(answer, problem))
        if answer.status in (401, 403):
            key = "refuses the key" if self.endpoint.secret else "wants a key: set llm_serve.key_file or key_env"
            return "%s %s (HTTP %d)" % (url, key, answer.status)
        if answer.status == 404:
            return "%s does not know %s, or the model %s: %s" % (url, subject, self.make.model, detail)
        if problem == "no usage":
            return "%s counts no tokens (stream_options.include_usage), so nothing can be measured" % url
        if self.exact and "ignore_eos" in detail:
            return "%s refuses ignore_eos (%s): set llm_serve.natural=true, so that the model ends its answers" % (
                url,
                problem,
            )
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
                raise traces.Mistake(self.sentence(answer, "/models"))
            if answer.status in (404, 405, 501) and self.make.model:
                return  # the endpoint lists no models; the first request will show whether it knows this one
            self.ended()
            if stream.clock() > until:
                reason = answer.problem + (": " + self.endpoint.hidden(answer.detail) if answer.detail else "")
                raise traces.Mistake("%s is not there after %g s (%s)" % (self.chosen.url, self.chosen.ready, reason))
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
            if self.make.model and names and self.make.model not in names:
                more = ", ".join(names[:5]) + (" and %d more" % (len(names) - 5) if len(names) > 5 else "")
                raise traces.Mistake("%s has no model %s; it has %s" % (self.chosen.url, self.make.model, more))
            if not self.make.model and not names:
                raise traces.Mistake("%s lists no models: name one" % self.chosen.url)
            self.make.model = self.make.model or names[0]
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
            raise traces.Mistake("the server ended before it served: " + self.endpoint.hidden(text))

    def calibrate(self):
        """Learn the number of words per token from two prompts. Return the duration of a single request."""
        middle = self.source.middle()
        if middle:
            counts = []
            for words in (max(1, middle // 8), max(2, middle // 2)):
                answer = self.must_answer(self.make.single(self.source.of_words(words), 1), "a request")
                counts.append((words, answer.used[0]))
            self.source.fit(*counts)
        began = stream.clock()
        alone = self.must_answer(self.make.next(), "a request of the wanted length")
        return stream.clock() - began, alone

    def check_quality(self, moment):
        """Print the quality of the endpoint's answers; ``moment`` is before or after the runs."""
        is_chat = self.chosen.api == "chat"
        path = "/chat/completions" if is_chat else "/completions"

        def ask(values):
            self.make.count += 1
            values = dict(values, model=self.make.model, temperature=0)
            answer = Document(self.endpoint.request("POST", path, json.dumps(values).encode(), self.make.count))
            self.engine.ask(answer)
            return quality.document(answer.text) if answer.status == 200 and not answer.problem else None

        likely = quality.likelihood(ask, is_chat, self.reference)
        compared = {}
        if self.reference:
            unknown = {"unlike": "the endpoint tells no log-probabilities"}
            compared = likely.differences(self.reference) if likely else unknown
        if likely and moment == "before" and self.chosen.logprobs:
            with open(self.chosen.logprobs, "w") as file:
                json.dump(likely.document(self.endpoint.hidden(self.make.model)), file)
        show(
            quality=moment,
            exact_match=quality.arithmetic(ask, is_chat),
            questions=quality.QUESTIONS,
            retrieval=quality.retrieval(ask, is_chat),
            perplexity=likely.perplexity() if likely else None,
            tokens=len(likely.known) if likely else None,
            expected=self.chosen.perplexity or None,
            bound=self.chosen.bound,
            **compared,
        )

    # -- runs

    def run(self, phase, **values):
        """Perform one run with ``values``, and print its results."""
        chosen = self.chosen
        seconds = chosen.probe if phase == "probe" else chosen.seconds
        warmup = min(chosen.warmup, seconds / 2) if phase == "probe" else chosen.warmup
        watch = Watch(self.metrics)
        engine = self.sender(values.get("concurrency", 0))
        common = engine, self.make, self.exact
        self.source.begin()
        try:
            if "concurrency" in values:
                result = loads.closed(*common, values["concurrency"], warmup, seconds, watch.start)
            elif "speed" in values:
                result = loads.replay(*common, self.trace, values["speed"], warmup, seconds, watch.start)
                result["left_out"] = self.trace.left_out
            else:
                seed = "%s/%g" % (chosen.seed, values["rate"])
                give_up = self.hopeless if phase == "probe" else None
                result = loads.poisson(*common, values["rate"], warmup, seconds, seed, give_up, watch.start)
        finally:
            self.release(engine)
        if result is None:
            show(run=phase, **values, given_up=True)
            self.settle()
            return None
        result.update(watch.stop())
        return self.tell(phase, result, values)

    def sender(self, streams=0):
        """Return the sender of a run's requests: this process's engine, or several processes."""
        count = self.chosen.processes or min(math.ceil(streams / float(STREAMS)), max(1, (os.cpu_count() or 1) - 1))
        return pool.Pool(self.endpoint, self.chosen.patience, count) if count > 1 else self.engine

    def release(self, engine):
        if engine is not self.engine:
            engine.close()

    def metrics(self):
        """Return the current counters of the server's prefix cache; empty if it has none."""
        answer = Document(self.endpoint.request("GET", "//metrics"))
        stream.Engine(self.endpoint, METRICS_PATIENCE).ask(answer)
        is_there = answer.status == 200 and not answer.problem
        return cache.read(answer.text.decode("utf-8", "replace"), self.make.model) if is_there else {}

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
        while not self.is_answered(self.engine.ask(self.make.single("time", 1))) and stream.clock() < until:
            time.sleep(0.25)

    def hopeless(self, sent, planned, now):
        """Return whether more requests have already missed a target than its percentile allows."""
        allowed = planned - math.ceil(self.chosen.share * planned - 1e-9)
        if len(sent) <= allowed:
            return False
        trial = loads.Trial(self.targets, (), None, self.exact)
        broken = 0
        for answer in sent:
            if answer.end is None:
                broken += any(trial.is_missed(answer, name, target, now) for name, target in self.targets)
            else:
                is_failed = figures.failure(answer, self.exact)
                broken += bool(is_failed) or any(loads.VALUES[n](answer) > target for n, target in self.targets)
        return broken > allowed

    def misses_alone(self, targets):
        """Return whether requests one after another, which never queue, already miss a target too often."""
        misses = [0] * len(targets)
        for _ in range(service.ALONE):
            answer = self.must_answer(self.make.next(), "a request of the wanted length")
            values = [loads.VALUES[name](answer) > target for name, target in targets]
            misses = [count + is_missed for count, is_missed in zip(misses, values)]  # noqa: B905
        allowed = service.ALONE * (1 - self.chosen.share)
        return any(service.at_least(n, allowed) <= service.ERROR / service.MOST_RATES for n in misses)

    def search(self, alone):
        """Search for the highest rate that meets all targets, with its interval. ``alone``: seconds of one

        request. Short probes only find the start of the search.
        """
        chosen = self.chosen
        targets, until = self.targets, stream.clock() + chosen.effort
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
            watch, engine = Watch(self.metrics), self.sender()
            self.source.begin()
            watch.start()
            try:
                common = engine, self.make, self.exact, rate, warmup, seed
                word, result = loads.judged(*common, judging, until)
            finally:
                self.release(engine)
            late = figures.exceeded(judging.lateness)
            show(run="trial", rate=rate, verdict=word or "open", requests=judging.count, late=late)
            if result is None:
                self.settle()
            else:
                result.update(watch.stop())
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
            model=self.make.model,
            api=chosen.api,
            prompt=chosen.trace or chosen.prompt,
            answer=chosen.trace or chosen.answer,
            exact=self.exact,
            targets=[chosen.ttft, chosen.tpot, chosen.e2e],
            limit=chosen.late,
            processes=chosen.processes or None,
            shared=chosen.shared,
            turns=chosen.turns,
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
        for speed in numbers(chosen.speeds, float):
            self.run("replay", speed=speed)
        if self.targets:
            self.search(alone)
        if chosen.quality:
            self.check_quality("after")
        show(end=True)


class Watch:
    """Read the counters of a server's cache during a load. ``ask``: returns them."""

    def __init__(self, ask):
        self.ask, self.before, self.thread = ask, {}, None

    def start(self):
        self.thread = threading.Thread(target=lambda: self.before.update(self.ask()))
        self.thread.start()

    def stop(self):
        """Return the figures of the cache since the start; empty if the server reports none."""
        if self.thread is None:
            return {}
        self.thread.join()
        rate = cache.rate(self.before, self.ask()) if self.before else None
        return {} if rate is None else {"cache_hit_rate": rate[0], "cache_metric": rate[1]}


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
        raise traces.Mistake("%s is not a list of numbers" % text) from None
    if any(not value > 0 for value in values):
        raise traces.Mistake("%s: each must be above 0" % text)
    return values


def main():
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))  # each stream needs a file descriptor
    try:
        chosen = options.options()
        if chosen.record:
            open(chosen.record, "w").close()
        Client(chosen).go()
    except (traces.Mistake, pool.Ended) as mistake:
        sys.exit("%s" % mistake)


if __name__ == "__main__":
    main()
