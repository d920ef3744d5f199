"""Pass hostile documents to every reader of outside files: expect a value or one error sentence, no traceback."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.yaml import read_yaml
from fleetmark.demand import question, workbook
from fleetmark.demand import yaml as demand_yaml
from fleetmark.demand.csv import Folder
from fleetmark.hosts import plain
from fleetmark.record import imports, profiles, references
from fleetmark.record.diagnosis import baselines
from fleetmark.record.diagnosis.gate import read_rules
from fleetmark.record.values import source
from fleetmark.workloads.suite import load_suite


def packed(name: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr(name, content)
    return out.getvalue()


HEAD = b"machine,benchmark,value,unit\n"
PINNED = {"schema": 1, "name": "x", "version": 1, "created": "now"}
DOCUMENTS: dict[str, bytes] = {
    "empty": b"",
    "spaces": b" \n\t\n",
    "a NUL": b"\0",
    "no text": bytes(range(128, 256)),
    "a byte order mark": b"\xff\xfe",
    "half of a character": b'{"a": "\\ud800"}',
    "a number": b"1",
    "a text": b'"x"',
    "null": b"null",
    "a list": b"[]",
    "a mapping": b"{}",
    "a list of lists": b"[[1, 2], [3]]",
    "duplicate keys": b'{"a": 1, "a": 2}',
    "5,000 digits": b'{"schema": ' + b"9" * 5000 + b"}",
    "a float beyond range": b'{"schema": 1e999}',
    "NaN": b'{"schema": NaN}',
    "brackets": b"[" * 100_000,
    "braces": b'{"a":' * 100_000,
    "block sequences": b"- " * 50_000,
    "aliases": b"a: &a [x, x]\n" + b"".join(b"%c: &%c [*%c, *%c]\n" % (n + 1, n + 1, n, n) for n in range(97, 121)),
    "an alias of itself": b"a: &a {<<: *a}\n",
    "a date": b"day: 2027-13-45\n",
    "a number of YAML": b"n: 0b_\n",
    "a tag": b"a: !!python/object/apply:os.system [id]\n",
    "true everywhere": json.dumps(
        PINNED | dict.fromkeys(["benchmarks", "machines", "hosts", "traits", "values"], True)
    ).encode(),
    "lists everywhere": json.dumps(
        PINNED | {key: [[[]]] for key in ("benchmarks", "machines", "hosts", "records")}
    ).encode(),
    "keys of all readers": b"name: x\ndescription: [1]\nrules: {a: 1}\nworkloads: true\nall: {hosts: [1], vars: 3}\nskus: 1\n",
    "a row of CSV": HEAD + b"h,b,1,GB/s\n",
    "a formula of CSV": HEAD + b'"=cmd|x!A0",-b,1,GB/s\n',
    "infinities of CSV": HEAD + b"h,b,inf,GB/s\nh,c,nan,s\nh,d,1e400,s\n",
    "a quote of CSV": HEAD + b'"h,b,1,GB/s\n',
    "many columns": b",".join(b"c%d" % n for n in range(5_000)) + b"\n",
    "gzip of nothing": gzip.compress(b""),
    "half of gzip": gzip.compress(HEAD * 100)[:-9],
    "a zip": packed("a", b"x"),
    "a workbook of nothing": packed("xl/workbook.xml", b"<x/>"),
    "a workbook of types": packed("[Content_Types].xml", b"<Types>"),
    "Parquet of nothing": b"PAR1PAR1",
    "Parquet of a false footer": b"PAR1" + b"\xff" * 40 + b"\xff\xff\xff\x7fPAR1",
}
PINS = {"references": references.load, "baselines": baselines.load, "profiles": profiles.load}


def pinned(folder: str) -> Callable[[Path], Any]:
    def read(file: Path) -> Any:
        target = file.parent / folder / "x.1.json"
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(file.read_bytes())
        return PINS[folder](file.parent, "x")

    return read


def imported(kind: str) -> Callable[[Path], Any]:
    return lambda file: imports.files(file.parent / "results", kind, [file])


def about_import(file: Path) -> Any:
    place = file.parent / "imports" / "x" / "import.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(file.read_bytes())
    return [(machine.labels, machine.host) for machine in imports.machines(place)]


READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "YAML": ("a.yml", read_yaml),
    "suite": ("a.yml", lambda file: load_suite(str(file))),
    "gate": ("a.yml", read_rules),
    "inventory": ("a.yml", lambda file: plain.read(str(file))),
    "inventory in INI": ("a.ini", lambda file: plain.read(str(file))),
    "demand in YAML": ("a.yml", demand_yaml.read),
    "question": ("a.yml", lambda file: question.read(file, file.parent)),
    "sheet": ("a.csv", lambda file: Folder(file.parent).rows(file.name, ["a"], [])),
    "folder of sheets": ("demand.csv", lambda file: question.read(file.parent, file.parent)),
    "workbook": ("a.xlsx", workbook.read),
    "measurements": ("a.parquet", lambda file: source(file, "c")),
    "import.json": ("a.json", about_import),
    **{f"import {kind}": ("a.json", imported(kind)) for kind in imports._KINDS},
    **{folder: ("a.json", pinned(folder)) for folder in PINS},
}


@pytest.mark.parametrize("reader", READERS)
def test_a_hostile_document_is_a_sentence_or_a_value(reader: str, tmp_path: Path) -> None:
    name, read = READERS[reader]
    for title, content in DOCUMENTS.items():
        folder = tmp_path / title.replace(" ", "-")
        folder.mkdir()
        (folder / name).write_bytes(content)
        try:
            read(folder / name)
        except FleetmarkError as error:
            lines = str(error).splitlines()  # demand files report one line per fault
            assert lines and all(line.strip() for line in lines), title
            assert len(lines) == 1 or reader in ("question", "folder of sheets"), f"{title}: {error}"
        except Exception as error:
            raise AssertionError(f"{title}: {type(error).__name__}: {str(error)[:200]}") from error
