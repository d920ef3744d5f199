"""Read MLCommons' tables of MLPerf results, Inference and Training, in their published forms.

The forms are the summary that MLCommons publishes with a round (``summary_results.json``), the submission checker's
``summary.csv``, the records of cm4mlperf-results, and tables that join such rows of many rounds. A machine is a
submitter's platform in a round. Results of the open division and runs with measured power form separate machines, and
their names say so.

Inference: case ``llama2-70b-99 Offline``, with the metrics ``samples_per_second``, ``tokens_per_second`` and
``latency`` as in ``parsers.mlperf_inference``. Measured power is ``power`` (W) or, for a stream, ``energy`` (J per
query); both are descriptive. Training: case ``bert``, metric ``time_to_train``. Results that are not known to come from
MLCommons are unverified.

Some rounds scored language models in tokens but printed Samples/s or Queries/s. The rounds' submission checkers define
which models these are (``RESULT_FIELD_BENCHMARK_OVERWRITE``), and ``_TOKENS`` lists them here: gptj counts samples in
v4.0 and tokens in v4.1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Kind, Measurement, Standing
from fleetmark.base.text import Message, joined, message
from fleetmark.parsers.published import Collector, Row, Table, figure
from fleetmark.parsers.published.files import Cells, Records, records, some, words

TRAITS: tuple[str, ...] = ("round", "division", "availability", "precision", "accelerators")
MODEL: tuple[str, ...] = ("platform", "system")
KIND: tuple[str, ...] = ("accelerator", "platform", "system", "processor")
COUNTS: Mapping[str, str] = {"accelerators": "accelerator", "gpus": "accelerator", "processors": "processor"}
UNIFORM: Mapping[str, str] = {
    "processor": "processor",
    "accelerator": "accelerator",
    "accelerators": "count",
    "nodes": "nodes",
    "has_power": "power",
    "software": "software",
}
PUBLISHER = "submitter"
SIZES: Mapping[str, str] = {"accelerators": "devices", "processors": "sockets"}
_SCENARIOS = {name.lower(): name for name in ("Offline", "Server", "Interactive", "SingleStream", "MultiStream")}
_CLASSES = {"Offline": "gpu-offline", "Server": "gpu-server", "Interactive": "gpu-interactive"}
_STREAMS = "gpu-latency"  # response speed for a single stream of requests
_BOTH = ("Offline", "Server", "Interactive")
# The prefix of a benchmark's name, its scenarios, and the round from which they are scored in tokens.
_TOKENS = (
    ("llama2-70b", ("Offline",), (4, 0)),
    ("llama2-70b", _BOTH, (4, 1)),
    ("gptj", _BOTH, (4, 1)),
    ("mixtral-8x7b", _BOTH, (4, 1)),
    ("llama3.1-405b", _BOTH, (5, 0)),
    ("llama3.1-8b", _BOTH, (5, 1)),
    ("deepseek-r1", _BOTH, (5, 1)),
    ("whisper", ("Offline",), (5, 1)),
)
_ALIASES = {"resnet": "resnet50"}
_UNITS = {  # as printed: metric, factor to the base unit, base unit, better direction
    "samples/s": ("samples_per_second", 1.0, "1/s", Better.HIGHER),
    "queries/s": ("samples_per_second", 1.0, "1/s", Better.HIGHER),
    "tokens/s": ("tokens_per_second", 1.0, "1/s", Better.HIGHER),
    "latency (ms)": ("latency", 1e-3, "s", Better.LOWER),
    "watts": ("power", 1.0, "W", Better.LOWER),
    "millijoules": ("energy", 1e-3, "J", Better.LOWER),
}
_DESCRIBING = ("power", "energy")
_MINUTES = {"min.": 60.0, "min": 60.0, "minutes": 60.0, "s": 1.0, "seconds": 1.0, "hours": 3600.0}
_PRECISION = re.compile(r"(?:mx|nv)?(?:fp|bf|tf)[0-9]{1,2}|u?int[0-9]{1,2}")
_COUNT = re.compile(r"[0-9]{1,18}")
_ROUND = re.compile(r"v?([0-9]{1,2})\.([0-9]{1,2})")
_OFFICIAL = re.compile(r"mlcommons/(?:(?:inference|training)_results_v[0-9]|cm4mlperf-results\b)")


@dataclass(frozen=True, slots=True)
class _Form:
    """The columns of one kind of table, each with its possible names."""

    title: str
    required: Mapping[str, tuple[str, ...]]
    optional: Mapping[str, tuple[str, ...]]

    def missing(self, columns: Iterable[str]) -> list[str]:
        present = set(columns)
        return [f"{name} ({' or '.join(names)})" for name, names in self.required.items() if not present & {*names}]


_INFERENCE = _Form(
    "MLPerf Inference results",
    {
        "submitter": ("Submitter", "Organization", "submitter"),
        "platform": ("Platform", "platform"),
        "division": ("Category", "Division", "division"),
        "model": ("UsedModel", "Model", "model"),
        "scenario": ("Scenario", "scenario"),
        "result": ("Performance_Result", "Result", "result"),
        "units": ("Performance_Units", "Units", "Result_Units", "units"),
        "round": ("version", "round"),
    },
    {
        "availability": ("Availability", "availability"),
        "suite": ("Suite", "SystemType", "suite"),
        "system": ("System", "SystemName", "system"),
        "accelerator": ("Accelerator", "accelerator_model_name", "accelerator"),
        "accelerators": ("a#", "accelerators_per_node"),
        "nodes": ("Nodes", "number_of_nodes", "nodes"),
        "processor": ("Processor", "host_processor_model_name", "processor"),
        "processors": ("p#", "host_processors_per_node", "processors_per_node"),
        "software": ("Software", "framework", "software"),
        "precision": ("weight_data_types", "weight_dtype"),
        "has_power": ("has_power",),
        "errors": ("errors",),
        "id": ("ID", "id"),
        "inferred": ("inferred",),
        "power": ("Power_Result", "Result_Power"),
        "power_units": ("Power_Units", "Result_Power_Units"),
        "official": ("MlperfModel",),
        "origin": ("Details", "git_url", "url", "source"),
    },
)
_TRAINING = _Form(
    "MLPerf Training results",
    {
        "submitter": ("submitter", "Organization"),
        "system": ("system", "_System"),
        "division": ("division",),
        "model": ("Model_ID",),
        "result": ("Result",),
        "units": ("Result_Units",),
        "round": ("version",),
    },
    {
        "availability": ("availability",),
        "accelerator": ("accelerator_model_name",),
        "accelerators": ("accelerators_count",),
        "processor": ("host_processor_model_name",),
        "processors": ("host_processors_count",),
        "software": ("framework",),
        "origin": ("details_url", "git_url", "code_url"),
    },
)


_MOST_NAMED = 6  # maximum number of submitters and identifiers in a sentence


def credit(
    machines: Sequence[Mapping[str, str]], figures: Sequence[tuple[str, str]], retrieved: str
) -> Iterator[Message]:
    """Yield the notice that MLCommons' policy requires beside published results.

    It names submitters, rounds and identifiers, and says that MLCommons does not sanction derived values. The arguments
    are those of ``spec.credit``.
    """

    def listed(label: str) -> list[str]:
        return sorted({value for machine in machines for value in machine.get(label, "").split("+") if value})

    if not figures:
        return
    ids = listed("id")
    yield message(
        "MLPerf® results of round {rounds}, submitted by {submitters}{ids}: see mlcommons.org, retrieved {date}. "
        "Ratios and means are derived by the user and not sanctioned by MLCommons. The MLPerf name and logo are "
        "registered trademarks of MLCommons Association; all rights reserved.",
        rounds=joined(listed("round")),
        submitters=some(listed("submitter"), _MOST_NAMED),
        date=retrieved,
        ids=message(" (identifiers {names})", names=some(ids, _MOST_NAMED)) if ids else "",
    )


def read(raw: bytes, name: str = "") -> Table:
    """Return the results in ``raw``. If "unofficial" is in the file's ``name``, all of them are unverified.

    Raise FleetmarkError for another table, and for a row whose unit is missing or unknown.
    """
    source = records(raw)
    form = _form(source)
    columns = {**form.required, **form.optional}
    names = {key: [n for n in listed if n in source.columns] for key, listed in columns.items()}
    collector = Collector()
    seen: set[tuple[object, ...]] = set()
    tally: Counter[str] = Counter()
    for place, cells in source.rows:
        row = {key: _first(cells, listed) for key, listed in names.items()}
        if "UsedModel" in cells:
            row["official"] = cells.get("Model")
        texts = {key: words(value) for key, value in row.items()}
        for key in form.required:
            if not texts[key] and key not in ("result", "units"):
                raise FleetmarkError(f"{place}: no {key}; every MLPerf result must have it")
        official = "unofficial" not in name.lower() and (
            bool(_OFFICIAL.search(texts["origin"])) or words(cells.get("_cm_experiment")).startswith("mlperf-")
        )
        standing = None if official else Standing.UNVERIFIED
        if form is _TRAINING:
            _training(collector, seen, place, row, texts, standing)
        else:
            _inference(collector, seen, tally, place, row, texts, standing)
    if tally["tokens"]:
        collector.notes.append(
            f"{tally['tokens']} rows print Samples/s or Queries/s where their round scores tokens: taken as tokens/s"
        )
    if tally["inferred"]:
        collector.notes.append(
            f"{tally['inferred']} figures were inferred by the submission checker from another scenario"
        )
    return collector.table(len(source.rows))


def _form(source: Records) -> _Form:
    missing = {form.title: form.missing(source.columns) for form in (_INFERENCE, _TRAINING)}
    for form in (_TRAINING, _INFERENCE):
        if not missing[form.title]:
            return form
    near = min((_INFERENCE, _TRAINING), key=lambda f: len(missing[f.title]))
    if len(missing[near.title]) <= len(near.required) // 2:
        raise FleetmarkError(f"{near.title} without {', '.join(missing[near.title])}")
    raise FleetmarkError(
        f"no table of MLPerf results: there are {_INFERENCE.title} (columns such as Submitter, Platform, Model, "
        f"Scenario, Units) and {_TRAINING.title} (submitter, system, Model_ID, Result_Units); "
        f"this {source.form} has {some(source.columns)}"
    )


def _first(cells: Cells, names: Iterable[str]) -> object:
    """Return the first of these columns that is not empty in this row."""
    return next((cells[n] for n in names if words(cells.get(n))), None)


def _inference(
    collector: Collector,
    seen: set[tuple[object, ...]],
    tally: Counter[str],
    place: str,
    row: Mapping[str, object],
    texts: Mapping[str, str],
    standing: Standing | None,
) -> None:
    """Add the figures of one row of Inference: its result, and the power if it was measured."""
    subject = f"{place} ({texts['submitter']} {texts['platform']}, {texts['model']} {texts['scenario']})"
    scenario = _SCENARIOS.get(texts["scenario"].lower())
    if scenario is None:
        raise FleetmarkError(f"{subject}: not an MLPerf scenario; use one of {', '.join(_SCENARIOS.values())}")
    division, power = texts["division"].lower(), texts["has_power"].lower() == "true"
    version = _version(texts["round"])
    metric, factor, unit, better = _unit(subject, texts["units"])
    model = _model(texts["model"], texts["official"], division)
    if metric == "samples_per_second" and _in_tokens(texts["official"] or model, scenario, version):
        metric = "tokens_per_second"
        tally["tokens"] += 1
    if texts["errors"] not in ("", "0"):
        collector.leave("the submission checker found errors")
        return
    labels = _labels(texts, version, division)
    labels |= {"suite": _parts(texts["suite"].lower()), "platform": texts["platform"], "has_power": str(power).lower()}
    name = f"{texts['submitter']}/{texts['platform']} {version}"
    name += ("" if division == "closed" else f" {division}") + (" power" if power else "")
    figures = [(metric, factor, unit, better, row["result"])]
    if metric in _DESCRIBING:  # a row that only gives the power
        figures = [(metric, factor, unit, better, row["power"] or row["result"])]
    elif texts["power"]:
        figures.append((*_unit(subject, texts["power_units"] or "watts"), row["power"]))
    for n, (metric, factor, unit, better, cell) in enumerate(figures):
        value, reason = figure(cell)
        if reason:
            collector.leave(f"{metric}: {reason}")
            continue
        case = f"{model} {scenario}"
        if (name, case, metric, value) in seen:
            if n == 0:
                collector.leave("the same row again")
            continue
        seen.add((name, case, metric, value))
        tally["inferred"] += metric not in _DESCRIBING and texts["inferred"] == "1"
        m = Measurement("mlperf_inference", case, metric, value * factor, unit, better=better)
        entry = Row(
            name,
            m,
            _CLASSES.get(scenario, _STREAMS),
            _kind(metric, scenario),
            place,
            headline=metric not in _DESCRIBING,
            standing=standing,
            version=version,
        )
        collector.add(name, {}, labels, entry)


def _kind(metric: str, scenario: str) -> Kind:
    """Return the kind: throughput of the whole machine is capacity; the latency of one stream and power are not."""
    if metric in _DESCRIBING:
        return Kind.GUARDRAIL
    return Kind.CAPACITY if scenario in _CLASSES else Kind.RESPONSIVENESS


def _training(
    collector: Collector,
    seen: set[tuple[object, ...]],
    place: str,
    row: Mapping[str, object],
    texts: Mapping[str, str],
    standing: Standing | None,
) -> None:
    subject = f"{place} ({texts['submitter']} {texts['system']}, {texts['model']})"
    factor = _MINUTES.get(texts["units"].lower())
    if factor is None:
        raise FleetmarkError(f"{subject}: {_no_unit(texts['units'])}; give the time to train in {', '.join(_MINUTES)}")
    value, reason = figure(row["result"])
    if reason:
        collector.leave(f"time_to_train: {reason}")
        return
    division, version = texts["division"].lower(), _version(texts["round"])
    name = f"{texts['submitter']}/{texts['system']} {version}" + ("" if division == "closed" else f" {division}")
    identity = {"accelerators": texts["accelerators"], "accelerator": texts["accelerator"]}
    if (name, *identity.values(), texts["model"], value) in seen:
        collector.leave("the same row again")
        return
    seen.add((name, *identity.values(), texts["model"], value))
    labels = _labels(texts, version, division) | {"suite": "training"}
    m = Measurement("mlperf_training", texts["model"], "time_to_train", value * factor, "s", better=Better.LOWER)
    entry = Row(name, m, "gpu-train-speed", Kind.RESPONSIVENESS, place, standing=standing, version=version)
    collector.add(name, identity, labels, entry)


def _labels(texts: Mapping[str, str], version: str, division: str) -> dict[str, str | list[str]]:
    """Return the labels that select a machine; ``accelerators`` and ``gpus`` count those of all its nodes."""
    each, nodes = texts["accelerators"], texts.get("nodes", "") or "1"
    count = str(int(each) * int(nodes)) if _COUNT.fullmatch(each) and _COUNT.fullmatch(nodes) else each or "0"
    count = "0" if count == "N/A" else count
    accelerator = "" if texts["accelerator"] in ("N/A", "0") else texts["accelerator"]
    return {
        "round": version,
        "submitter": texts["submitter"],
        "id": texts.get("id", ""),
        "division": division,
        "availability": _availability(texts["availability"]),
        "system": texts["system"],
        "accelerator": accelerator,
        "accelerators": count,
        "gpus": count if _COUNT.fullmatch(count) and int(count) else "",
        "nodes": texts.get("nodes", ""),
        "processor": texts["processor"],
        "processors": texts["processors"],
        "precision": sorted(set(_PRECISION.findall(texts.get("precision", "").lower()))),
        "software": texts["software"],
    }


def _parts(text: str) -> list[str]:
    """Return the parts of ``edge,datacenter`` separately, because a comma would end a selector's term."""
    return [part.strip() for part in text.split(",")]


