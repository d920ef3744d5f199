"""Parse ``numactl -H``: NUMA nodes, their CPUs, memory and distances.

numactl prints mebibytes but labels them MB (numactl 2.0.x, ``size >> 20``).
"""

from __future__ import annotations

import re
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.parsers.facts._common import MAX_ID, id_list
from fleetmark.parsers.kit.text import decode


def parse(raw: bytes) -> dict[str, Any]:
    """Return ``nodes`` (their number) and ``numa``.

    ``numa`` has ``{"id", "cpus", "memory", "free", "distances"}`` per node, with sizes in bytes. A node without CPUs
    (CXL memory, HBM) has an empty ``cpus``. Values that numactl could not read are absent. Raise ParseError on failure.
    """
    text = decode(raw)
    nodes: dict[int, dict[str, Any]] = {}
    columns: tuple[int, ...] = ()
    held = 0
    for line in map(str.strip, text.splitlines()):
        if match := re.fullmatch(r"node (\d{1,5}) (cpus|size|free):\s*(.*)", line):
            node = nodes.setdefault(int(match[1]), {"id": int(match[1])})
            if match[2] == "cpus":
                cpus = id_list(match[3])
                held += len(cpus or ())
                if held > 2 * MAX_ID:
                    raise ParseError("numactl", f"at most {MAX_ID} CPUs", got=line)
                node |= {"cpus": cpus} if cpus is not None else {}
            elif amount := re.fullmatch(r"(\d{1,12}) MB", match[3]):
                node["memory" if match[2] == "size" else "free"] = int(amount[1]) << 20
        elif match := re.fullmatch(r"node\s+(\d[\d\s]*)", line):
            columns = id_list(match[1]) or ()
        elif (match := re.fullmatch(r"(\d{1,5}):\s+(\d[\d\s]*)", line)) and int(match[1]) in nodes:
            distances = id_list(match[2])
            if distances is not None and len(distances) == len(columns):
                nodes[int(match[1])]["distances"] = distances
    if not nodes:
        raise ParseError("numactl", "lines such as 'node 0 cpus: …'", got=text.strip()[:120])
    return {"nodes": len(nodes), "numa": [nodes[i] for i in sorted(nodes)]}
