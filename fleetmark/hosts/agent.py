"""The files that run on hosts, as stored on this machine."""

from __future__ import annotations

from pathlib import Path

PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"


def agent_source(name: str) -> bytes:
    """The text of one of the files that run on a host."""
    return (PLAYBOOKS / "agent" / name).read_bytes()
