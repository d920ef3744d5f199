"""Checks of a host's document of facts: any input gives facts or one sentence; bounds, sizes, control characters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import MOST_CPUS, MOST_GPUS, Facts
from fleetmark.parsers.facts import load, normalise

DATA = Path(__file__).parent / "data"
KEYS = (
    *("schema", "time", "hostname", "user", "euid", "python", "python_version", "work", "uname", "affinity", "files"),
    *("links", "nics", "counted", "libraries", "holders", "claimed", "statvfs", "cached", "which", "probed", "caches"),
    *("pci", "sudo", "commands", "torch", "xids", "running", "sessions", "users", "ports"),
)
WORDS = st.text(max_size=10) | st.sampled_from(["\x1b[31m", "\ud800", "9" * 5000, "0-65535", "nan", "-1", "{", "²"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(10**400, 10**401) | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | WORDS, inner, max_size=4),
    max_leaves=10,
)


def document(name: str = "vm_root.json", **changed: Any) -> dict[str, Any]:
    return json.loads((DATA / name).read_text()) | changed


def facts(doc: Any) -> Facts:
    return normalise(doc, skew=None, root=False, work_dir="/srv/x")


def refused(doc: Any) -> str:
    with pytest.raises(FleetmarkError) as error:
        facts(doc)
    message = str(error.value)
    assert message.isprintable() and len(message) < 400 and "gather them again" in message
    return message


def answered(command: str, out: str) -> dict[str, Any]:
    doc = document()
    doc["commands"][command] = {"argv": [command], "rc": 0, "out": out, "err": ""}
    return doc


def total(doc: Any) -> None:
    try:
        result = facts(doc)
    except FleetmarkError as error:
        assert str(error).isprintable()
    else:
        assert Facts.model_validate_json(result.model_dump_json()) == result


@given(JSON)
@settings(max_examples=300, deadline=None)
def test_any_document(doc: Any) -> None:
    total(doc)


@given(st.sampled_from(KEYS), JSON)
@settings(max_examples=400, deadline=None)
def test_any_value_at_any_key(key: str, value: Any) -> None:
    total(document(**{key: value}))


COMMANDS = sorted(document()["commands"])


@given(st.sampled_from(COMMANDS), st.dictionaries(st.sampled_from(["rc", "out", "err", "argv"]), JSON))
@settings(max_examples=200, deadline=None)
def test_any_answer_of_a_command(command: str, answer: dict[str, Any]) -> None:
    doc = document()
    doc["commands"][command] |= answer
    total(doc)


@given(st.binary(max_size=200) | JSON.map(lambda doc: json.dumps(doc).encode()))
@settings(max_examples=200, deadline=None)
def test_any_bytes(raw: bytes) -> None:
    try:
        assert load(raw)["schema"] == 1
    except FleetmarkError as error:
        assert str(error).isprintable() and "gather them again" in str(error)


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"schema": ' + b"9" * 5000 + b"}",
        b'{"schema": 1, "time": 1e400}',
        b'{"schema": 1, "time": NaN}',
        b"\xff\xfe",
        b"",
        b"[1]",
        b"null",
    ],
)
def test_bytes_that_are_no_document(raw: bytes) -> None:
    with pytest.raises(FleetmarkError, match="gather them again"):
        load(raw)


def test_whole_documents_pass_unchanged() -> None:
    for name in ("vm_root.json", "vm_nobody.json", "vm_udev_nobody.json"):
        raw = (DATA / name).read_bytes()
        assert load(raw) == json.loads(raw)
        assert facts(load(raw)).hostname == "fleet-vm"


def test_nesting_is_no_recursion() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    assert "damaged at nics.0" in refused(document(nics=[deep]))
    total(document(unheard_of=deep))


def test_sizes_are_bounded() -> None:
    assert "more than 4 MiB of text" in refused(document(unheard_of="x" * (5 << 20)))
    assert "more than 4 MiB of text" in refused(document(nics=["x" * 1000] * 5000))
    assert "more than 500,000 values" in refused(document(unheard_of=[0] * 600_000))
    assert "a number of 4001 bits" in refused(document(unheard_of=1 << 4000))
    with pytest.raises(FleetmarkError, match="are 33 MiB, which is too large"):
        load(b" " * (33 << 20) + b"x")


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"hostname": None}, "hostname"),
        ({"hostname": "x" * 300}, "hostname"),
        ({"euid": "0"}, "euid"),
        ({"euid": -1}, "euid"),
        ({"time": 1e300}, "time"),
        ({"time": float("nan")}, "time"),
        ({"python": ["/bin/python3"]}, "python"),
        ({"files": {"/proc/meminfo": 3}}, "files./proc/meminfo"),
        ({"counted": {"x": {"y": "z"}}}, "counted.x.y"),
        ({"statvfs": {"bavail_bytes": -1}}, "statvfs.bavail_bytes"),
        ({"commands": {"\x1b[2Jlscpu": {"rc": 0}}}, "commands.[2Jlscpu.out"),
        ({"sudo": "yes"}, "sudo"),
    ],
)
def test_what_facts_py_never_prints_is_refused(changed: dict[str, Any], place: str) -> None:
    assert f"damaged at {place}" in refused(document(**changed))


def test_another_schema_is_refused_first() -> None:
    for doc in ({}, {"schema": 2}, document(schema=3), [], None, "x"):
        assert "not a document of schema 1" in refused(doc)


def test_counts_that_no_host_has_are_refused() -> None:
    doc = document()
    doc["files"]["/sys/devices/system/cpu/online"] = "0-65535,65536"
    doc["commands"]["lscpu"]["out"] = "Architecture: x86_64\nCPU(s): 99999999\nSocket(s): 1\nCore(s) per socket: 2\n"
    doc["counted"]["thread_siblings_list"] = {}
    assert "damaged at cpu.threads" in refused(doc)
    doc = answered("numactl", "".join(f"node {n} cpus: {n}\nnode {n} size: 1 MB\n" for n in range(5000)))
    assert "damaged at numa" in refused(doc)
    doc = document()
    doc["files"]["/proc/meminfo"] = "MemTotal: 999999999999999 kB\n"
    assert facts(doc).memory == 999999999999999 * 1024  # below 2**60
    doc["files"]["/proc/meminfo"] = "MemTotal: 999999999999999 kB\nSwapTotal: 1 kB\n".replace("999 kB", "999999 kB", 1)
    assert facts(doc).memory is None  # no line of the kernel's has more digits
    xml = "<nvidia_smi_log>" + "<gpu/>" * (MOST_GPUS + 1) + "</nvidia_smi_log>"
    assert any("at most 4096 GPUs" in note for note in facts(answered("nvidia_smi", xml)).notes)


def test_cpus_of_nodes_are_bounded_together() -> None:
    everything = f"0-{MOST_CPUS - 1}"
    many = "".join(f"node {n} cpus: {everything}\n" for n in range(3000))
    doc = answered("numactl", many)
    doc["files"] |= {f"/sys/devices/system/node/node{n}/cpulist": everything for n in range(3000)}
    assert sum(len(node.cpus) for node in facts(doc).numa) <= 2 * MOST_CPUS


def test_figures_that_cannot_be_are_unknown_and_noted() -> None:
    doc = document()
    doc["files"] |= {"/sys/class/net/eth0/mtu": "99999999999", "/sys/class/net/eth0/device/numa_node": "99999999"}
    doc["commands"]["lsblk"]["out"] = json.dumps(
        {
            "blockdevices": [
                {"name": "sdz", "type": "disk", "size": 10**17, "maj:min": "8:0"},
                {"name": "sdy", "type": "disk", "size": 1 << 61},
            ]
        }
    )
    result = facts(doc)
    (nic,) = (nic for nic in result.nics if nic.name == "eth0")
    assert (nic.mtu, nic.numa_node, nic.state) == (None, None, "up")
    assert [(disk.name, disk.size) for disk in result.disks] == [("sdz", 10**17), ("sdy", None)]
    assert "The interface eth0: the host's values of mtu, numa_node are impossible and left out." in result.notes


def test_rdma_devices_go_by_their_names() -> None:
    doc = document()
    names = ("mlx5_1", "mlx5_0", "-x", "a b", "")
    doc["files"] |= {f"/sys/class/infiniband/{name}/node_type": "1: CA\n" for name in names}
    assert facts(doc).rdma == ("mlx5_0", "mlx5_1")
    assert facts(document()).rdma == ()


@pytest.mark.parametrize(
    ("text", "known"), [("gpu-01.lab", "gpu-01.lab"), (None, None), ("-w", None), ("a,b", None), ("a b", None)]
)
def test_a_node_of_slurm_goes_by_a_name_that_commands_may_hold(text: str | None, known: str | None) -> None:
    assert facts(document(slurm_node=text)).slurm_node == known


def test_control_characters_do_not_pass() -> None:
    doc = document(hostname="web\x1b]0;pwned\x07\n1\u202e", user="ro\tot", nics=["eth\x00\x9b0"])
    doc["files"]["/sys/class/dmi/id/sys_vendor"] = "Ac\x1b[31mme\r\nInc\u200b"
    doc["uname"]["release"] = "6.1\ud800"
    result = facts(doc)
    assert (result.hostname, result.user, result.vendor) == ("web]0;pwned 1", "ro ot", "Ac[31mme  Inc")
    assert (result.nics[0].name, result.kernel) == ("eth0", "6.1")
    assert all(note.isprintable() for note in result.notes)
    assert Facts.model_validate_json(result.model_dump_json()) == result


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"python_version": "../../../etc/3.11"}, "python_version"),  # part of a file's name on the controller
    ],
)
def test_words_that_leave_their_host_have_a_form(changed: dict[str, Any], place: str) -> None:
    assert place in refused(document(**changed))


def test_xids_are_counted_unless_the_kernel_log_is_unreadable() -> None:
    assert facts(document(xids={"48": 2, "13": 1})).xids == {"48": 2, "13": 1}
    assert facts(document(xids={})).xids == {} and facts(document(xids=None)).xids is None
    assert facts(document()).xids is None  # of an earlier release
    for wrong in ({"48; rm": 1}, {"48": -1}, {"48": "2"}, [48]):
        assert "xids" in refused(document(xids=wrong))
