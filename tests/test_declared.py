"""What general code knows of single workloads stands in their manifests: it names none of them, nor a metric or case."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.record import imports
from fleetmark.workloads import declared, load, names
from fleetmark.workloads.manifest import Manifest, read_model

HOUSE = Path(__file__).parents[1]
GENERAL = ("fleetmark", "planner", "reports", "workloads", "playbooks/agent", "playbooks/action_plugins")
# Examples of what a user may type, in help and in errors: a real name says more than a made-up one.
EXAMPLES = {
    "fleetmark/cli/common.py": {"fio"},
    "fleetmark/cli/parse.py": {"fio", "stream"},
    "fleetmark/cli/profile.py": {"stream"},
    "fleetmark/demand/keys/worth.py": {"fio", "read_iops"},
    "fleetmark/record/profiles.py": {"stream"},
    "fleetmark/hosts/slurm/job.py": {"-mem"},  # an option of srun
}


def known() -> set[str]:
    """The names of workloads, and what else only they know: metrics, scores, the programs of a score, and cases, where
    these are no plain words."""
    manifests = [load(name) for name in names()]
    scores = {name: score for m in manifests for name, score in m.scores.items()}
    measured = {name for m in manifests for name in m.metrics} | scores.keys()
    measured |= {case for s in scores.values() for case in (*s.cases, *s.runs)}
    cases = {
        part for m in manifests for c in m.cases for part in re.split(r"\{\{.*?\}\}|<.*?>", f"{c.name} {c.called}")
    }
    return {
        *names(),
        *(n for n in measured if _telling(n)),
        *(w for part in cases for w in part.split() if _telling(w)),
    }


def _telling(part: str) -> bool:
    """Whether a name, or a fixed part of cases' names, is more than a plain word: ``lat_mem_rd-``, ``-p99-``."""
    return len(part) > 2 and bool(re.search(r"[a-z].*[-_0-9]|[-_].*[a-z]", part))


