"""Read a plan that ``fleetmark plan`` wrote as JSON: its question and its decisions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import TypeAdapter, ValidationError

from fleetmark import __version__
from fleetmark.base.bounded import read_bytes
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.yaml import names_yaml
from fleetmark.planner.capacity.best import STOCK, USE
from fleetmark.planner.capacity.checks import check
from fleetmark.planner.capacity.ledger import Ledger
from fleetmark.planner.capacity.question import Plan, Question

SCHEMA = 1  # version of the JSON form of plans
MAX_BYTES = 1 << 28
MAX_NUMBER = 1e18


def read(file: Path) -> tuple[Question, Plan]:
    """Return the question and the plan of a JSON file.

    Raise FleetmarkError if the file is not a saved plan, if another version of Fleetmark wrote it, or if it says that
    no plan was found.
    """
    if not file.is_file():
        raise FleetmarkError(f"{file}: no such file; `fleetmark plan QUESTION -o {file}` writes a plan there")
    try:
        text = read_bytes(file, MAX_BYTES, "a plan is smaller")
        doc = json.loads(text, parse_int=_whole, parse_float=_fraction, parse_constant=_fraction)
    except (ValueError, RecursionError) as error:
        raise FleetmarkError(
            f"{file}: is not a plan in JSON; `fleetmark plan QUESTION -o plan.json` writes one"
        ) from error
    if not (isinstance(doc, dict) and isinstance(doc.get("question"), dict) and "plan" in doc):
        raise FleetmarkError(f"{file}: is JSON, but not a plan; `fleetmark plan QUESTION -o plan.json` writes one")
    source = doc["question"].get("source")
    writer = str(source.get("fleetmark", "")) if isinstance(source, dict) else ""
    again = FleetmarkError(
        f"{file}: is a plan of another version of Fleetmark ({writer[:40] or 'unknown'}; this is {__version__}); "
        "plan it again"
    )
    if doc.get("schema") != SCHEMA or set(doc["question"]) - {f.name for f in fields(Question)}:
        raise again
    if doc["plan"] is None:
        raise FleetmarkError(
            f"{file}: contains no feasible plan, so there are no purchases to review; relax its limits first"
        )
    try:
        question = _question(doc["question"])
        with np.errstate(all="ignore"):
            plan = _plan(doc["plan"], question)
            wrong = check(question, plan)
    except (ValidationError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise again from error
    if wrong:
        raise FleetmarkError(
            f"{file}: its plan does not match its question: {wrong[0]}; edit only the question, and plan again"
        )
    return question, plan


def _fraction(text: str) -> float:
    """Return a number. Raise ValueError if it is not finite, or implausibly large for a plan."""
    value = float(text)
    if not abs(value) <= MAX_NUMBER:
        raise ValueError(f"{text[:40]} is out of range")
    return value


def _whole(text: str) -> int:
    return int(text) if _fraction(text) else 0


def _question(doc: Mapping[str, Any]) -> Question:
    number = {name: t for t, name in enumerate(doc["periods"])}

    def numbered(part: Mapping[str, Any], key: str) -> dict[str, Any]:
        return {**part, key: None if part[key] is None else number[part[key]]}

    sites = {
        k: {**site, "windows": None if site["windows"] is None else [number[t] for t in site["windows"]]}
        for k, site in doc["sites"].items()
    }
    changed = {
        **doc,
        "fleet": [numbered(c, "arrives") for c in doc["fleet"]],
        "supply": [numbered(s, "period") for s in doc["supply"]],
        "sites": sites,
        "skus": {
            s: {**sku, "worth": {w: _worth(v) for w, v in sku["worth"].items()}} for s, sku in doc["skus"].items()
        },
        "workloads": {w: _reasoned(work) for w, work in doc["workloads"].items()},
    }
    question = TypeAdapter(Question).validate_python(_immutable(changed))
    if set(question.carbon_by_year) - set(question.year_names):
        raise ValueError("a limit on carbon in a year without a period")
    return question


def _immutable(value: Any) -> Any:
    """Return a document with tuples instead of lists."""
    if isinstance(value, Mapping):
        return {key: _immutable(part) for key, part in value.items()}
    return tuple(map(_immutable, value)) if isinstance(value, list | tuple) else value


def _worth(doc: Mapping[str, Any]) -> dict[str, Any]:
    """Return a worth with infinite degrees of freedom in place of null, because JSON cannot represent infinity."""
    origin = doc.get("origin")
    if origin is not None and names_yaml(origin["mix"]):
        raise ValueError("a mix is not a file here")
    return {**_finite(_reasoned(doc)), "origin": None if origin is None else _finite(origin)}


def _finite(doc: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in doc.items() if not (key == "df" and value is None)}


def _reasoned(doc: Mapping[str, Any]) -> dict[str, Any]:
    return {("reason" if key == "why" else key): value for key, value in doc.items()}


def _plan(doc: Mapping[str, Any], question: Question) -> Plan:
    number = {name: t for t, name in enumerate(question.periods)}
    stock = _grid(question, doc["stock"], number)
    use = pd.DataFrame(list(_use(doc["use"], number)), columns=USE).astype(
        {"sku": str, "site": str, "workload": str, "period": int, "servers": float, "working": float}
    )
    return Plan(
        stock=stock,
        use=use,
        costs=Ledger(question, stock, use).costs,
        objective=float(doc["objective"]),
        bound=float(doc["bound"]),
        gap=float(doc["gap"]),
        seconds=float(doc["seconds"]),
        margin={w: tuple(map(float, factors)) for w, factors in doc["margin"].items()},
        stopped=bool(doc["stopped"]),
    )


def _grid(question: Question, rows: list[Mapping[str, Any]], number: Mapping[str, int]) -> pd.DataFrame:
    """Return the stock with a row for each SKU, site and period, including the zeros that the file omits."""
    keys = [(s, k, t) for s in question.skus for k in question.sites for t in range(len(question.periods))]
    known = {(str(r["sku"]), str(r["site"]), number[r["period"]]): r for r in rows}
    if not set(known) <= set(keys):
        raise KeyError("stock of an unknown SKU or site")
    names = STOCK[3:]
    figures = np.array([[float(known[key][n]) if key in known else 0.0 for n in names] for key in keys])
    frame = pd.DataFrame(keys, columns=STOCK[:3])
    for i, name in enumerate(names):
        frame[name] = figures[:, i] if name.endswith("_w") else figures[:, i].astype(np.int64)
    return frame


def _use(rows: list[Mapping[str, Any]], number: Mapping[str, int]) -> Iterator[tuple[object, ...]]:
    for r in rows:
        servers = float(r["of"])
        shares = (servers * r["share"], servers * r["share_working"])
        yield r["sku"], r["site"], r["workload"], number[r["period"]], *shares
