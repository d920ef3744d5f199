"""The recipe of docs/how-to/gate.md on a real Slurm: a node that the gate does not accept is drained, the other works."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.fleet.command import FLEETMARK
from tests.fleet.hosts import Fleet
from tests.fleet.hosts import missing as no_fleet
from tests.fleet.slurm import Cluster, missing
from tests.fleets import campaign, scaled, usual
from tests.records import TRIAD

pytestmark = pytest.mark.fleet

HOUSE = Path(__file__).parents[2]
RECIPE = HOUSE / "scripts/slurm_gate.sh"
RULE = {"name": "bandwidth", "metric": "stream/*/triad", "at_least": "250 GB/s"}


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that all hosts share, with the script of the recipe."""
    if reason := no_fleet() or missing():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="fleetmark-gate-", dir="/var/lib"))
    shutil.copy(RECIPE, folder)
    yield folder
    shutil.rmtree(folder)


def gate(folder: Path, results: Path) -> int:
    words = [FLEETMARK, "gate", str(folder / "rules.yml"), "last", "--results", str(results)]
    words += ["--format", "prometheus", "--output", str(folder / "gate.prom")]
    return subprocess.run(words, check=False, timeout=120).returncode


def test_a_node_that_the_gate_refuses_is_drained(shared: Path, tmp_path: Path) -> None:
    values = usual(("h1", "h2"))
    results = tmp_path / "results"
    campaign(results, values)
    (shared / "rules.yml").write_text(yaml.safe_dump({"rules": [RULE]}))
    assert gate(shared, results) == 0
    script = shared / RECIPE.name
    more = f"HealthCheckProgram={script}\nHealthCheckInterval=1\nProlog={script}\n"
    with Fleet(2, share=[shared]) as fleet, Cluster(fleet, tmp_path, more) as cluster:
        state = "sinfo", "-h", "-N", "-o", "%n %T %E", "-p", "all"
        assert sorted(cluster.ask("srun", "-N2", "hostname").split()) == ["h1", "h2"]
        scaled(values, "h2", TRIAD, 0.8)
        campaign(results, values, name="20260102T000000-x")
        assert gate(shared, results) == 1
        cluster.until(lambda: "h2 drained fleetmark gate" in cluster.ask(*state))
        assert "h1 idle none" in cluster.ask(*state)
        assert cluster.ask("srun", "-N1", "hostname").split() == ["h1"]
        prolog = ["env", "SLURM_JOB_ID=1", "SLURMD_NODENAME=h2", str(script)]
        assert fleet.exec("h2", prolog, check=False).returncode == 1, "where no health check came before the job"


def recipes() -> list[str]:
    """Return the epilog and the prolog of docs/how-to/watch.md."""
    page = (HOUSE / "docs/how-to/watch.md").read_text()
    lines = page.split("## Slurm\n")[1].split("\n## ")[0].splitlines()
    text = "\n".join(line[4:] for line in lines if line.startswith("    ")) + "\n"
    return ["#!/bin/sh\n" + script for script in text.split("#!/bin/sh\n")[1:]]


