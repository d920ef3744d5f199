"""From suite and facts to commands: scaling, skipping, order, pairs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Cache, Cpu, NumaNode
from fleetmark.campaign.resolve import is_present
from fleetmark.campaign.schedule import settings_of
from fleetmark.record.steps import Step
from fleetmark.workloads import load_suite
from tests.schedules import GiB, facts, schedule, suite


def options(step: Step) -> dict[str, str]:
    return dict(word[2:].split("=", 1) for word in step.argv if word.startswith("--") and "=" in word)


def test_stream_arrays_are_at_least_four_times_the_summed_last_level_cache(tmp_path: Path) -> None:
    (step, *_) = schedule(suite(tmp_path, "  stream:\n")).hosts["h1"].steps
    elements = int(step.argv[1])
    assert elements * 8 >= 4 * 4 * (32 << 20)
    assert step.env["OMP_NUM_THREADS"] == "16"


def test_a_thread_sweep_is_a_case_for_each_count(tmp_path: Path) -> None:
    steps = schedule(suite(tmp_path, "  stream:\n"), {"stream": {"threads": "1,2,4"}}).hosts["h1"].steps
    assert {s.case for s in steps} == {"1t", "2t", "4t"}


def test_numa_placement_binds_threads_and_memory(tmp_path: Path) -> None:
    numa = (NumaNode(id=0, cpus=tuple(range(8))), NumaNode(id=1, cpus=tuple(range(8, 16))))
    steps = schedule(suite(tmp_path, "  stream:\n"), {"stream": {"numa": "matrix"}}, numa=numa).hosts["h1"].steps
    assert {s.case for s in steps} == {"all-cores", "cpu0-mem0", "cpu0-mem1", "cpu1-mem0", "cpu1-mem1"}
    remote = next(s for s in steps if s.case == "cpu0-mem1")
    assert remote.argv[:3] == ("numactl", "--cpunodebind=0", "--membind=1")
    assert remote.env["OMP_NUM_THREADS"] == "8"


def test_fio_never_takes_more_than_its_share_of_the_free_disk(tmp_path: Path) -> None:
    for step in schedule(suite(tmp_path, "  fio:\n"), work_free=2 * GiB).hosts["h1"].steps:
        assert int(options(step)["size"]) <= 0.2 * 2 * GiB


def test_buffered_fio_wants_twice_the_memory(tmp_path: Path) -> None:
    settings = {"fio": {"direct": "no"}}
    steps = schedule(suite(tmp_path, "  fio:\n"), settings, work_free=10_000 * GiB).hosts["h1"].steps
    assert {int(options(s)["size"]) for s in steps} == {128 * GiB}


def test_a_full_disk_skips_fio_and_says_what_to_do(tmp_path: Path) -> None:
    result = schedule(suite(tmp_path, "  fio:\n"), work_free=100 << 20).hosts["h1"]
    assert not result.steps
    assert result.skipped["fio"].startswith("needs more free disk")
    assert "--work-dir" in result.skipped["fio"]


def test_a_raw_device_needs_its_confirmation(tmp_path: Path) -> None:
    with pytest.raises(FleetmarkError, match="fio needs fio.erase=yes as well"):
        settings_of(load_suite(suite(tmp_path, "  fio:\n")), {"fio": {"device": "/dev/nvme1n1"}})


def test_a_raw_device_in_use_is_never_touched(tmp_path: Path) -> None:
    text = suite(tmp_path, "  fio:\n")
    used = schedule(text, {"fio": {"device": "/dev/nvme0n1", "erase": "yes"}}).hosts["h1"]
    assert (used.steps, used.skipped["fio"]) == ([], "needs /dev/nvme0n1 to be unused: it is mounted at /")
    absent = schedule(text, {"fio": {"device": "/dev/sdz", "erase": "yes"}}).hosts["h1"]
    assert "no such whole disk" in absent.skipped["fio"]
    free = schedule(text, {"fio": {"device": "/dev/nvme1n1", "erase": "yes"}}).hosts["h1"].steps
    assert {options(s)["filename"] for s in free} == {"/dev/nvme1n1"}
    assert {s.exclusive for s in free} == {("/dev/nvme1n1",)}


def test_several_drives_are_measured_together_each_by_a_process_of_its_own(tmp_path: Path) -> None:
    text = suite(tmp_path, "  fio: {cases: ['*randread-4k-qd32']}\n")
    lone = schedule(text).hosts["h1"].steps[0]
    assert (lone.case, lone.argv[-2:]) == (
        "randread-4k-qd32",
        ("--name=randread-4k-qd32", "--filename=fleetmark.fio"),
    )
    files = schedule(text, {"fio": {"files": "4"}}, work_free=8 * GiB).hosts["h1"].steps[0]
    assert files.case == "drives-randread-4k-qd32"
    assert [w for w in files.argv if w.startswith("--filename=")] == [
        f"--filename=./fleetmark{n}.fio" for n in range(4)
    ]
    assert 4 * int(options(files)["size"]) <= 0.2 * 8 * GiB
    folders = schedule(text, {"fio": {"directories": "/data1,/data 2"}}).hosts["h1"].steps[0]
    assert [w for w in folders.argv if w.startswith("--filename=")] == [
        "--filename=/data1/fleetmark0.fio",
        "--filename=/data 2/fleetmark0.fio",
    ]
    assert "--unlink=1" in folders.argv and "--unlink=1" not in files.argv
    assert folders.argv.index("--rw=randread") < folders.argv.index("--name=drives-randread-4k-qd32")  # for all jobs


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"directories": "data"}, "fio.directories to be absolute paths"),
        ({"directories": "/a:/b"}, "fio.directories to be absolute paths"),
        ({"directories": "/a", "device": "/dev/nvme1n1", "erase": "yes"}, "fio.device or fio.directories, not both"),
        ({"device": "nvme1n1", "erase": "yes"}, "fio.device to be paths under /dev"),
        ({"device": "/dev/nvme1n1 /dev/nvme0n1", "erase": "yes"}, "fio.device to be paths under /dev"),
        ({"device": "/dev/nvme1n1,/dev/nvme2n1"}, "everything on /dev/nvme1n1, /dev/nvme2n1 is lost"),
    ],
)
def test_drives_that_cannot_be_meant_are_refused(tmp_path: Path, settings: dict[str, str], expected: str) -> None:
    with pytest.raises(FleetmarkError, match=re.escape(expected)):
        settings_of(load_suite(suite(tmp_path, "  fio:\n")), {"fio": settings})


def test_no_drive_of_several_may_be_in_use_or_absent(tmp_path: Path) -> None:
    text = suite(tmp_path, "  fio:\n")
    used = schedule(text, {"fio": {"device": "/dev/nvme1n1,/dev/nvme0n1", "erase": "yes"}}).hosts["h1"]
    assert (used.steps, used.skipped["fio"]) == (
        [],
        "needs /dev/nvme1n1, /dev/nvme0n1 to be unused: it is mounted at /",
    )
    absent = schedule(text, {"fio": {"device": "/dev/nvme1n1,/dev/sdz", "erase": "yes"}}).hosts["h1"]
    assert "no such whole disk" in absent.skipped["fio"] and not absent.steps


def test_the_latency_curve_goes_to_eight_last_level_caches(tmp_path: Path) -> None:
    text = suite(tmp_path, "  lmbench: {cases: ['lat_mem_rd*']}\n")
    cpu = Cpu(cores=8, threads=16, caches=(Cache(level=3, type="unified", size=96 << 20, instances=2),))
    step = schedule(text, cpu=cpu, memory_available=64 * GiB).hosts["h1"].steps[0]
    assert step.argv[-2:] == ("768", "128")  # MiB
    assert "max_size" not in load_suite("quick").chosen()["lmbench"].set


def test_the_offered_rate_is_in_the_name_of_the_case_and_no_result(tmp_path: Path) -> None:
    for workload in ("iperf3", "iperf2"):
        text = suite(tmp_path, f"  {workload}: {{cases: ['udp*']}}\n")
        step = schedule(text).hosts["h1"].steps[0]
        assert (step.case, step.headline) == ("udp-1G", ("loss",))
        steps = schedule(text, {workload: {"udp_rate": "0"}}).hosts["h1"].steps
        assert {s.case for s in steps} == {"udp-unlimited"}


def test_what_is_absent_is_deployed_by_root_and_skipped_otherwise(tmp_path: Path) -> None:
    text = suite(tmp_path, "  fio:\n")
    as_root = schedule(text, tools={}).hosts["h1"]
    assert [d.workload for d in as_root.deploy] == ["fio"]
    assert as_root.steps
    as_user = schedule(text, tools={}, root=False).hosts["h1"]
    assert not as_user.steps
    assert as_user.skipped["fio"] == "needs fio: sudo apt-get install fio, or let Fleetmark do it as root (--become)"
    assert all(is_present(d.provides, facts()) for d in schedule(text).hosts["h1"].deploy)


def test_every_repeat_runs_every_case_in_an_order_of_its_own_that_its_seed_repeats(tmp_path: Path) -> None:
    text = suite(tmp_path, "  fio: {repeats: 4}\n")
    steps = schedule(text, seed=3).hosts["h1"].steps
    blocks = [[s.case for s in steps if s.repeat == r] for r in range(4)]
    assert [s.repeat for s in steps] == sorted(s.repeat for s in steps)
    assert all(sorted(b) == sorted(blocks[0]) for b in blocks)
    assert len({tuple(b) for b in blocks}) > 1
    assert steps == schedule(text, seed=3).hosts["h1"].steps
    assert steps != schedule(text, seed=4).hosts["h1"].steps
    assert [s.last for s in steps] == [False] * (len(steps) - 1) + [True]


def test_cases_can_be_chosen_and_a_pattern_that_matches_none_is_refused(tmp_path: Path) -> None:
    steps = schedule(suite(tmp_path, "  fio: {cases: ['rand*-qd1']}\n")).hosts["h1"].steps
    assert {s.case for s in steps} == {"randread-4k-qd1", "randwrite-4k-qd1"}
    with pytest.raises(FleetmarkError, match=r"no case matches 'rnad\*'; there are"):
        schedule(suite(tmp_path, "  fio: {cases: ['rnad*']}\n"))


def test_settings_for_a_workload_that_the_suite_does_not_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FleetmarkError, match="does not run stream"):
        settings_of(load_suite(suite(tmp_path, "  fio:\n")), {"stream": {"ntimes": "3"}})


def test_a_setting_without_a_value_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FleetmarkError, match="fio.size has no value: write one, or remove the key"):
        schedule(suite(tmp_path, "  fio: {set: {size: }}\n"))


def test_one_host_measures_its_loopback(tmp_path: Path) -> None:
    result = schedule(suite(tmp_path, "  iperf3:\n"))
    assert not result.exchanges
    step = result.hosts["h1"].steps[0]
    assert step.argv[:3] == ("iperf3", "-c", "127.0.0.1")
    assert step.serve
    assert step.subject == "lo"


@pytest.mark.parametrize("hosts", [2, 4, 5])
def test_pairs_meet_in_both_directions_with_their_peers_addresses(tmp_path: Path, hosts: int) -> None:
    result = schedule(suite(tmp_path, "  iperf3: {repeats: 2}\n"), {"iperf3": {"streams": "1"}}, hosts=hosts)
    clients = [s for h in result.hosts.values() for s in h.steps if not s.serves]
    assert len(clients) == hosts * (hosts - 1) * 2 * 2  # ordered pairs, tcp-1 and udp, two repeats
    for e in result.exchanges:
        client = next(s for s in result.hosts[e.client].steps if s.id == e.client_step)
        server = next(s for s in result.hosts[e.server].steps if s.id == e.server_step)
        assert (client.subject, client.case, client.repeat) == (server.subject, server.case, server.repeat)
        assert client.argv[2] == f"10.0.0.{e.server[1:]}"
        assert client.gate
        assert server.gate
        assert server.port == 5201


def test_a_schedule_of_pairs_can_always_go_on(tmp_path: Path) -> None:
    """Played out: whenever some host still has steps, some pair stands at its front on both sides."""
    result = schedule(suite(tmp_path, "  iperf3: {repeats: 2}\n"), hosts=7)
    ahead = {h: [s.id for s in p.steps] for h, p in result.hosts.items()}
    left = set(result.exchanges)
    while left:
        now = [e for e in left if ahead[e.client][0] == e.client_step and ahead[e.server][0] == e.server_step]
        assert now
        busy = [h for e in now for h in (e.client, e.server)]
        assert len(busy) == len(set(busy))
        for e in now:
            left.discard(e)
            ahead[e.client].pop(0)
            ahead[e.server].pop(0)


def test_many_hosts_meet_in_a_sample_of_rounds(tmp_path: Path) -> None:
    result = schedule(suite(tmp_path, "  iperf3: {repeats: 1}\n"), hosts=20)
    met = {(e.client, e.server) for e in result.exchanges}
    assert len(met) == 20 * 4
    everyone = schedule(suite(tmp_path, "  iperf3: {repeats: 1}\n"), {"iperf3": {"pairs": "all"}}, hosts=20)
    assert len({(e.client, e.server) for e in everyone.exchanges}) == 20 * 19


def test_bad_pairs_are_refused_before_any_host_is_touched(tmp_path: Path) -> None:
    with pytest.raises(FleetmarkError, match="iperf3.pairs to be auto, all or a number"):
        settings_of(load_suite(suite(tmp_path, "  iperf3:\n")), {"iperf3": {"pairs": "some"}})
