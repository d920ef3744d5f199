"""Define rules about accelerators: clocks, errors, links, and the bandwidth of collectives."""

from __future__ import annotations

from fleetmark.base.facts import Gpu
from fleetmark.base.text import Message, count, message
from fleetmark.planner.diagnosis.tuning.rule import AGAIN, Rule, Subject
from fleetmark.planner.diagnosis.tuning.setting import Item, Setting
from fleetmark.planner.peak import table

PEERS = 0.90  # minimum share of the peers' bandwidth
CAPPED = 0.10  # share of a run's samples at the power limit up to which it is not reported
_CAP = "power_cap"
_NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"
_COLLECTIVES_AGAIN = message("the collective suite again")


def _gpu_throttle(s: Subject) -> Message | None:
    capped = _capped_below_maker(s)
    during = {
        reason: share
        for reason, share in s.slowed.items()
        if (share > 0.0 if reason != _CAP else capped and share > CAPPED)
    }
    if during:
        shares = ", ".join(f"{reason} {share:.0%}" for reason, share in sorted(during.items()))
        return message("GPUs were throttled while they worked; samples of a run: {shares}", shares=shares)
    reasons = sorted({r for g in s.facts.gpus for r in g.slowdown})
    return message("GPUs are slowed down: {reasons}", reasons=", ".join(reasons)) if reasons else None


def _capped_below_maker(s: Subject) -> bool:
    """Return whether an accelerator's power limit is below the manufacturer's; a cap at that limit is normal."""
    limits = [(g.power_limit, table.watts(g.name)) for g in s.facts.gpus]
    return any(limit is not None and maker is not None and limit < maker.value for limit, maker in limits)


def _persistence(s: Subject) -> Message | None:
    off = [g for g in s.facts.gpus if g.persistence is False]
    return message("persistence mode is off on {gpus}", gpus=count(len(off), "GPU")) if off else None


def _gpu_errors(s: Subject) -> Message | None:
    bad = [g for g in s.facts.gpus if g.ecc_uncorrected or g.remap_pending]
    if bad:
        return message("uncorrectable memory errors or a pending row remap on {gpus}", gpus=count(len(bad), "GPU"))
    return None


def _nvlinks(s: Subject) -> Message | None:
    known = [(g, g.nvlinks) for g in s.facts.gpus if g.nvlinks is not None]
    highest = max((n for _, n in known), default=0)
    fewer = [n for g, n in known if n < (_specified(g) or highest)]
    if fewer:
        expected = max([highest, *(_specified(g) for g, _ in known)])
        gpus = count(len(fewer), "GPU")
        return message("{gpus} with {n} of {most} NVLinks active", gpus=gpus, n=min(fewer), most=expected)
    errors = [g.nvlink_errors for g in s.facts.gpus if g.nvlink_errors]
    if errors:
        gpus = count(len(errors), "GPU")
        return message("{n} NVLink errors since the driver was loaded, on {gpus}", n=sum(errors), gpus=gpus)
    return None


def _specified(gpu: Gpu) -> int:
    """Return the number of NVLinks in the GPU's specification, or 0 if it is unknown."""
    entry = table.nvlinks(gpu.name)
    return int(entry.value) if entry else 0


def _collective(s: Subject) -> Message | None:
    if s.collective is not None and s.collective.value < PEERS * s.collective.usual:
        return message(
            "{benchmark}: {share} of the median of {n} hosts of its kind",
            benchmark=s.collective.title,
            share=f"{s.collective.value / s.collective.usual:.0%}",
            n=s.collective.peers,
        )
    return None


def _gpu_direct(s: Subject) -> Message | None:
    if s.gpu_direct is False:
        return message("collectives send through host memory: their network log shows no GPU-direct RDMA")
    return None


def _set_persistence(s: Subject) -> Setting | None:
    items = tuple(
        Item(
            value="Enabled",
            read=("nvidia-smi", "-i", str(g.index), "--query-gpu=persistence_mode", "--format=csv,noheader"),
            match=r"^(Enabled|Disabled)\s*$",
            write=("nvidia-smi", "-i", str(g.index), "-pm", "{}"),
            words={"Enabled": "1", "Disabled": "0"},
        )
        for g in s.facts.gpus
        if g.vendor == "nvidia"
    )
    return Setting(items) if items else None


RULES = (
    Rule(
        18,
        "gpu-throttle",
        "clock event reasons of GPUs, at rest and while they worked",
        _gpu_throttle,
        message("look at cooling and power supply"),
        retest=message("the facts again under load"),
        source="nvidia-smi manual, clocks_event_reasons; power limits of manufacturers: planner/peak/peaks.yml",
    ),
    Rule(
        19,
        "gpu-persistence",
        "persistence mode",
        _persistence,
        message("nvidia-smi -pm 1, or the persistence daemon"),
        retest=AGAIN,
        source="nvidia-smi manual, persistence mode",
        setting=_set_persistence,
    ),
    Rule(
        20,
        "gpu-errors",
        "ECC counters, row remapping",
        _gpu_errors,
        message("drain the host and reset the GPU; replace the GPU if the errors return"),
        retest=message("the facts again after the reset"),
        source="NVIDIA, GPU memory error management: row remapping",
    ),
    Rule(
        21,
        "nvlink",
        "active NVLinks and their error counters",
        _nvlinks,
        message("drain the host; reseat the board or replace the GPU if it comes back"),
        retest=_COLLECTIVES_AGAIN,
        source="nvidia-smi manual, nvlink --status and --errorcounters",
        classes=("collective",),
    ),
    Rule(
        22,
        "collectives",
        "bandwidth of collectives on this host and on others of its kind",
        _collective,
        message("look at the topology of GPUs and network cards, and at the links that other rules name"),
        retest=_COLLECTIVES_AGAIN,
        source=_NCCL,
        measured=True,
        classes=("collective",),
    ),
    Rule(
        22,
        "gpu-direct",
        "network log of collectives (NCCL_DEBUG=INFO)",
        _gpu_direct,
        message("load nvidia-peermem, or a driver with dma-buf; ACS and the IOMMU can prevent it"),
        retest=_COLLECTIVES_AGAIN,
        source=_NCCL,
        classes=("collective",),
    ),
)
