"""Test the PCI address of an interface, from a tree like /sys: cards, virtio devices, and buses without addresses."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

from fleetmark.campaign.resolve import resolve
from fleetmark.parsers.facts import normalise
from fleetmark.workloads import load
from tests.schedules import facts

AGENT = Path(__file__).parents[3] / "playbooks" / "agent" / "facts" / "facts.py"
# the device of each interface below /sys/devices, and its driver
DEVICES = {
    "eno1": ("pci0000:3a/0000:3a:00.0/0000:3b:00.0", "bus/pci/drivers/ixgbe"),
    "eth0": ("pci0000:00/0000:00:03.0/virtio2", "bus/virtio/drivers/virtio_net"),
    "eth1": ("pci0000:00/0000:00:14.0/usb1/1-4/1-4:1.0", "bus/usb/drivers/cdc_ether"),
    "eth2": ("LNXSYSTM:00/VMBUS:01/7ad35d50", "bus/vmbus/drivers/hv_netvsc"),
    "eth3": ("platform/a000000.virtio_mmio/virtio0", "bus/virtio/drivers/virtio_net"),
}


def tree(root: Path) -> Path:
    for name, (device, driver) in DEVICES.items():
        folder = root / "sys" / "devices" / device
        folder.mkdir(parents=True)
        (root / "sys" / driver).mkdir(parents=True, exist_ok=True)
        (folder / "driver").symlink_to(root / "sys" / driver)
        (root / "sys" / "class" / "net" / name).mkdir(parents=True)
        (root / "sys" / "class" / "net" / name / "device").symlink_to(folder)
    return root


def links(root: Path) -> dict[str, str]:
    sys.path.insert(0, str(AGENT.parent))
    try:
        of_tree: dict[str, str] = runpy.run_path(str(AGENT))["linked"](str(root))
    finally:
        sys.path.remove(str(AGENT.parent))
    return of_tree


def test_a_virtio_port_of_the_kernel_has_the_address_of_its_pci_function(tmp_path: Path) -> None:
    doc: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "vm_root.json").read_bytes())
    doc |= {"nics": ["lo", *DEVICES], "links": links(tree(tmp_path))}
    nics = normalise(doc, skew=None, root=True, work_dir="/srv/fleetmark").nics
    assert {nic.name: (nic.bus, nic.driver) for nic in nics} == {
        "eno1": ("0000:3b:00.0", "ixgbe"),
        "eth0": ("0000:00:03.0", "virtio_net"),
        "eth1": (None, "cdc_ether"),
        "eth2": (None, "hv_netvsc"),
        "eth3": (None, "virtio_net"),
    }
    settings = {"ports": ["0000:00:03.0"], "path": "/opt/testpmd"}
    sentence = resolve(load("dpdk_testpmd"), settings, facts(root=True, nics=nics), "c1")
    assert isinstance(sentence, str)
    assert "0000:00:03.0 taken from the kernel, where it is eth0 with the driver virtio_net: bind it" in sentence
