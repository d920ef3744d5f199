"""Test rules on facts, peaks of the full machine, and specifications that are learned from a campaign."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from fleetmark.base.facts import Cpu, Dimm, Gpu, Nic, PcieLink
from fleetmark.cli.app import app
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis.gate import hold, read_rules
from fleetmark.reports.diagnosis.gate import verdict_text
from tests.commands import refused
from tests.fleets import HOSTS, campaign, ring, scaled, usual
from tests.records import TRIAD, Bench
from tests.schedules import facts

GENOA = Cpu(model="AMD EPYC 9554 64-Core Processor", sockets=1)
FULL = 12


def node(modules: int = FULL, **more: Any) -> Any:
    dimms = tuple(Dimm(slot=f"d{n}", size=32 << 30, type="DDR5", configured_mts=4800) for n in range(modules))
    port = Nic(name="ens1", speed=12.5e9, state="up", driver="mlx5_core")
    return facts(**{"cpu": GENOA, "bios": "1.7", "virtualisation": "none", "dimms": dimms, "nics": (port,), **more})


def judged(root: Path, archive: Archive, document: dict[str, Any]) -> dict[tuple[str, str], str]:
    path = root / "rules.yml"
    path.write_text(yaml.safe_dump(document))
    return {(r.host, r.rule): str(r.verdict) for r in hold(archive, read_rules(path), "rules.yml").results}


def run(root: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, [*words, "--results", str(root)], catch_exceptions=False)
    return done.exit_code, " ".join(done.stdout.split())


def test_half_of_the_modules_is_not_the_peak_of_what_is_populated(tmp_path: Path) -> None:
    values = usual(("a", "b"))
    scaled(values, "a", TRIAD, 0.5)
    archive = campaign(tmp_path, values)
    archive.save_facts("a", node(FULL // 2), {})
    archive.save_facts("b", node(), {})
    peak = {"name": "peak", "metric": "stream/*/triad", "reference": "peak", "at_least": "60%"}
    assert judged(tmp_path, archive, {"rules": [peak]}) == {("a", "peak"): "failed", ("b", "peak"): "passed"}
    unknown = Cpu(model="unknown", sockets=1)  # not in the table: the file says what the full machine has
    archive.save_facts("a", node(FULL // 2, cpu=unknown), {})
    archive.save_facts("b", node(cpu=unknown), {})
    assert judged(tmp_path, archive, {"rules": [peak]})["a", "peak"] == "passed"
    machine = {"memory.modules": 12, "memory.channels": 12, "memory.mts": 4800}
    results = judged(tmp_path, archive, {"machine": machine, "rules": [peak]})
    assert {key for key, verdict in results.items() if verdict != "passed"} == {
        ("a", "peak"),
        ("a", "machine: memory.modules"),
    }


MODULE = Dimm(slot="A", size=32 << 30, type="DDR5", configured_mts=4800)
PEAK = {"name": "peak", "metric": "stream/*/triad", "reference": "peak", "at_least": "60%"}


def slots(*names: str, populated: int) -> tuple[Dimm, ...]:
    return tuple(
        MODULE.model_copy(update={"slot": name, "size": MODULE.size if n < populated else 0})
        for n, name in enumerate(names)
    )


@pytest.mark.parametrize(
    ("dimms", "peak", "warning"),
    [
        (slots(*(f"d{n}" for n in range(8)), populated=8), "passed", "missing"),  # eight slots, all populated
        (slots(*(f"d{n}" for n in range(16)), populated=8), "missing", "missing"),  # perhaps two slots per channel
        (slots(*(f"P{n % 2} CHANNEL {'ABCDEFGH'[n // 2]} D0" for n in range(16)), populated=8), "failed", None),
        (slots(*(f"P0 CHANNEL {'ABCDEFGH'[n % 8]} D{n // 8}" for n in range(16)), populated=8), "passed", None),
    ],
)
def test_memory_of_an_unknown_machine_is_judged_by_its_slots(
    tmp_path: Path, dimms: tuple[Dimm, ...], peak: str, warning: str | None
) -> None:
    values = usual(("a",))
    archive = campaign(tmp_path, values)
    scaled(values, "a", TRIAD, 0.8)
    archive = campaign(tmp_path, values, name="20260102T000000-x")
    archive.save_facts("a", node(cpu=Cpu(model="unknown", sockets=1), dimms=dimms), {})
    verdicts = judged(tmp_path, archive, {"rules": [PEAK]})
    assert verdicts["a", "peak"] == peak and verdicts.get(("a", "machine: memory.modules")) == warning
    text = run(tmp_path, "gate", str(tmp_path / "rules.yml"))[1]
    assert ("nothing states how many memory modules this machine should have" in text) is (warning is not None)
    stated = judged(tmp_path, archive, {"machine": {"memory.modules": 16, "memory.channels": 16}, "rules": [PEAK]})
    assert stated["a", "machine: memory.modules"] == "failed"


def test_each_kind_of_machine_has_its_own_specification(tmp_path: Path) -> None:
    labels = {"a": {"gen": "genoa"}, "b": {"gen": "genoa"}, "c": {"gen": "rome"}, "d": {}}
    archive = campaign(tmp_path, usual(("a", "b", "c", "d")), labels)
    for host, modules in (("a", 12), ("b", 6), ("c", 8), ("d", 4)):
        cpu = Cpu(model="AMD EPYC 7742", sockets=1) if host == "c" else GENOA
        archive.save_facts(host, node(modules, cpu=cpu), {})
    genoa: dict[str, Any] = {"hosts": "gen=genoa", "machine": {"memory.modules": 12}}
    rome: dict[str, Any] = {"hosts": "cpu.model=*7742*", "machine": {"memory.modules": 8}}
    title = "machine: memory.modules"
    results = judged(tmp_path, archive, {"machines": [genoa, rome]})
    expected = {("a", title): "passed", ("b", title): "failed", ("c", title): "passed", ("d", "machines"): "missing"}
    assert results == expected
    text = run(tmp_path, "gate", str(tmp_path / "rules.yml"))[1]
    assert "no entry of machines: selects this host; add one" in text
    results = judged(tmp_path, archive, {"machine": {"memory.modules": 4}, "machines": [genoa, rome]})
    assert results[("d", title)] == "passed" and results[("b", title)] == "failed"


PORT_PEAK = {"name": "peak", "metric": "iperf3/*/bitrate", "reference": "peak", "at_least": "85%"}
UNKNOWN_PORT = Nic(name="ens1", speed=3.125e9, state="up")
SLOW_PORT = Nic(name="ens1", speed=3.125e9, max_speed=12.5e9, state="up")
FAST_PORT = Nic(name="ens1", speed=12.5e9, max_speed=12.5e9, state="up")


def ports(root: Path, ports_of: Mapping[str, Nic]) -> Archive:
    """Return a campaign in which each pair of hosts reaches 93% of the slower of its ports."""
    values = {}
    for (host, bench), each in ring("", ("", "")).items():
        named = {name: getattr(bench, name) for name in bench.__dataclass_fields__} | {"case": "tcp-1"}
        rate = min(ports_of[end].speed or 0.0 for end in bench.subject.split(">"))
        values[host, Bench(**named)] = [v * 0.93e-9 * rate for v in each]
    archive = campaign(root, values)
    for host, port in ports_of.items():
        archive.save_facts(host, node(nics=(port,)), {})
    return archive


def test_a_port_at_25_of_100_gbits_fails_without_a_specification(tmp_path: Path) -> None:
    archive = ports(tmp_path, dict.fromkeys(HOSTS, SLOW_PORT))
    judged(tmp_path, archive, {"rules": [PORT_PEAK]})
    failed = [r for r in hold(archive, read_rules(tmp_path / "rules.yml"), "").results if r.verdict == "failed"]
    assert [(r.host, r.benchmark) for r in failed] == [(host, "port ens1") for host in HOSTS]
    assert str(verdict_text(failed[0])) == (
        "runs at 25.0 Gbit/s, and supports 100 Gbit/s; check the cable, the transceiver and the switch port, or state "
        "the intended rate with machine: port.rate"
    )
    status, text = run(tmp_path, "gate", str(tmp_path / "rules.yml"))
    assert status == 1 and "port ens1: runs at 25.0 Gbit/s, and supports 100 Gbit/s" in text
    accepted = {"machine": {"port.rate": "25 Gbit/s"}, "rules": [PORT_PEAK]}  # the switch has no more
    assert set(judged(tmp_path, archive, accepted).values()) == {"passed"}
    lenient = {"rules": [{**PORT_PEAK, "at_least": "20%"}]}
    assert set(judged(tmp_path, archive, lenient).values()) == {"passed"}
    only_memory = {"rules": [{"name": "fact", "fact": "port.max_rate", "equals": "100 Gbit/s"}]}
    assert set(judged(tmp_path, archive, only_memory).values()) == {"passed"}


def test_partners_of_a_slow_port_and_a_slow_management_port_do_not_fail(tmp_path: Path) -> None:
    archive = ports(tmp_path, {host: SLOW_PORT if host == HOSTS[3] else FAST_PORT for host in HOSTS})
    judged(tmp_path, archive, {"rules": [PORT_PEAK]})
    results = hold(archive, read_rules(tmp_path / "rules.yml"), "").results
    assert {(r.host, r.benchmark) for r in results if r.verdict != "passed"} == {(HOSTS[3], "port ens1")}
    archive = ports(tmp_path / "fast", dict.fromkeys(HOSTS, FAST_PORT))
    management = Nic(name="eno1", speed=1.25e8, max_speed=1.25e9, state="up")
    archive.save_facts(HOSTS[3], node(nics=(management, FAST_PORT)), {})
    assert set(judged(tmp_path, archive, {"rules": [PORT_PEAK]}).values()) == {"passed"}


def test_a_port_below_its_specified_rate_fails(tmp_path: Path) -> None:
    archive = ports(tmp_path, dict.fromkeys(HOSTS, UNKNOWN_PORT))
    assert set(judged(tmp_path, archive, {"rules": [PORT_PEAK]}).values()) == {"passed"}
    results = judged(tmp_path, archive, {"machine": {"port.rate": "100 Gbit/s"}, "rules": [PORT_PEAK]})
    assert set(results.values()) == {"failed"} and ("n00", "machine: port.rate") in results


RULES = [
    ({"fact": "bios", "one_of": ["1.7", "1.8"]}, "passed"),
    ({"fact": "bios", "one_of": ["1.8"]}, "failed"),
    ({"fact": "bios", "equals": "1.7"}, "passed"),
    ({"fact": "bios", "equals": "1.8"}, "failed"),
    ({"fact": "bios", "none_of": ["1.5", "1.6"]}, "passed"),
    ({"fact": "bios", "none_of": ["1.7"]}, "failed"),
    ({"fact": "memory.modules", "at_least": 12}, "passed"),
    ({"fact": "memory.modules", "at_least": 13}, "failed"),
    ({"fact": "memory.modules", "at_most": 12}, "passed"),
    ({"fact": "memory.modules", "at_most": 11}, "failed"),
    ({"fact": "memory.modules", "above": 11}, "passed"),
    ({"fact": "memory.modules", "above": 12}, "failed"),
    ({"fact": "memory.modules", "below": 13}, "passed"),
    ({"fact": "memory.modules", "below": 12}, "failed"),
    ({"fact": "memory.modules", "equals": 12}, "passed"),
    ({"fact": "memory.modules", "equals": 24}, "failed"),
    ({"fact": "memory.modules", "none_of": [6, 8]}, "passed"),
    ({"fact": "memory.size", "at_most": "256 GiB"}, "failed"),
    ({"fact": "memory.total", "at_least": "384 GB"}, "missing"),
    ({"fact": "port.driver", "one_of": ["mlx5_core"]}, "passed"),
    ({"fact": "port.rate", "equals": "100 Gbit/s"}, "passed"),
    ({"fact": "rdma", "at_least": 2}, "passed"),
    ({"fact": "pcie.width", "equals": 16}, "failed"),  # one of both has 8
    ({"fact": "pcie.width", "one_of": [8, 16]}, "passed"),
    ({"fact": "gpus", "at_least": 2}, "passed"),
    ({"fact": "gpu.driver", "one_of": ["550.54"]}, "failed"),  # one of both has another
    ({"fact": "driver", "one_of": ["535.1", "550.54"]}, "passed"),
    ({"fact": "driver", "none_of": ["535.1"]}, "failed"),
    ({"fact": "gpu.ecc_uncorrectable", "at_most": 0}, "failed"),
    ({"fact": "gpu.ecc_uncorrectable", "at_most": 3}, "passed"),
    ({"fact": "xid", "at_most": 0}, "failed"),
    ({"fact": "xid", "at_most": 3}, "passed"),
    ({"fact": "xid.code", "none_of": [48, 79]}, "failed"),
    ({"fact": "xid.code", "none_of": [79, 94, 95]}, "passed"),
    ({"fact": "memory.uncorrected", "at_most": 0}, "missing"),  # the host does not say
]


@pytest.mark.parametrize(("rule", "verdict"), RULES)
def test_rules_on_facts(tmp_path: Path, rule: dict[str, Any], verdict: str) -> None:
    archive = campaign(tmp_path, usual(("a",)))
    gpu = Gpu(index=0, name="H100", vendor="nvidia", driver="550.54", ecc_uncorrected=0)
    other = gpu.model_copy(update={"driver": "535.1", "ecc_uncorrected": 3})
    links = tuple(PcieLink(address=f"0{n}:00.0", name="x", kind="3D controller", width=8 * n) for n in (1, 2))
    known = node(gpus=(gpu, other), pcie=links, xids={"13": 1, "48": 2}, rdma=("mlx5_0", "mlx5_1"), memory=None)
    archive.save_facts("a", known, {})
    assert judged(tmp_path, archive, {"rules": [{"name": "x", **rule}]}) == {("a", "x"): verdict}


@pytest.mark.parametrize(("xids", "verdict"), [({}, "passed"), (None, "missing")])
def test_a_log_without_xids_is_not_an_unreadable_one(tmp_path: Path, xids: Any, verdict: str) -> None:
    archive = campaign(tmp_path, usual(("a",)))
    archive.save_facts("a", node(xids=xids), {})
    rules = [{"name": "x", "fact": "xid", "equals": 0}, {"name": "y", "fact": "xid.code", "none_of": [79]}]
    assert judged(tmp_path, archive, {"rules": rules}) == {("a", "x"): verdict, ("a", "y"): verdict}


def test_verdicts_on_facts_are_sentences(tmp_path: Path) -> None:
    archive = campaign(tmp_path, usual(("a",)))
    archive.save_facts("a", node(), {})
    bounds: list[dict[str, Any]] = [{"above": 12}, {"below": 12}, {"equals": 24}, {"none_of": [12]}]
    path = tmp_path / "rules.yml"
    rules = [{"name": str(n), "fact": "memory.modules", **bound} for n, bound in enumerate(bounds)]
    path.write_text(yaml.safe_dump({"rules": rules}))
    texts = [str(verdict_text(r)) for r in hold(archive, read_rules(path), "rules.yml").results]
    assert texts == ["12.0 is not above 12.0", "12.0 is not below 12.0", "12 is not 24", "12 is refused"]


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"rules": [{"name": "x", "fact": "memory.module", "at_least": 1}]}, "did you mean memory.modules?"),
        ({"rules": [{"name": "x", "fact": "bios", "at_least": "1"}]}, "is text; use one_of, none_of or equals"),
        ({"rules": [{"name": "x", "metric": "a/b/c", "above": 3}]}, "above: is only valid for a fact"),
        ({"rules": [{"name": "x", "fact": "gpus"}]}, "needs a bound"),
        (
            {"rules": [{"name": "x", "fact": "gpus", "metric": "a/b/c", "at_least": 1}]},
            "name either a metric or a fact",
        ),
        ({"rules": [{"name": "x", "fact": "port.rate", "at_least": "3 s"}]}, "the fact is in B/s"),
        ({"machine": {"ram": 3}}, "machine: no fact 'ram'"),
        ({"machines": [{"hosts": "host=a", "machine": {"ram": 3}}]}, "machines: host=a: no fact 'ram'"),
        (
            {"machines": [{"hosts": "genoa", "machine": {"gpus": 3}}]},
            "machines: selector 'genoa': 'genoa' is not key=value",
        ),
        (
            {"machines": [{"hosts": h, "machine": {"gpus": 3}} for h in ("host=a", "host=*")]},
            "machines: 'host=a' and 'host=*' both select a; narrow one of them",
        ),
        ({"description": "x"}, "rules: is empty; add at least one"),
    ],
)
def test_a_wrong_rule_on_a_fact_is_refused(tmp_path: Path, document: dict[str, Any], sentence: str) -> None:
    campaign(tmp_path, usual(("a",)))
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump(document))
    assert sentence in refused(tmp_path, "gate", str(path))


def test_a_specification_is_learned_from_the_best_and_refuses_the_others(tmp_path: Path) -> None:
    archive = campaign(tmp_path, usual(("a", "b", "c")))
    for host, modules in (("a", 12), ("b", 12), ("c", 6)):
        archive.save_facts(host, node(modules), {})
    file = tmp_path / "genoa.yml"
    status, text = run(tmp_path, "reference", "save", "genoa", "--as-specification", str(file))
    assert status == 0 and "wrote" in text
    machine = yaml.safe_load(file.read_text())["machine"]
    assert machine["memory.modules"] == 12 and machine["port.rate"] == "100 Gbit/s"
    status, text = run(tmp_path, "gate", str(file), "--format", "csv")
    assert (
        status == 1
        and "c,machine: memory.modules,memory.modules,failed,6.0" in text
        and "b,machine: memory.modules,memory.modules,passed" in text
    )
    assert "give another file" in refused(tmp_path, "reference", "save", "genoa", "--as-specification", str(file))
