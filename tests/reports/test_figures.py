"""Test charts: correct figures, marks that differ by more than colour, a limited number, and translated text."""

from __future__ import annotations

import math
import re
import time
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fleetmark.base import schema
from fleetmark.record.results import Results, Telemetry
from fleetmark.record.values import Values
from fleetmark.reports.campaign import figures, maps
from fleetmark.reports.campaign.view import View, view
from fleetmark.reports.kit import charts
from fleetmark.reports.kit.charts import Across, Box, Chart, Line
from fleetmark.reports.kit.document import Note
from fleetmark.reports.kit.language import Language, language
from tests.records import row
from tests.reports import sample
from tests.reports.shown import drawn

SIZES = [2.0**k for k in range(12, 20)]


def charts_of(results: Results, spoken: Language | None = None) -> dict[str, list[Chart]]:
    """Return the drawn charts of each kind."""
    numbers = count()
    return {
        section.key: [replace(e, svg=drawn(e, next(numbers))) for e in section.exhibits if isinstance(e, Chart)]
        for section in figures.sections(view(results), spoken, ())
    }


def omitted(seen: View) -> list[str]:
    """Return what is said of the charts for which there is no room."""
    notes = [e.text for s in figures.sections(seen, None, ()) for e in s.exhibits if isinstance(e, Note)]
    return [text for text in notes if text.startswith("No room")]


def specs(seen: View, kind: str) -> list[Any]:
    """Return the charts of one kind before they are drawn."""
    limits = (figures.MOST,) if kind == "strips" else ()
    return list(getattr(figures, f"_{kind}")(seen, Language(), *limits))


def words(chart: Chart) -> list[str]:
    root = ET.fromstring(chart.svg)
    return [e.text or "" for e in root.iter() if e.tag.endswith("text")]


def rows(**columns: Any) -> pd.DataFrame:
    """Return measurements of one campaign, with default values for columns that are not given."""
    return pd.DataFrame({**row(better="lower", headline=False, **{"class": "mem-latency"}), **columns})


def with_rows(results: Results, frame: pd.DataFrame) -> Results:
    return replace(results, values=Values(frame))


@pytest.fixture(scope="module")
def six() -> Results:
    return sample.six()


# --- every chart -----------------------------------------------------------------------------------------------------


def test_every_chart_is_well_formed_vector_graphics_without_clashing_ids(six: Results) -> None:
    result = charts_of(six)
    assert {kind: bool(drawn) for kind, drawn in result.items()} == {
        **dict.fromkeys(("charts", "curves", "depths", "pairs"), True),
        **dict.fromkeys(("loaded", "devices", "telemetry"), False),
    }
    assert omitted(view(six)) == []
    ids = [i for listed in result.values() for c in listed for i in re.findall(r' id="([^"]+)"', c.svg)]
    assert len(ids) == len(set(ids))
    for chart in (c for listed in result.values() for c in listed):
        assert ET.fromstring(chart.svg).tag.endswith("svg")
        assert "<image" not in chart.svg and chart.title and chart.note


def test_generations_stand_and_are_coloured_in_the_order_that_is_given(six: Results) -> None:
    seen = view(six, ("icelake",))
    assert seen.generations[0] == "icelake"
    (curve, *_) = [d.spec() for d in specs(seen, "curves")]
    lines = next(part["encoding"] for part in curve["layer"] if "strokeDash" in part["encoding"])
    scale = lines["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == {
        "icelake": charts.COLOURS[0],
        "genoa": charts.COLOURS[1],
    }
    dashes = lines["strokeDash"]["scale"]["range"]
    assert dashes[0] != dashes[1]


def test_a_line_of_several_hosts_is_their_geometric_mean_within_their_range(six: Results) -> None:
    seen = view(six)
    (chart_,) = [d for d in specs(seen, "depths") if "read_iops" in d.title]
    points = chart_.spec()["layer"][-1]["data"]["values"]
    (band,) = [layer["data"]["values"] for layer in chart_.spec()["layer"] if layer["mark"]["type"] == "area"]
    mine = seen.merged[(seen.merged["case"] == "randread-4k-qd32") & (seen.merged["metric"] == "read_iops")]
    values = [m for h, m in zip(mine["host"], mine["value"], strict=True) if seen.generation[h] == "icelake"]
    (point,) = [p for p in points if p["x"] == 32 and p["s"] == "icelake"]
    (ends,) = [p for p in band if p["x"] == 32 and p["s"] == "icelake"]
    factor = point["y"] / float(np.exp(np.mean(np.log(values))))
    assert factor == pytest.approx(1)
    assert (ends["lo"], ends["hi"]) == (pytest.approx(min(values) * factor), pytest.approx(max(values) * factor))


