"""Overlap of communication and computing: intervals worked out by hand, on a CPU and on a device."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetmark.hosts.agent import PLAYBOOKS
from tests.examples import examples

CPU, CUDA = "cpu", "cuda"


def program() -> ModuleType:
    path = PLAYBOOKS / "roles" / "torch_train" / "files" / "torch_overlap.py"
    spec = importlib.util.spec_from_file_location("torch_overlap", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


OVERLAP = program()
SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 8)), max_size=12).map(
    lambda pairs: [(begin, begin + size) for begin, size in pairs]
)


@dataclass
class Range:
    start: float
    end: float


@dataclass
class Event:
    name: str
    begin: float
    end: float
    device_type: str = CPU
    thread: int = 1

    @property
    def time_range(self) -> Range:
        return Range(self.begin * 1e6, self.end * 1e6)


def figures(events: list[Event], is_cpu: bool) -> tuple[float, float]:
    communication, computing = (OVERLAP.union(part) for part in OVERLAP.intervals(events, CPU, is_cpu))
    total = OVERLAP.length(communication)
    return total, total - OVERLAP.common(communication, computing)


def test_gloos_threads_communicate_while_others_compute() -> None:
    events = [
        Event("aten::mm", 0, 4),
        Event("aten::empty", 1, 2),  # within another one
        Event("c10d::allreduce_", 2, 3),
        Event("gloo:all_reduce", 3, 7, thread=2),
        Event("aten::copy_", 5, 6, thread=2),  # the collective's own
        Event("gloo:all_reduce", 6, 9, thread=3),
        Event("aten::add", 8, 10),
    ]
    assert figures(events, True) == pytest.approx((6, 4))  # from 3 to 9; beside it 3-4 and 8-9


def test_kernels_of_nccl_communicate_on_a_device() -> None:
    events = [
        Event("aten::mm", 0, 100),  # the host's part of it
        Event("ampere_sgemm", 0, 4, CUDA),
        Event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 2, 8, CUDA),
        Event("nccl:all_reduce", 2, 8, CUDA),  # an annotation, not a kernel
        Event("Memset (Device)", 4, 8, CUDA),
    ]
    assert figures(events, False) == pytest.approx((6, 4))


@examples(200)
@given(spans=SPANS, others=SPANS)
def test_intersections_agree_with_counting(spans: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    seconds = [{n for begin, end in part for n in range(begin, end)} for part in (spans, others)]
    one, two = OVERLAP.union(spans), OVERLAP.union(others)
    assert OVERLAP.length(one) == len(seconds[0])
    assert OVERLAP.common(one, two) == len(seconds[0] & seconds[1])
