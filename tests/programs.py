"""A user's program against the public interface, and its strict type check."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import pandas as pd
import fleetmark


def best(folder: str) -> tuple[str, float]:
    with fleetmark.open(folder) as record:
        compared: fleetmark.Comparison = record.compare("gen=icelake", "gen=genoa", per="core")
        classes: pd.DataFrame = compared.classes
        record.figures(by="generation", workload=["stream", "fio"])
        compared.save(f"{folder}/report.html", lang="zh-CN")
    try:
        fleetmark.parse("stream", b"")
    except fleetmark.FleetmarkError as error:
        print(error)
    with fleetmark.open(folder) as record:
        return compared.answer, float(classes["ratio"].max())


def more(record: fleetmark.Record) -> None:
    print(fleetmark.__version__, record.path)
"""


def check_types(folder: Path, python: Path) -> None:
    """Assert that ``mypy --strict`` accepts the program and refuses a wrong argument.

    ``python``: the interpreter whose packages the program uses. ``folder.parent`` keeps their types for further checks.
    """
    texts = {"right.py": PROGRAM, "wrong.py": f"{PROGRAM}    record.values(workloads='stream')\n"}
    for name, text in texts.items():
        (folder / name).write_text(text)
    words = [sys.executable, "-m", "mypy", "--strict", "--config-file", "/dev/null", "--follow-imports=silent"]
    words += ["--python-executable", str(python), "--cache-dir", str(folder.parent / "types"), *texts]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder)
    assert done.stdout.startswith("wrong.py") and "workloads" in done.stdout.splitlines()[0], done.stdout + done.stderr
    assert "right.py" not in done.stdout, done.stdout