def test_hosts_of_one_generation_have_a_line_each() -> None:
    results = sample.six()
    alone = replace(results, hosts=tuple(replace(h, generation=None) for h in results.hosts))
    (chart_, *_) = specs(view(alone), "curves")
    names = {p["s"] for p in chart_.spec()["layer"][-1]["data"]["values"]}
    assert names == {"ice-a", "ice-b", "ice-c", "gen-a"}  # lmbench could not run on gen-b, gen-c never answered
    assert "A line per host" in chart_.note


# --- many hosts ------------------------------------------------------------------------------------------------------


def test_very_many_hosts_are_boxes_over_their_quantiles() -> None:
    rng = np.random.default_rng(5)
    values = {f"h{i}": [float(v)] for i, v in enumerate(rng.normal(100e9, 3e9, charts.MANY_DOTS + 1))}
    seen = view(sample.tiny(values, generations={h: "old" if int(h[1:]) % 2 else "new" for h in values}))
    (chart_,) = specs(seen, "strips")
    boxes = {b["r"]: b for b in chart_.spec()["data"]["values"]}
    mine = [v[0] / 1e9 for h, v in values.items() if int(h[1:]) % 2]
    assert boxes["old"]["q50"] == pytest.approx(np.median(mine))
    assert (boxes["old"]["low"], boxes["old"]["high"]) == (pytest.approx(min(mine)), pytest.approx(max(mine)))
    assert boxes["old"]["q5"] == pytest.approx(np.quantile(mine, 0.05))
    (chart,) = charts_of(seen.results)["charts"]
    assert len(chart.svg) < 10_000


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_no_number_has_no_dot(value: float) -> None:
    (strip,) = specs(view(sample.tiny({"h1": [1.0, value, 2.0], "h2": [3.0, 4.0]})), "strips")
    (expected,) = specs(view(sample.tiny({"h1": [1.0, 2.0], "h2": [3.0, 4.0]})), "strips")
    assert strip.spec() == expected.spec()


def test_a_page_holds_so_many_charts_and_names_the_others() -> None:
    frame = pd.concat(
        [sample.tiny({"h1": [1.0, 2.0], "h2": [3.0, 4.0]}).values.frame.assign(case=f"{n}t") for n in range(70)]
    )
    results = with_rows(sample.tiny({"h1": [1.0], "h2": [1.0]}), frame)
    assert [c.title for c in charts_of(results)["charts"]] == [f"stream {n}t: triad" for n in range(figures.MOST)]
    names = "; ".join(f"stream {n}t: triad" for n in range(figures.MOST, 70))
    assert omitted(view(results)) == [f"No room for the charts of {names}"]


def test_curves_that_hold_a_headline_come_first() -> None:
    labels = [f'{{"size":"{int(size)}"}}' for size in SIZES]
    usual = {"host": "h1", "workload": "w", "metric": "latency", "value": 1e-9, "unit": "s"}
    frame = pd.concat([rows(**usual, labels=labels, case=f"c{n:02}", headline=n == 69) for n in range(70)])
    results = with_rows(sample.tiny({"h1": [1.0]}), frame)
    titles = [chart.title for chart in charts_of(results)["curves"]]
    assert titles[0] == "w c69: latency" and len(titles) == figures.MOST
    assert len(omitted(view(results))) == 1


def test_three_hundred_headlines_of_many_hosts_take_little_time() -> None:
    base = sample.tiny({f"h{n}": [1.0 + n / 1000] for n in range(300)})
    frame = pd.concat([base.values.frame.assign(case=f"{n}t") for n in range(300)])
    seen = view(with_rows(base, frame))
    before = time.process_time()
    result = charts_of(seen.results)
    took = time.process_time() - before
    assert len(result["charts"]) == figures.MOST_BOXES
    assert f"and {300 - figures.MOST_BOXES - figures.NAMED} more" in omitted(seen)[0]
    assert took < 15, f"{took:.1f} s"  # about 1 s on an idle core


