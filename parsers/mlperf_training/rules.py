"""Define the evaluations of MLPerf Training's benchmarks: their direction, unit of progress, and targets.

Source: training_rules.adoc (rounds v0.6 to v6.0), the HPC rules of v3.0, and mlperf_logging's compliance checker (v0.7
to v6.1), whose checks of ``eval_accuracy`` show which evaluations are losses.
"""

from __future__ import annotations

from dataclasses import dataclass

from fleetmark.base.measurement import Better


@dataclass(frozen=True, slots=True)
class Quality:
    """An evaluation of a benchmark: the metric's name, its direction, and what it actually is, for a note."""

    metric: str
    better: Better
    meaning: str = ""

    def reaches(self, value: float, target: float) -> bool:
        """Return whether ``value`` is as good as ``target``."""
        return value <= target if self.better is Better.LOWER else value >= target


ACCURACY = Quality("eval_accuracy", Better.HIGHER)
LOSS = Quality("eval_loss", Better.LOWER, "a loss: lower is better")
ERROR = Quality("eval_error", Better.LOWER, "an error rate: lower is better")
UNKNOWN = Quality("eval_accuracy", Better.NONE)
FID = Quality("eval_fid", Better.LOWER)
CLIP = Quality("eval_clip", Better.HIGHER)

_ACCURACIES = (
    "bert",
    "deepcam",
    "dlrm",
    "dlrm_dcnv2",
    "gnmt",
    "gnn",
    "mask",
    "maskrcnn",
    "minigo",
    "ncf",
    "openfold",
    "qwen35_397b_grpo",
    "resnet",
    "retinanet",
    "rgat",
    "ssd",
    "transformer",
    "unet3d",
)
_LOSSES = ("deepseekv3_671b", "flux1", "gpt3", "gpt_oss_20b", "llama2_70b_lora", "llama31_405b", "llama31_8b")
_ERRORS = ("cosmoflow", "oc20", "rnnt")
_QUALITIES = {
    **dict.fromkeys(_ACCURACIES, ACCURACY),
    **dict.fromkeys(_LOSSES, LOSS),
    **dict.fromkeys(_ERRORS, ERROR),
}
_BY_METRIC = {"fid": FID, "clip": CLIP}

# Targets of the rounds from v0.7 (2020) on; changed targets have the start of the year from which they apply.
_FIRST = 1_577_836_800_000.0  # 2020, in ms
_SINCE = {"bert": 1_609_459_200_000.0, "ssd": 1_640_995_200_000.0}  # v1.0, 2021; v2.0, 2022
_TARGETS: dict[str, float] = {
    "bert": 0.72,
    "cosmoflow": 0.124,
    "deepcam": 0.82,
    "deepseekv3_671b": 3.6,
    "dlrm": 0.8025,
    "dlrm_dcnv2": 0.80275,
    "flux1": 0.586,
    "gnmt": 0.24,
    "gnn": 0.72,
    "gpt3": 2.69,
    "gpt_oss_20b": 3.34,
    "llama2_70b_lora": 0.925,
    "llama31_405b": 5.6,
    "llama31_8b": 3.3,
    "minigo": 0.5,
    "oc20": 0.036,
    "openfold": 0.8,
    "resnet": 0.759,
    "retinanet": 0.34,
    "rgat": 0.72,
    "rnnt": 0.058,
    "ssd": 0.34,
    "transformer": 0.25,
    "unet3d": 0.908,
}
_TARGETS_BY_METRIC = {"fid": 90.0, "clip": 0.15, "bbox": 0.377, "segm": 0.339}


def quality(benchmark: str | None, key: str, name: str) -> Quality:
    """Return the description of an evaluation of ``benchmark``.

    ``name`` distinguishes several evaluations under ``key`` (FID, CLIP).
    """
    if match := _BY_METRIC.get(name.lower()):
        return match
    if match := _QUALITIES.get(benchmark or ""):
        return match
    return ERROR if key == "eval_error" else UNKNOWN


def target(benchmark: str | None, name: str, time: float) -> float | None:
    """Return the target that the rules at ``time`` (ms) set for an evaluation, if known."""
    if time < _SINCE.get(benchmark or "", _FIRST):
        return None
    return _TARGETS_BY_METRIC.get(name.lower()) if name else _TARGETS.get(benchmark or "")


def counts(benchmark: str | None, largest: float, batch: float | None) -> str:
    """Return the unit of ``epoch_num``, whose maximum is ``largest``: samples for BERT since v1.0, tokens for gpt3."""
    if benchmark == "gpt3":
        return "tokens"
    if benchmark == "bert" and largest >= (batch or 1000):
        return "samples"
    return "epoch"
