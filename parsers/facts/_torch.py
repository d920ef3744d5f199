"""Read the output of ``playbooks/agent/interpreter.py``: Pythons with torch (``--check``) and images (``--image``)."""

from __future__ import annotations

import json
from typing import Any

from fleetmark.base.facts import Container, Torch
from fleetmark.parsers.facts._raw import Raw

_LONGEST = 300  # maximum characters of an error or a name
_MOST = 16  # maximum number of Pythons or images


def torch(raw: Raw) -> dict[str, Torch]:
    """Return the torch of each named Python; a Python without an answer has the reason as its ``error``."""
    return {python: _of(raw, python, answer) for python, answer in list(raw.table("torch").items())[:_MOST]}


def containers(raw: Raw) -> dict[str, Container]:
    """Return the facts of each named image; an image that cannot be used has the reason as its ``error``."""
    images = list(raw.table("containers").items())[:_MOST]
    return {image: _image(raw, image, answer) for image, answer in images}


def _of(raw: Raw, python: str, answer: Any) -> Torch:
    reply = _about(answer)
    if isinstance(reply, str):
        return Torch(error=reply)
    values = {name: reply[name] for name in Torch.model_fields if reply.get(name) is not None}
    read = raw.fact(Torch, f"torch of {python}", values)
    if read is None or read.version is None:
        return Torch(error="does not report the version of its torch")
    return read


def _image(raw: Raw, image: str, answer: Any) -> Container:
    reply = _about(answer)
    if isinstance(reply, str):
        return Container(error=reply)
    values = {name: str(reply[name]) for name in Container.model_fields if reply.get(name) is not None}
    return raw.fact(Container, f"image {image}", values) or Container(error="gave an unreadable answer")


def _about(answer: Any) -> dict[str, Any] | str:
    """Return the facts that the program reports, or the problem that it reports."""
    if answer["rc"] != 0:
        words = answer["err"].strip().splitlines() or ["it printed nothing"]
        return f"did not answer ({words[-1][:_LONGEST]})"
    try:
        reply = json.loads(answer["out"])
    except (ValueError, RecursionError):
        reply = None
    if not isinstance(reply, dict):
        return "gave an unreadable answer"
    return str(reply["error"])[:_LONGEST] if reply.get("error") else reply
