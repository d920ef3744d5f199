"""Test the shares of a suite: what is accepted, what follows for a schedule, and what documents say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.campaign.resumed.scheduled import job_text
from fleetmark.campaign.schedule import settings_of
from fleetmark.campaign.slurm import refuse_impossible
from fleetmark.hosts.slurm.cluster import Request
from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import repeated, spoken
from fleetmark.record.machines import machines
from fleetmark.record.sides.mixtures import under_shares
from fleetmark.workloads import Suite, load_suite
from fleetmark.workloads.shares import Shares
from fleetmark.workloads.suite import suite_from
from tests.records import GCC, record
from tests.schedules import GiB, facts, schedule

BOTH = {"cpu": "25%", "memory": "8GiB"}


def read(folder: Path, text: str, name: str = "mine.yml") -> Suite:
    (folder / name).write_text(f"description: x\n{text}")
    return load_suite(str(folder / name))


def test_shares_are_of_cpu_time_and_memory(tmp_path: Path) -> None:
    suite = read(tmp_path, "shares: {cpu: 25%, memory: 8GiB}\nworkloads: {stream: }\n")
    assert suite.shares is not None
    assert suite.shares.as_job() == {"cpu": 0.25, "memory": 8 * GiB}
    assert Shares(memory="12.5 %").as_job() == {"memory": 0.125}
    assert str(spoken(suite.shares)) == "25% of the CPU time, 8GiB of memory"


def test_shares_are_of_disks_and_the_network(tmp_path: Path) -> None:
    suite = read(tmp_path, "shares: {disk: 200MB/s, network: 0.5 Gbit/s}\nworkloads: {stream: }\n")
    assert suite.shares is not None
    assert suite.shares.as_job() == {"disk": 200e6, "network": 62.5e6}
    assert str(spoken(suite.shares)) == "200MB/s of each disk, 0.5 Gbit/s of the network"
    assert suite.shares.model_dump() == {"disk": "200MB/s", "network": "0.5 Gbit/s"}


def test_a_slow_disk_extends_the_timeouts_of_the_workloads_that_use_it(tmp_path: Path) -> None:
    timeouts = []
    for share in ("", "shares: {disk: 1 MB/s}\n"):
        text = f"description: x\nrepeats: 1\n{share}workloads: {{fio: {{set: {{size: 1GiB}}}}, selftest: }}\n"
        (tmp_path / "mine.yml").write_text(text)
        job = schedule(str(tmp_path / "mine.yml"), work_free=1000 * GiB).hosts["h1"]
        timeouts.append({step.workload: step.timeout_s for step in job.steps})
    assert timeouts[1]["fio"] == pytest.approx(timeouts[0]["fio"] + 2 * job.disk["fio"] / 1e6)
    assert job.disk["fio"] >= 1 << 30 and timeouts[1]["selftest"] == timeouts[0]["selftest"]


@pytest.mark.parametrize(
    ("shares", "problem"),
    [
        ("{cpu: 0.5}", "shares.cpu: must be a share of the CPU time such as 25%, got '0.5'"),
        ("{cpu: 101%}", "got '101%'"),
        ("{cpu: 0%}", "got '0%'"),
        ("{cpu: ２５%}", "must be a share of the CPU time"),
        ("{memory: 1MiB}", "shares.memory: must be a share such as 25% or a size of at least 64MiB, got '1MiB'"),
        ("{memory: much}", "got 'much'"),
        ("{}", "shares: names no share; add cpu, memory, disk or network, or remove it"),
        ("{disk: 10%}", "shares.disk: must be a rate of at least 1 MB/s such as 200 MB/s, got '10%'"),
        ("{disk: 200MB}", "got '200MB'"),
        ("{disk: 1kB/s}", "got '1kB/s'"),
        ("{network: 1}", "shares.network: must be a rate of at least 1 Mbit/s such as 500 Mbit/s, got '1'"),
        ("{network: -1 Gbit/s}", "got '-1 Gbit/s'"),
        ("{network: 1e9 GB/s}", "got '1e9 GB/s'"),
        ("{swap: 1GiB}", "shares.swap: is not a valid key; the keys are cpu, disk, memory, network"),
        ("[1]", "shares: must be a mapping of names to values"),
    ],
)
def test_other_shares_are_refused_with_their_place(tmp_path: Path, shares: str, problem: str) -> None:
    with pytest.raises(FleetmarkError) as refused:
        read(tmp_path, f"shares: {shares}\nworkloads: {{stream: }}\n")
    assert problem in str(refused.value)


def test_included_suites_hand_on_their_shares(tmp_path: Path) -> None:
    read(tmp_path, "shares: {cpu: 50%}\nworkloads: {stream: }\n", "half.yml")
    read(tmp_path, "workloads: {fio: }\n", "whole.yml")
    assert read(tmp_path, "include: [half.yml]\n").shares == Shares(cpu="50%")
    assert read(tmp_path, "include: [half.yml]\nshares: {cpu: 10%}\n").shares == Shares(cpu="10%")
    with pytest.raises(FleetmarkError, match="its included suites differ; set shares in this suite"):
        read(tmp_path, "include: [half.yml, whole.yml]\n")
    with pytest.raises(FleetmarkError, match="its included suites differ"):
        load_suite(f"{tmp_path}/half.yml,stream")


def test_working_sets_fit_the_share_of_memory(tmp_path: Path) -> None:
    """fio's file for buffered I/O is twice the memory, so that no cache can hold it."""
    for share, size in (("", 128 * GiB), ("shares: {memory: 25%}\n", 32 * GiB)):
        text = f"description: x\nrepeats: 1\n{share}workloads: {{fio: {{set: {{direct: no}}}}}}\n"
        (tmp_path / "mine.yml").write_text(text)
        step = schedule(str(tmp_path / "mine.yml"), work_free=1000 * GiB).hosts["h1"].steps[0]
        assert f"--size={size}" in step.argv
    assert Shares(cpu="25%").left_of(facts()) == facts()