# --- latency under load ----------------------------------------------------------------------------------------------


def loaded(host: str, bandwidth: float) -> pd.DataFrame:
    points = [(d, bandwidth / (1 + d / 100), (90 + 100 / (1 + d / 50)) * 1e-9) for d in (0, 8, 50, 100, 500, 2000)]
    usual = {"host": host, "workload": "mlc", "case": "loaded_latency"}
    return pd.concat(
        rows(**usual, metric=[m], value=[v], unit=[u]).assign(labels=f'{{"delay":"{d:05d}"}}')
        for d, moved, latency in points
        for m, v, u in (("loaded_latency", latency, "s"), ("loaded_bandwidth", moved, "B/s"))
    )


def test_loaded_latency_stands_against_the_bandwidth_of_the_same_delay() -> None:
    results = sample.tiny({"a": [1.0], "b": [1.0]}, generations={"a": "old", "b": "new"})
    results = with_rows(results, pd.concat([loaded("a", 1e11), loaded("b", 2e11)]))
    (chart_,) = specs(view(results), "loaded")
    points = [p for p in chart_.spec()["layer"][-1]["data"]["values"] if p["s"] == "b"]
    assert (points[0]["x"], points[0]["y"]) == (pytest.approx(200), pytest.approx(190))
    assert [p["x"] for p in points] == sorted((p["x"] for p in points), reverse=True)  # in order of delay
    (chart,) = charts_of(results)["loaded"]
    assert "loaded_bandwidth, GB/s (higher is better)" in words(
        chart
    ) and "loaded_latency, ns (lower is better)" in words(chart)


def test_a_delay_without_its_bandwidth_is_no_point() -> None:
    frame = loaded("a", 1e11)
    frame = frame[~((frame["metric"] == "loaded_bandwidth") & (frame["labels"] == '{"delay":"00000"}'))]
    (chart_,) = specs(view(with_rows(sample.tiny({"a": [1.0]}), frame)), "loaded")
    assert len(chart_.spec()["layer"][-1]["data"]["values"]) == 5


# --- telemetry -------------------------------------------------------------------------------------------------------


def test_telemetry_is_the_median_over_a_hosts_runs_of_the_longest_case() -> None:
    results = sample.tiny({"a": [1.0], "b": [1.0]}, generations={"a": "old", "b": "new"})
    samples = pd.DataFrame(
        [
            (host, "stream", case, repeat, float(t), "temp_c_max", 40.0 + t + 10 * repeat + 5 * (host == "b"))
            for host in "ab"
            for case, seconds in (("1t", 20), ("2t", 60))
            for repeat in range(3)
            for t in range(1, seconds + 1)
        ],
        columns=["host", "workload", "case", "repeat", "t", "column", "value"],
    )
    results = replace(results, telemetry=Telemetry(samples=samples, read=12, available=40))
    (chart_,) = specs(view(results), "telemetry")
    assert chart_.title == "stream 2t: temperature during the runs" and "12 of 40 runs" in chart_.note
    points = {(p["s"], p["x"]): p["y"] for p in chart_.spec()["layer"][-1]["data"]["values"]}
    assert (points["a", 30.0], points["b", 60.0]) == (pytest.approx(80), pytest.approx(115))
    (chart,) = charts_of(results)["telemetry"]
    assert "hottest CPU sensor, °C" in words(chart)


# --- reading ---------------------------------------------------------------------------------------------------------


def test_axes_speak_the_language_and_numbers_stay(six: Results) -> None:
    chinese = charts_of(six, language("zh-CN"))
    english = charts_of(six)
    for kind in ("charts", "curves", "depths"):
        of_ours, theirs = words(english[kind][0]), words(chinese[kind][0])
        assert any("is better" in w for w in of_ours) and not any("is better" in w for w in theirs)
        numbers = [w for w in of_ours if re.fullmatch(r"[\d.,]+( [KMG]iB)?", w)]
        assert numbers and set(numbers) <= set(theirs)


def test_hostile_names_are_text(six: Results) -> None:
    evil = "<script>\u202e"
    result = charts_of(sample.renamed(six, {"ice-a": evil}))
    assert "<script" not in "".join(c.svg for listed in result.values() for c in listed)
    assert any(w == "<script><U+202E>" for c in result["charts"] for w in words(c))


