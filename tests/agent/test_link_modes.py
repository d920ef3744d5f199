"""Supported link modes of network ports: the kernel's answer, its reading, and the table of modes."""

from __future__ import annotations

import ctypes
import importlib
import json
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.parsers.facts import normalise
from fleetmark.parsers.facts._network import _MODES, _max_speed

DATA = Path(__file__).parents[1] / "parsers" / "facts" / "data"
HEADER = Path("/usr/include/linux/ethtool.h")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux's ethtool interface")


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(PLAYBOOKS / "agent" / "facts"))
    yield importlib.import_module("link_modes")
    sys.modules.pop("link_modes", None)


class Settings(ctypes.Structure):
    """struct ethtool_link_settings of linux/ethtool.h."""

    _fields_ = [
        ("cmd", ctypes.c_uint32),
        ("speed", ctypes.c_uint32),
        *((name, ctypes.c_uint8) for name in ("duplex", "port", "phy_address", "autoneg", "mdio_support")),
        *((name, ctypes.c_uint8) for name in ("eth_tp_mdix", "eth_tp_mdix_ctrl")),
        ("link_mode_masks_nwords", ctypes.c_int8),
        *(
            (name, ctypes.c_uint8)
            for name in ("transceiver", "master_slave_cfg", "master_slave_state", "rate_matching")
        ),
        ("reserved", ctypes.c_uint32 * 7),
    ]


def kernel(supported: int, words: int = 4) -> Any:
    """Return an ioctl that answers ETHTOOL_GLINKSETTINGS as ethtool_get_link_ksettings() of net/ethtool/ioctl.c."""

    def ioctl(_sock: Any, request: int, argument: bytes) -> None:
        name, address = struct.unpack("16sP16x", argument)
        settings = Settings.from_address(address)
        assert (request, settings.cmd, name.rstrip(b"\0")) == (0x8946, 0x4C, b"ens1")
        if settings.link_mode_masks_nwords != words:  # the handshake
            ctypes.memset(address, 0, ctypes.sizeof(Settings))
            settings.cmd, settings.link_mode_masks_nwords = 0x4C, -words
            return
        settings.speed, settings.duplex = 25_000, 1
        for map_number, mask in enumerate((supported, 0, (1 << 32 * words) - 1)):  # supported, advertised, partner's
            start = address + ctypes.sizeof(Settings) + map_number * 4 * words
            ctypes.memmove(start, mask.to_bytes(4 * words, sys.byteorder), 4 * words)

    return ioctl


# "ethtool" of a ConnectX-5 port: 25000baseCR/KR/SR, 50000baseCR2/KR2, 100000baseCR4/SR4/KR4/LR4_ER4, 10000baseCR.
CONNECTX = sum(1 << bit for bit in (6, 10, 13, 31, 32, 33, 34, 35, 36, 37, 38, 39, 42, 50))


@pytest.mark.skipif(sys.byteorder != "little", reason="the words of the mask are in the host's byte order")
@pytest.mark.parametrize(
    ("mask", "speed"),
    [
        (CONNECTX, 12.5e9),
        (1 << 5 | 1 << 12 | 1 << 6, 1.25e9),  # 1000baseT/Full, 10000baseT/Full, Autoneg
        (1 << 66 | 1 << 89, 50e9),  # 200000baseCR4, 400000baseCR4
        (1 << 115, 100e9),  # 800000baseCR4
        (1 << 6 | 1 << 13, None),  # no speeds: Autoneg, Pause
    ],
)
def test_the_highest_supported_speed(
    agent: ModuleType, monkeypatch: pytest.MonkeyPatch, mask: int, speed: float | None
) -> None:
    monkeypatch.setattr(agent.fcntl, "ioctl", kernel(mask))
    text = agent.supported("ens1")
    assert int(text, 16) == mask
    doc = json.loads((DATA / "vm_root.json").read_bytes()) | {"nics": ["lo", "ens1"], "link_modes": {"ens1": text}}
    doc["files"]["/sys/class/net/ens1/speed"] = "25000\n"
    (nic,) = normalise(doc, skew=None, root=True, work_dir="/srv/fleetmark").nics
    assert (nic.speed, nic.max_speed) == (3.125e9, speed)


def test_ports_without_link_modes(agent: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert agent.supported("lo") is None and agent.supported("no-such-port") is None  # answered by this kernel
    monkeypatch.setattr(agent.fcntl, "ioctl", kernel(0))
    assert agent.supported("ens1") is None


def test_the_table_has_every_link_mode_of_the_kernel_s_header() -> None:
    if not HEADER.exists():
        pytest.skip("the kernel's headers (linux-libc-dev) are not installed")
    modes = re.findall(r"ETHTOOL_LINK_MODE_(\d+)base\w+?_BIT\s*= (\d+)", HEADER.read_text())
    assert len(modes) >= 80
    for megabits, bit in modes:
        assert _max_speed(f"{1 << int(bit):x}") == int(megabits) * 1e6 / 8, (megabits, bit)
    bits = [bit for each in _MODES.values() for bit in each]
    assert len(bits) == len(set(bits))
