"""A comparison's workbook, as LibreOffice recalculates it: every formula agrees with Python, inputs work, and nothing in it acts."""

from __future__ import annotations

import io
import math
import random
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.utils import column_index_from_string
from openpyxl.utils.cell import range_boundaries

from fleetmark.base.text import Message
from fleetmark.planner.equivalence import compare
from fleetmark.reports.comparison.compared import Compared
from fleetmark.reports.comparison.titles import class_title
from fleetmark.reports.comparison.workbook import hosts as host_tabs
from fleetmark.reports.comparison.workbook import sources
from fleetmark.reports.formats import xlsx
from fleetmark.reports.kit.language import Language
from fleetmark.verbs import reference
from tests.records import GCC, IOPS, MCF, NULL, TRIAD, Bench, record
from tests.reports.compared import compared, document
from tests.sheets import Cells, disagreements, edited, formulas, recalculated, table, values

HOSTILE = "=cmd|'/C calc'!A1 <script>\x00\u202e\ufffe" + "x" * 300
COPY = Bench("stream", "all-cores", "copy", "B/s", "higher", "mem-bw")
ADD = Bench("stream", "all-cores", "add", "B/s", "higher", "mem-bw")
PAIR = Bench("iperf3", "tcp-1", "bitrate", "B/s", "higher", "net")
ONLY_OLD = Bench("mlc", "idle", "latency", "s", "lower", "mem-latency")
CLASH = {
    "old": Bench("gptj", "offline", "rate", "1/s", "higher", "gpu"),
    "new": Bench("gptj", "offline", "rate", "B/s", "higher", "gpu"),
}


def fleet(root: Path) -> Path:
    """Three generations of three to five hosts with gaps, pairs, medians, two campaigns of one, and one hostile label."""
    rng = random.Random(7)
    for n, (gen, factor, size) in enumerate((("old", 1.0, 4), ("new", 1.8, 5), ("newer", 2.3, 3))):
        hosts = {f"{gen[0]}{gen[-1]}{k}": {"gen": gen, "site": "ams" if k % 2 else "fra"} for k in range(size)}
        hosts |= {HOSTILE: {"gen": gen}} if gen == "newer" else {}
        measured: dict[tuple[str, Bench], Sequence[float]] = {}
        for k, host in enumerate(hosts):
            host_effect = math.exp(rng.gauss(0, 0.03))

            def some(
                base: float, power: float, count: int = 4, host_effect: float = host_effect, factor: float = factor
            ) -> list[float]:
                return [base * factor**power * host_effect * math.exp(rng.gauss(0, 0.01)) for _ in range(count)]

            measured |= {(host, TRIAD): some(2e11, 0.9), (host, MCF): some(210, 1), (host, IOPS): some(3e5, 0.4, 5)}
            measured |= {(host, NULL): some(9e-8, -0.3)}
            measured |= {(host, COPY): some(1.8e11, 0.7)} if k != 1 else {}  # a host with a gap
            measured |= {(host, ADD): [2.2e11 * factor] * 3}  # the same on every host: no variance at all
            measured |= {(host, GCC): some(260, 1.1)} if gen != "newer" else {}
            measured |= {(host, ONLY_OLD): some(9e-8, 0)} if gen == "old" else {}
            if gen in CLASH:
                measured[host, CLASH[gen]] = some(100, 1)
            for other in hosts:
                if other != host:
                    pair = Bench(
                        *(PAIR.workload, PAIR.case, PAIR.metric, PAIR.unit, PAIR.better, PAIR.class_),
                        subject=f"{host}>{other}",
                    )
                    measured[host, pair] = some(1e9, 0.5, 3)
        cores = dict.fromkeys(hosts, 16 * (n + 1))
        ids = {host: f"id-{host[:20]}" for host in hosts}
        record(root, f"2026110{n + 1}T000000-{gen}", hosts, measured, cores=cores, ids=ids)
        if gen == "old":  # measured a second time, a part of it
            again = {key: some(2e11, 0.9, 2) for key in measured if key[1] is TRIAD}
            record(root, "20261105T000000-again", hosts, again, cores=cores, ids=ids)
    before = {f"p{k}": {"gen": "before"} for k in range(4)}
    ids = {host: f"id-{host}" for host in before}
    for name, gen, factor in (("20261106T000000-b", "before", 1.0), ("20261107T000000-a", "after", 1.07)):
        labels_of = {h: {"gen": gen} for h in before if (h, gen) != ("p3", "after")}
        runs = {
            (h, b): [base * factor * (1 + 0.1 * k) * math.exp(rng.gauss(0, 0.01)) for _ in range(3)]
            for k, h in enumerate(labels_of)
            for b, base in ((TRIAD, 2e11), (COPY, 1.7e11), (MCF, 200))
            if (h, b, gen) != ("p2", MCF, "after")
        }
        record(root, name, labels_of, runs, ids=ids)
    return root


