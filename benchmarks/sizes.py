"""What each workload costs, as files / lines: writes the table of docs/architecture.md again. ``python -m benchmarks.sizes``"""

from __future__ import annotations

import re
from pathlib import Path

HOUSE = Path(__file__).parents[1]
PAGE = HOUSE / "docs" / "architecture.md"
ROW = re.compile(r"^\| (\w+) \|(?: (?:\d+ / \d+|–) \|){5}$", re.MULTILINE)
SHARED = {"spec_cpu2017": "spec_cpu", "nccl_tests": "nccl"}  # parts of a parser that others use too, counted once


def main() -> None:
    page = PAGE.read_text("utf-8")
    rows = list(ROW.finditer(page))
    names = [match[1] for match in rows]
    names += sorted({path.stem for path in (HOUSE / "workloads").glob("*.yml")} - set(names))
    table = "\n".join(row(name) for name in names)
    PAGE.write_text(page[: rows[0].start()] + table + page[rows[-1].end() :], "utf-8")


def row(name: str) -> str:
    """A workload's line of the table."""
    parts = [
        [HOUSE / "workloads" / f"{name}.yml"],
        below(HOUSE / "playbooks" / "roles" / name),
        [
            *[p for p in [HOUSE / "parsers" / f"{name}.py"] if p.exists()],
            *below(HOUSE / "parsers" / name),
            *(below(HOUSE / "parsers" / SHARED[name]) if name in SHARED else []),
        ],
        [HOUSE / "docs" / "reference" / "workloads" / f"{name}.md"],
    ]
    parts.append([path for part in parts for path in part])
    return f"| {name} | " + " | ".join(f"{len(p)} / {lines(p)}" if p else "–" for p in parts) + " |"


def below(folder: Path) -> list[Path]:
    """The files of a folder that is kept."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]


def lines(paths: list[Path]) -> int:
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


if __name__ == "__main__":
    main()
