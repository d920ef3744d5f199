"""Servers, clients and MPI programs before any host is touched: what is refused, what is skipped, which commands are scheduled."""

from __future__ import annotations

from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Nic
from fleetmark.campaign.schedule import settings_of
from fleetmark.workloads import Choice, Suite
from tests.workloads.scheduling import reason, scheduled


@pytest.mark.parametrize(
    ("workload", "settings", "host", "words"),
    [
        (
            "pgbench",
            {},
            {"root": True, "tools": {}},
            "needs setpriv, which runs PostgreSQL as nobody because it refuses",
        ),
        ("pgbench", {"scale": 1000}, {"root": False, "work_free": 9 << 30}, "needs 34.0 GB of free disk under"),
        ("hpcc", {}, {"software": {}}, "needs Open MPI's mpirun (install openmpi-bin, or openmpi) on this host"),
        ("hpcc", {}, {"software": {"mpi": "Intel MPI 2021"}}, "needs Open MPI's mpirun"),
        ("perftest", {}, {}, "needs an RDMA device: /sys/class/infiniband has none on this host"),
        ("perftest", {"device": "mlx5_9"}, {"rdma": ("mlx5_0",)}, "needs mlx5_9 on this host, which has mlx5_0"),
        ("nvbandwidth", {}, {}, "needs NVIDIA GPUs: nvidia-smi shows none; install the driver on this host"),
        ("dpdk_testpmd", {}, {"tools": {}}, "needs dpdk-testpmd (install dpdk-dev, or dpdk-tools, on this host)"),
        (
            "dpdk_testpmd",
            {"ports": ["0000:3b:00.0"], "path": "/opt/testpmd"},
            {"root": False},
            "needs root for real ports (--become)",
        ),
        (
            "dpdk_testpmd",
            {"ports": ["0000:3b:00.0", "0000:3b:00.1"], "path": "/opt/testpmd"},
            {"root": True, "nics": (Nic(name="eno2", bus="0000:3b:00.1", driver="ixgbe"), Nic(name="eno1"))},
            "needs 0000:3b:00.1 taken from the kernel, where it is eno2 with the driver ixgbe: bind it to vfio-pci",
        ),
        ("qperf", {}, {"root": False, "os_family": "rhel", "tools": {}}, "sudo dnf install qperf"),
    ],
)
def test_what_a_host_lacks_is_one_sentence(
    workload: str, settings: dict[str, Any], host: dict[str, Any], words: str
) -> None:
    sentence = reason(workload, settings, **host)
    assert words in sentence and "\n" not in sentence


def test_a_debian_host_needs_no_root_for_what_is_unpacked() -> None:
    for workload in ("redis_benchmark", "nginx_wrk", "ucx_perftest", "qperf"):
        assert reason(workload, root=False, os_family="debian", tools={}) == ""


@pytest.mark.parametrize(
    ("workload", "settings", "words"),
    [
        ("redis_benchmark", {"path": "redis/bin"}, "redis_benchmark.path to be an absolute path on the hosts"),
        ("nginx_wrk", {"pairs": "some"}, "nginx_wrk.pairs to be auto, all or a number of rounds"),
        ("openssl_speed", {"algorithms": ["-engine"]}, "openssl_speed.algorithms as names, not options"),
        ("qperf", {"tests": ["--help"]}, "qperf.tests as names, not options"),
        ("ucx_perftest", {"env": "UCX_TLS"}, "ucx_perftest.env to be words NAME=VALUE"),
        ("nvbandwidth", {"host_tests": ["-h"]}, "host_tests and device_tests as names of tests, not options"),
        ("nvbandwidth", {"commit": "v0.8"}, "commit as a full hash of 40 digits"),
        ("dpdk_testpmd", {"ports": ["eth0"]}, "dpdk_testpmd.ports as full PCI addresses in lower case"),
        ("dpdk_testpmd", {"cores": "3"}, "dpdk_testpmd.cores to be at least two CPUs"),
        ("hpcc", {"memory_share": 0.95}, "hpcc.memory_share below 0.9"),
    ],
)
def test_mistakes_are_refused_before_any_host_is_touched(workload: str, settings: dict[str, Any], words: str) -> None:
    suite = Suite(name="s", description="x", workloads={workload: Choice(set=settings)})
    with pytest.raises(FleetmarkError, match=words):
        settings_of(suite, {})


@pytest.mark.parametrize("workload", ["redis_benchmark", "nginx_wrk", "pgbench", "memcached"])
def test_a_server_is_bound_to_its_own_address_and_nothing_is_pinned_between_hosts(workload: str) -> None:
    steps = scheduled(workload, 2, clients=[2], latency_target=[0])
    serving = [s for s in steps["h2"] if s.serves]
    assert serving and all("10.0.0.2" in " ".join(s.argv) for s in serving)
    assert all("10.0.0.2" in " ".join(s.argv) for s in steps["h1"] if not s.serves)
    assert not any("--half" in s.argv for h in steps.values() for s in h)


