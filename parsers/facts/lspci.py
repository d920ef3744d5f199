"""Parse ``lspci -vvv``, complete or truncated: PCIe functions, their link speeds, and the access control of bridges.

Tested with pciutils 3.2 to 3.10. From 3.6, speeds and widths have a remark: (ok), (downgraded), (strange). An idle link
that saves power, such as a GPU's, shows a lower speed than under load.
"""

from __future__ import annotations

import re
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.parsers.facts._common import integer
from fleetmark.parsers.kit.text import decode

_FUNCTION = re.compile(r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ([^:]+): (.*)")
_LINK = re.compile(r"Speed (?:(\d{1,4}(?:\.\d)?)\s?GT/s|unknown)(?: \(\w+\))?, Width x(\d{1,2})\b")


def parse(raw: bytes) -> dict[str, Any]:
    """Return ``functions``: ``{"address", "class", "name", "driver", "numa_node"}`` each.

    Functions with a link also have ``speed``, ``max_speed`` (GT/s), ``width`` and ``max_width`` (lanes; the width of a
    link that is down is 0). Bridges with access control have ``acs``, its enabled bits. ``denied``: whether
    capabilities were hidden, which is the case without root. Raise ParseError on failure.
    """
    text = decode(raw)
    functions: list[dict[str, Any]] = []
    for line in text.splitlines():
        if match := _FUNCTION.match(line):
            name = re.sub(r" \((?:rev|prog-if) [^)]{0,80}\)", "", match[3]).strip()
            functions.append({"address": match[1], "class": match[2], "name": name})
        elif functions:
            _add(functions[-1], line.strip())
    if not functions:
        raise ParseError("lspci", "lines such as '01:00.0 Ethernet controller: …'", got=text.strip()[:120])
    return {"functions": functions, "denied": "<access denied>" in text}


def _add(function: dict[str, Any], line: str) -> None:
    key, _, value = line.partition(":")
    if key in ("LnkCap", "LnkSta") and (link := _LINK.search(value)):
        prefix = "max_" if key == "LnkCap" else ""
        if link[1]:
            function[prefix + "speed"] = float(link[1])
        function[prefix + "width"] = int(link[2])
    elif key == "ACSCtl":
        function["acs"] = tuple(re.findall(r"(\w+)\+", value))
    elif key == "Kernel driver in use":
        function["driver"] = value.strip()
    elif key == "NUMA node" and (node := integer(value)) is not None:
        function["numa_node"] = node
