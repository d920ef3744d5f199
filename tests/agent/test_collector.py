"""Test the collector on a tree of files as Linux has them below /sys and /dev."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

AGENT = Path(__file__).parents[2] / "playbooks" / "agent"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(AGENT))
    import collector as module

    return module


FILES = {
    "sys/devices/system/edac/mc/mc0/ce_count": "12\n",
    "sys/devices/system/edac/mc/mc0/ue_count": "0\n",
    "sys/devices/system/edac/mc/mc0/dimm3/dimm_label": "CPU0_DIMM_B1\n",
    "sys/devices/system/edac/mc/mc0/dimm3/dimm_ce_count": "12\n",
    "sys/bus/pci/devices/0000:41:00.0/aer_dev_correctable": "RxErr 4\nBadTLP 1\nTOTAL_ERR_COR 5\n",
    "sys/bus/pci/devices/0000:41:00.0/aer_dev_fatal": "Undefined 0\nTOTAL_ERR_FATAL 0\n",
    "sys/bus/pci/devices/0000:41:00.0/current_link_width": "8\n",
    "sys/bus/pci/devices/0000:41:00.0/max_link_width": "16\n",
    "sys/bus/pci/devices/0000:00:1f.0/current_link_width": "0\n",
    "sys/bus/pci/devices/0000:00:1f.0/max_link_width": "255\n",
    "sys/block/sda/device/ioerr_cnt": "0x1f\n",
    "var/lib/smartmontools/attrlog.ST4000-ZX1.ata.csv": (
        "2026-11-25 10:00:00;\t5;100;8;\t9;99;700;\t187;100;0;\t197;100;0;\t199;200;2;\n"
        "2026-11-26 10:00:00;\t5;100;16;\t9;99;724;\t187;99;1;\t197;100;3;\t199;200;2;\n"
    ),
    "sys/class/net/eth7/device/vendor": "0x15b3\n",
    "sys/class/net/eth7/statistics/rx_crc_errors": "9\n",
    "sys/class/net/eth7/carrier_changes": "4\n",
    "sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error": "3\n",
    "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "2\n",
    "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count": "7\n",
    "sys/devices/system/cpu/cpu0/topology/physical_package_id": "0\n",
    "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count": "3\n",
    "sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count": "7\n",
    "sys/devices/system/cpu/cpu1/topology/physical_package_id": "0\n",
    "sys/class/drm/card0/device/ras/umc_err_count": "ue: 1\nce: 6\n",
    "proc/loadavg": "0.50 0.40 0.30 1/200 999\n",
    "proc/sys/kernel/random/boot_id": "b00t\n",
    "dev/kmsg": (
        "4,10,1,-;NVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus.\n"
        " SUBSYSTEM=pci\n"
        "4,11,2,-;NVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus.\n"
        "3,12,3,-;blk_update_request: I/O error, dev sdb, sector 0 op 0x0\n"
        "12,13,4,-;NVRM: Xid (PCI:0000:99:00): 79, written by a user\n"
        "6,14,5,-;mlx5_core 0000:81:00.0 eth7: Link is Down\n"
        "garbage\n"
    ),
}


@pytest.fixture
def root(tmp_path: Path) -> str:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return str(tmp_path)


def test_every_counter_of_a_host(collector: ModuleType, root: str) -> None:
    state = collector.collect(root)
    assert state["counters"] == {
        "memory:mc0": {"corrected": 12, "uncorrected": 0},
        "memory:mc0/CPU0_DIMM_B1": {"corrected": 12},
        "pcie:0000:41:00.0": {"correctable": 5, "fatal": 0},
        "drive:sda": {"io_errors": 31},
        "drive:ST4000-ZX1": {"reallocated_sectors": 16, "uncorrectable_errors": 1, "crc_errors": 2},
        "net:eth7": {"rx_crc_errors": 9, "carrier_changes": 4},
        "rdma:mlx5_0/1": {"symbol_error": 3},
        "cpu:package0": {"core_heat": 5, "package_heat": 7},
        "gpu:card0": {"umc_uncorrected": 1, "umc_corrected": 6},
    }
    assert state["gauges"] == {
        "pcie:0000:41:00.0": {"link_width": 8, "link_width_limit": 16},
        "drive:ST4000-ZX1": {"pending_sectors": 3},
    }
    assert state["load"] == 0.5 and state["boot"] == "b00t" and state["sessions"] == 0


def test_the_kernel_log_counts_each_message_once(collector: ModuleType, root: str) -> None:
    state = collector.collect(root)
    assert state["events"] == {
        "xid_79": {"0000:41:00": 2},
        "io_error": {"sdb": 1},
        "link_down": {"eth7": 1},
    }
    assert state["last"] == 14
    assert collector.collect(root, 11)["events"] == {"io_error": {"sdb": 1}, "link_down": {"eth7": 1}}
    assert collector.collect(root, 14)["events"] == {}


def test_an_nvme_log_page(collector: ModuleType) -> None:
    log = bytearray(512)
    log[0], log[3], log[5] = 4, 90, 12
    log[160:176] = (3).to_bytes(16, "little")
    counts: dict[str, dict[str, int]] = {}
    gauges: dict[str, dict[str, int]] = {}
    collector.decode_nvme("drive:nvme0", bytes(log), counts, gauges)
    assert counts["drive:nvme0"] == {"media_errors": 3, "error_log_entries": 0, "unsafe_shutdowns": 0}
    assert gauges["drive:nvme0"] == {"critical_warning": 4, "spare_percent": 90, "used_percent": 12}


# A stand-in of NVML: GPU 0 has totals of its four links, GPU 1 counts each link alone, GPU 2 tells nothing.
NVML = """
typedef struct { unsigned field, scope; long long time, latency; unsigned type, error; unsigned long long bits; } Field;
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned n, void **gpu) { *gpu = (void *)(unsigned long)(n + 1); return 0; }
int nvmlDeviceGetFieldValues(void *gpu, int n, Field *f) {
    unsigned long device = (unsigned long)gpu;
    if (device == 3) return 3;
    for (int i = 0; i < n; i++) {
        int has = device == 1 ? f[i].field == 38 || f[i].field == 52 : f[i].field > 160 && f[i].scope < 4;
        f[i].error = has ? 0 : 3;
        f[i].type = device == 1 ? 3 : 1;
        f[i].bits = 0xffffffff00000000ull * (device == 2) + f[i].field + f[i].scope;
    }
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_nvlink_errors_of_each_gpu(collector: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "nvml.c").write_text(NVML)
    library = tmp_path / "libnvml.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "nvml.c"], check=True)
    counts: dict[str, dict[str, int]] = {}
    collector.nvlinks(str(library), counts)
    assert counts == {
        "nvlink:gpu0": {"crc_flit_errors": 38, "replay_errors": 52},
        "nvlink:gpu1": {"crc_errors": 4 * 163 + 6, "replay_errors": 4 * 161 + 6, "recovery_errors": 4 * 162 + 6},
    }


def test_a_host_without_nvml_has_no_nvlinks(collector: ModuleType, tmp_path: Path) -> None:
    counts: dict[str, dict[str, int]] = {}
    collector.nvlinks(str(tmp_path / "none.so"), counts)
    collector.nvlinks("libc.so.6", counts)  # a library without its functions
    assert counts == {}


def test_damaged_files_are_missing_values(collector: ModuleType, tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"\xff-9 \x00")
    state = collector.collect(str(tmp_path))
    assert state["events"] == {} and not any(n for c in state["counters"].values() for n in c.values())


def test_logged_in_users(collector: ModuleType, tmp_path: Path) -> None:
    logind = tmp_path / "run" / "systemd" / "sessions"
    logind.mkdir(parents=True)
    for number in (1, 2):
        (logind / str(number)).write_text(f"USER=ann\nCLASS=user\nTTY=pts/{number}\n")
    assert collector.collect(str(tmp_path))["sessions"] == 2


def test_text_for_prometheus(collector: ModuleType, root: str) -> None:
    text = collector.exposition(collector.collect(root), {"xid_79": {"0000:41:00": 2}})
    assert 'fleetmark_host_errors_total{device="kernel:0000:41:00",name="xid_79"} 2\n' in text
    assert 'fleetmark_host_state{device="pcie:0000:41:00.0",name="link_width"} 8\n' in text


def test_it_runs_alone() -> None:
    done = subprocess.run([sys.executable, str(AGENT / "collector.py")], capture_output=True, text=True, check=True)
    assert done.stdout.startswith('{"boot"')
