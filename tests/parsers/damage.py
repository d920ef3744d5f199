"""Damage to outputs of tools, and a check that a parser invents no figure and raises nothing but ParseError."""

from __future__ import annotations

import bisect
import math
import random
import re
from collections.abc import Callable
from itertools import pairwise

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Parsed
from fleetmark.parsers.kit.text import decode
from fleetmark.parsers.training.goodput import CAUSES

TOOLS = parsers.tools()

# Factors by which a printed figure may be converted to base units: prefixes of 1000 and 1024, bits, percents.
UNITS = sorted(
    {base**power / part for base in (1000.0, 1024.0) for power in range(-4, 6) for part in (1.0, 8.0, 100.0)}
    | {60.0, 3600.0}  # minutes and hours
)
# Metrics that, by a parser's documentation, combine several figures; elsewhere a note says so.
_SERVING = ("llm_serve", "vllm_bench", "sglang_bench", "guidellm", "aiperf", "trtllm_bench", "inferencex")
_LINKS = ("link_bandwidth", "link_latency")  # medians over pairs
_PORTS = ("rx_rate", "tx_rate", "rx_bandwidth", "tx_bandwidth", "packet_rate", "loss")  # medians, sums, and a share
_FRAMEWORKS = ("megatron_lm", "deepspeed", "torchtitan", "maxtext", "training_recipe")
_OF_RUN = ("useful_tokens_per_second", "mfu", "restarts", "steps_redone", "run_time")
_OPERATORS = ("flops", "bandwidth", "time_iqr", "roof_share", "balance", "mean_roof_share")
COMPUTED = {
    ("iperf3", "rtt_mean"),
    ("iperf3", "reverse_rtt_mean"),
    ("inferencex", "output_tokens_per_second"),
    *(("nvbandwidth", metric) for metric in _LINKS),
    ("rocm_bandwidth_test", "link_bandwidth"),
    *(("memcached", f"latency_p{share}") for share in (50, 99)),  # powers of two, by the place in a histogram
    *(("dpdk_testpmd", metric) for metric in _PORTS),
    *(("torch_ops", metric) for metric in _OPERATORS),
    *(
        (tool, metric)
        for tool in _FRAMEWORKS
        for metric in ("tokens_per_second", "tokens_per_second_device", "step_time")
    ),
    *(
        (tool, metric)
        for tool in _FRAMEWORKS
        for metric in ("step_time_p90", "checkpoint_save", "devices", "straggler_time")
    ),
    *(("training_recipe", metric) for metric in ("goodput", *(f"lost_to_{cause}" for cause in CAUSES), *_OF_RUN)),
    *((tool, metric) for tool in _SERVING for metric in ("interactivity", "failures", "requests", "accelerators")),
    *((tool, metric) for tool in _SERVING for metric in ("prompt_tokens", "output_tokens")),
}
SAYS_COMPUTED = re.compile(r"\bderived\b|\bmean of\b|\btook its\b")


def truncate(raw: bytes, pick: random.Random) -> bytes:
    return raw[: pick.randint(0, len(raw))]


def behead(raw: bytes, pick: random.Random) -> bytes:
    return raw[pick.randint(0, len(raw)) :]


def on_lines(change: Callable[[list[bytes], random.Random], None]) -> Callable[[bytes, random.Random], bytes]:
    def mutate(raw: bytes, pick: random.Random) -> bytes:
        lines = raw.splitlines(keepends=True)
        if lines:
            change(lines, pick)
        return b"".join(lines)

    return mutate


def drop(lines: list[bytes], pick: random.Random) -> None:
    start = pick.randrange(len(lines))
    del lines[start : start + pick.choice((1, 1, 2, 10))]


def swap(lines: list[bytes], pick: random.Random) -> None:
    a, b = pick.randrange(len(lines)), pick.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]


def repeat(lines: list[bytes], pick: random.Random) -> None:
    position, many = pick.randrange(len(lines)), pick.choice((1, 1, 2, 30))
    lines[position:position] = lines[position : position + many]


