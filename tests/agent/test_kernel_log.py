"""Test that facts count NVIDIA's Xid messages of the kernel log, and no others."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "playbooks" / "agent" / "facts"
LOG = (
    "4,10,1,-;NVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus.\n"
    " SUBSYSTEM=pci\n"
    "4,11,2,-;NVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus.\n"
    "4,12,3,-;NVRM: Xid (PCI:0000:c1:00): 13, Graphics SM Warp Exception\n"
    "12,13,4,-;NVRM: Xid (PCI:0000:99:00): 79, written by a user\n"
    "6,14,5,-;mlx5_core 0000:81:00.0 eth7: Link is Down\n"
    "garbage\n"
)


@pytest.fixture
def facts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("facts")


def test_messages_of_the_kernel_are_counted_by_code(facts: ModuleType, tmp_path: Path) -> None:
    assert facts.xids(str(tmp_path)) == {}  # without NVIDIA's driver there are none
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    assert facts.xids(str(tmp_path)) is None  # the log is unreadable
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kmsg").write_text(LOG)
    assert facts.xids(str(tmp_path)) == {"79": 2, "13": 1}
    (tmp_path / "dev/kmsg").write_text("")
    assert facts.xids(str(tmp_path)) == {}
