"""Test suites: what the shipped suites select for each host, includes, conditions, and variants of a workload."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fleetmark import workloads
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Cpu, Gpu, Torch
from fleetmark.base.measurement import Better
from fleetmark.campaign.schedule import make_schedule, refuse_nothing, settings_of
from fleetmark.hosts.inventory import Host
from fleetmark.record.steps import HostSchedule
from fleetmark.workloads import Suite, case_of, declared, entry_of, load_suite, plain_case
from tests.schedules import facts, schedule, suite

MEDIUM = "needs SPEC's medium"


def gpus(number: int, vendor: str = "nvidia", name: str = "H100") -> dict[str, Any]:
    """Return the facts of a host with accelerators and all the tools that they need."""
    device = {"nvidia": "cuda", "amd": "cuda", "huawei": "npu"}[vendor]
    torch = Torch(device=device, devices=number, backends=("nccl", "hccl", "gloo"), python="/usr/bin/python3")
    return {
        "gpus": tuple(Gpu(index=n, name=name, vendor=vendor) for n in range(number)),
        "torch": {"python3": torch},
        "software": {"cuda": "13.0", "nccl": "2.28", "rocm": "7.0", "rccl": "2.26", "mpi": "Open MPI 4.1"},
    }


def host_schedule(name: str, **host: Any) -> HostSchedule:
    return schedule(name, **host).hosts["h1"]


def chosen(name: str, **host: Any) -> set[str]:
    """Return the workloads that a suite runs or skips on a host, without those that its conditions exclude."""
    planned = host_schedule(name, **host)
    return {step.workload for step in planned.steps} | set(planned.skipped)


def write(folder: Path, name: str, text: str) -> str:
    (folder / f"{name}.yml").write_text(f"description: {name}\n{text}")
    return str(folder / f"{name}.yml")


# --- shipped suites ---------------------------------------------------------------------------------------------------

SERVER = {
    *("stream", "lmbench", "fio", "iperf3", "openssl_speed", "hpcc", "nginx_wrk", "redis_benchmark", "pgbench"),
    *("spec_cpu2017", "spec_cpu2026"),
}
ANYWHERE = {
    *("stream", "fio", "iperf3", "torch_ops", "torch_collectives", "torch_train", "infer_engines", "llm_serve"),
}


def test_a_server_is_compared_by_every_named_class() -> None:
    assert chosen("server", cpu=Cpu(vendor="AuthenticAMD", cores=16, threads=32)) == SERVER
    assert chosen("server", cpu=Cpu(vendor="GenuineIntel", cores=16, threads=32)) == SERVER | {"mlc"}


@pytest.mark.parametrize(
    ("host", "more"),
    [
        ({}, {"mlperf_inference"}),
        ({**gpus(2), "rdma": ("mlx5_0",)}, {"nccl_tests", "nvbandwidth", "mlperf_inference", "perftest"}),
        (gpus(2, "amd", "MI300X"), {"rccl_tests", "rocm_bandwidth_test", "mlperf_inference"}),
        (gpus(2, "huawei", "910B"), {"hccl_test", "mlperf_inference"}),
    ],
)
def test_accelerators_are_measured_by_their_vendors_tools(host: dict[str, Any], more: set[str]) -> None:
    planned = host_schedule("gpu", **host)
    names = {step.workload for step in planned.steps} | {workloads.workload_of(e) for e in planned.skipped}
    assert names == ANYWHERE | more


def test_full_is_server_and_gpu() -> None:
    both = load_suite("full").chosen()
    assert list(both) == list(load_suite("server").chosen() | load_suite("gpu").chosen())
    assert {choice.repeats for choice in both.values()} == {1, 3}


@pytest.mark.parametrize("name", ["quick", "standard", "thorough", "acceptance"])
def test_what_a_host_has_decides(name: str) -> None:
    alone, accelerated = chosen(name), chosen(name, **gpus(8))
    assert {"stream", "fio", "lmbench", "iperf3"} <= alone < accelerated
    assert accelerated - alone >= {"nvbandwidth", "torch_ops", "torch_collectives"}
    assert "rocm_bandwidth_test" in chosen(name, **gpus(8, "amd"))


def test_quick_takes_six_minutes_even_with_eight_accelerators() -> None:
    planned = host_schedule("quick", **gpus(8))
    assert sum(step.expect_s for step in planned.steps) <= 360
    assert {s.case for s in planned.steps if s.workload == "torch_collectives"} == {"all_reduce"}
    (product,) = (s for s in planned.steps if s.workload == "torch_ops")
    assert {"--operators=mm", "--chosen=llama3-8b-out"} <= set(product.argv)


def test_new_nodes_are_soaked() -> None:
    burnin = [step.case for step in host_schedule("burnin", **gpus(2)).steps]
    assert burnin.index("all-cores@before") < burnin.index("soak") < burnin.index("all-cores@after")
    assert {"stress", "stream"} <= chosen("acceptance")


def test_shipped_rules_hold_what_the_suite_measures() -> None:
    from fleetmark.record.diagnosis.gate import read_rules, shipped

    assert shipped() == ["acceptance"]
    measured = chosen("acceptance")
    for rule in read_rules(Path("acceptance")).rules:
        workload, _, metric = rule.metric.split("/")
        assert workload == "*" or (workload in measured and metric in workloads.load(workload).metrics)


# --- includes and conditions ------------------------------------------------------------------------------------------


def test_an_including_suite_overrides_what_it_includes(tmp_path: Path) -> None:
    write(
        tmp_path, "base", "repeats: 4\nworkloads:\n  stream: {set: {ntimes: 20, threads: 2}}\n  lmbench: {repeats: 7}\n"
    )
    mine = write(tmp_path, "mine", "include: [base.yml, selftest]\nworkloads:\n  stream: {set: {ntimes: 30}}\n  fio:\n")
    chosen = load_suite(mine).chosen()
    assert list(chosen) == ["stream", "lmbench", "selftest", "fio"]
    assert chosen["stream"].set == {"ntimes": 30, "threads": 2}
    assert [chosen[name].repeats for name in chosen] == [4, 7, 1, None]
    fixed = load_suite(write(tmp_path, "fixed", "repeats: 2\ninclude: [base.yml]\n")).chosen()
    assert (fixed["stream"].repeats, fixed["lmbench"].repeats) == (None, 7), "the suite's own repeats count"
    write(tmp_path, "middle", "include: [base.yml, selftest]\n")
    outer = load_suite(write(tmp_path, "outer", "repeats: 2\ninclude: [middle.yml]\n"))
    assert [outer.chosen()[name].repeats or outer.repeats for name in ("stream", "lmbench", "selftest")] == [2, 7, 2]


def test_suites_with_commas_between_them_are_one(tmp_path: Path) -> None:
    mine = write(tmp_path, "mine", "repeats: 4\nworkloads:\n  fio: {set: {runtime: 5}}\n")
    suite = load_suite(f"stream, {mine},selftest,stream,lmbench")
    assert list(suite.workloads) == ["stream", "fio", "selftest", "lmbench"]
    assert suite.name == "stream-mine-selftest-1-more"
    assert (suite.chosen()["fio"].repeats, suite.chosen()["fio"].set) == (4, {"runtime": 5})


@pytest.mark.parametrize(
    ("name", "words"), [("stream,", "a name is missing next to a comma"), ("stream,strm", "'strm'")]
)
def test_a_wrong_name_among_several_is_told(name: str, words: str) -> None:
    with pytest.raises(FleetmarkError, match=words):
        load_suite(name)


def test_a_workload_of_two_includes_runs_where_either_wants_it(tmp_path: Path) -> None:
    write(tmp_path, "a", "where: has_gpu\nworkloads:\n  selftest: {set: {commands: 1}}\n")
    write(tmp_path, "b", "workloads:\n  selftest: {where: has_rdma}\n")
    write(tmp_path, "c", "workloads:\n  selftest:\n")
    two = write(tmp_path, "two", "include: [a.yml, b.yml]\n")
    assert chosen(two, rdma=("mlx5_0",)) == chosen(two, **gpus(1)) == {"selftest"}
    assert load_suite(two).chosen()["selftest"].set == {"commands": 1}
    assert load_suite(write(tmp_path, "all", "include: [two.yml, c.yml]\n")).chosen()["selftest"].where == ""


def test_a_condition_of_a_suite_holds_for_all_its_workloads(tmp_path: Path) -> None:
    mine = write(tmp_path, "mine", "where: facts.cpu.cores > 8\nworkloads:\n  selftest: {where: is_root}\n  stream:\n")
    assert chosen(mine, root=True) == {"selftest", "stream"}
    assert chosen(mine, root=False) == {"stream"}
    assert host_schedule(mine, root=False).unmet == {"selftest": "(facts.cpu.cores > 8) and (is_root)"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("where: has_gpus\nworkloads: {fio: }\n", r"unknown fact 'has_gpus' \(did you mean has_gpu\?\)"),
        ("workloads: {fio: {where: facts.gpu}}\n", r"fio: where: unknown fact facts.gpu \(did you mean gpus\?\)"),
        ("workloads: {fio: {where: facts.cpu.core}}\n", r"unknown fact facts.cpu.core \(did you mean cores\?\)"),
        ("workloads: {fio: {where: has_gpu and}}\n", "is not a valid expression"),
        ('workloads: {fio: {where: "{{ has_gpu }}"}}\n', "contains braces; write only the expression"),
        ("include: [mine.yml]\n", r"the suites form a cycle \(mine.yml > mine.yml\); remove one include"),
        ("include: [nosuch]\n", "no suite 'nosuch'"),
        ("include: [none.yml]\n", "none.yml: No such file"),
        ("include: []\n", "the list is empty; add at least one workload"),
        ("workloads: {fio@a.b: }\n", "'fio@a.b' is not a valid name; use WORKLOAD or WORKLOAD@VARIANT"),
        ("workloads: {fio@a: {set: {siez: 1}}}\n", "fio has no parameter 'siez'"),
    ],
)
def test_a_bad_suite_is_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(FleetmarkError, match=sentence) as caught:
        load_suite(write(tmp_path, "mine", text))
    assert "\n" not in str(caught.value)
    assert "mine.yml" in str(caught.value) or "none.yml" in str(caught.value) or "nosuch" in str(caught.value)


def test_a_circle_of_includes_is_named(tmp_path: Path) -> None:
    write(tmp_path, "a", "include: [b.yml]\n")
    write(tmp_path, "b", "include: [c.yml]\n")
    start = write(tmp_path, "c", "include: [a.yml]\n")
    with pytest.raises(FleetmarkError, match=r"form a cycle \(c.yml > a.yml > b.yml > c.yml\)"):
        load_suite(start)


def test_one_suite_may_be_included_on_two_ways(tmp_path: Path) -> None:
    write(tmp_path, "base", "workloads:\n  selftest:\n")
    write(tmp_path, "left", "include: [base.yml]\n")
    write(tmp_path, "right", "include: [base.yml]\n")
    assert list(load_suite(write(tmp_path, "top", "include: [left.yml, right.yml]\n")).chosen()) == ["selftest"]


def test_a_suite_that_selects_nothing_is_refused(tmp_path: Path) -> None:
    mine = write(tmp_path, "mine", "where: has_gpu\nworkloads:\n  selftest:\n")
    with pytest.raises(FleetmarkError, match=r"suite mine: no host meets its conditions \(has_gpu\); choose another"):
        refuse_nothing(load_suite(mine), schedule(mine, hosts=2))
    refuse_nothing(load_suite(mine), schedule(mine, hosts=2, **gpus(1)))


def test_a_condition_that_breaks_on_a_hosts_facts_names_its_place(tmp_path: Path) -> None:
    mine = write(tmp_path, "mine", "workloads:\n  selftest: {where: facts.memory > 10}\n")
    with pytest.raises(FleetmarkError, match="suite mine: selftest: where: .* cannot be evaluated"):
        schedule(mine, memory=None)


# --- variants ---------------------------------------------------------------------------------------------------------

TWO = "  selftest:\n  selftest@long: {set: {commands: 3}}\n"


def test_variants_never_share_a_name(tmp_path: Path) -> None:
    planned = schedule(suite(tmp_path, TWO), {"selftest": {"commands": "2"}}).hosts["h1"]
    keys = Counter((s.workload, s.case, s.repeat, s.subject) for s in planned.steps)
    assert set(keys.values()) == {1}
    cases = {s.case for s in planned.steps}
    assert cases == {"uptime-1", "uptime-2", "uptime-1@long", "uptime-2@long", "uptime-3@long"}
    assert {s.workload for s in planned.steps} == {"selftest"}


def test_settings_go_by_the_name_in_the_suite(tmp_path: Path) -> None:
    mine = load_suite(suite(tmp_path, TWO))
    assert settings_of(mine, {"selftest@long": {"commands": "4"}}) == {"selftest": {}, "selftest@long": {"commands": 4}}
    with pytest.raises(FleetmarkError, match=r"suite mine does not run selftest@x; it runs selftest, selftest@long"):
        settings_of(mine, {"selftest@x": {"commands": "4"}})


def test_patterns_and_hosts_of_a_variant_go_by_the_manifests_names(tmp_path: Path) -> None:
    text = '  selftest@a: {cases: ["uptime-1", "uptime-2"], hosts: {uptime-1: [[h1]], uptime-2: [[h2]]}}\n'
    planned = schedule(suite(tmp_path, text), hosts=2)
    assert {s.case for s in planned.hosts["h1"].steps} == {"uptime-1@a"}
    assert {s.case for s in planned.hosts["h2"].steps} == {"uptime-2@a"}


def test_a_stored_suite_gives_the_same_schedule_again(tmp_path: Path) -> None:
    text = "  selftest@long: {set: {commands: 3}, where: is_root}\n  iperf3@many: {set: {streams: 16}}\n  stream:\n"
    mine = load_suite(suite(tmp_path, text))
    hosts = [(Host(n, n, n), facts()) for n in ("a", "b", "c")]
    first = make_schedule(hosts, mine, {"stream": {"ntimes": "7"}}, campaign="c", seed=5, repeats=None)
    stored = Suite.model_validate(mine.model_dump(mode="json", exclude={"workloads": {"__all__": {"set"}}}))
    again = make_schedule(hosts, stored, first.settings, campaign="c", seed=5, repeats=None)
    assert again == first
    assert {s.case for s in first.hosts["a"].steps if s.workload == "iperf3"} >= {"tcp-16@many"}


def test_names_of_variants_can_be_taken_apart() -> None:
    assert case_of("fio@large", "read-1m-qd8") == "read-1m-qd8@large"
    assert case_of("fio", "read-1m-qd8") == "read-1m-qd8"
    for case in ("read-1m-qd8", "all_reduce@NCCL_ALGO=Ring;NCCL_PROTO=LL", "basic-1t-b1/mm/fp32"):
        assert (entry_of("w", case), plain_case(case)) == ("w", case)
        base, slash, part = case.partition("/")
        recorded = f"{base}@large{slash}{part}"
        assert (entry_of("w", recorded), plain_case(recorded)) == ("w@large", case)


def test_figures_of_a_variant_mean_what_the_manifest_says() -> None:
    identity = ("write_clat_p99", "disk-iops", "s", Better.LOWER.value)
    plain = declared.declaration("fio", "randwrite-4k-p99-2000us", *identity)
    variant = declared.declaration("fio", "randwrite-4k-p99-2000us@large", *identity)
    assert plain.limit == variant.limit == 0.002
    assert variant.kind == plain.kind
    assert declared.keeps_limit("fio", "randwrite-4k-p99-2000us@large")
    assert declared.depth("fio", "read-1m-qd8@large") == ("read-1m@large", 8.0)
    peak = declared.peak("stream", "all-cores@after", "triad")
    assert peak == declared.peak("stream", "all-cores", "triad") is not None


def test_a_suspect_variant_is_measured_again_as_that_variant(tmp_path: Path) -> None:
    from fleetmark.record.diagnosis import diagnose
    from fleetmark.record.diagnosis.reruns import rerun
    from tests import fleets
    from tests.records import Bench

    bench = Bench("stream", "all-cores@after", "triad", "B/s", "higher", "mem-bw", kind="capacity")
    values = fleets.usual()
    for host, other in [key for key in values if key[1].workload == "stream"]:
        values[host, bench] = values[host, other]
    fleets.scaled(values, "n03", bench, 0.8)
    again = rerun(archive := fleets.campaign(tmp_path, values), diagnose(archive))
    choice = again.suite["workloads"]["stream@after"]
    assert choice["cases"] == ["all-cores"] and choice["hosts"]["all-cores"][0] == ["n03"]


# --- required settings ------------------------------------------------------------------------------------------------


def test_what_nobody_gave_is_skipped_and_said() -> None:
    planned = host_schedule("server")
    assert planned.skipped["spec_cpu2017"].startswith(MEDIUM)
    assert "fio" in {s.workload for s in planned.steps}


def test_alone_it_is_refused_before_any_host_is_asked() -> None:
    with pytest.raises(FleetmarkError, match=MEDIUM):
        settings_of(load_suite("spec_cpu2017"), {})


def test_a_mistake_is_refused_in_a_suite_of_several_too() -> None:
    with pytest.raises(FleetmarkError, match=r"nginx_wrk needs nginx_wrk.path to be an absolute path"):
        settings_of(load_suite("server"), {"nginx_wrk": {"path": "bin"}})
    with pytest.raises(FleetmarkError, match=r"fio needs fio.erase=yes"):
        settings_of(load_suite("server"), {"fio": {"device": "/dev/sdb"}})