def book_of(seen: Compared, language: Language | None = None) -> bytes:
    spoken = language or Language()
    return xlsx.render(document(seen, spoken), spoken)


ASKED: Mapping[str, tuple[str | None, Sequence[str], Mapping[str, Any]]] = {
    "apart": ("gen=old", ["gen=new", "gen=newer"], {}),
    "mix": ("gen=old", ["gen=new", "gen=newer"], {"mix": "cpu-int=0.5,mem-bw=0.3,disk-iops=0.2"}),
    "per core": ("gen=old", ["gen=new"], {"per": "core"}),
    "paired": ("gen=before", ["gen=after"], {"paired": True, "mix": "mem-bw=0.6,cpu-int=0.4"}),
    "pinned": (None, ["gen=new", "host=nw0"], {"reference": "old"}),
    "by site": ("gen=old", ["gen=new"], {"host_label": "site"}),
    "best": ("gen=old", ["gen=new"], {"best": True}),
    "one host": ("host=od0", ["host=nw0", "gen=new"], {"only": ["stream/*", "lmbench/*"]}),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = fleet(tmp_path_factory.mktemp("record"))
    reference.pin(folder, "old", "gen=old")
    return folder


@pytest.fixture(scope="module")
def reports(root: Path) -> dict[str, Compared]:
    return {
        name: compared(root, base, candidates, values=True, **options)
        for name, (base, candidates, options) in ASKED.items()
    }


class Shouting(Language):
    """A language whose fixed text is in capitals, so that other text shows."""

    def __call__(self, text: str, **fields: Any) -> str:
        return super().__call__(text, **fields).upper() if isinstance(text, Message) else text


@pytest.fixture(scope="module")
def books(reports: Mapping[str, Compared]) -> dict[str, bytes]:
    by_name = {name: book_of(seen) for name, seen in reports.items()}
    by_name["shouting"] = book_of(reports["per core"], Shouting())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "LIVE", 10)
        patch.setattr(host_tabs, "MOST_SHOWN", 10)
        return by_name | {"many": book_of(reports["best"])}


def cell_of(book: bytes, sheet: str, row: Mapping[str, str], head: str) -> str:
    """The cell under ``head`` in the row whose cells under other heads equal ``row``."""
    heads, rows = table(book, sheet)
    for n, cells in enumerate(rows, 5):
        if all(cells.get(heads[name]) == value for name, value in row.items()):
            return f"{heads[head]}{n}"
    raise AssertionError(f"{sheet} has no row {row}")


def edits(book: bytes) -> dict[str, dict[tuple[str, str], Any]]:
    """Changes of inputs by name: (sheet, cell) to value."""

    def place(class_: str, benchmark: str, head: str) -> tuple[str, str]:
        row = {"candidate": "new", "class": class_, "benchmark": benchmark}
        return "Weights", cell_of(book, "Weights", row, head)

    return {
        "weights": {
            place("cpu-int", TITLE, "weight"): 9.0,
            place("os", LATENCY, "counted"): 0,
            place("disk-iops", "fio randread-4k-qd32 read_iops", "weight"): 0,
        },
        "others": {("Inputs", "B5"): 0.8, ("Raw", cell_of(book, "Raw", {"benchmark": LATENCY}, "value")): 4e-7},
    }


TITLE = "spec_cpu2017 502.gcc_r base_ratio"
LATENCY = "lmbench lat_syscall-null null"


@pytest.fixture(scope="module")
def libreoffice(books: Mapping[str, bytes]) -> dict[str, Cells]:
    """Every book as LibreOffice works it out, also one with wrong values in it and those with other inputs."""
    changed = {name: edited(books["apart"], changes) for name, changes in edits(books["apart"]).items()}
    every = {**books, **changed, "lie": lied_to(books["apart"])}
    return dict(zip(every, recalculated(list(every.values())), strict=True))


