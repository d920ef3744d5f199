"""Results in the forms of SPEC's reports: CSV, text and raw. It is beside the stand-in's runcpu."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

REFERENCE_S = 1000.0  # all benchmarks have the same: SPEC's own times are none of our business
TUNES = ("base", "peak")
EDGE = "INVALID RUN INVALID RUN INVALID RUN INVALID RUN INVALID RUN INVALID RUN"


@dataclass(kw_only=True)
class Results:
    """What became of every run: (benchmark, tune) to its status and seconds, iteration by iteration."""

    release: int
    version: str
    suite: str  # intrate
    benchmarks: list[str]  # all of the suite
    size: str
    many: int  # copies or threads
    tunes: list[str]
    reportable: bool
    runs: dict[tuple[str, str], list[tuple[str, float | None]]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    @property
    def mode(self) -> str:
        return "rate" if self.suite.endswith("rate") else "speed"

    @property
    def kind(self) -> str:
        return self.size + self.mode if self.size == "ref" else self.size

    @property
    def metric(self) -> str:
        return f"SPEC{self.mode}{self.release}_{self.suite.removesuffix(self.mode)}"

    @property
    def title(self) -> str:
        return f"{'Integer' if self.suite.startswith('int') else 'Floating Point'} {self.mode.capitalize()}"

    @property
    def valid(self) -> bool:
        return self.reportable and not self.errors and all(s == "S" for runs in self.runs.values() for s, _ in runs)

    def ratio(self, took: float) -> float:
        return (self.many if self.mode == "rate" else 1) * REFERENCE_S / took

    def selected(self, benchmark: str, tune: str) -> int | None:
        """The selected run of the benchmark: the median; of two, the slower. None if one failed."""
        runs = self.runs.get((benchmark, tune), [])
        times = sorted((took, i) for i, (status, took) in enumerate(runs) if status == "S" and took)
        return times[len(times) // 2][1] if times and len(times) == len(runs) else None

    def score(self, tune: str) -> str:
        if tune not in self.tunes:
            return "Not Run"
        ratios = []
        for name in self.benchmarks:
            picked = self.selected(name, tune)
            took = self.runs[name, tune][picked][1] if picked is not None else None
            if took is None or self.size != "ref":
                return "--"
            ratios.append(self.ratio(took))
        return f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.6f}"

    def reasons(self) -> list[str]:
        """Why SPEC would not publish it, in its tools' words."""
        if self.valid:
            return []
        reasons = [] if self.reportable else ["'reportable' flag not set during run"]
        if self.size != "ref":
            reasons.append(f"Input set must be 'ref{self.mode}' for a reportable run; this was '{self.size}'")
        for tune in self.tunes:
            for name in self.benchmarks:
                runs = self.runs.get((name, tune), [])
                bad = [status for status, _ in runs if status != "S"]
                if len(runs) - len(bad) < 2:
                    reasons.append(f"{name} ({tune}) did not have enough runs!")
                reasons += [f"Run of {name} ({tune}) was not valid; status is {status}" for status in bad]
        return reasons + self.errors

    def csv(self) -> str:
        est = "" if self.valid else "Est. "
        count, ratio = ("# Copies", "Rate") if self.mode == "rate" else ("# Threads", "Ratio")
        columns = [
            f'"{tune} {count}","{est}{tune} Run Time","{est}{tune} {ratio}","{tune} Selected","{tune} Status"'
            for tune in ("Base", "Peak")
        ]
        heading = ",".join(["Benchmark", *columns, "Description"])
        lines = [f"valid,{int(self.valid)}", "", f'"SPEC CPU{self.release} {self.title} Result"', ""]
        lines += ['"Full Results Table"', "", heading]
        for name in self.benchmarks:
            rows = max(len(self.runs.get((name, tune), ())) for tune in TUNES)
            for i in range(rows):
                cells = [cell for tune in TUNES for cell in self._cells(name, tune, i)]
                lines.append(",".join([name, *cells, f'"{self.kind}({self.size}) iteration #{i + 1}"']))
            if not rows:
                lines.append(f"{name},,,,,NR,,,,,NR,")
        lines += ["", '"Selected Results Table"', "", heading]
        for name in self.benchmarks:
            cells, words = [], []
            for tune in TUNES:
                picked = self.selected(name, tune)
                cells += ["", "", "", "", "NR"] if picked is None else self._cells(name, tune, picked)
                words.append(f"{tune} {'NR' if picked is None else f'#{picked + 1}'}")
            lines.append(",".join([name, *cells, f'"SelectedIteration ({"; ".join(words)})"']))
        lines.append("")
        for tune, gap in (("base", ",,"), ("peak", ",,,,,,,")):
            score = self.score(tune)
            score = f'"{score}"' if " " in score else score
            lines.append(f"{self.metric}_{tune},{score}{gap}{score}")
        lines += ["", '"Run number:",001.0', ""]
        if reasons := self.reasons():
            lines += ["ERRORS", "", "#" * 78, f'"#   {EDGE}  #"', f'"#{" " * 76}#"']
            lines += [f'"# {reason:<74} #"' for reason in reasons]
            lines += [f'"#{" " * 76}#"', f'"#   {EDGE}  #"', "#" * 78]
        lines += ["----------------", f'"Tested with SPEC CPU{self.release}",v{self.version}.']
        return "\n".join([*lines, f'"Result run on","{time.strftime("%Y-%m-%d %H:%M:%S")}+0000."', ""])

    def _cells(self, name: str, tune: str, i: int) -> list[str]:
        runs = self.runs.get((name, tune), [])
        if i >= len(runs):
            return [""] * 5
        status, took = runs[i]
        if took is None:
            return [str(self.many), "--", "--", "0", status]
        ratio = f"{self.ratio(took):.6f}" if self.size == "ref" else "--"
        return [str(self.many), f"{took:.6f}", ratio, str(int(self.selected(name, tune) == i)), status]

    def text(self) -> str:
        lines = []
        if reasons := self.reasons():
            edge = f"#   {EDGE.replace(' INVALID', ' -- INVALID'):<123}   #"
            lines += ["#" * 130, edge, *(f"# {reason:<126} #" for reason in reasons), edge, "#" * 130]
        count = "Copies" if self.mode == "rate" else "Threads"
        est = " " * 9 if self.valid else "Estimated"
        lines += [f"{'':50}SPEC CPU(R){self.release} {self.title} Result", ""]
        lines += [f"{'':23}{est:<32}{est}", f"{'':17}{'Base     Base        Base        Peak     Peak        Peak'}"]
        last = "Rate" if self.mode == "rate" else "Ratio"
        lines.append(f"{'Benchmarks':<17}{count:<8}Run Time     {last:<12}{count:<8}Run Time     {last}")
        lines.append(f"{'-' * 15} {'-------  ---------  ---------    ' * 2}".rstrip())
        for chosen in (False, True):
            for name in self.benchmarks:
                lines += self._rows(name, chosen)
            lines += [] if chosen else ["=" * 81]
        for tune in TUNES:
            lines.append(f" {'' if self.valid else 'Est. '}{self.metric}_{tune}    {self.score(tune)}")
        return "\n".join([*lines, "", f"Tested with SPEC CPU(R){self.release} v{self.version}.", ""])

    def _rows(self, name: str, chosen: bool) -> list[str]:
        lines = []
        for i in range(max(len(self.runs.get((name, tune), ())) for tune in TUNES)):
            cells = []
            for tune in TUNES:
                picked = self.selected(name, tune)
                _, time_, ratio, _, status = self._cells(name, tune, i)
                mark = "*" if picked == i else status
                cells.append(
                    ""
                    if not time_ or (chosen and mark != "*")
                    else f"{self.many:>7}  {time_:>9.9}  {ratio:>9.9}  {mark}"
                )
            if any(cells):
                lines.append(f"{name:<15} {cells[0]:<33}{cells[1]}".rstrip())
        return lines or [f"{name:<46}NR"]

    def raw(self) -> str:
        values = {"name": self.suite, "size": f"{self.kind} ({self.size})", "suitever": self.version}
        values["invalid"] = str(int(not self.valid))
        for (name, tune), runs in self.runs.items():
            for i, (status, took) in enumerate(runs):
                key = f"results.{name.replace('.', '_')}.{tune}.{i:03d}."
                values[key + "valid"] = status
                values[key + "selected"] = str(int(self.selected(name, tune) == i))
                if took is not None:
                    values[key + "reported_time"] = f"{took:.6f}"
                    values[key + "ratio"] = f"{self.ratio(took):.6f}" if self.size == "ref" else "--"
        values |= {f"{tune}mean": self.score(tune) for tune in self.tunes}
        values |= {f"errors{i:03d}": reason for i, reason in enumerate(self.reasons())}
        return "".join(f"spec.cpu{self.release}.{key}: {value}\n" for key, value in values.items())
