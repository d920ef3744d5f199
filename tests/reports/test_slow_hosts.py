"""Test that a slow host is joined with its likely cause, and that figures which cannot be true are called suspect."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.facts import Dimm
from fleetmark.record.diagnosis import diagnose
from fleetmark.record.results import Results
from fleetmark.reports.campaign import document as campaign_report
from fleetmark.reports.diagnosis import document as diagnosis_report
from fleetmark.reports.formats import html, markdown
from fleetmark.reports.kit.document import Block, Command, Document, Note
from fleetmark.reports.kit.language import Language
from tests.fleets import HOSTS, campaign, scaled, usual
from tests.records import TRIAD
from tests.reports import sample
from tests.schedules import facts


def dimms(n: int) -> tuple[Dimm, ...]:
    """Return 16 slots of which ``n`` have a module."""
    return tuple(Dimm(slot=f"{k}", size=(32 << 30) if k < n else 0) for k in range(16))


def fleet(modules: int = 15) -> Results:
    """Return a campaign in which n0017 is slow and has this many of 16 modules."""
    results = sample.many(40)
    hosts = tuple(
        replace(h, facts=h.facts.model_copy(update={"dimms": dimms(modules if h.name == "n0017" else 16)}))
        if h.facts
        else h
        for h in results.hosts
    )
    return replace(results, hosts=hosts)


def steps(document: Document) -> list[Command | Note]:
    """Return the next steps of a document."""
    section = next(s for s in document.sections if s.key == "next")
    return [e for e in section.exhibits if isinstance(e, Command | Note)]


def blocks(document: Document) -> list[Block]:
    """Return the tickets of a document."""
    return [e for s in document.sections for e in s.exhibits if isinstance(e, Block)]


def test_the_first_step_of_a_campaign_names_the_slow_host_and_its_cause() -> None:
    document = campaign_report.document(fleet())
    first = steps(document)[0]
    assert isinstance(first, Command)
    assert (
        "n0017 has 15 of 16 DIMMs: a likely cause, but it explains only about 6% of memory bandwidth, and the host lost "
        "up to 1" in first.text
    )
    assert "reseat or replace 1 missing DIMM, then repeat its slow benchmarks" in first.text
    assert first.command.startswith("fleetmark diagnose 2026-03-04T0912-0003 --confirm")
    assert document.answer.startswith("n0017 is 15% worse than the median of icelake")


def test_a_first_screen_says_how_slow_a_host_is_only_once() -> None:
    document = campaign_report.document(fleet())
    shown = [s for s in document.sections if s.key in ("state", "machines", "next", "odd")]
    texts = [e.text for s in shown for e in s.exhibits if isinstance(e, Command | Note)]
    assert "worse than the median of icelake" in document.answer
    assert not [text for text in texts if "worse than the median of icelake" in text]
    (losses,) = [text for text in texts if text.startswith("n0017 lost most in ")]
    assert losses.count("(−1") == 3
    assert "Capacity lost to slow hosts: about 0.15 of 39 hosts (the sum of their median losses)." in texts


def test_a_ticket_has_what_was_measured_and_how_to_repeat_it() -> None:
    document = campaign_report.document(fleet())
    ticket = blocks(document)[0]
    text = "\n".join(ticket.lines)
    for part in ("Host: n0017", "Problem: n0017 is", "median of peers", "15 of 16 DIMMs", "Repeat with: fleetmark"):
        assert part in text
    page = html.render(document, Language())
    assert "Ticket for n0017" in page and "\n".join(ticket.lines[:1]) in page
    assert "    Host: n0017" in markdown.render(document, Language())


def test_without_a_differing_fact_the_step_says_so() -> None:
    first = steps(campaign_report.document(fleet(16)))[0]
    assert first.text.startswith("No recorded fact of n0017 differs from its peers")


def test_a_diagnosis_joins_suspect_and_cause(tmp_path: Path) -> None:
    values = usual()
    scaled(values, "n03", TRIAD, 0.8)
    archive = campaign(tmp_path, values)
    known = {host: facts(dimms=dimms(14 if host == "n03" else 16)) for host in HOSTS}
    document = diagnosis_report.document(diagnose(archive), None, "", "", Language(), known)
    first = steps(document)[0]
    assert isinstance(first, Command) and "--confirm" in first.command
    assert first.text.startswith("n03 is 20% worse than its 15 peers in stream")
    assert "has 14 of 16 DIMMs: likely cause, about 12% of memory bandwidth" in first.text
    assert blocks(document)[0].title == "Ticket for n03"


def test_a_healthy_fleet_has_no_tickets(tmp_path: Path) -> None:
    document = diagnosis_report.document(diagnose(campaign(tmp_path, usual())), None, "", "", Language(), {})
    assert blocks(document) == []


# --- suspect figures --------------------------------------------------------------------------------------------------


def doubts(results: Results) -> list[str]:
    """Return the sentences about suspect figures."""
    (section,) = [s for s in campaign_report.document(results).sections if s.key == "odd"]
    return [e.text for e in section.exhibits if isinstance(e, Note) and e.text.startswith("Suspect")]


def with_rows(results: Results, **changes: dict[str, Any]) -> Results:
    """Return the results with further rows: copies of rows of a metric with other fields."""
    import pandas as pd

    from fleetmark.record.values import Values

    frame = results.values.frame
    copies = [frame[frame["metric"] == metric].assign(**fields) for metric, fields in changes.items()]
    return replace(results, values=Values(pd.concat([frame, *copies], ignore_index=True)))


@pytest.mark.parametrize(("factor", "is_suspect"), [(4.0, True), (1.5, False)])
def test_writes_much_faster_than_reads_are_suspect(factor: float, is_suspect: bool) -> None:
    results = sample.one()
    frame = results.values.frame
    reads = frame[(frame["metric"] == "read_bw") & frame["headline"]]["value"].median()
    changed = with_rows(
        results,
        read_bw={"metric": "write_bw", "case": "seqwrite-1m-qd8", "headline": True, "value": factor * reads},
    )
    matches = [text for text in doubts(changed) if "page cache" in text]
    assert bool(matches) is is_suspect


@pytest.mark.parametrize(("latency_s", "is_suspect"), [(2e-6, True), (12e-6, False)])
def test_latencies_below_those_of_drives_are_suspect(latency_s: float, is_suspect: bool) -> None:
    fields = {"metric": "write_clat_p99", "case": "randwrite-4k-qd1", "headline": True, "value": latency_s}
    texts = doubts(with_rows(sample.one(), read_clat_p99=fields))
    assert bool(texts) is is_suspect
    assert not texts or "of 2.000 µs is faster than any drive, so memory answered" in texts[0]


def test_the_loopback_of_one_host_is_no_network() -> None:
    fields = {"workload": "iperf3", "case": "tcp-8", "metric": "bitrate", "class": "net", "headline": True}
    (text,) = doubts(with_rows(sample.one(), triad=fields))
    assert "iperf3 ran over the loopback of one host" in text and "two hosts" in text


def test_arrays_that_fit_into_the_caches_are_suspect() -> None:
    results = sample.one()
    command = ["fleetmark", "run", "--set", "stream.array_elements=1000000"]
    small = replace(results, campaign=replace(results.campaign, command=command))
    (text,) = doubts(small)
    assert "stream all-cores triad" in text and "fit into the caches" in text
    assert doubts(results) == []
    large = [*command[:-1], "stream.array_elements=1000000000"]
    assert doubts(replace(results, campaign=replace(results.campaign, command=large))) == []