def test_a_job_carries_its_shares_and_others_stay_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "mine.yml").write_text("description: x\nworkloads: {selftest: }\n")
    job = schedule(str(tmp_path / "mine.yml")).hosts["h1"]
    document = {"id": "c", "owner": "o", "created": "t"}
    plain = job_text({**document, "suite_as_read": {}}, job, facts())
    assert "shares" not in plain
    held = job_text({**document, "suite_as_read": {"shares": BOTH}}, job, facts())
    assert held == plain[:-1] + f', "shares": {{"cpu": 0.25, "memory": {8 * GiB}}}}}'


def suite(workloads: dict[str, Any]) -> Suite:
    return suite_from({"description": "x", "shares": BOTH, "workloads": workloads}, "mine")


def test_what_no_share_can_hold_is_refused() -> None:
    with pytest.raises(FleetmarkError, match="shares cannot limit stream, because a container engine starts"):
        settings_of(suite({"stream": {"in_container": "podman:x"}}), {})
    with pytest.raises(FleetmarkError, match="shares cannot limit torch_ops"):
        settings_of(suite({"torch_ops": None}), {"torch_ops": {"python": "docker:x"}})
    settings_of(suite({"torch_ops": None}), {"torch_ops": {"python": "/opt/torch"}})
    settings_of(suite({"dpdk_testpmd": None}), {})
    limited = suite_from(
        {"description": "x", "shares": {"network": "1 Gbit/s"}, "workloads": {"dpdk_testpmd": None}}, "m"
    )
    with pytest.raises(
        FleetmarkError, match="dpdk_testpmd, because its network transfers bypass the kernel; remove the workload, or"
    ):
        settings_of(limited, {})
    with pytest.raises(FleetmarkError, match="shares cannot be used on Slurm nodes"):
        refuse_impossible(Request(), suite({"stream": None}), {}, None)


def test_a_case_of_several_hosts_is_refused(tmp_path: Path) -> None:
    text = (
        "description: x\nrepeats: 1\nshares: {cpu: 50%}\nworkloads: {hpcc: {set: {nodes: [2], memory_share: 0.01}}}\n"
    )
    (tmp_path / "mine.yml").write_text(text)
    more: dict[str, Any] = {"tools": {"mpirun": "/usr/bin/mpirun", "hpcc": "/usr/bin/hpcc"}}
    more["software"] = {"mpi": "Open MPI 4.1.4"}
    with pytest.raises(FleetmarkError, match=r"shares cannot limit hpcc .*, whose processes start over SSH on h1, h2"):
        schedule(str(tmp_path / "mine.yml"), hosts=2, **more)


def test_records_and_comparisons_name_the_shares(tmp_path: Path) -> None:
    archive = held(tmp_path, BOTH)
    assert repeated(archive) == {"shares": BOTH}
    (one,) = {machine.shares for machine in machines(tmp_path)}
    assert str(one) == "25% of the CPU time, 8GiB of memory"
    (sentence,) = under_shares("old", machines(tmp_path))
    assert str(sentence).endswith("were limited to shares of the host: 25% of the CPU time, 8GiB of memory")
    assert not list(under_shares("old", []))
    held(tmp_path, {"cpu": "lots"})
    with pytest.raises(FleetmarkError, match="the shares of its suite are damaged; restore the file"):
        repeated(archive)


def held(root: Path, shares: Any) -> Archive:
    """Return a recorded campaign whose suite has these shares."""
    archive = next((Archive(p.parent) for p in root.glob("*/campaign.json")), None) or record(
        root, "c1", {"h1": {}, "h2": {}}, {("h1", GCC): [1.0]}
    )
    archive.save_campaign({**archive.campaign(), "suite_as_read": {"shares": shares}})
    return archive
