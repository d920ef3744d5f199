"""Read accuracy.txt line by line, in the formats that MLPerf's own scripts print."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fleetmark.base.measurement import Better, Measurement
from fleetmark.parsers.kit.text import number
from fleetmark.parsers.mlperf_inference.run import TOOL

CASE = "accuracy"
_NUMBER = r"-?[0-9]{1,30}(?:\.[0-9]{0,30})?(?:[eE][-+]?[0-9]{1,3})?"
_LONGEST = 4000  # maximum characters of a line
_MOST = 200  # maximum figures

_HIGHER = (
    *(
        "accuracy",
        "auc",
        "map",
        "mean_accuracy",
        "exact_match",
        "f1",
        "rouge1",
        "rouge2",
        "rougel",
        "rougelsum",
        "bleu",
    ),
    *("gsm8k", "mbxp", "vbench_score", "clip_score"),
    *("lifetime_accuracy", "window_accuracy", "lifetime_gauc", "window_gauc"),
)
_LOWER = ("word_error_rate", "fid_score", "lifetime_ne", "window_ne")
_COUNTS = (
    *("good", "total", "queries", "gen_len", "gen_num", "gen_tok_len", "tokens_per_sample", "num_samples"),
    *("lifetime_gauc_num_samples", "window_gauc_num_samples"),
)
_KINDS = {
    **dict.fromkeys(_HIGHER, Better.HIGHER),
    **dict.fromkeys(_LOWER, Better.LOWER),
    **dict.fromkeys(_COUNTS, Better.NONE),
}
# Scores that are fractions by definition. A value above 1 must be a percentage; some scripts omit the percent sign.
_FRACTIONS = frozenset({"accuracy", "auc", "map", "mean_accuracy"})
_OTHER_NAMES = {"roc_auc": "auc", "acc": "accuracy", "meanap": "map"}

_PAIRED = re.compile(r"(?:accuracy|AUC|mAP|BLEU|Word Error Rate)\s?[=:]", re.IGNORECASE)
_PAIR = re.compile(rf"([A-Za-z][A-Za-z ]{{0,30}}?) ?[=:] ?({_NUMBER})(%?)(?=[,\s]|$|hash=)")
_PLAIN = re.compile(rf"^(accuracy|AUC|mAP|BLEU) {{1,20}}({_NUMBER}%?)$", re.IGNORECASE)
_REFERENCE = re.compile(rf"TestScenario\.\w{{1,20}} .{{0,300}}?\bacc=({_NUMBER})%")
_DICE = re.compile(r"Accuracy: mean = ")
_DICE_PAIR = re.compile(rf"([A-Za-z][A-Za-z ]{{0,30}}?) = ({_NUMBER})(?=,|\s*$)")
_DICT = re.compile(r"(?:Accuracy Results: ?)?(\{.*\})")
_BARE = re.compile(r"'\w{1,40}' ?: ?\S{1,40}")
_MEMBER = re.compile(rf"['\"]([\w. -]{{1,40}})['\"] ?: ?(\[?)'?({_NUMBER})'?(?=\s*[\]}},]|\s*$)")
_RECOMMENDER = re.compile(rf"metric/([a-z_]{{1,40}})/rating: ({_NUMBER})")
_COCO = re.compile(
    rf"Average Precision {{1,2}}\(AP\) @\[ IoU=0\.50:0\.95 \| area= {{1,3}}all \| maxDets=100 ?\] = ({_NUMBER})"
)
_VERIFICATION = re.compile(
    r"TEST (?:PASS|FAIL)\b|TEST[0-9]{2} verification complete|Verifying (?:accuracy|performance)\."
)
# The beginning of every line that is read here; other output is skipped quickly.
_BEGINS = re.compile(
    r"acc|auc|map|bleu|word error|[{']|metric/|TestScen|Average Prec|hash=|TEST|Verifying", re.IGNORECASE
)


class AccuracyReader:
    """Read lines and keep their accuracy figures; of several figures with one name, keep the first."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        self.notes: list[str] = []
        self.verification: int | None = None  # the first line that shows that a compliance script wrote this
        self.hash: int | None = None  # the first line with the hash of the responses
        self._coco: str | None = None
        self._ranking: str = ""  # the last of DLRMv3's metrics
        self._half_line: int | None = None

    @property
    def cut(self) -> str | None:
        """Return where the figures end too early, if this is visible."""
        if self._half_line is not None:
            return f"line {self._half_line} may be half of one"
        if self._ranking and not self._ranking.endswith("_num_samples"):
            return f"the number of samples is missing that follows {self._ranking}"
        return None

    def take(self, n: int, line: str, open_end: bool = False) -> None:
        """Read one line without its line end.

        ``open_end``: no line end followed, so figures may be missing.
        """
        before = len(self.values)
        self._take(n, line)
        complete = line.rstrip().endswith("}") or "hash=" in line
        if open_end and len(self.values) > before and not complete:
            self._half_line = n

    def _take(self, n: int, line: str) -> None:
        line = _PLAIN.sub(r"\1=\2", line.strip())
        if len(line) > _LONGEST or not _BEGINS.match(line):
            return
        if match := _DICT.fullmatch(line):
            self._take_members(match[1])
        elif line.startswith("'") and _BARE.fullmatch(line):
            self._take_members(line)
        elif _DICE.match(line):
            for match in _DICE_PAIR.finditer(line.partition(":")[2]):
                labels = {} if match[1] == "mean" else {"part": match[1]}
                self.put("accuracy", match[2], False, labels)
        elif _PAIRED.match(line):
            for match in _PAIR.finditer(line):
                self.put(match[1].lower().replace(" ", "_"), match[2], bool(match[3]))
            self._check()
        elif match := _RECOMMENDER.fullmatch(line):
            self._ranking = match[1]
            self.put(match[1], match[2], False)
        elif match := _REFERENCE.match(line):
            self.put("accuracy", match[1], True)
        elif match := _COCO.fullmatch(line):
            self._coco = match[1]
        elif line.startswith("hash="):
            self.hash = self.hash or n
        elif _VERIFICATION.match(line):
            self.verification = self.verification or n

    def take_object(self, value: dict[str, Any]) -> None:
        """Read a JSON object that spans several lines, like a dict on one line."""
        members = {_metric_name(key): figure for key, figure in value.items() if number(figure) is not None}
        if members.keys() & {*_HIGHER, *_LOWER}:
            for key, figure in members.items():
                self.put(key, figure, False)

    def put(self, name: str, figure: object, percent: bool, labels: Mapping[str, str] | None = None) -> None:
        """Store a score under its name, as a fraction if it is a percentage."""
        name = _OTHER_NAMES.get(name, name)
        value = number(figure)
        if name not in _KINDS or value is None:
            return
        if percent or (name in _FRACTIONS and value > 1):
            value /= 100
        key = (name, tuple(sorted((labels or {}).items())))
        if value < 0 or (name in _FRACTIONS and value > 1):
            self._say(f"{name} is {value:g}, which is impossible for this score: left out")
        elif key not in self.values:
            if len(self.values) < _MOST:
                self.values[key] = value
        elif self.values[key] != value:
            self._say(f"{name} is printed as {self.values[key]:.10g} and as {value:.10g}: the first is kept")

    def finish(self) -> list[Measurement]:
        if self._coco is not None and ("map", ()) not in self.values:
            self.put("map", self._coco, False)
        measurements = []
        for (name, labels), value in self.values.items():
            measurements.append(Measurement(TOOL, CASE, name, value, "1", better=_KINDS[name], labels=dict(labels)))
        return measurements

    def _take_members(self, text: str) -> None:
        members = _MEMBER.findall(text)
        names = {_metric_name(key) for key, _, _ in members}
        if "total" in names and any(bracket for _, bracket, _ in members):  # PointPainting: mAP by class and in total
            for key, bracket, figure in members:
                self.put("map", figure, False, {"class": key.lower()} if bracket else None)
        elif names & {*_HIGHER, *_LOWER}:
            for key, bracket, figure in members:
                if not bracket:
                    self.put(_metric_name(key), figure, False)

    def _check(self) -> None:
        """Check that the printed accuracy follows from its own counts."""
        accuracy, good, total = (self.values.get((name, ())) for name in ("accuracy", "good", "total"))
        if accuracy is not None and good is not None and total and abs(accuracy - good / total) > 1e-5:
            self._say(f"accuracy {accuracy:.5f} disagrees with its own counts, {good:.0f} of {total:.0f}")

    def _say(self, note: str) -> None:
        if len(self.notes) < 20 and note not in self.notes:
            self.notes.append(note)


def _metric_name(key: str) -> str:
    name = key.strip().lower().replace("-", "_").replace(" ", "_")
    return _OTHER_NAMES.get(name, name)
