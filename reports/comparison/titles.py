"""Define the names of classes of work in sentences and headings."""

from __future__ import annotations

from collections.abc import Mapping

from fleetmark.base.kinds import PEAK
from fleetmark.base.text import Message, joined, message
from fleetmark.base.words import word
from fleetmark.planner.comparison import WORK_MIX
from fleetmark.planner.equivalence import Basis
from fleetmark.reports.kit import format as fmt

_TITLES: Mapping[str, Message] = {
    WORK_MIX: message("your mix"),
    "cpu-int": message("integer"),
    "cpu-fp": message("floating point"),
    "mem-bw": message("memory bandwidth"),
    "disk-iops": message("disk IOPS"),
    "disk-bw": message("disk bandwidth"),
    "net": message("network"),
    "app": message("applications"),
    "app-speed": message("application speed"),
    "cluster": message("several hosts together"),
    "cpu": message("CPU"),
    "gpu": message("GPU"),
    "gpu-bw": message("GPU memory bandwidth"),
    "cpu-train": message("CPU training"),
    "gpu-offline": message("offline GPU inference"),
    "gpu-server": message("GPU inference serving"),
    "gpu-interactive": message("interactive GPU inference"),
    "gpu-train": message("GPU training"),
    "gpu-compute": message("GPU compute"),
    "cpu-offline": message("offline CPU inference"),
    "cpu-server": message("CPU inference serving"),
    "cpu-interactive": message("interactive CPU inference"),
    "cpu-compute": message("CPU compute"),
    "cpu-int-speed": message("single-job integer"),
    "cpu-fp-speed": message("single-job floating point"),
    "mem-latency": message("memory latency"),
    "core-bw": message("memory bandwidth of one core"),
    "os": message("OS calls"),
    "disk-latency": message("disk latency"),
    "net-flow": message("one network flow"),
    "gpu-latency": message("GPU latency"),
    "collective": message("collectives"),
    "gpu-train-speed": message("time to train"),
    "cpu-latency": message("CPU inference latency"),
    "llm-prompt": message("LLM prompt processing"),
    "llm-answer": message("LLM token generation"),
}


def class_title(name: str) -> str:
    """Return the title of a class: ``memory latency`` for ``mem-latency``. User-defined names stay unchanged."""
    base = name.removesuffix(PEAK)
    title = _TITLES.get(base)
    if title is None:
        return word(name)
    return title if base == name else message("{class_} (SPEC peak)", class_=title)


def per_title(per: str) -> str:
    """Return the name of the unit by which results are divided, such as ``GPU`` or ``socket``."""
    return _TITLES["gpu"] if per == "gpu" else word(per)


def labelled(name: str, text: str) -> Message:
    """Return a labelled text, such as ``memory latency: genoa 0.83``."""
    return message("{name}: {what}", name=name, what=text)


def spaced(*parts: str | None) -> str:
    """Join parts with spaces, such as ``genoa 0.83``."""
    return joined(parts, " ")


def titled(warning: str) -> str:
    """Return a planner's sentence with the title of its class instead of the name: ``integer`` for ``cpu-int``."""
    if not isinstance(warning, Message) or "class_" not in warning.values:
        return warning
    return Message(warning.template, {**warning.values, "class_": class_title(warning.values["class_"])})


def basis_title(bases: Mapping[str, str]) -> str:
    """Return ``based on totals``, ``size by size`` or a size; nothing if headlines are means over all hosts.

    ``bases``: the basis of each candidate, or the only size of machine. If the bases differ, the title names the
    candidates of each basis.
    """
    titles = {Basis.TOTALS: message("based on totals"), Basis.STRATA: message("size by size"), Basis.MEAN: ""}
    sizes = {size: message("{size} only", size=size) for size in bases.values() if size not in titles}
    parts = []
    for basis, title in (titles | sizes).items():
        if not title:
            continue
        names = [fmt.clean(candidate) for candidate, candidate_basis in bases.items() if candidate_basis == basis]
        if names:
            parts.append(title if len(names) == len(bases) else joined([title, f"({joined(names)})"], " "))
    return joined(parts)