def test_a_flat_clock_is_not_blown_up_and_a_sagging_one_is_seen() -> None:
    def domain(values: list[float]) -> tuple[float, float]:
        line = Line("h", "#000", 0, [(float(i), v, math.nan, math.nan) for i, v in enumerate(values)])
        scale = charts.curve([line], "s", "GHz", Across.SECONDS)["layer"][-1]["encoding"]["y"]["scale"]
        return tuple(scale["domain"])

    flat, sagging = domain([3.0, 3.0001, 3.0]), domain([3.0, 2.85, 2.7])
    assert flat[1] - flat[0] >= 0.05 * 3 * 0.5 and sagging[0] < 2.7 and sagging[0] > 2.5


def test_boxes_draw_what_they_are_given() -> None:
    spec = charts.boxes([Box("a", "a", (1, 2, 3, 4, 5, 6, 7))], {"a": "#0072B2"}, "GB/s")
    svg = charts.to_svg(spec, 7)
    assert "GB/s" in svg and 'fill="#0072B2"' in svg


def test_nothing_measured_gives_no_chart() -> None:
    empty = sample.tiny({})
    assert not any(charts_of(with_rows(empty, empty.values.frame)).values())


# --- devices ---------------------------------------------------------------------------------------------------------


def test_links_between_devices_are_a_map_of_the_medians_of_hosts() -> None:
    test = {
        "workload": "nvbandwidth",
        "case": "device_to_device_memcpy_read_ce",
        "metric": "bandwidth",
        "class": "collective",
        "unit": "B/s",
    }
    ends = [(a, b) for a in ("gpu0", "gpu2", "gpu10") for b in ("gpu0", "gpu2", "gpu10") if a != b]
    links = [
        row(
            **test,
            headline=False,
            host=host,
            labels=f'{{"from":"{a}","to":"{b}"}}',
            value=scale * (2e11 if b == "gpu10" else 4e11),
        )
        for host, scale in (("h1", 1.0), ("h2", 1.1), ("h3", 1.2))
        for a, b in ends
    ]
    (chart_,) = maps.of_devices(
        view(with_rows(sample.tiny({h: [1.0] for h in ("h1", "h2", "h3")}), schema.frame(links))), Language()
    )
    spec = chart_.spec()
    cells = {(c["a"], c["b"]): (c["t"], c["v"]) for c in spec["data"]["values"]}
    assert len(cells) == 6
    assert cells["gpu0", "gpu2"] == ("440", pytest.approx(0))
    assert cells["gpu0", "gpu10"] == ("220", pytest.approx(-50))
    assert spec["layer"][0]["encoding"]["y"]["sort"] == ["gpu0", "gpu2", "gpu10"]
    assert "GB/s" in str(chart_.note)


def test_links_from_the_cpu_are_a_map_of_one_row() -> None:
    test = {
        "workload": "nvbandwidth",
        "case": "host_to_device_memcpy_ce",
        "metric": "bandwidth",
        "class": "collective",
        "unit": "B/s",
    }
    links = [row(**test, host="h1", labels=f'{{"from":"cpu0","to":"gpu{n}"}}', value=5e10 + n) for n in range(8)]
    (chart_,) = maps.of_devices(view(with_rows(sample.tiny({"h1": [1.0]}), schema.frame(links))), Language())
    spec = chart_.spec()
    assert spec["height"] * 8 == pytest.approx(spec["width"])
    assert len(spec["data"]["values"]) == 8
    in_chinese = language("zh-CN")
    (chart_,) = maps.of_devices(view(with_rows(sample.tiny({"h1": [1.0]}), schema.frame(links))), in_chinese)
    encoding = chart_.spec()["layer"][0]["encoding"]
    assert (encoding["y"]["title"], encoding["x"]["title"]) == ("来源", "目标")


@pytest.mark.parametrize("name", ["a\ufffeb", "a\uffffb", "a\x00b", "a\x1bb", "a\ud800b"])
def test_a_name_with_characters_that_xml_forbids_is_drawn(name: str) -> None:
    x, y = {"field": "x", "type": "nominal"}, {"field": "y", "type": "quantitative"}
    spec = {"data": {"values": [{"x": name, "y": 1}]}, "mark": "bar", "encoding": {"x": x, "y": y}}
    assert "a\ufffdb" in "".join(ET.fromstring(charts.to_svg(spec, 1)).itertext())