def lied_to(book: bytes) -> bytes:
    """The same formulas with 123.456 as the value of each that has a number."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.startswith("xl/worksheets/sheet"):
                data = re.sub(rb"</f><v>[-0-9.e+]+</v>", b"</f><v>123.456</v>", data)
            new.writestr(name, data)
    return out.getvalue()


@pytest.mark.parametrize("name", [*ASKED, "many", "shouting"])
def test_recalculated_agrees_with_python_on_every_formula_cell(
    name: str, books: Mapping[str, bytes], libreoffice: Mapping[str, Cells]
) -> None:
    assert sum(map(len, formulas(books[name]).values())) > 90
    assert list(disagreements(books[name], libreoffice[name])) == []


def test_the_recalculation_is_real(books: Mapping[str, bytes], libreoffice: Mapping[str, Cells]) -> None:
    cell = cell_of(books["apart"], "Classes", {"candidate": "new", "class": class_title("cpu-int")}, "ratio")
    assert values(lied_to(books["apart"]))["Classes"][cell] == 123.456
    assert list(disagreements(books["apart"], libreoffice["lie"])) == []


@pytest.mark.parametrize("name", [*ASKED])
def test_headlines_and_benchmarks_are_those_of_the_planner(
    name: str, reports: Mapping[str, Compared], books: Mapping[str, bytes], libreoffice: Mapping[str, Cells]
) -> None:
    comparison = reports[name].comparison
    assert comparison is not None
    checked = 0
    for candidate in comparison.candidates:
        for class_, e in candidate.classes.items():
            title = class_title(class_)
            name_of = f"{title}, geometric mean" if class_ == "work mix" else title
            rows = [("Classes", {"candidate": candidate.title, "class": name_of}, "ratio", e.ratio)]
            if e.work:
                equal = {"candidate": candidate.title, "class": f"{title}, equal work"}
                rows.append(("Classes", equal, "ratio", e.work))
            if class_ != "work mix":
                rows += [
                    ("Benchmarks", {"candidate": candidate.title, "benchmark": t}, "ratio", r)
                    for t, r in e.each.items()
                ]
            for sheet, row, head, ratio in rows:
                expected = (
                    [None] * 5 if ratio is None else [ratio.value, ratio.lo, ratio.hi, ratio.p, str(ratio.verdict)]
                )
                if class_ == "work mix" and ratio is e.ratio:
                    expected[-1] = None  # the headline for equal work carries the verdict
                for column, value in zip((head, "from", "to", "p", "verdict"), expected, strict=True):
                    cell = cell_of(books[name], sheet, row, column)
                    shown = libreoffice[name][sheet].get(cell)
                    assert shown == (pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value)
                    checked += value is not None
    assert checked > 10


def test_means_are_formulas_over_the_measurements(books: Mapping[str, bytes]) -> None:
    logs = formulas(books["apart"])["Host logs"]
    numbers = [
        c
        for c, v in values(books["apart"])["Host logs"].items()
        if isinstance(v, float) and int(re.sub(r"\D", "", c)) > 4
    ]
    assert set(numbers) == set(logs) and len(logs) > 50
    assert any("MEDIAN(" in f for f in logs.values()) and any("AVERAGE(AVERAGE(" in f for f in logs.values())
    assert any(f.startswith("=MAX(") for f in formulas(books["best"])["Host logs"].values())
    assert not formulas(books["pinned"])["Host logs"].keys() & {"E5"}  # a pinned figure is exact


def test_a_changed_weight_changes_the_headline_as_the_planner_would(
    reports: Mapping[str, Compared], books: Mapping[str, bytes], libreoffice: Mapping[str, Cells]
) -> None:
    sides = reports["apart"].sides
    e = reports["apart"].comparison.candidates[0].classes["cpu-int"]  # type: ignore[union-attr]
    a, b = (sides[t].means[[*e.weights]] for t in ("old", "new"))
    expected = compare(a, b, weights={**e.weights, TITLE: 9.0}).ratio
    assert expected is not None and e.ratio is not None and abs(expected.value / e.ratio.value - 1) > 0.01
    headline = classes(books, libreoffice["weights"], "cpu-int")
    assert headline == pytest.approx([expected.value, expected.lo, expected.hi, expected.p], rel=1e-9)


def classes(books: Mapping[str, bytes], libreoffice: Cells, class_: str) -> list[Any]:
    row = {"candidate": "new", "class": class_title(class_)}
    return [
        libreoffice["Classes"].get(cell_of(books["apart"], "Classes", row, head))
        for head in ("ratio", "from", "to", "p")
    ]


def test_other_inputs_are_followed(books: Mapping[str, bytes], libreoffice: Mapping[str, Cells]) -> None:
    before, after = (classes(books, libreoffice[name], "cpu-int") for name in ("apart", "others"))
    assert after[0] == before[0] and before[1] < after[1] < after[2] < before[2]  # a lower confidence
    before, after = (classes(books, libreoffice[name], "os") for name in ("apart", "others"))
    assert after[0] != before[0]  # another measurement
    assert classes(books, libreoffice["weights"], "os") == [None] * 4  # nothing that counts
    assert classes(books, libreoffice["weights"], "disk-iops") == [None] * 4  # no weight at all
    for name in ("weights", "others"):
        shown = [v for cells in libreoffice[name].values() for v in cells.values() if isinstance(v, str)]
        assert not [v for v in shown if v.startswith(("#", "Err:"))], name


def test_what_was_left_out_is_listed(books: Mapping[str, bytes]) -> None:
    listed = " ".join(str(v) for v in values(books["apart"])["Excluded"].values())
    assert "units clash" in listed and "not measured on new" in listed
    row = {"candidate": "new", "benchmark": "gptj offline rate"}  # whose sides share no unit
    assert not {cell_of(books["apart"], "Benchmarks", row, h) for h in ("baseline", "ratio")} & set(
        values(books["apart"])["Benchmarks"]
    )


def test_the_same_report_gives_the_same_bytes(reports: Mapping[str, Compared], books: Mapping[str, bytes]) -> None:
    for name in ("apart", "paired"):
        assert book_of(reports[name]) == books[name]


def test_hostile_text_stays_text(books: Mapping[str, bytes]) -> None:
    book = books["apart"]
    names = [v for v in values(book)["Per host"].values() if isinstance(v, str) and "cmd|" in v]
    assert names and all("\u202e" not in n and "\ufffe" not in n and "\u2400" in n for n in names)
    assert not [f for cells in formulas(book).values() for f in cells.values() if "cmd|" in f]
    with zipfile.ZipFile(io.BytesIO(book)) as z:
        parts = {name: z.read(name).decode() for name in z.namelist() if name.endswith((".xml", ".rels"))}
    assert not [name for name, text in parts.items() if "TargetMode" in text or "<script" in text]
    defined = re.findall(r'<definedName name="([^"]+)"', parts["xl/workbook.xml"])
    assert "E_new_cpu_int" in defined and len(set(map(str.lower, defined))) == len(set(defined))


def test_too_many_measurements_stand_as_values(books: Mapping[str, bytes]) -> None:
    book = books["many"]
    assert not formulas(book)["Host logs"] and formulas(book)["Benchmarks"] and not formulas(book)["Raw"]
    sheets = values(book)
    assert "measurements.parquet" in sheets["Raw"]["A2"] and "too many" in sheets["Per host"]["A2"]


def test_fixed_text_is_in_the_readers_language(books: Mapping[str, bytes]) -> None:
    sheets = values(books["shouting"])
    assert set(sheets) >= {"README", "CONVERSION", "PER HOST"}
    assert "BETTER" in sheets["CLASSES"].values() and "better" not in sheets["CLASSES"].values()
    assert TITLE in sheets["BENCHMARKS"].values() and "new" in sheets["CLASSES"].values()
    assert any('"BETTER"' in f for f in formulas(books["shouting"])["CLASSES"].values())


def test_workings_are_not_printed_and_verdicts_keep_their_colours(books: Mapping[str, bytes]) -> None:
    """The colours are rules about the words that formulas give, so they follow an edited input."""
    read = openpyxl.load_workbook(io.BytesIO(books["apart"]))
    for name in ("Classes", "Benchmarks"):
        heads, rows = table(books["apart"], name)
        last = range_boundaries(str(read[name].print_area).split("!")[1].replace("$", ""))[2]
        working = min(column_index_from_string(heads[head]) for head in ("hosts, baseline", "hosts, candidate"))
        assert last == working - 1, name
        rules = [
            (rule.formula[0], area)
            for area, given in read[name].conditional_formatting._cf_rules.items()
            for rule in given
        ]
        column = heads["verdict"]
        assert {formula.split("=")[1] for formula, _ in rules} == {'"better"', '"worse"', '"cannot tell"'}
        assert all(str(area.sqref) == f"{column}5:{column}{4 + len(rows)}" for _, area in rules)
        assert all(formula.startswith(f"{column}5=") for formula, _ in rules)
        words = {cells.get(column) for cells in rows}
        assert "better" in words
