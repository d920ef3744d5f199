"""Test YAML from outside: all readers use one loader, which bounds size, depth and aliases before it builds values."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from fleetmark.base import yaml as door
from fleetmark.base.errors import FleetmarkError
from fleetmark.demand import yaml as demand_yaml

HOUSE = Path(__file__).parents[1]
ROOMS = ("fleetmark", "workloads", "parsers", "planner", "reports")

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{key}: &{key} [{', '.join([f'*{before}'] * 10)}]\n" for before, key in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {x: 1, y: 2}\n" + "".join(
    f"{key}: &{key} {{<<: [{', '.join([f'*{before}'] * 10)}]}}\n"
    for before, key in zip("abcdefgh", "bcdefghi", strict=True)
)
COLLIDING = [n * (2**61 - 1) for n in range(1, 20_001)]  # all have the same hash in Python
HOSTILE = {
    "month 13": ("day: 2027-13-45\n", "month must be in 1..12"),
    "year 0": ("day: 0000-01-01\n", "year 0 is out of range"),
    "0b_": ("n: 0b_\n", "0b_"),
    "0x_": ("n: 0x_\n", "0x_"),
    "5,000 digits": (f"n: {'9' * 5000}\n", "characters"),
    "a long sexagesimal": (f"n: 1{':10' * 40_000}\n", "characters"),
    "keys that collide": ("".join(f"{key}: 1\n" for key in COLLIDING), "as a key; put it in quotes"),
    "merged keys that collide": (f"<<: {{{', '.join(f'{key}: 1' for key in COLLIDING)}}}\n", "put it in quotes"),
    "an alias as a long key": (f"a: &a {2**61}\n*a : 1\n", "an integer of 19 characters as a key"),
    "no integer": ("n: !!int x\n", "'x'"),
    "an empty integer": ("n: !!int ''\n", "''"),
    "no truth": ("n: !!bool x\n", "'x'"),
    "no moment": ("n: !!timestamp x\n", "'x'"),
    "a tag of Python": ("n: !!python/object/apply:os.system [id]\n", "python/object"),
    "a set": ("n: !!set {a}\n", "!!set"),
    "bytes": ("n: !!binary aGk=\n", "!!binary"),
    "no character": ('n: "\\UFFFFFFFF"\n', "not YAML"),
    "half a character": ('n: "\\ud800"\n', "not YAML"),
    "a NUL": ("n: \0\n", "not YAML"),
    "100,000 flow sequences": ("[" * 100_000, "levels"),
    "100,000 flow mappings": ("{a: " * 100_000, "levels"),
    "100,000 block sequences": ("- " * 100_000, "levels"),
    "100,000 complex keys": ("? " * 100_000, "levels"),
    "aliases within aliases": (LAUGHS, "aliases"),
    "merges within merges": (MERGES, "aliases"),
    "an alias within itself": ("a: &a [*a]\n", "refers to itself"),
    "a merge of itself": ("a: &a {<<: *a}\n", "refers to itself"),
    "an alias before its anchor": ("a: *b\nb: &b 1\n", "undefined alias"),
    "a long chain of merges": (
        "a: [[[&m0 {x: 1}, " + ", ".join(f"&m{n} {{<<: *m{n - 1}}}" for n in range(1, 550)) + "]]]\nb: {<<: *m549}\n",
        "not YAML",
    ),
    "a key of a list": ("? [a]\n: 1\n", "line 1"),
    "two documents": ("a: 1\n---\na: 2\n", "document"),
    "a key twice": ("a: 1\na: 2\n", "repeated"),
    "no keys": ("- 1\n", "keys and values"),
    "nothing": ("", "keys and values"),
    "too large": ("a: x\n" + "#" * door.LARGEST_BYTES, "MiB"),
    "too many values": ("a: [" + "1," * door.MOST_NODES + "]\n", "values"),
}
READERS = {
    "read_yaml": "from fleetmark.base.yaml import read_yaml as read",
    "demand": "from fleetmark.demand.yaml import read",
}
# Reads each file on its command line and prints the outcome, then its peak memory in KiB.
LOOP = """
import json, re, resource, sys
from pathlib import Path
from fleetmark.base.errors import FleetmarkError
{reader}
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
for name in sys.argv[1:]:
    try:
        print(json.dumps(["read", repr(read(Path(name)))[:100]]), flush=True)
    except FleetmarkError as error:
        print(json.dumps(["refused", str(error)]), flush=True)
    except Exception as error:
        print(json.dumps(["traceback", repr(error)[:200]]), flush=True)
peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]
print(json.dumps(["peak", int(peak)]))
"""


@pytest.mark.parametrize("reader", READERS)
def test_hostile_yaml_is_refused_in_a_sentence(reader: str, tmp_path: Path) -> None:
    """Run the reader in a subprocess, because such files can crash the interpreter."""
    files = []
    for n, (text, _) in enumerate(HOSTILE.values()):
        files.append(tmp_path / f"{n}.yml")
        files[-1].write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", LOOP.format(reader=READERS[reader]), *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
        cwd=HOUSE,
    )
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    for (name, (_, part)), reply in zip(HOSTILE.items(), replies, strict=False):
        if reader == "demand" and name == "a key twice":
            continue  # demand files report this as one of their faults
        assert reply[0] == "refused", f"{name}: {reply}"
        assert part in reply[1], f"{name}: {reply}"
        assert "\n" not in reply[1], f"{name}: {reply}"
    assert done.returncode == 0, f"{list(HOSTILE)[len(replies)]}: exit status {done.returncode}"
    assert replies[-1][0] == "peak"
    assert replies[-1][1] < 600_000, f"{replies[-1][1]} KiB"


def test_aliases_and_merges_within_the_bounds_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a.yml"
    file.write_text("base: &b {x: 1, y: [1, 2]}\nnext: {<<: *b, x: 2}\nsame: *b\nday: 2027-01-31\n")
    read = door.read_yaml(file)
    assert read["next"] == {"x": 2, "y": [1, 2]}
    assert read["same"] == {"x": 1, "y": [1, 2]}
    assert read["day"].isoformat() == "2027-01-31"
    assert demand_yaml.read(file).doc["next"] == {"x": 2, "y": [1, 2]}
    file.write_text(f"{10**17}: 1\n'{2**61}': 2\n")
    assert door.read_yaml(file) == {10**17: 1, str(2**61): 2}
    deep = "[" * (door.MOST_LEVELS - 1)
    file.write_text(f"a: {deep}{']' * len(deep)}\n")
    assert door.read_yaml(file)
    file.write_text(f"a: [{deep}{']' * len(deep)}]\n")
    with pytest.raises(FleetmarkError, match=f"more than {door.MOST_LEVELS} levels"):
        door.read_yaml(file)


def test_only_the_door_loads_yaml() -> None:
    """Check that no other module loads YAML, since it would bypass the bounds."""
    names = {
        "load",
        "load_all",
        "safe_load",
        "safe_load_all",
        "full_load",
        "unsafe_load",
        "compose",
        "compose_all",
        "parse",
    }
    readers = []
    for path in (p.relative_to(HOUSE) for room in ROOMS for p in (HOUSE / room).rglob("*.py")):
        tree = ast.parse((HOUSE / path).read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in ("yaml", "ruamel", "ruamel.yaml"):
                readers.append(str(path))
            if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "yaml"):
                continue
            if node.attr in names or node.attr.endswith("Loader"):
                readers.append(str(path))
    assert set(readers) == {"fleetmark/base/yaml.py"}
