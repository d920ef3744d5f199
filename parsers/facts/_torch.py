"""What the Pythons that a user names say of their torch, as ``playbooks/agent/interpreter.py --check`` prints it."""

from __future__ import annotations

import json
from typing import Any

from fleetmark.base.facts import Torch
from parsers.facts._raw import Raw

_LONGEST = 300  # characters of an error or a name
_MOST = 16  # Pythons
_FIELDS = tuple(name for name in Torch.model_fields if name != "error")


def torch(raw: Raw) -> dict[str, Torch]:
    """By the name of each Python that was asked; one that gave no answer has the reason as its ``error``."""
    return {python: _of(raw, python, answer) for python, answer in list(raw.table("torch").items())[:_MOST]}


def _of(raw: Raw, python: str, answer: Any) -> Torch:
    if answer["rc"] != 0:
        words = answer["err"].strip().splitlines() or ["it printed nothing"]
        return Torch(error=f"gave no answer ({words[-1][:_LONGEST]})")
    try:
        about = json.loads(answer["out"])
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict):
        return Torch(error="gave an answer that cannot be read")
    if error := about.get("error"):
        return Torch(error=str(error)[:_LONGEST])
    values = {name: about[name] for name in _FIELDS if about.get(name) is not None}
    read = raw.fact(Torch, f"torch of {python}", values)
    if read is None or read.version is None:
        return Torch(error="says nothing of its torch's version")
    return read
