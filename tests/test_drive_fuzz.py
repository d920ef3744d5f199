"""Any reply of a host, in any order: the campaign goes on, and orders to other hosts do not depend on it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetmark.campaign.drive import Drive
from fleetmark.record.steps import Exchange
from tests.drives import drain, make_drive, orders, parts, result, say, step, tell

IDS = st.sampled_from(["00000", "00001", "00002", "00009", "../x", "", 0, None])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
EVENTS = st.fixed_dictionaries(
    {"e": st.sampled_from(["start", "wait", "begin", "ready", "part", "end", "finish", "over", "sing"])},
    optional={
        "step": IDS,
        "files": st.dictionaries(st.sampled_from(["result.json", "stdout", "../x", ""]), JSON, max_size=2) | JSON,
        "name": st.sampled_from(["result.json", "stdout", "../x", "step.json", ""]) | JSON,
        "data": st.sampled_from(["eJwDAAAAAAE=", "x", ""]) | JSON,
        "state": st.sampled_from(["finished", "stopped: \ngo 00000"]) | JSON,
        "remaining": st.integers(-1, 2) | st.none() | JSON,
    },
)
TEXTS = st.sampled_from(["boo\ngo /etc/evil.sh ;touch /PWNED", '"}\n{"order": "go"', "\x1b[2J", "x" * 3000])
STEPS = st.builds(
    lambda number, ended, reason: parts(number, {"result.json": result(ended=ended, reason=reason)}),
    st.sampled_from(["00000", "00001", "00002"]),
    st.sampled_from(["exit", "lost", "error", "timeout", "sung"]),
    TEXTS,
)
SPEECH = st.lists(
    st.one_of(EVENTS.map(lambda e: [e]), JSON.map(lambda j: [j]), st.binary(max_size=40).map(lambda b: [b]), STEPS),
    max_size=12,
).map(lambda groups: [line for group in groups for line in group])


def fleet(root: Path) -> Drive:
    """h1 measures against h2 and serves h3; h3 measures against h4 too, which has nothing to do with h1."""
    return make_drive(
        root,
        {
            "h1": [step(0), step(1, serves=True), step(2)],
            "h2": [step(0, serves=True)],
            "h3": [step(0), step(1)],
            "h4": [step(0, serves=True)],
        },
        [
            Exchange("h2", "00000", "h1", "00000"),
            Exchange("h1", "00001", "h3", "00001"),
            Exchange("h4", "00000", "h3", "00000"),
        ],
    )


def go_on(drive: Drive) -> None:
    """h3 and h4 run their pair, h2 waits."""
    tell(drive, "h2", e="wait", step="00000")
    tell(drive, "h3", e="wait", step="00000")
    tell(drive, "h4", e="wait", step="00000")
    tell(drive, "h4", e="begin", step="00000")
    tell(drive, "h4", e="ready", step="00000")
    tell(drive, "h3", e="begin", step="00000")


# A drive that nobody lies to, and what it orders of the pair that has nothing to do with h1.
PAIR = {"h3": ["go 00000"], "h4": ["go 00000"]}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    speech=SPEECH,
    answer=JSON
    | st.fixed_dictionaries({}, optional={"state": JSON, "holder": JSON, "error": JSON, "failed_workloads": JSON}),
    late=st.booleans(),
)
def test_no_reply_of_a_host_changes_what_others_are_ordered(speech: list[Any], answer: Any, late: bool) -> None:
    with tempfile.TemporaryDirectory() as root:
        drive = fleet(Path(root))
        if late:
            go_on(drive)
        say(drive, "h1", *[line if isinstance(line, bytes) else json.dumps(line).encode() for line in speech])
        assert drive.runs["h1"].phase == "over", "its link ended, or it broke the rules"
        drive.runs["h1"].phase = "launching"
        drive.heard.put(("h1", "launched", answer))
        drive.follow = lambda host: None  # type: ignore[method-assign]
        drain(drive)
        if not late:
            go_on(drive)
        drive._notice_stuck()
        assert {host: [o for o in orders(drive, host) if o.endswith("00000")] for host in PAIR} == PAIR
        # h2 serves h1, and h3's second step is served by it: let go, or sent away, and nothing else.
        assert set(orders(drive, "h2")) <= {"go 00000", "cancel 00000"}
        assert {o for o in orders(drive, "h3") if not o.endswith("00000")} <= {"go 00001", "skip 00001", "fail 00001"}
        assert {drive.runs[host].phase for host in ("h2", "h3", "h4")} == {"running"}
        drive.archive.close()
