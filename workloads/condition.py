"""Evaluate conditions on hosts in suites, such as ``where: has_gpu and not has_rdma``: expressions over host facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import TemplateSyntaxError, meta, nodes
from pydantic import BaseModel

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.facts import Facts
from fleetmark.workloads.template import environment, evaluate

_SHORT: Mapping[str, Callable[[Facts], bool]] = {
    "has_gpu": lambda facts: bool(facts.gpus),
    "has_nvidia": lambda facts: _has(facts, "nvidia"),
    "has_amd": lambda facts: _has(facts, "amd"),
    "has_ascend": lambda facts: _has(facts, "huawei"),
    "has_rdma": lambda facts: bool(facts.rdma),
    "is_intel": lambda facts: facts.cpu.vendor == "GenuineIntel",
    "is_root": lambda facts: facts.root,
}
_NAMES = (*_SHORT, "facts")
_GLOBALS = frozenset({"KiB", "MiB", "GiB"})


def _has(facts: Facts, vendor: str) -> bool:
    return any(gpu.vendor == vendor for gpu in facts.gpus)


def holds(condition: str, facts: Facts, place: str) -> bool:
    """Return whether a host with ``facts`` meets the condition; an empty condition is always met.

    Raise FleetmarkError naming ``place`` if the condition needs a value that is missing from the host's facts.
    """
    if not condition:
        return True
    context = {name: test(facts) for name, test in _SHORT.items()} | {"facts": facts}
    return bool(evaluate(f"{{{{ {condition} }}}}", context, f"{place}: where"))


def check(condition: str, place: str) -> None:
    """Raise FleetmarkError naming ``place`` if the condition is malformed or uses an unknown fact."""
    if not condition:
        return
    if "{{" in condition or "}}" in condition:
        raise FleetmarkError(
            f"{place}: where: {condition!r} contains braces; write only the expression, such as has_gpu"
        )
    try:
        tree = environment().parse(f"{{{{ {condition} }}}}")
    except TemplateSyntaxError as error:
        raise FleetmarkError(f"{place}: where: {condition!r} is not a valid expression ({error.message})") from error
    unknown = meta.find_undeclared_variables(tree) - set(_NAMES) - _GLOBALS
    if unknown:
        name, names = min(unknown), ", ".join(_SHORT)
        raise FleetmarkError(
            f"{place}: where: unknown fact {name!r}{suggest(name, list(_NAMES))}; use {names}, or facts.NAME"
        )
    for attribute in tree.find_all(nodes.Getattr):
        _check_path(attribute, place)


def _check_path(attribute: nodes.Getattr, place: str) -> None:
    """Raise FleetmarkError if an expression such as ``facts.cpu.NAME`` refers to a field that does not exist."""
    path: list[str] = []
    node: nodes.Node = attribute
    while isinstance(node, nodes.Getattr):
        path.insert(0, node.attr)
        node = node.node
    if not isinstance(node, nodes.Name) or node.name != "facts":
        return
    model: Any = Facts
    for depth, name in enumerate(path):
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            return  # a method of a plain value, such as str.startswith
        field = model.model_fields.get(name)
        if field is None and not isinstance(getattr(model, name, None), property):
            known = ".".join(["facts", *path[:depth]])
            raise FleetmarkError(
                f"{place}: where: unknown fact {known}.{name}{suggest(name, model.model_fields)}; "
                f"{known} has {', '.join(model.model_fields)}"
            )
        model = field.annotation if field else None


__all__ = ["check", "holds"]