def test_a_prolog_sends_jobs_to_a_node_that_the_gate_accepts(shared: Path, tmp_path: Path) -> None:
    """First the prolog of docs/how-to/watch.md with a record on each node, then the one of docs/how-to/gate.md."""
    (shared / "rules.yml").write_text(yaml.safe_dump({"rules": [RULE]}))
    values = usual(("h1", "h2"))
    campaign(shared / "h1", values)
    _, text = recipes()
    for path, real in (
        ("/var/lib/fleetmark", f"{shared}/$SLURMD_NODENAME"),
        ("/opt/fleetmark/bin/fleetmark", f"env PYTHONPATH={HOUSE} {sys.executable} -m fleetmark"),
        ("/etc/fleetmark/rules.yml", shared / "rules.yml"),
    ):
        assert path in text
        text = text.replace(path, str(real))
    prolog, state = shared / "prolog.sh", ("sinfo", "-h", "-N", "-o", "%n %T %E", "-p", "all")
    prolog.write_text(text)
    prolog.chmod(0o755)

    output, job = shared / "output", tmp_path / "job.sh"
    job.write_text(f"#!/bin/sh\nhostname >>{output}\n")
    folders = [shared, *(path for path in [Path(sys.base_prefix)] if path.parts[1] in ("root", "home"))]
    with Fleet(2, share=folders) as fleet, Cluster(fleet, tmp_path, f"Prolog={prolog}\n") as cluster:

        def submit(node: str) -> None:
            cluster.tell("sbatch", "--requeue", "-w", node, "--output=/dev/null", "--chdir=/tmp", str(job))

        def is_refused() -> bool:
            """Return whether Slurm drained h2, and only h2, and requeued its job on hold."""
            nodes, waiting = cluster.ask(*state), cluster.ask("squeue", "-h", "-t", "PENDING", "-o", "%r")
            return (
                "h2 drained Prolog error" in nodes and "h1 idle" in nodes and "launch failed requeued held" in waiting
            )

        submit("h2")
        cluster.until(lambda: output.exists() and output.read_text().split() == ["h2"])
        scaled(values, "h2", TRIAD, 0.8)
        campaign(shared / "h2", values)
        submit("h2")
        cluster.until(is_refused)
        submit("h1")
        cluster.until(lambda: output.read_text().split() == ["h2", "h1"])
        prolog.write_text(f"#!/bin/sh\nexec {shared / RECIPE.name}\n")
        assert gate(shared, shared / "h1") == 0
        cluster.tell("scancel", "--state=PENDING")
        cluster.tell("scontrol", "update", "NodeName=h2", "State=RESUME")
        submit("h2")
        cluster.until(lambda: output.read_text().split() == ["h2", "h1", "h2"])
        assert gate(shared, shared / "h2") == 1
        submit("h2")
        cluster.until(is_refused)
        assert output.read_text().split() == ["h2", "h1", "h2"], "a rejected node runs no job"


STANDIN = """#!/bin/sh
echo "$SLURMD_NODENAME $*" >>FOLDER/calls
[ "$SLURMD_NODENAME" != h2 ]
"""


def test_the_epilog_measures_once_a_day_and_drains_a_node_with_a_finding(shared: Path, tmp_path: Path) -> None:
    """Slurm is real; a stand-in plays ``fleetmark watch``, which has a finding on h2."""
    standin, epilog = shared / "fleetmark", shared / "epilog.sh"
    standin.write_text(STANDIN.replace("FOLDER", str(shared)))
    text = recipes()[0]
    assert "/opt/fleetmark/bin/fleetmark watch --once" in text
    epilog.write_text(text.replace("/opt/fleetmark/bin/fleetmark", str(standin)))
    (shared / "calls").touch()
    for path in (standin, epilog):
        path.chmod(0o755)
    (shared / "calls").chmod(0o666)
    with Fleet(2, share=[shared]) as fleet, Cluster(fleet, tmp_path, f"Epilog={epilog}\n") as cluster:
        for host in fleet.names:
            fleet.exec(host, ["rm", "-f", "/var/tmp/fleetmark-epilog"])
        state = "sinfo", "-h", "-N", "-o", "%n %T %E", "-p", "all"
        assert sorted(cluster.ask("srun", "-N2", "hostname").split()) == ["h1", "h2"]
        cluster.until(lambda: "h2 drained" in cluster.ask(*state))
        assert "h1 idle" in cluster.ask(*state)
        assert cluster.ask("srun", "-N1", "-w", "h1", "hostname").split() == ["h1"]
        cluster.until(lambda: not cluster.jobs() and "h1 idle" in cluster.ask(*state))
        calls = (shared / "calls").read_text().splitlines()
        assert sorted(line.split()[0] for line in calls) == ["h1", "h2"], "the second job of h1 is not measured"
        assert all("watch --once" in line for line in calls)
