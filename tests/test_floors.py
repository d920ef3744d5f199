"""Test the layers of the packages: no imports of higher layers or test modules, no import cycles, and small modules.

The number of modules per folder is limited, too.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from fleetmark.hosts.agent import OF_NODE, OF_START
from tests.longest import LONGEST

HOUSE = Path(__file__).parents[1]
FLOORS = (
    ("fleetmark", "fleetmark/base"),  # fleetmark/__init__.py itself: the version
    ("workloads", "parsers", "planner"),
    ("fleetmark/hosts", "fleetmark/record"),
    ("fleetmark/campaign", "fleetmark/demand"),
    ("reports",),
    ("fleetmark/verbs",),
    ("fleetmark/cli",),
    ("fleetmark/api",),
)
HEIGHT = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
ROOMS = ("fleetmark", "workloads", "parsers", "planner", "reports")
OUTSIDE = ("tests", "benchmarks")
PRODUCT = (*ROOMS, "playbooks", "benchmarks")
MAX_MODULES, MAX_LINES = 25, 500  # Python modules per folder, lines per module


def modules(rooms: Iterable[str] = ROOMS) -> dict[str, Path]:
    """Return every module of the project in these folders by its dotted name."""
    files = sorted(p.relative_to(HOUSE) for room in rooms for p in (HOUSE / room).rglob("*.py"))
    return {_dotted(p): p for p in files}


def _dotted(file: Path) -> str:
    """Return the name by which ``file`` is imported: all packages of the product are below ``fleetmark``."""
    dotted = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
    return f"fleetmark.{dotted}" if file.parts[0] in ROOMS[1:] else dotted


def room(file: Path) -> str:
    if file.name == "__main__.py":
        return "fleetmark/cli"
    return "/".join(file.parts[:2]) if file.parts[0] == "fleetmark" and len(file.parts) > 2 else file.parts[0]


def imported(text: str, paths: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """Yield the line of each import in ``text``, and the module of the project that it names."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            named = [(a.name, "") for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: imports here are absolute"
            named = [(str(node.module), a.name) for a in node.names]
        else:
            continue
        for module, name in named:
            inner = f"{module}.{name}"
            if inner in paths or module in paths:
                yield node.lineno, inner if inner in paths else module


def faults(texts: dict[str, str], paths: dict[str, Path]) -> list[str]:
    """Return the violations of the layers: imports of higher layers, and an import cycle if there is one."""
    up, graph = [], {}
    for module, text in texts.items():
        lines = [(line, other) for line, other in imported(text, paths) if other != module]
        graph[module] = {other for _, other in lines}
        for line, other in lines:
            above, here = room(paths[other]), room(paths[module])
            if HEIGHT[above] > HEIGHT[here]:
                up.append(f"{paths[module]}:{line} imports {other}: {above} stands above {here}")
    return [*up, *circles(graph)]


def circles(graph: dict[str, set[str]]) -> list[str]:
    """Return a sentence that names an import cycle if there is one."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [f"imports go round: {' -> '.join(reversed(error.args[1]))}"]
    return []


def borrowed(module: str, text: str, paths: dict[str, Path]) -> list[str]:
    """Return the imports of ``module`` that name a test module."""
    return [
        f"{paths[module]}:{line} imports {other}: a helper belongs into a module of its own"
        for line, other in imported(text, paths)
        if paths[other].name.startswith("test_")
    ]


def test_nothing_points_up_and_nothing_goes_round() -> None:
    paths = modules()
    assert len(paths) > 150
    assert {room(p) for p in paths.values()} == set(HEIGHT)
    assert faults({m: (HOUSE / p).read_text("utf-8") for m, p in paths.items()}, paths) == []


def agent_graph(texts: dict[str, str]) -> dict[str, set[str]]:
    """Return the agent's modules, which share one folder on a host, and the modules that each of them imports."""
    paths = {name: Path(f"{name}.py") for name in texts}
    return {name: {other for _, other in imported(text, paths)} for name, text in texts.items()}


def test_no_imports_of_the_agent_go_round_and_what_starts_it_comes_in_order() -> None:
    texts = {file.stem: file.read_text("utf-8") for file in (HOUSE / "playbooks" / "agent").rglob("*.py")}
    graph = agent_graph(texts)
    assert graph["outputs"] == {"steps"} and "runner" in graph["job"]
    assert circles(graph) == []
    for order in (OF_START, OF_NODE):
        for name, before in ((name, order[:n]) for n, name in enumerate(order)):
            assert graph[name] - {"runner"} <= set(before), f"{name} is executed before what it imports"


def test_no_imports_of_tests_and_benchmarks_go_round() -> None:
    paths = modules(OUTSIDE)
    texts = {module: (HOUSE / path).read_text("utf-8") for module, path in paths.items()}
    graph = {m: {other for _, other in imported(text, paths) if other != m} for m, text in texts.items()}
    assert graph["benchmarks.reports"] >= {"benchmarks.comparison", "benchmarks.measuring"}
    assert circles(graph) == []


def test_a_fault_is_seen_wherever_the_import_stands() -> None:
    paths = {
        f"fleetmark.{m}": Path("fleetmark", *m.split(".")).with_suffix(".py") for m in ("base.a", "base.b", "cli.c")
    }
    texts = dict.fromkeys(paths, "")
    assert faults(texts, paths) == []
    texts["fleetmark.base.a"] = "def later():\n    from fleetmark.cli import c\n"
    (up,) = faults(texts, paths)
    assert up == "fleetmark/base/a.py:2 imports fleetmark.cli.c: fleetmark/cli stands above fleetmark/base"
    texts["fleetmark.base.a"] = "import fleetmark.base.b\n"
    texts["fleetmark.base.b"] = "def later():\n    from fleetmark.base.a import name\n"
    (circle,) = faults(texts, paths)
    assert circle.startswith("imports go round: ") and "fleetmark.base.a" in circle and "fleetmark.base.b" in circle


def test_no_helper_is_imported_from_a_test_module() -> None:
    paths = modules(OUTSIDE)
    assert {file.parts[0] for file in paths.values()} == set(OUTSIDE)
    assert [fault for m, p in paths.items() for fault in borrowed(m, (HOUSE / p).read_text("utf-8"), paths)] == []


def test_a_borrowed_helper_is_seen_however_it_is_imported() -> None:
    paths = {m: Path(*m.split(".")).with_suffix(".py") for m in ("tests.a", "tests.test_b", "tests.c.test_d")}
    assert borrowed("tests.a", "import tests.a\nfrom tests.a import test_of\n", paths) == []
    for text in (
        "from tests.test_b import name",
        "from tests import test_b",
        "import tests.test_b as b",
        "def later():\n    from tests.c.test_d import name",
    ):
        (fault,) = borrowed("tests.a", text, paths)
        assert re.match(r"tests/a\.py:[12] imports tests\.(test_b|c\.test_d): ", fault)


def test_the_files_that_begin_first_are_there() -> None:
    assert [name for name in LONGEST if not (HOUSE / "tests" / name.removeprefix("tests/")).is_file()] == []


def test_modules_and_folders_of_the_product_stay_small() -> None:
    files = [HOUSE / path for path in modules(PRODUCT).values()]
    assert {path.parts[len(HOUSE.parts)] for path in files} == set(PRODUCT)
    counts = Counter(path.parent.relative_to(HOUSE) for path in files)
    assert {str(folder): n for folder, n in counts.items() if n > MAX_MODULES} == {}
    lengths = {str(path.relative_to(HOUSE)): path.read_text("utf-8").count("\n") for path in files}
    assert {name: n for name, n in lengths.items() if n > MAX_LINES} == {}