@pytest.mark.parametrize("workload", ["redis_benchmark", "nginx_wrk", "pgbench", "memcached"])
def test_on_one_host_both_ends_have_halves_of_their_own(workload: str) -> None:
    for step in scheduled(workload, 1)["h1"]:
        assert step.serve
        ends = [argv[argv.index("--half") + 1] for argv in (list(step.argv), step.serve["argv"])]
        assert ends == ["client", "server"]
        assert "127.0.0.1" in " ".join(step.serve["argv"])


@pytest.mark.parametrize(("workload", "settings"), [("hpcc", {}), ("osu", {"path": "/opt/osu"})])
def test_mpi_over_several_hosts_starts_by_srun_in_a_slurm_job_and_by_ssh_elsewhere(
    workload: str, settings: dict[str, Any]
) -> None:
    of_mpi: dict[str, Any] = {"software": {"mpi": "Open MPI 4.1.4"}, "tools": {"srun": "/usr/bin/srun"}}
    settings = settings | {"nodes": ["1", "2"], "ranks": 8}
    usual = {s.case: " ".join(s.argv) for s in scheduled(workload, 2, [of_mpi] * 2, **settings)["h1"] if not s.serves}
    lent = scheduled(workload, 2, [of_mpi | {"slurm_node": "n1"}] * 2, **settings)["h1"]
    for step in lent:
        words = " ".join(step.argv)
        if not step.case.endswith("2n"):
            assert words == usual[step.case] and "mpirun --host localhost:" in words
            continue
        assert "mpirun --host 10.0.0.1:" in usual[step.case] and "srun" not in usual[step.case]
        count, each = ("2", "") if step.case.startswith(("latency", "bw")) else ("16", " --ntasks-per-node 8")
        assert f"/usr/bin/srun --nodelist=n1,n1 -N 2 -n {count}{each} " in words
        assert "--mpi=pmix env FLEETMARK_CAMPAIGN=c1 " in words
        assert not {"mpirun", "--host", "--mca", "--allow-run-as-root"} & set(step.argv)


def test_shared_memory_is_for_one_host() -> None:
    assert {s.case for s in scheduled("ucx_perftest", 1)["h1"]} == {"tcp-lat-8", "tcp-bw-1m", "shm-lat-8", "shm-bw-1m"}
    assert {s.case for s in scheduled("ucx_perftest", 2)["h1"]} == {"tcp-lat-8", "tcp-bw-1m"}


@pytest.mark.parametrize("workload", ["iperf2", "iperf3"])
def test_a_measuring_server_listens_on_an_address_that_is_certainly_its_hosts_own(workload: str) -> None:
    nics = (Nic(name="eth0", addresses=("10.0.0.2/24", "fe80::1/64")),)
    tools = {name: f"/usr/bin/{name}" for name in ("iperf", "iperf3")}
    known = scheduled(workload, 2, changes=[{"tools": tools}, {"tools": tools, "nics": nics}])
    on_h2 = [s.argv for s in known["h2"] if s.serves]
    assert on_h2 and all(argv[argv.index("-B") + 1] == "10.0.0.2" for argv in on_h2)
    assert not any("-B" in s.argv for s in known["h1"]), "a name or a translated address cannot be bound"
    (step, *_) = scheduled(workload, 1, changes=[{"tools": tools}])["h1"]
    assert step.serve and "127.0.0.1" in step.serve["argv"]


def test_linpack_over_hosts_fits_the_memory_of_the_smallest() -> None:
    mpi = {"software": {"mpi": "Open MPI 4.1.4"}}
    changes = [mpi, {**mpi, "memory": 16 << 30, "memory_available": 15 << 30}]
    steps = scheduled("hpcc", 2, changes, nodes=["1", "2"], memory_share=0.25)
    memory = {
        (name, s.case): int(word.removeprefix("--memory="))
        for name, of_host in steps.items()
        for s in of_host
        for word in s.argv
        if word.startswith("--memory=")
    }
    assert memory == {("h1", "all-cores"): 16 << 30, ("h2", "all-cores"): 4 << 30, ("h1", "2n"): 8 << 30}
    (both,) = [s for s in steps["h1"] if s.case == "2n"]
    assert "--ranks=32" in both.argv and "10.0.0.1:16,10.0.0.2:16" in both.argv


def test_ports_that_dpdk_has_and_those_it_shares_with_the_kernel_are_no_hindrance() -> None:
    settings = {"ports": ["0000:3b:00.0"], "path": "/opt/testpmd"}
    for nics in (
        (),
        (Nic(name="eno1", bus="0000:3b:00.0", driver="mlx5_core"),),
        (Nic(name="eno2", bus="0000:3b:00.1"),),
    ):
        assert reason("dpdk_testpmd", settings, root=True, nics=nics) == ""
