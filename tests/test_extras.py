"""What needs an extra says which one, and everything else works without any."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from fleetmark.base.errors import FleetmarkError, required
from tests import records
from tests.records import IOPS, NULL, TRIAD

pytestmark = pytest.mark.job
HOSTS = {f"{gen}{n}": {"gen": gen} for gen in ("old", "new") for n in range(4)}
COMPARE = ("compare", "-b", "gen=old", "-c", "gen=new")
ROOT = Path(__file__).parents[1]
EXTRAS = ("vl_convert", "weasyprint", "statsmodels", "s3fs", "ibis", "pyspark", "botocore", "fontTools", "pydyf")
# A process in which no package of an extra can be imported or found, as in the base installation.
WITHOUT = f"""
import sys
class Missing:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {EXTRAS}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.partition(".")[0] in {EXTRAS} else found(name, *rest)
"""


def base(code: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a process without the packages of extras."""
    words = [sys.executable, "-c", WITHOUT + code]
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
    )


def verb(*words: str) -> str:
    return f"sys.argv = {['fleetmark', *words]!r}\nfrom fleetmark.cli import main\nmain()"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-test, run and reported with the base installation alone."""
    folder = tmp_path_factory.mktemp("base")
    done = base(verb("run", "--suite", "selftest"), folder)
    assert done.returncode == 0, done.stderr
    rng = np.random.default_rng(1)
    measured = {
        (host, bench): list(1e9 * np.exp(rng.normal(0, 0.1, 5))) for host in HOSTS for bench in (TRIAD, IOPS, NULL)
    }
    records.record(folder / "fleetmark-results", "c1", HOSTS, measured)
    return folder


def test_run_report_and_compare_need_no_extra(campaign: Path) -> None:
    for words in (
        ("report", "last", "--html", "page.html", "--xlsx", "book.xlsx"),
        ("report", "last", "--format", "json"),
        ("report", "last", "--format", "csv"),
        (*COMPARE, "--html", "compared.html"),
    ):
        done = base(verb(*words), campaign)
        assert done.returncode == 0 and "pip install" not in done.stderr, (words, done.stderr)
    assert "This chart needs vl-convert: pip install" in (campaign / "compared.html").read_text()
    assert (campaign / "book.xlsx").read_bytes().startswith(b"PK")


def test_what_needs_an_extra_names_it(campaign: Path) -> None:
    done = base(verb("report", "last", "--pdf", "page.pdf"), campaign)
    assert done.returncode == 2 and not (campaign / "page.pdf").exists()
    assert done.stderr.strip().endswith("a PDF needs WeasyPrint: pip install 'fleetmark[pdf]'")
    done = base(verb("campaigns", "--results", "s3://bucket/path"), campaign)
    assert done.returncode == 2
    assert "an object store needs s3fs: pip install 'fleetmark[stores]'" in " ".join(done.stderr.split())
    done = base(
        "from fleetmark.base.errors import FleetmarkError\nfrom fleetmark.planner.capacity.demand.forecast import forecast\n"
        "try:\n    forecast([1.0] * 12, 3)\nexcept FleetmarkError as error:\n    print(error)",
        campaign,
    )
    assert done.stdout.strip() == "a forecast from past use needs statsmodels: pip install 'fleetmark[plan]'"


def test_spark_names_its_extra(campaign: Path, tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = base(verb(*COMPARE), campaign, FLEETMARK_ENGINE="spark", PATH=path)
    assert "Spark needs Ibis: pip install 'fleetmark[spark]'" in " ".join(done.stderr.split())


def test_every_extra_that_is_named_exists() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    with pytest.raises(FleetmarkError, match=r"^a test needs nosuch: pip install 'fleetmark\[x\]'$"):
        required("nosuch.module", "x", "a test")
    for source in (ROOT / "fleetmark", ROOT / "reports", ROOT / "planner"):
        for file in source.rglob("*.py"):
            for part in file.read_text("utf-8").split('required("')[1:]:
                assert part.split('"')[2] in declared, f"{file}: no such extra"