def _availability(text: str) -> str:
    """Return one of MLPerf's three categories from any spelling; other words stay unchanged."""
    lower = text.lower()
    if lower.startswith("available") or lower in ("onprem", "cloud"):
        return "available"
    return "rdi" if lower.startswith("research") else lower


def _version(text: str) -> str:
    match = _ROUND.fullmatch(text)
    return f"v{match[1]}.{match[2]}" if match else text


def _unit(subject: str, printed: str) -> tuple[str, float, str, Better]:
    kind = _UNITS.get(printed.lower())
    if kind is None:
        raise FleetmarkError(
            f"{subject}: {_no_unit(printed)}; MLPerf's units are Samples/s, Queries/s, Tokens/s, Latency (ms)"
        )
    return kind


def _no_unit(printed: str) -> str:
    return f"the unit {printed!r} is not known" if printed else "it has no unit"


def _model(used: str, official: str, division: str) -> str:
    """Return the benchmark's canonical name; in the open division, with the network that ran if it differs."""
    is_official = re.sub(r"\W|_", "", used).lower() == re.sub(r"\W|_", "", official).lower()
    name = official if official and (is_official or division == "closed") else used
    return _ALIASES.get(name, name)


def _in_tokens(model: str, scenario: str, version: str) -> bool:
    match = _ROUND.fullmatch(version)
    here = (int(match[1]), int(match[2])) if match else (0, 0)
    return any(model.startswith(name) and scenario in its and here >= since for name, its, since in _TOKENS)
