"""The test files that take longest. They start first, so that no process runs alone at the end."""

from __future__ import annotations

import pytest

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
    *("workloads/test_llm_serve.py", "planner/test_solve.py", "workloads/test_torch_distributed.py"),
    *("agent/test_container.py", "reports/test_browser.py", "reports/test_xlsx.py", "planner/test_transfer.py"),
    *("tests/test_shared_root.py", "tests/test_import_bombs.py", "tests/test_swapped.py", "tests/test_sheet_bombs.py"),
    *("parsers/test_fuzz.py", "tests/test_damaged.py", "reports/test_plan_xlsx.py", "planner/test_equivalence.py"),
    *("tests/test_spark.py", "tests/test_swarm.py", "workloads/test_torch_ops.py", "tests/test_planning.py"),
)


def first(items: list[pytest.Item]) -> None:
    """Sort ``items`` by this order of files. Tests within a file keep their order."""
    place = {name: n for n, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(f"{item.path.parent.name}/{item.path.name}", len(place)))
