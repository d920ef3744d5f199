"""Test parsers from outside the package: their process, their limits and their return values."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from fleetmark import parsers
from fleetmark.base import extensions
from fleetmark.base.errors import FleetmarkError, ParseError
from fleetmark.parsers.kit import foreign, isolated
from fleetmark.parsers.kit.foreign import Foreign

WHOLE = """
import re
from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed

def parse(raw, command=()):
    match = re.search(rb"rate: (\\d+)", raw)
    if not match:
        raise ParseError("mine", "a line rate:", line=2, got="nothing")
    return Parsed("mine", (Measurement("mine", "c", "rate", float(match[1]), "1/s", Better.HIGHER, labels={"n": "1"}),),
                  version=" ".join(command), notes=("a note",))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a workload folder with the parser ``mine``, selected through the environment."""
    (tmp_path / "acme" / "parsers").mkdir(parents=True)
    monkeypatch.setenv(extensions.VARIABLE, str(tmp_path / "acme"))
    write(tmp_path / "acme", WHOLE)
    return tmp_path / "acme"


def write(folder: Path, text: str) -> None:
    (folder / "parsers" / "mine.py").write_text(text)


def failure(raw: bytes = b"rate: 7") -> str:
    with pytest.raises(FleetmarkError) as error:
        parsers.parse_file("mine", io.BytesIO(raw))
    assert "\n" not in str(error.value)
    return str(error.value)


def test_it_reads_as_ours_do(folder: Path) -> None:
    assert "mine" in parsers.tools() and parsers.path_of("mine") == folder / "parsers" / "mine.py"
    parsed = parsers.parse_file("mine", io.BytesIO(b"rate: 7"), ("mine", "-x"))
    ((measurement),) = parsed.measurements
    assert (measurement.value, measurement.unit, dict(measurement.labels)) == (7.0, "1/s", {"n": "1"})
    assert (parsed.version, parsed.notes) == ("mine -x", ("a note",))
    with pytest.raises(ParseError, match="mine line 2: expected a line rate:, got 'nothing'"):
        parsers.parse("mine", b"")


def test_a_package_may_import_its_own_modules(folder: Path) -> None:
    (folder / "parsers" / "mine.py").unlink()
    package = folder / "parsers" / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("from .inner import parse\n")
    (package / "inner.py").write_text(WHOLE)
    assert parsers.parse("mine", b"rate: 8").measurements[0].value == 8


def test_its_code_never_runs_in_this_process(folder: Path, tmp_path: Path) -> None:
    write(folder, f"import os\nPID = os.getpid()\n{WHOLE}".replace("float(match[1])", "float(os.getppid())"))
    assert parsers.parse("mine", b"rate: 7").measurements[0].value == os.getpid()


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("    return {}['x']", "raised KeyError on line 2: 'x'"),
        ("    raise SystemExit(3)", "raised SystemExit on line 2: 3"),
        ("    return 7", "returned int instead of Parsed"),
        ("    import os; os.kill(os.getpid(), 9)", "was killed by signal 9 (SIGKILL)"),
        ("    import os; os._exit(4)", "exited with status 4 without measurements"),
        ("    while True: print('x' * 65536)", "printed more than 1 MiB"),
        ("    return bytearray(8 << 30)", "needs more than 2 GiB of memory"),
        ("    return (", "raised SyntaxError on line 2: '(' was never closed"),
    ],
)
def test_each_way_to_fail_is_one_sentence(folder: Path, body: str, problem: str) -> None:
    write(folder, f"def parse(raw, command=()):\n{body}\n")
    prefix = f"mine: its parser acme/parsers/mine.py {problem}; correct it, then parse the raw files again: "
    assert failure() == f"{prefix}fleetmark rebuild CAMPAIGN"


def test_a_file_without_a_parser_says_what_is_missing(folder: Path) -> None:
    write(folder, "x = 1\n")
    assert "does not define parse(raw, command=())" in failure()
    write(folder, "def parse(text):\n    return 7\n")
    assert "has parse(text): write parse(raw: bytes, command=())" in failure()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("float(match[1])", "float('nan')", "nan is not a measurement"),
        ('"1/s"', '"MB/s"', "'MB/s' is not a base unit"),
    ],
)
def test_a_figure_that_is_none_is_refused_where_it_is_made(folder: Path, old: str, new: str, problem: str) -> None:
    write(folder, WHOLE.replace(old, new))
    assert problem in failure()


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (
            '{"parsed": {"tool": "mine", "measurements": [{"value": 1}]}}',
            "returned invalid measurements: measurements.0",
        ),
        ('{"parsed": 7}', "returned invalid measurements"),
        ("{", "exited with status 0 without measurements"),
    ],
)
def test_what_it_writes_to_the_reply_itself_is_held_against_the_model(folder: Path, reply: str, problem: str) -> None:
    body = f"    import os\n    os.write(3, {reply.encode()!r})\n    os._exit(0)\n"
    write(folder, f"def parse(raw, command=()):\n{body}")
    assert problem in failure()


def test_figures_that_cannot_be_are_invalid_as_in_ours(folder: Path) -> None:
    parsed = parsers.parse("mine", b"rate: " + b"9" * 30)
    assert "which is impossible" in (parsed.invalid or "")


def test_one_that_hangs_is_ended_with_what_it_started_and_not_run_for_ever(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "pid"
    os.mkfifo(pid)
    reader = os.open(pid, os.O_RDONLY | os.O_NONBLOCK)
    child = (
        f"import subprocess\n    with open({str(pid)!r}, 'w') as out: subprocess.Popen(['sleep', '1000'], stdin=out)"
    )
    write(folder, f"def parse(raw, command=()):\n    {child}\n    while True: pass\n")
    parser = Foreign("mine", folder / "parsers" / "mine.py", time_s=2.0)
    monkeypatch.setattr(foreign, "_slow", type(foreign._slow)())
    for _ in range(3):
        with pytest.raises(FleetmarkError, match="took longer than 2 s; correct it"):
            parser.parse(b"")
    with pytest.raises(FleetmarkError, match="took longer than 2 s on 3 outputs, so it was not run again"):
        parser.parse(b"")
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b"", "sleep was stopped too, so no process holds the pipe open"
    write(folder, WHOLE)
    assert parser.parse(b"rate: 7").measurements[0].value == 7, "a corrected parser runs again"


def test_it_finds_no_secret_in_its_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_TOKEN", "secret")
    write(folder, "import os\ndef parse(raw, command=()):\n    raise ValueError(sorted(os.environ))\n")
    assert "ACME_TOKEN" not in failure() and "PATH" in failure()


def test_it_writes_no_file(folder: Path, tmp_path: Path) -> None:
    write(folder, f"def parse(raw, command=()):\n    open({str(tmp_path / 'x')!r}, 'wb', 0).write(b'x')\n")
    assert "raised OSError on line 2: [Errno 27] File too large" in failure()


def test_limits_are_set_in_the_process(folder: Path) -> None:
    write(
        folder, "import resource as r\ndef parse(raw, command=()):\n    raise ValueError(r.getrlimit(r.RLIMIT_AS)[0])\n"
    )
    assert str(isolated.MEMORY_BYTES) in failure()


def test_a_name_that_is_used_twice_is_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "parsers" / "fio.py").write_text(WHOLE)
    with pytest.raises(
        FleetmarkError, match=r"the parser fio: two files have this name, .*fio/__init__\.py and .*acme/"
    ):
        parsers.tools()
