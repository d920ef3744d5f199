"""A fleet of three generations on record: 16 hosts, one of them 10% slow, three on powersave, with prices."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from pathlib import Path

from fleetmark.base.facts import Cpu
from tests import records
from tests.records import Bench
from tests.schedules import facts

GENERATIONS: Mapping[str, tuple[int, int, int]] = {  # hosts, cores, price
    "icelake": (6, 64, 9_000),
    "genoa": (6, 192, 15_500),
    "turin": (4, 256, 24_000),
}
NAMES = {"icelake": "ice", "genoa": "gen", "turin": "tur"}
SLOW, POWERSAVE = "gen-a04", ("ice-a02", "gen-a03", "tur-a01")
_SPEC = ("500.perlbench_r", "502.gcc_r", "505.mcf_r", "520.omnetpp_r", "523.xalancbmk_r", "525.x264_r")
_SPEC += ("531.deepsjeng_r", "541.leela_r", "548.exchange2_r", "557.xz_r")
INTEGER = [
    Bench("spec_cpu2017", name, "base_ratio", "1", "higher", "cpu-int", standing="estimate", kind="capacity")
    for name in _SPEC
]
DISK = [Bench("fio", f"randread-4k-qd{d}", "read_iops", "1/s", "higher", "disk-iops", kind="capacity") for d in (32, 256)]  # fmt: skip
NET = Bench("iperf3", "tcp-8", "bitrate", "B/s", "higher", "net", kind="capacity")
TRIAD = Bench("stream", "all-cores", "triad", "B/s", "higher", "mem-bw", kind="capacity")
IDLE = Bench("mlc", "idle", "latency", "s", "lower", "mem-latency", kind="responsiveness")
CHASE = Bench("lmbench", "lat_mem_rd", "latency", "s", "lower", "mem-latency", kind="responsiveness")
_FACTOR: Mapping[str, Mapping[str, float]] = {
    "cpu-int": {"icelake": 1, "genoa": 2.55, "turin": 4.43},
    "disk-iops": {"icelake": 1, "genoa": 1.85, "turin": 3.35},
    "net": {"icelake": 1, "genoa": 3.99, "turin": 7.99},
    "mem-bw": {"icelake": 1, "genoa": 2.3, "turin": 3.4},
    "mem-latency": {"icelake": 1, "genoa": 0.83, "turin": 0.83},
}
_USUAL = {"cpu-int": 210.0, "disk-iops": 4e5, "net": 3.1e9, "mem-bw": 2.1e11, "mem-latency": 9.25e-8}


def fleet(root: Path) -> None:
    """A campaign per generation under ``root``; only the first ran one of the two latency benchmarks."""
    rng = random.Random(11)
    for number, (generation, (hosts, cores, price)) in enumerate(GENERATIONS.items()):
        names = [f"{NAMES[generation]}-a{n + 1:02}" for n in range(hosts)]
        measured: dict[tuple[str, Bench], list[float]] = {}
        benches = [*INTEGER, *DISK, NET, TRIAD, IDLE, *([CHASE] if number == 0 else [])]
        for host in names:
            speed = (0.9 if host == SLOW else 1.0) * math.exp(rng.gauss(0, 0.004))
            for place, bench in enumerate(benches):
                better = _FACTOR[bench.class_][generation] * speed * (1 + (place % 3 - 1) * 0.03 * number)
                usual = _USUAL[bench.class_] * (1 + 0.1 * place)
                value = usual / better if bench.better == "lower" else usual * better
                measured[host, bench] = [value * math.exp(rng.gauss(0, 0.003)) for _ in range(3)]
        labels = {"gen": generation, "price": str(price), "currency": "EUR", "price_date": "2026-11-01"}
        archive = records.record(
            root,
            f"2026110{number + 1}T000000-{generation}",
            dict.fromkeys(names, labels),
            measured,
            cores=dict.fromkeys(names, cores),
        )
        for host in names:
            governor = "powersave" if host in POWERSAVE else "performance"
            cpu = Cpu(cores=cores, threads=2 * cores, sockets=2)
            archive.save_facts(host, facts(cpu=cpu, hostname=host, governor=governor), {})
