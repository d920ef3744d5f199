"""Where the corpus of real tool output lies, and what its manifest expects of each file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(os.environ.get("FLEETMARK_CORPUS", Path(__file__).parents[2] / "shared" / "corpus"))


def rows(tool: str) -> list[Any]:
    """One pytest parameter per corpus file of ``tool``: (path, manifest row); a single skipped one where the corpus is absent."""
    manifest = ROOT / "MANIFEST.jsonl"
    if not manifest.exists():
        reason = f"corpus absent: no {manifest} (set FLEETMARK_CORPUS)"
        return [pytest.param(Path(), {}, marks=pytest.mark.skip(reason=reason), id="no-corpus")]
    entries = [json.loads(line) for line in manifest.read_text().splitlines()]
    return [pytest.param(ROOT / r["file"], r, id=r["file"]) for r in entries if r["tool"] == tool]
