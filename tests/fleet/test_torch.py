"""torch.distributed over real SSH hosts: every host of a group starts its own ranks; bytes on the wire; what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests import torches
from tests.fleet.command import Command
from tests.fleet.hosts import Fleet, missing
from tests.torches import PYTHON, needs_torch

pytestmark = [pytest.mark.fleet, needs_torch]
MEGABYTES = 4 << 20


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """Four hosts that see the Python which the environment with torch was made from, wherever it lies."""
    if reason := missing():
        pytest.skip(reason)
    with Fleet(4, share=torches.folders()) as hosts:
        yield hosts


@pytest.fixture
def suite(tmp_path: Path) -> Callable[..., str]:
    def write(workload: str, **settings: Any) -> str:
        file = tmp_path / "suite.yml"
        chosen = {workload: {"set": {"python": PYTHON, **settings}}}
        file.write_text(json.dumps({"description": "x", "repeats": 1, "workloads": chosen}))
        return str(file)

    return write


def sent(fleet: Fleet, host: str) -> int:
    """Bytes that the host's interface has sent."""
    (link,) = json.loads(fleet.exec(host, ["ip", "-j", "-s", "link", "show", "eth0"]).stdout)
    return int(link["stats64"]["tx"]["bytes"])


def together(fleet: Fleet, hosts: int, op: str) -> float:
    """Run one operation by hand over the first ``hosts`` hosts. Returns the bytes that each rank says it sent."""
    words = f"""
    tool=$(ls -d /var/tmp/fleetmark-0/tools/torch_collectives-*)
    exec python3 $tool/interpreter.py {PYTHON} $tool/torch_collectives.py --op {op} --sizes {MEGABYTES} --budget 0.3 \
        --nodes {hosts} --node %d --master {fleet.address("h1")}:29600 --towards %s
    """.strip()
    for n in range(2, hosts + 1):
        background = (words % (n - 1, fleet.address("h1"))).replace("exec", "setsid") + " >/dev/null 2>&1 &"
        fleet.exec(f"h{n}", ["sh", "-c", background])
    out = fleet.exec("h1", ["sh", "-c", words % (0, fleet.address("h2"))]).stdout
    row = json.loads(out.splitlines()[1])
    assert (row["size"], row["wrong"]) == (MEGABYTES, 0)
    return float(row["sent"])


def test_groups_of_two_and_four_run_collectives_and_their_bytes_are_on_the_wire(
    command: Command, suite: Callable[..., str]
) -> None:
    text = suite("torch_collectives", nodes=["2", "all"], collectives=["all_reduce"], max_bytes="8", budget=0.05)
    done = command.run("--suite", text, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 2 + 1}, "two pairs of hosts and all four"
    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    ranks = frame.query("metric == 'ranks'").set_index(["host", "case"])["value"]
    assert (ranks["h3", "all_reduce-2n"], ranks["h1", "all_reduce-4n"]) == (2, 4)

    fleet = command.fleet
    for hosts, op in ((2, "all_reduce"), (2, "broadcast"), (4, "all_gather")):
        names = fleet.names[:hosts]
        before = {host: sent(fleet, host) for host in names}
        claimed = together(fleet, hosts, op)
        grown = [sent(fleet, host) - before[host] for host in names]
        # A broadcast is counted by what one rank sends; each of the others receives it once.
        expected = claimed * (hosts - 1 if op == "broadcast" else hosts)
        assert sum(grown) == pytest.approx(expected, rel=0.05), (op, hosts, grown, claimed)


def test_four_hosts_train_together_to_the_loss_of_one(command: Command, suite: Callable[..., str]) -> None:
    """A copy each, and a part each; fp64 on one CPU confirms the loss of each, or its run were invalid."""
    text = suite(
        "torch_train", models=["gpt-tiny"], modes=["ddp", "fsdp"], nodes=["all"], batch=1, threads=1, budget=0.1
    )
    done = command.run("--suite", text, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    figures = frame.pivot_table(index="case", columns="metric", values="value")
    assert set(figures.index) == {"gpt-tiny-fp32-ddp-4n", "gpt-tiny-fp32-fsdp-4n"}
    assert set(figures["ranks"]) == set(figures["nodes"]) == {4}
    assert (figures["scaling_efficiency"] > 0).all()
    assert figures["tokens_per_second"].to_numpy() == pytest.approx(4 * 256 / figures["step_time"].to_numpy())
    ddp, fsdp = figures["check_loss"]
    assert ddp == pytest.approx(fsdp, rel=1e-4)


def test_hosts_that_cannot_meet_are_one_sentence(command: Command, suite: Callable[..., str]) -> None:
    usual = {"nodes": ["2"], "collectives": ["all_reduce"], "max_bytes": "8", "patience": 4}
    done = command.run("--suite", suite("torch_collectives", **usual, interface="eth9"), "--limit", "h1,h2")
    (outcome,) = command.outcomes()
    assert done.returncode == 1
    assert "h1 has no interface eth9: it has eth0, lo" in outcome["reason"]
    assert "\n" not in outcome["reason"]
    done = command.run("--suite", suite("torch_collectives", **usual, interface="lo"), "--limit", "h1,h2")
    assert done.returncode == 1
    (outcome,) = command.outcomes()
    assert "name the interface" in outcome["reason"], outcome
