"""Parse nvidia-smi: driver and GPUs from -q -x (XML), --query-gpu (CSV) and the plain table; GPU links from topo.

Tested with drivers 375 to 595. The XML's names depend on its DTD: before v12, power limits were in ``power_readings``.
"""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sized
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.facts import MOST_GPUS
from fleetmark.parsers.facts._common import id_list, integer, leading, size, text_or_none
from fleetmark.parsers.kit.text import decode

_MIB = 1 << 20
_TABLE_GPU = re.compile(r"\|\s+(\d{1,5})\s+(\S.*?)\s+(?:On|Off|N/A)\s*\|\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f:.]+)\s")
_TABLE_LOAD = re.compile(r"(?:/\s*(\d+)W\s*)?\|\s*\d+MiB\s*/\s*(\d+)MiB")
_LONGEST_ROW = 2000  # maximum characters of a line; topo -m of 16 GPUs and 32 NICs has about 400
_LONGEST_HEADING = 20_000
_COLUMN = re.compile(r"[a-z][a-z0-9_]{0,40}(?:\.[a-z0-9_]{1,40}){0,6}")
_UNIT = re.compile(r"\s*\[[^\]]{0,20}\]$")
_TELLING = frozenset({"index", "name", "uuid", "pci.bus_id", "memory.total", "driver_version"})
_SLOWDOWNS = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")
# Column names of different versions, as nvidia-smi prints them in headings.
_ALIASES = {
    "gpu_name": "name",
    "gpu_bus_id": "pci.bus_id",
    "gpu_uuid": "uuid",
    **{f"clocks_throttle_reasons.{name}": f"clocks_event_reasons.{name}" for name in _SLOWDOWNS},
}


def parse(raw: bytes) -> dict[str, Any]:
    """Return ``driver``, ``cuda`` and ``gpus``; for ``topo``, return ``links`` and ``numa``.

    ``links`` is ``{"GPU0-GPU1": "NV18"}``, and ``numa`` is {gpu: node}. A GPU is ``{"index", "name", "bus", "memory"
    (bytes), "power_limit" (W), "pcie_gen", "pcie_width", …}``. Raise ParseError on failure, also if nvidia-smi prints
    an error message instead of GPUs.
    """
    text = decode(raw)
    if "<nvidia_smi_log" in text:
        return _xml(text)
    lines = [line for line in text.splitlines() if line.strip()]
    head = next((n for n, line in enumerate(lines) if "," in line and _is_heading(line)), None)
    if head is not None:
        return _query(lines[head:])
    lines = [line for line in lines if len(line) < _LONGEST_ROW]
    if any(_TABLE_GPU.match(line) for line in lines):
        return _table(text, lines)
    if lines and re.match(r"\s+GPU0\b", lines[0]):
        return _topology(lines)
    message = next((line for line in lines if not line.startswith(("+", "|"))), "")
    raise ParseError("nvidia_smi", "GPUs (as XML, CSV or its table)", got=message)


def _xml(text: str) -> dict[str, Any]:
    text = text[text.index("<nvidia_smi_log") :]  # remove the DOCTYPE, so that no entity is expanded
    text = text.partition("</nvidia_smi_log>")[0] + "</nvidia_smi_log>"
    try:
        root = ET.fromstring(re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text))
    except ET.ParseError as error:
        raise ParseError("nvidia_smi", f"whole XML ({error})", line=error.position[0]) from None
    elements = root.findall("gpu")
    _check_count(elements)
    gpus = [_gpu(n, element) for n, element in enumerate(elements)]
    if not gpus:
        raise ParseError("nvidia_smi", "at least one <gpu>", got=f"attached_gpus {root.findtext('attached_gpus')}")
    versions = {
        "driver": text_or_none(root.findtext("driver_version")),
        "cuda": text_or_none(root.findtext("cuda_version")),
    }
    return {key: value for key, value in versions.items() if value} | {"gpus": gpus}


