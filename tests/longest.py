"""Decide which tests run side by side, and which start first so that no process runs alone at the end.

The tests of a file run in one process, one after another. So do all files with tests that take the job of this machine,
which runs one at a time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

JOB = "job"
LONGEST = (
    *(
        "fleet/test_full.py",
        "fleet/test_run.py",
        "fleet/test_torch.py",
        "fleet/test_slurm.py",
        "fleet/test_spec_cpu.py",
    ),
    *("fleet/test_nccl_tests.py", "fleet/test_record.py", "fleet/test_sick.py", "fleet/test_sick_groups.py"),
    *("fleet/test_services.py", "fleet/test_messages.py", "fleet/test_tune.py", "fleet/test_mlperf_training.py"),
    *("fleet/test_mlperf_inference.py", "fleet/test_mlc.py", "fleet/test_credentials.py", "fleet/test_liars.py"),
    *("tests/test_package.py", "documentation/test_commands.py"),
    *("tests/test_shared_root.py", "reports/test_documents.py", "planner/test_transfer.py", "reports/test_paper.py"),
    *("reports/test_comparison_workbook.py", "workloads/test_torch_train_review.py", "workloads/test_llm_sessions.py"),
    *("workloads/test_llm_serve.py", "planner/test_solve.py", "workloads/test_torch_distributed.py"),
    *("agent/test_container.py", "reports/test_browser.py", "reports/test_xlsx.py"),
    *("tests/test_answers.py", "reports/test_brief.py"),
    *("tests/test_import_bombs.py", "tests/test_swapped.py", "tests/test_sheet_bombs.py"),
    *("parsers/test_fuzz.py", "tests/test_damaged.py", "reports/test_plan_xlsx.py", "planner/test_equivalence.py"),
    *("tests/test_spark.py", "tests/test_swarm.py", "workloads/test_torch_ops.py", "tests/test_planning.py"),
)


def arrange(items: list[pytest.Item]) -> None:
    """Sort ``items``: the machine's jobs, fleets, which wait more than they work, and the others.

    Within each, LONGEST comes first. Tests of a file keep their order.
    """
    place = {name: n for n, name in enumerate(LONGEST)}

    def rank(item: pytest.Item) -> tuple[int, int]:
        folder = item.path.parent.name
        kind = 0 if item.get_closest_marker(JOB) else 1 if folder == "fleet" else 2
        return kind, place.get(f"{folder}/{item.path.name}", len(place))

    items.sort(key=rank)


def job_files(root: Path) -> set[str]:
    """Return the files, relative to ``root``, with a test that takes the machine's job."""
    files = (root / "tests").rglob("test_*.py")
    return {str(file.relative_to(root)) for file in files if f"mark.{JOB}" in file.read_text("utf-8")}


def scheduler(config: pytest.Config, log: Any) -> Any:
    """Return a scheduler of xdist that gives a process a file at a time, and all ``job_files`` together."""
    from xdist.scheduler import LoadFileScheduling

    together = job_files(config.rootpath)

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return JOB if file in together else file

    return Scheduling(config, log)
