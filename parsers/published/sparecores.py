"""Read Spare Cores' table of cloud server types: one row per type, one column per figure (``sc_servers.csv``).

sc-inspector measured each type once. A machine is a vendor's type, ``aws/m7i.large``. Empty cells were not measured.
Figures are for the whole type with all its vCPUs, unless noted in the case:

- ``stress-ng div16``: integer divisions, with the number of processes that gave the best result, and with one process
  (``stress-ng div16 1 core``)
- ``bw_mem OP SIZE``: lmbench's loops on all vCPUs in parallel; the smaller size is only descriptive, as it may fit in a
  cache
- ``llama-bench MODEL pp512`` and ``tg128``: tokens per second for a prompt, and for one answer
- ``nvbandwidth ...``: copies to, from and within the GPUs

A type is a slice of a server, so ``sockets`` is what the type shows, and no figure is divided by it. GPU lists that are
too long for the table's cells are truncated; such a type has no number of GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Kind, Measurement
from fleetmark.base.text import message
from fleetmark.parsers.published import Collector, Row, Table, figure
from fleetmark.parsers.published.files import records, some, words

TRAITS: tuple[str, ...] = ()
MODEL: tuple[str, ...] = ("processor",)
KIND: tuple[str, ...] = ("server", "processor", "accelerator")
COUNTS: Mapping[str, str] = {"gpus": "accelerator"}
UNIFORM: Mapping[str, str] = {
    "processor": "processor",
    "accelerator": "accelerator",
    "gpus": "count",
    "threads": "threads",
}
PUBLISHER = "vendor"
SIZES: Mapping[str, str] = {"gpus": "devices", "cores": "cores"}
WORKLOAD = "sparecores"
_REQUIRED = ("vendor", "server", "cpu_model")
_CUT = 120  # maximum characters of a cell; longer lists of GPUs are truncated
_MB = 1e6
_GB = 1e9
_LABELS = {  # the label of each column
    "vendor": "vendor",
    "server": "server",
    "arch": "arch",
    "cpu_model": "processor",
    "cpus": "threads",
    "sockets": "sockets",
    "threads_per_core": "threads_per_core",
    "price": "price",
    "currency": "currency",
    "price_date": "price_date",
    "term": "term",
}
_LLM = re.compile(r"llm_([A-Za-z0-9]+)_(pp|tg)_([0-9]+)")
_BW_MEM = re.compile(r"bw_mem_(rd|wr|rdwr|cp)_([0-9]+)MB_MBps")
_NVBANDWIDTH = re.compile(r"nvbw_(\w+)_sum_GBps")
_COUNT = re.compile(r"[1-9][0-9]{0,8}")
_SIZE = 512  # MB: the size of bw_mem that is compared


@dataclass(frozen=True, slots=True)
class _Column:
    """The contents of a column; ``factor`` converts its values to ``unit``.

    The table has rates of whole machines; the speed of one core or one answer is declared.
    """

    case: str
    metric: str
    class_: str
    unit: str
    factor: float = 1.0
    _: KW_ONLY
    headline: bool = True
    kind: Kind = Kind.CAPACITY


_FIXED = {
    "stressng_full_1core_bogo_ops_s": _Column(
        "stress-ng div16 1 core", "bogo_ops", "cpu-int-speed", "1/s", kind=Kind.RESPONSIVENESS
    ),
    "stressng_full_best_bogo_ops_s": _Column("stress-ng div16", "bogo_ops", "cpu-int", "1/s"),
}


MICRO = {  # titles of classes with a benchmark of a single operation
    "stress-ng div16 1 core": message("integer division on one core"),
    "stress-ng div16": message("integer division"),
}


def read(raw: bytes, name: str = "") -> Table:
    """Return the figures in ``raw``; ``name`` is not needed.

    Raise FleetmarkError for another table, and for a row without vendor or server.
    """
    source = records(raw)
    figures = {c: entry for c in source.columns if (entry := _column(c)) is not None}
    missing = [c for c in _REQUIRED if c not in source.columns]
    if missing or not figures:
        lacks = f"without {', '.join(missing)}" if missing else "with no figure"
        raise FleetmarkError(
            f"not a table of Spare Cores' servers ({lacks}); it needs vendor, server, cpu_model, and figures such as "
            f"stressng_full_best_bogo_ops_s; this {source.form} file has {some(source.columns)}"
        )
    collector = Collector()
    cut = unpriced = 0
    seen: set[tuple[str, ...]] = set()
    for place, cells in source.rows:
        texts = {column: words(cells.get(column)) for column in source.columns}
        for key in ("vendor", "server"):
            if not texts[key]:
                raise FleetmarkError(f"{place}: no {key}; a row is a server type of a vendor")
        if tuple(texts.values()) in seen:
            collector.leave("the same row again")
            continue
        seen.add(tuple(texts.values()))
        labels = {label: texts.get(column, "") for column, label in _LABELS.items()} | _gpus(texts.get("gpu", ""))
        labels["cores"] = _cores(labels)
        cut += labels["accelerator"] != "" and labels["gpus"] == ""
        if labels["price"] and not labels["currency"]:
            labels["price"], unpriced = "", unpriced + 1
        machine = f"{texts['vendor']}/{texts['server']}"
        for column, entry in figures.items():
            value, reason = figure(cells.get(column))
            if reason:
                collector.leave("not measured on that type" if reason == "no value" else f"{column}: {reason}")
                continue
            m = Measurement(WORKLOAD, entry.case, entry.metric, value * entry.factor, entry.unit, better=Better.HIGHER)
            collector.add(
                machine, {}, labels, Row(machine, m, entry.class_, entry.kind, place, headline=entry.headline)
            )
    if cut:
        collector.notes.append(f"{cut} types list more GPUs than the table's cells hold: they have no label gpus")
    if unpriced:
        collector.notes.append(f"{unpriced} prices are left out because they have no currency; add the column currency")
    elif "price" not in source.columns:
        collector.notes.append("the table has no prices: --per money needs columns price, currency, price_date")
    if unknown := [c for c in source.columns if c not in {*figures, *_LABELS, "gpu"}]:
        collector.notes.append(f"unknown columns are left out: {some(unknown)}")
    return collector.table(len(source.rows))


def _column(name: str) -> _Column | None:
    """Return the description of a column, or None if it has no figure or is unknown."""
    if name in _FIXED:
        return _FIXED[name]
    if match := _BW_MEM.fullmatch(name):
        operation, size = match[1], int(match[2])
        return _Column(f"bw_mem {operation} {size}MB", "bandwidth", "mem-bw", "B/s", _MB, headline=size == _SIZE)
    if match := _LLM.fullmatch(name):
        model, phase, tokens = match.groups()
        class_ = "llm-prompt" if phase == "pp" else "llm-answer"
        case = f"llama-bench {model} {phase}{tokens}"  # with one request at a time
        return _Column(case, "tokens_per_second", class_, "1/s", kind=Kind.RESPONSIVENESS)
    if match := _NVBANDWIDTH.fullmatch(name):
        within = "local" in match[1]
        return _Column(f"nvbandwidth {match[1]}", "bandwidth", "gpu-memory" if within else "gpu-link", "B/s", _GB)
    return None


def _gpus(text: str) -> dict[str, str]:
    """Return the accelerators of a type and their number; there is no number if the cell is truncated."""
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names:
        return {"accelerator": "", "gpus": ""}
    if len(text) >= _CUT:
        return {"accelerator": names[0], "gpus": ""}
    return {"accelerator": "+".join(sorted(set(names))), "gpus": str(len(names))}


def _cores(labels: Mapping[str, str]) -> str:
    """Return the number of cores of a type's vCPUs, or an empty string if it is unknown."""
    threads, each = labels["threads"], labels["threads_per_core"]
    if not (_COUNT.fullmatch(threads) and _COUNT.fullmatch(each)):
        return ""
    return str(max(1, int(threads) // int(each)))