def interrupt(lines: list[bytes], pick: random.Random) -> None:
    junk = (
        b"\n",
        b"Warning: clock skew\n",
        b"\xff\xfe\x00\n",
        b"} ] 17\n",
        b"Segmentation fault (core dumped)\n",
        b"\t\r",
    )
    lines.insert(pick.randrange(len(lines) + 1), pick.choice(junk))


def garble(raw: bytes, pick: random.Random) -> bytes:
    position, size = pick.randint(0, len(raw)), pick.randint(1, 12)
    return raw[:position] + pick.randbytes(pick.randint(0, 12)) + raw[position + size :]


def refigure(raw: bytes, pick: random.Random) -> bytes:
    """Replace a number by another one: absurd, tiny, signed, or not a number at all."""
    places = list(re.finditer(rb"\d+(?:\.\d+)?", raw))
    if not places:
        return raw
    place = pick.choice(places)
    figures = (
        b"0",
        b"-1",
        b"1e308",
        b"1e400",
        b"-1e400",
        b"Infinity",
        "١٢".encode(),  # digits to a careless \\d, and to int
        "²".encode(),  # a digit to str.isdigit, which int refuses
        b"nan",
        b"-inf",
        b"9" * 400,
        b"9" * 5000,
        b"0.0000001",
        b"N/A",
        b"1.2.3",
        b"",
        b"1,5",
    )
    return raw[: place.start()] + pick.choice(figures) + raw[place.end() :]


def glue(raw: bytes, pick: random.Random) -> bytes:
    return raw + raw[pick.randint(0, len(raw)) :]


def bury(raw: bytes, pick: random.Random) -> bytes:
    """Replace a figure by a value nested deeper than any reader's stack, or by one that the stack just holds."""
    places = list(re.finditer(rb"\d+(?:\.\d+)?", raw))
    if not places:
        return raw
    place, depth = pick.choice(places), pick.choice((500, 5_000, 100_000))
    deep = pick.choice((b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth))
    return raw[: place.start()] + deep + raw[place.end() :]


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    truncate,
    behead,
    garble,
    refigure,
    bury,
    glue,
    *map(on_lines, (drop, swap, repeat, interrupt)),
)


class Figures:
    """The numbers in a text, with any text around them."""

    def __init__(self, text: str) -> None:
        runs = " ".join(set(re.findall(r"[0-9.][0-9.,eE+-]*", text)))  # the same figures in far less text
        words = re.findall(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", runs)
        words += re.findall(r"(?<![0-9])[0-9]++(?:,[0-9]{3})+", runs)  # in linear time, also for 5,000 digits
        for run in set(re.findall(r"[0-9.]{1,400}", runs)):
            parts = run.split(".")
            words += parts + [f"{a}.{b}" for a, b in pairwise(parts)]
        numbers = {float(f.replace(",", "")) for f in set(words) if f.strip(".")}
        self.numbers = sorted(n for n in numbers if math.isfinite(n))

    def has(self, value: float) -> bool:
        position = bisect.bisect_left(self.numbers, value * (1 - 1e-9))
        return position < len(self.numbers) and self.numbers[position] <= value * (1 + 1e-9)

    def explain(self, value: float) -> bool:
        """Return whether ``value`` is a figure in the text times a unit, or the quotient of two figures."""
        size = abs(value)
        if any(self.has(size / unit) for unit in UNITS):
            return True
        return any(self.has(size * n) or self.has(size * 100 * n) for n in self.numbers if n)


def check(tool: str, raw: bytes) -> Parsed | None:
    """Parse ``raw`` and check what every parser guarantees; any exception but ParseError is a failure."""
    try:
        parsed = parsers.parse(tool, raw)
    except ParseError as error:
        assert str(error).startswith(tool) and "expected" in str(error) and "\n" not in str(error)
        return None
    assert parsed.tool == tool and parsed.measurements
    assert all(m.workload == tool and m.case and m.subject for m in parsed.measurements)
    figures = Figures(decode(raw))
    if any(SAYS_COMPUTED.search(note) for note in parsed.notes):
        return parsed
    for m in parsed.measurements:
        if (tool, m.metric) not in COMPUTED:
            assert figures.explain(m.value), f"{m.metric} = {m.value!r} {m.unit} is nowhere in the text"
    return parsed
