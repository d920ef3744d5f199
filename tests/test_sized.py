"""A case over several hosts, among fewer: the name and the settings that its manifest has for it."""

from __future__ import annotations

from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Torch
from fleetmark.campaign.sized import Family
from fleetmark.workloads import load
from tests.schedules import facts

FACTS = facts(torch={"python3": Torch(version="2", backends=("gloo",))})


def family(workload: str, case: str, hosts: int = 8, **settings: Any) -> Family:
    return Family(load(workload), settings, FACTS, case, hosts)


def test_the_same_operation_among_fewer_hosts_and_on_one() -> None:
    whole_family = family("torch_collectives", "broadcast-8n", nodes=["1", "all"], budget=0.1)
    four, one = whole_family.among(4), whole_family.among(1)
    assert four and four.case == "broadcast-4n" and four.settings == {"nodes": ["4"], "budget": 0.1}
    assert one and one.case == "broadcast" and one.settings["nodes"] == ["1"]
    largest = whole_family.among(8)
    assert largest and largest.case == "broadcast-8n"


def test_the_same_model_precision_and_mode() -> None:
    whole_family = family("torch_train", "gpt-tiny-fp32-fsdp-8n", nodes=["8"])
    two = whole_family.among(2)
    assert two and two.case == "gpt-tiny-fp32-fsdp-2n"


def test_a_workload_without_sizes_and_a_case_that_is_no_more() -> None:
    assert family("stream", "all-cores").among(2) is None
    with pytest.raises(FleetmarkError, match="has no case 'gone-8n' with the settings of the campaign"):
        family("torch_collectives", "gone-8n").among(2)
