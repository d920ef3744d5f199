"""Read from NCCL's log (NCCL_DEBUG=INFO) whether hosts exchange data through GPU-direct RDMA or host memory."""

from __future__ import annotations

import re

from fleetmark.parsers.kit.text import decode

_WAY = re.compile(r"NCCL INFO Channel [^\n]{0,200}? via NET/(\S{1,80})")
_DISABLED = re.compile(r"NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA")


def gpu_direct(raw: bytes) -> bool | None:
    """Return whether every channel to another host uses GPU-direct RDMA.

    Return None if the log names no channel over InfiniBand or RoCE. Sockets do not count, because they have no RDMA.
    """
    text = decode(raw)
    ways = [match[1] for match in _WAY.finditer(text) if match[1].startswith("IB")]
    if ways:
        return all("/GDRDMA" in way for way in ways)
    return False if _DISABLED.search(text) else None
