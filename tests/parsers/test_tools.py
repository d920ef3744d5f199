"""Tools are found by name, whether a parser is one module or a package."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from fleetmark import parsers
from fleetmark.base.errors import FleetmarkError

ROOM = Path(parsers.__file__).parent


def test_modules_and_packages_are_tools_alike() -> None:
    assert {"stream", "fio", "mlperf_inference", "spec_cpu2026"} <= set(parsers.tools())
    assert (ROOM / "stream.py").exists() and (ROOM / "fio" / "__init__.py").exists()


@pytest.mark.parametrize("tool", parsers.tools())
def test_each_reads_bytes_with_the_command_that_made_them(tool: str) -> None:
    assert list(inspect.signature(parsers.find(tool).parse).parameters)[:2] == ["raw", "command"]


@pytest.mark.parametrize("name", ["facts", "published", "nccl", "serving", "spec_cpu", "kit", "serving"])
def test_what_tools_share_is_none(name: str) -> None:
    assert (ROOM / name).is_dir() or (ROOM / f"{name}.py").exists()
    with pytest.raises(FleetmarkError, match="no parser for"):
        parsers.find(name)
