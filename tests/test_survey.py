"""Test the output of ``fleetmark hosts`` and ``fleetmark workloads`` at several terminal widths."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from fleetmark import workloads
from fleetmark.base.facts import Cpu, Disk, Gpu, Nic
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.ssh.target import Target, UnknownKey, scans
from fleetmark.reports.hosts.survey import Entry, _model, document
from fleetmark.reports.kit.language import Language, language
from fleetmark.reports.lists import catalogue
from tests.reports.rendered import ENGLISH, shown
from tests.schedules import facts

WIDTHS = (80, 100, 140)
MODELS = (
    "AMD EPYC 9654 96-Core Processor",
    "Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz",
    "Intel(R) Xeon(R) Gold 6338N CPU @ 2.20GHz",
    "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz",
    "INTEL(R) XEON(R) PLATINUM 8592+",
    "AMD Ryzen 9 7950X 16-Core Processor",
    "Neoverse-N1",
    "Intel Xeon Processor (Skylake, IBRS)",
)


def entry(n: int, model: str) -> Entry:
    name = f"node-{n:02d}.rack{n}.example.net" if n % 2 else f"db{n}"
    here = facts(
        os="Ubuntu 24.04.1 LTS",
        python_version="3.12.3",
        skew=0.1,
        cpu=Cpu(model=model, cores=96, threads=192),
        memory=1536 << 30,
        disks=(Disk(name="nvme0n1", size=3_840_755_982_336), Disk(name="nvme1n1", size=3_840_755_982_336)),
        nics=(Nic(name="eth0", speed=25e9 / 8), Nic(name="eth1", speed=25e9 / 8)),
        gpus=(Gpu(index=0, vendor="nvidia", name="NVIDIA H100 80GB HBM3"),),
    )
    return Entry(host=Host(name, name, name, labels={"gen": "genoa"}), facts=here, skipped={})


def surveyed(width: int, *entries: Entry, spoken: Language = ENGLISH) -> str:
    return shown(document(entries), width, spoken)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("model", MODELS)
def test_a_host_is_a_line_with_its_cpu_to_be_told(model: str, width: int) -> None:
    text = surveyed(width, entry(0, model), entry(1, model))
    parts = len([line for line in text.splitlines() if line.startswith("host ")])
    names = [line for line in text.splitlines() if line.startswith(("db0 ", "node-01.rack1.example.net "))]
    assert len(names) == 2 * parts and parts <= 3
    assert "…" not in text
    assert all(word in text for word in _model(model).split())
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    heads = ("CPU", "cores", "OS", "Python", "NICs", "disks", "skew", "GPUs", "memory")
    assert [name for name in heads if name not in text.split()] == []


def target(name: str, port: int = 22, proxy: str | None = None, alias: str = "", hashed: bool = False) -> Target:
    key_name = alias or (f"[{name}]:{port}" if port != 22 else name)
    return Target(
        hostname=name, port=port, user="root", family=socket.AF_UNSPEC, key_name=key_name, key_names=(key_name,), known_hosts=(), strict="yes", hash_known_hosts=hashed, identities=(), identities_only=False, agent=None, proxy=proxy, through=proxy or "", timeout=None
    )  # fmt: skip


def unknown(target: Target, file: str = "/root/known hosts") -> UnknownKey:
    return UnknownKey(target.hostname, "its host key (x) is not known", target, Path(file))


def test_unknown_keys_are_added_by_as_few_commands_as_can_be() -> None:
    plain = [unknown(target(f"h{n}")) for n in range(3)] + [unknown(target("h1"))]
    assert scans(plain) == ["ssh-keyscan -p 22 h0 h1 h2 >> '/root/known hosts'"]
    others = [unknown(target("p", 2222)), unknown(target("q", 2222, hashed=True)), unknown(target("r"), "/k")]
    assert scans([*plain, *others])[1:] == [
        "ssh-keyscan -p 2222 p >> '/root/known hosts'",
        "ssh-keyscan -H -p 2222 q >> '/root/known hosts'",
        "ssh-keyscan -p 22 r >> /k",
    ]
    # ssh-keyscan supports neither jump hosts nor aliases
    assert scans([unknown(target("s", proxy="ssh -W x y")), unknown(target("t", alias="u"))]) == []


@pytest.mark.parametrize("width", [*WIDTHS, 40])
def test_a_command_to_paste_is_one_line(width: int) -> None:
    silent = [
        Entry(host=Host(h, h, h), facts=None, skipped={}, unknown_key=unknown(target(f"{h}.example.net")))
        for h in ("alpha", "beta", "gamma", "delta")
    ]
    reason = "needs fio: sudo apt-get install fio, or let Fleetmark do it as root (--become)"
    lacking = Entry(host=Host("e", "e", "e"), facts=facts(), skipped={"fio": reason})
    lines = surveyed(width, *silent, lacking).splitlines()
    names = " ".join(f"{h}.example.net" for h in ("alpha", "beta", "gamma", "delta"))
    assert f"  ssh-keyscan -p 22 {names} >> '/root/known hosts'" in lines
    assert f"  fio {reason}  [e]" in lines


def test_one_host_is_no_plural() -> None:
    text = surveyed(80, Entry(host=Host("h", "h", "h"), facts=None, skipped={}, unknown_key=unknown(target("h"))))
    assert "1 of 1 host does not answer" in text
    assert "1 host key to add: log in to the host" in text


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", workloads.names())
def test_a_workload_is_shown_in_words(name: str, width: int) -> None:
    text = shown(catalogue.workload(workloads.load(name)), width)
    assert not re.search(r"\{\{|\}\}|\{%|facts\.", text), text
    assert "…" not in text
    manifest = workloads.load(name)
    for case in manifest.cases:
        called = case.called or case.name
        assert any(line.startswith(called) for line in text.splitlines()), f"{called} is broken"
        settings = set(re.findall(r"<(\w+)>", called)) - {"node"}
        assert settings <= set(manifest.parameters), "what stands in <> is a setting"


def test_the_survey_reads_in_the_readers_language() -> None:
    silent = Entry(host=Host("db9", "db9", "db9", labels={}), facts=None, reason="timed out", skipped={})
    text = surveyed(100, entry(0, "AMD EPYC 9654 96-Core Processor"), silent, spoken=language("zh-CN"))
    assert text.splitlines()[0].split()[:2] == ["主机", "代次"]
    assert "2 台主机中有 1 台无响应" in text and "does not" not in text