def texts(source: str) -> Iterator[tuple[int, str]]:
    """The strings of a module with their lines, those of formatted strings as well; docstrings explain, and may name
    what they like."""
    tree = ast.parse(source)
    prose = {
        id(body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (body := node.body)
        and isinstance(body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value


def named(source: str, words: set[str]) -> Iterator[tuple[int, str]]:
    """Where the code (not the docstrings) of a module names one of ``words``, and which."""
    for line, text in texts(source):
        tokens = {*re.findall(r"\w+", text), text}
        yield from (
            (line, word) for word in sorted(words) if word in tokens or (not word.isidentifier() and word in text)
        )
    for node in ast.walk(ast.parse(source)):
        module = node.module if isinstance(node, ast.ImportFrom) else None
        if module and module.startswith("fleetmark.parsers.") and module.split(".")[2] in words:
            yield node.lineno, module


def general() -> Iterator[Path]:
    for folder in GENERAL:
        yield from sorted((HOUSE / folder).rglob("*.py"))
    yield HOUSE / "parsers" / "__init__.py"
    yield from sorted((HOUSE / "parsers").glob("_*.py"))


def test_general_code_names_no_workload() -> None:
    words = known()
    assert {"fio", "loaded_latency", "-p99-", "read_iops"} <= words
    faults = []
    seen: dict[str, set[str]] = {}
    for path in general():
        file = str(path.relative_to(HOUSE))
        for line, word in named(path.read_text("utf-8"), words):
            if word in EXAMPLES.get(file, ()):
                seen.setdefault(file, set()).add(word)
            else:
                faults.append(f"{file}:{line} names {word}: make it a key of the manifest")
    assert faults == []
    assert seen == EXAMPLES, "an example that is gone needs no exception"


def test_templates_and_styles_of_reports_name_no_workload() -> None:
    words = known() - {"stream"}
    pages = [p for p in (HOUSE / "reports").rglob("*") if p.suffix in (".j2", ".js", ".css", ".html")]
    assert pages
    assert [(p.name, w) for p in pages for w in words & set(re.findall(r"\w+", p.read_text("utf-8")))] == []


def test_a_name_is_seen_wherever_it_stands() -> None:
    code = '"""Of fio."""\nif "-p99-" in run or f"{x} fio/{y}" or name == "stream":\n    from fleetmark.parsers.mlc import parse\n'
    names_in_it = {(2, "-p99-"), (2, "stream"), (2, "fio"), (3, "fleetmark.parsers.mlc")}
    assert set(named(code, {"fio", "-p99-", "stream", "mlc"})) == names_in_it
    assert list(named("stream = open_stream()\n", {"stream"})) == []


def test_a_depth_is_read_off_the_cases_that_have_one() -> None:
    assert declared.depth("fio", "randread-4k-qd32") == ("randread-4k", 32.0)
    assert declared.depth("fio", "randread-4k-qd32/job") == ("randread-4k/job", 32.0)
    for case in ("randread-4k-qd0", "randread-4k-qd", "randread-4k-p99-500us", "qd"):
        assert declared.depth("fio", case) is None
    assert declared.depth("stream", "x-qd4") is None and declared.depth("nginx", "x-qd4") is None


def test_a_limit_is_that_of_the_cases_that_keep_one() -> None:
    assert declared.keeps_limit("fio", "randread-4k-p99-500us")
    assert declared.keeps_limit("fio", "randread-4k-p99-500us/job")
    assert not declared.keeps_limit("fio", "randread-4k-qd32")
    assert not declared.keeps_limit("nginx", "randread-4k-p99-500us")


def test_a_latency_under_load_stands_against_a_bandwidth() -> None:
    plots = {m: plot.bandwidth for m in load("mlc").metrics if (plot := declared.plot("mlc", m))}
    latencies = ("loaded_latency", "loaded_latency_random", "loaded_latency_prefetched")
    assert plots == dict.fromkeys(latencies, "loaded_bandwidth")
    assert declared.plot("fio", "loaded_latency") is None and declared.plot("nginx", "rps") is None


def test_labels_of_published_tables_and_of_plots_are_known_to_their_owners_alone() -> None:
    plots = [m.plot.each for name in names() for m in load(name).metrics.values() if m.plot]
    labels = {*plots, *imports.TRAITS, *imports.MODEL} - {"system", "processor"}  # facts have these, too
    assert plots
    assert [(str(p), n, text) for p in general() for n, text in texts(p.read_text("utf-8")) if text in labels] == []
    assert imports.TRAITS == ("round", "division", "availability", "precision", "accelerators")
    assert imports.MODEL == ("platform", "system", "processor")  # in the order in which one is looked for


def test_what_slows_a_workload_down() -> None:
    assert "io.max" in declared.throttle("fio")
    assert declared.throttle("selftest") == declared.throttle("nginx") == ""


@pytest.mark.parametrize("other", ["absent", "m"])
def test_a_plot_against_what_is_no_bandwidth_is_refused(tmp_path: Path, other: Any) -> None:
    file = tmp_path / "w.yml"
    file.write_text(
        "title: t\nclass: disk\ndescription: a\nlicence: l\ncitation: c\ncases: [{name: c, argv: [true], expect: 1}]\n"
        f"metrics: {{m: {{unit: s, better: lower, description: a, plot: {{bandwidth: {other}, each: step}}}}}}\n"
    )
    with pytest.raises(
        FleetmarkError, match=f"w.yml: metrics: .*m is drawn against {other}, which is not one of its bandwidths"
    ):
        read_model(file, Manifest, name="w")


@pytest.mark.parametrize(
    ("workload", "metric", "unit"),
    [
        ("llm_serve", "interactivity", "tokens/s"),
        ("llm_serve", "requests_per_second", "requests/s"),
        ("fio", "read_iops", "IOPS"),
        ("perftest", "message_rate", "messages/s"),
        ("another", "images_per_second_device", "images/s"),
        ("stream", "triad", ""),
    ],
)
def test_the_unit_of_a_rate_is_what_its_metric_counts(workload: str, metric: str, unit: str) -> None:
    assert declared.counted(workload, metric) == unit
