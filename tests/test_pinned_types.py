"""Check that a reference or baseline with a value of a wrong type is refused in one sentence or read correctly."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.record import references
from fleetmark.record.diagnosis import baselines
from tests.commands import run
from tests.fleets import older_baseline
from tests.records import GCC, MCF, record

WRONG: tuple[Any, ...] = (True, "x", -1, None, [], {}, [[1]], {"a": [{}]}, 10**400, float("nan"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pinned")
    hosts = {"h1": {"gen": "old"}, "h2": {"gen": "old"}}
    record(root, "c1", hosts, {(h, b): [10.0, 10.5, 11.0] for h in hosts for b in (GCC, MCF)})
    older_baseline(root, "b")
    run(root, "reference", "save", "old", "--from", "gen=old")
    return root


def places(doc: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a document; for lists, only that of the first item."""
    if path:
        yield path
    items = doc.items() if isinstance(doc, dict) else enumerate(doc[:1]) if isinstance(doc, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


@pytest.mark.parametrize(
    ("folder", "name", "load"),
    [
        ("references", "old", references.load),
        ("baselines", "b", baselines.load),
    ],
)
def test_a_wrong_type_is_one_sentence(root: Path, folder: str, name: str, load: Callable[[Path, str], Any]) -> None:
    file = root / folder / f"{name}.1.json"
    original = file.read_text()
    assert load(root, name)
    try:
        for path in places(json.loads(original)):
            for wrong in WRONG:
                doc = copy.deepcopy(json.loads(original))
                part = doc
                for key in path[:-1]:
                    part = part[key]
                part[path[-1]] = wrong
                file.write_text(json.dumps(doc))
                try:
                    load(root, name)
                except FleetmarkError as error:
                    assert "\n" not in str(error), (path, wrong)
                    assert str(error).startswith(f"{file}: "), (path, wrong)
    finally:
        file.write_text(original)


@pytest.mark.parametrize(
    ("key", "wrong"), [("traits", True), ("names", "h1"), ("hosts", "2"), ("benchmarks", {}), ("by", 1)]
)
def test_a_references_types_are_checked_before_it_is_used(root: Path, key: str, wrong: object) -> None:
    file = root / "references" / "old.1.json"
    original = file.read_text()
    file.write_text(json.dumps(json.loads(original) | {key: wrong}))
    try:
        with pytest.raises(FleetmarkError, match=rf"damaged \({key}.*save the reference again"):
            references.load(root, "old")
    finally:
        file.write_text(original)
