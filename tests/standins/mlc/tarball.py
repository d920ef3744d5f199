"""What a user downloads from Intel, made for tests: a tarball in the layout of a release, its program a stand-in."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
FIXTURES = HERE.parents[1] / "parsers" / "fixtures" / "mlc"
MODES = {  # the words that a mode's table begins with in a whole run
    "latency_matrix": "Measuring idle latencies",
    "peak_injection_bandwidth": "Measuring Peak",
    "bandwidth_matrix": "Measuring Memory Bandwidths between",
    "loaded_latency": "Measuring Loaded",
    "c2c_latency": "Measuring cache-to-cache",
}
PROGRAMS = ("mlc", "mlc_avx512", "mlc_internal")
USUAL = ("Linux/mlc", "Linux/redist.txt", "Windows/mlc.exe", "mlc_license.pdf")


def outputs() -> dict[str, dict[str, str]]:
    """What MLC prints with the prefetchers off ("sequential") or out of its control ("random"), by mode."""
    return {
        "sequential": _by_mode("v3.11b_one_node.txt") | _single(),
        "random": _by_mode("v3.11a_noroot.txt") | _single(),
    }


def standin() -> bytes:
    """The stand-in, what it prints with it."""
    text = (HERE / "mlc.py").read_text()
    assert "\nOUTPUTS = {}" in text
    return text.replace("\nOUTPUTS = {}", f"\nOUTPUTS = {outputs()!r}").encode()


def make(path: Path, members: Sequence[str] = USUAL, program: bytes | None = None) -> Path:
    """A tarball of these files and folders: ``program`` (the stand-in) under every name it has in Linux folders."""
    data = standin() if program is None else program
    with tarfile.open(path, "w:gz") as tar:
        for name in members:
            member = tarfile.TarInfo(name.rstrip("/"))
            if name.endswith("/"):
                member.type = tarfile.DIRTYPE
                tar.addfile(member)
                continue
            runs = name.rsplit("/", 1)[-1] in PROGRAMS and "Windows" not in name
            text = data if runs else b"not a program\n"
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    return path


def _by_mode(fixture: str) -> dict[str, str]:
    """A whole run's tables, each as its mode alone prints it."""
    tables = re.split(r"^(?=Measuring )", (FIXTURES / fixture).read_text(), flags=re.MULTILINE)
    return {mode: next(t for t in tables if t.startswith(words)) for mode, words in MODES.items()}


def _single() -> dict[str, str]:
    """Modes that a whole run does not have."""
    runs = re.split(r"^\[root@.*\./mlc --", (FIXTURES / "v3.7_modes.txt").read_text(), flags=re.MULTILINE)[1:]
    by_mode = {run.split(None, 1)[0]: run.partition("\n\n")[2].partition("\n")[2] for run in runs}
    return {mode: by_mode[mode].lstrip("\n") for mode in ("max_bandwidth", "idle_latency")}