def _gpu(index: int, element: ET.Element) -> dict[str, Any]:
    def text(*paths: str) -> str | None:
        return next((value for path in paths if (value := text_or_none(element.findtext(path)))), None)

    link = "pci/pci_gpu_link_info/"
    power = ("gpu_power_readings/", "power_readings/", "module_power_readings/")
    reasons = next((e for e in element if e.tag in ("clocks_event_reasons", "clocks_throttle_reasons")), None)
    ecc = [e for e in element.findall("ecc_errors/volatile/*") if "uncorrectable" in e.tag]
    ecc += element.findall("ecc_errors/volatile/double_bit/total")  # up to DTD v10
    facts = {
        "index": index,
        "name": text("product_name"),
        "bus": element.get("id"),
        "memory": size(text("fb_memory_usage/total")),
        "power_limit": leading(
            text(*(p + n for p in power for n in ("current_power_limit", "enforced_power_limit", "power_limit")))
        ),
        "max_power_limit": leading(text(*(p + "max_power_limit" for p in power))),
        "pcie_gen": integer(text(link + "pcie_gen/current_link_gen")),
        "max_pcie_gen": integer(text(link + "pcie_gen/max_link_gen")),
        "pcie_width": integer(text(link + "link_widths/current_link_width")),
        "max_pcie_width": integer(text(link + "link_widths/max_link_width")),
        "persistence": _flag(text("persistence_mode")),
        "mig": _flag(text("mig_mode/current_mig")),
        "ecc": _flag(text("ecc_mode/current_ecc")),
        "ecc_uncorrected": _total([e.text for e in ecc]),
        "remap_pending": _flag(text("remapped_rows/remapped_row_pending")),
        "max_sm_hz": _hz(text("max_clocks/sm_clock")),
        "temperature": leading(text("temperature/gpu_temp")),
        "slowdown": tuple(
            name
            for name in _SLOWDOWNS
            for e in (reasons if reasons is not None else ())
            if re.fullmatch(rf"clocks_(?:event|throttle)_reason_{name}", e.tag) and (e.text or "").strip() == "Active"
        ),
    }
    return {key: value for key, value in facts.items() if value is not None}


def _flag(text: str | None) -> bool | None:
    return {"Enabled": True, "Disabled": False, "Yes": True, "No": False, "On": True, "Off": False}.get(text or "")


def _hz(text: str | None) -> float | None:
    mhz = leading(text)
    return mhz * 1e6 if mhz else None


def _total(values: list[str | None]) -> int | None:
    numbers = [n for value in values if (n := integer(text_or_none(value))) is not None]
    return sum(numbers) if numbers else None


def _is_heading(line: str) -> bool:
    """Return whether a line is a header of --query-gpu: lower-case names with dots, one of which identifies the GPU."""
    names = _columns(line[:_LONGEST_HEADING])
    return len(names) > 1 and all(map(_COLUMN.fullmatch, names)) and bool(_TELLING & {*names})


def _columns(line: str) -> list[str]:
    names = (_UNIT.sub("", name.strip()) for name in line.split(","))
    return [_ALIASES.get(name, name) for name in names]


def _query(lines: list[str]) -> dict[str, Any]:
    """Parse --query-gpu=… --format=csv, with or without units: a row per GPU, or per GPU and time.

    The heading names the columns. Values that a card lacks and unknown columns are omitted.
    """
    names = _columns(lines[0])
    gpus: dict[str, dict[str, Any]] = {}
    driver = None
    try:
        rows = list(csv.reader(lines[1:], skipinitialspace=True))
    except csv.Error as error:
        raise ParseError("nvidia_smi", f"CSV ({error})", got=lines[0]) from None
    for row in rows:
        if len(row) != len(names):
            continue
        value = {name: _cell(text) for name, text in zip(names, row, strict=True)}
        driver = driver or value.get("driver_version")
        identity = value.get("index") or value.get("pci.bus_id") or value.get("uuid") or f"row {len(gpus)}"
        index = integer(value.get("index"))
        gpu = gpus.setdefault(identity, {"index": len(gpus) if index is None else index})
        gpu |= {key: v for key, v in _row(value).items() if v is not None}
        _check_count(gpus)
    if not gpus:
        raise ParseError("nvidia_smi", "a row of CSV per GPU", got=lines[0])
    return ({"driver": driver} if driver else {}) | {"gpus": list(gpus.values())}


def _row(value: dict[str, str | None]) -> dict[str, Any]:
    memory = integer(value.get("memory.total"))
    slowdown = [n for n in _SLOWDOWNS if value.get(f"clocks_event_reasons.{n}") == "Active"]
    return {
        "name": value.get("name"),
        "bus": value.get("pci.bus_id"),
        "memory": memory * _MIB if memory is not None else None,
        "power_limit": leading(value.get("power.limit")),
        "max_power_limit": leading(value.get("power.max_limit")),
        "pcie_gen": integer(value.get("pcie.link.gen.current")),
        "max_pcie_gen": integer(value.get("pcie.link.gen.max")),
        "pcie_width": integer(value.get("pcie.link.width.current")),
        "max_pcie_width": integer(value.get("pcie.link.width.max")),
        "persistence": _flag(value.get("persistence_mode")),
        "mig": _flag(value.get("mig.mode.current")),
        "ecc": _flag(value.get("ecc.mode.current")),
        "ecc_uncorrected": integer(value.get("ecc.errors.uncorrected.volatile.total")),
        "max_sm_hz": _hz(value.get("clocks.max.sm")),
        "temperature": leading(value.get("temperature.gpu")),
        "slowdown": tuple(slowdown) or None,
    }


def _cell(text: str) -> str | None:
    """Return a cell's text; None for a bracketed placeholder such as ``[N/A]``."""
    return None if re.fullmatch(r"\s*\[.*\]\s*", text[:200]) else text_or_none(text)


def _check_count(gpus: Sized) -> None:
    if len(gpus) > MOST_GPUS:
        raise ParseError("nvidia_smi", f"at most {MOST_GPUS} GPUs")


def _table(text: str, lines: list[str]) -> dict[str, Any]:
    gpus: list[dict[str, Any]] = []
    for line in lines:
        if match := _TABLE_GPU.match(line):
            gpus.append(
                {"index": int(match[1]), "bus": match[3]} | ({"name": name} if (name := text_or_none(match[2])) else {})
            )
            _check_count(gpus)
        elif gpus and (match := _TABLE_LOAD.search(line)) and "memory" not in gpus[-1]:
            gpus[-1]["memory"] = int(match[2]) * _MIB
            gpus[-1] |= {"power_limit": float(match[1])} if match[1] else {}
    facts: dict[str, Any] = {"gpus": gpus}
    for key, pattern in (("driver", r"Driver Version: ([\d.]+)"), ("cuda", r"CUDA Version: ([\d.]+)")):
        if match := re.search(pattern, text):
            facts[key] = match[1]
    return facts


def _topology(lines: list[str]) -> dict[str, Any]:
    """Parse ``topo -m`` and ``topo -p2p``: a matrix, followed on the right by CPU and NUMA affinity if printed."""
    columns = re.findall(r"(?:GPU|NIC)\d+|mlx\d_\d+|CPU Affinity|NUMA Affinity|GPU NUMA ID", lines[0])
    links: dict[str, str] = {}
    numa: dict[int, int] = {}
    for line in lines[1:]:
        cells = line.split()
        if not cells or not re.fullmatch(r"GPU\d{1,3}|NIC\d{1,3}|mlx\d_\d{1,3}", cells[0]):
            continue
        row = dict(zip(columns, cells[1:], strict=False))
        links |= {f"{cells[0]}-{name}": v for name, v in row.items() if " " not in name and v != "X"}
        node = id_list(row.get("NUMA Affinity", "-"))
        if cells[0].startswith("GPU") and node is not None and len(node) == 1:
            numa[int(cells[0][3:])] = node[0]
    if not links:
        raise ParseError("nvidia_smi", "a matrix of links between GPUs", got=lines[0])
    return {"links": links, "numa": numa}


_GPU = re.compile(r"GPU (\d{1,4}):")
_LINK = re.compile(r"\s+Link \d{1,2}: (?:(<inactive>)|\d)")
_LINK_ERRORS = re.compile(r"\s+Link \d{1,2}: (?:Replay|Recovery|CRC) Errors: (\d{1,18})$")


def active_links(text: str) -> dict[int, int]:
    """Parse ``nvlink -s``: return the number of active NVLinks by GPU index. GPUs without active links are absent."""
    links: dict[int, int] = {}
    for index, line in _by_gpu(text):
        if match := _LINK.match(line):
            links[index] = links.get(index, 0) + (match[1] is None)
    return links


def link_errors(text: str) -> dict[int, int]:
    """Parse ``nvlink -e``: return the errors of all NVLinks since the driver was loaded, by GPU index."""
    errors: dict[int, int] = {}
    for index, line in _by_gpu(text):
        if match := _LINK_ERRORS.match(line):
            errors[index] = errors.get(index, 0) + int(match[1])
    return errors


def _by_gpu(text: str) -> Iterator[tuple[int, str]]:
    """Yield the GPU's index and the lines below each heading ``GPU 0: …``."""
    index = None
    for line in text.splitlines():
        if match := _GPU.match(line):
            index = int(match[1])
        elif index is not None:
            yield index, line
