"""MLCommons' tables of MLPerf results: Inference and Training, in the forms they are published in.

Read: the summary that MLCommons publishes with a round (``summary_results.json``), the submission checker's
``summary.csv``, the records of cm4mlperf-results for Inference and for Training, and such rows of many rounds in one
table. A machine is a submitter's platform in a round; open division and runs with power measured are machines of their
own, and their names say so.

Inference: case ``llama2-70b-99 Offline``, metrics ``samples_per_second``, ``tokens_per_second`` and ``latency`` as in
``parsers.mlperf_inference``; measured power is ``power`` (W) or, for a stream, ``energy`` (J per query), and describes.
Training: case ``bert``, metric ``time_to_train``. What is not known to come from MLCommons is unverified.

Some rounds scored language models in tokens and printed Samples/s or Queries/s; the rounds' submission checkers tell
which (``RESULT_FIELD_BENCHMARK_OVERWRITE``), and ``_TOKENS`` here. So gptj is samples in v4.0, tokens in v4.1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Measurement, Standing
from parsers.published import Cells, Collector, Records, Row, Table, figure, records, some, words

TRAITS: tuple[str, ...] = ("round", "division", "availability", "precision", "accelerators")
MODEL: tuple[str, ...] = ("platform", "system")
_SCENARIOS = {name.lower(): name for name in ("Offline", "Server", "Interactive", "SingleStream", "MultiStream")}
_CLASSES = {"Offline": "gpu-offline", "Server": "gpu-sla", "Interactive": "gpu-sla"}  # the streams are gpu-compute
_BOTH = ("Offline", "Server", "Interactive")
# What a benchmark is called at first, its scenarios, and the round from which on they are scored in tokens.
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
_UNITS = {  # as printed: metric, factor to the base unit, base unit, which way is better
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
    """What is to be found in a table of one kind, and under which names."""

    title: str
    required: Mapping[str, tuple[str, ...]]
    optional: Mapping[str, tuple[str, ...]]

    def missing(self, columns: Iterable[str]) -> list[str]:
        there = set(columns)
        return [f"{what} ({' or '.join(names)})" for what, names in self.required.items() if not there & {*names}]


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


def read(raw: bytes, name: str = "") -> Table:
    """The results in ``raw``. Raises FleetmarkError for another table, and for a row whose unit is missing or unknown.

    ``name``: the file's; "unofficial" in it makes every result unverified.
    """
    found = records(raw)
    form = _form(found)
    wanted = {**form.required, **form.optional}
    names = {what: [n for n in listed if n in found.columns] for what, listed in wanted.items()}
    made = Collector()
    seen: set[tuple[object, ...]] = set()
    tally: Counter[str] = Counter()
    for place, cells in found.rows:
        row = {what: _first(cells, listed) for what, listed in names.items()}
        if "UsedModel" in cells:
            row["official"] = cells.get("Model")
        said = {what: words(value) for what, value in row.items()}
        for what in form.required:
            if not said[what] and what not in ("result", "units"):
                raise FleetmarkError(f"{place}: no {what}; a result of MLPerf names it")
        official = "unofficial" not in name.lower() and (
            bool(_OFFICIAL.search(said["origin"])) or words(cells.get("_cm_experiment")).startswith("mlperf-")
        )
        standing = None if official else Standing.UNVERIFIED
        if form is _TRAINING:
            _training(made, seen, place, row, said, standing)
        else:
            _inference(made, seen, tally, place, row, said, standing)
    if tally["tokens"]:
        made.notes.append(
            f"{tally['tokens']} rows print Samples/s or Queries/s where their round scores tokens: taken as tokens/s"
        )
    if tally["inferred"]:
        made.notes.append(f"{tally['inferred']} figures were inferred by the submission checker from another scenario")
    return made.table(len(found.rows))


def _form(found: Records) -> _Form:
    missing = {form.title: form.missing(found.columns) for form in (_INFERENCE, _TRAINING)}
    for form in (_TRAINING, _INFERENCE):
        if not missing[form.title]:
            return form
    near = min((_INFERENCE, _TRAINING), key=lambda f: len(missing[f.title]))
    if len(missing[near.title]) <= len(near.required) // 2:
        raise FleetmarkError(f"{near.title} without {', '.join(missing[near.title])}")
    raise FleetmarkError(
        f"no table of MLPerf results: there are {_INFERENCE.title} (columns such as Submitter, Platform, Model, "
        f"Scenario, Units) and {_TRAINING.title} (submitter, system, Model_ID, Result_Units); "
        f"this {found.form} has {some(found.columns)}"
    )


def _first(cells: Cells, names: Iterable[str]) -> object:
    """The first of these columns that holds anything in this row."""
    return next((cells[n] for n in names if words(cells.get(n))), None)


def _inference(
    made: Collector,
    seen: set[tuple[object, ...]],
    tally: Counter[str],
    place: str,
    row: Mapping[str, object],
    said: Mapping[str, str],
    standing: Standing | None,
) -> None:
    """The figures of one row of Inference: its result, and the power where it was measured."""
    what = f"{place} ({said['submitter']} {said['platform']}, {said['model']} {said['scenario']})"
    scenario = _SCENARIOS.get(said["scenario"].lower())
    if scenario is None:
        raise FleetmarkError(f"{what}: no scenario of MLPerf's, which are {', '.join(_SCENARIOS.values())}")
    division, power = said["division"].lower(), said["has_power"].lower() == "true"
    version = _version(said["round"])
    metric, factor, unit, better = _unit(what, said["units"])
    model = _model(said["model"], said["official"], division)
    if metric == "samples_per_second" and _in_tokens(said["official"] or model, scenario, version):
        metric = "tokens_per_second"
        tally["tokens"] += 1
    if said["errors"] not in ("", "0"):
        made.leave("the submission checker found errors")
        return
    labels = _labels(said, version, division)
    labels |= {"suite": _parts(said["suite"].lower()), "platform": said["platform"], "has_power": str(power).lower()}
    name = f"{said['submitter']}/{said['platform']} {version}"
    name += ("" if division == "closed" else f" {division}") + (" power" if power else "")
    figures = [(metric, factor, unit, better, row["result"])]
    if metric in _DESCRIBING:  # a row for the power alone
        figures = [(metric, factor, unit, better, row["power"] or row["result"])]
    elif said["power"]:
        figures.append((*_unit(what, said["power_units"] or "watts"), row["power"]))
    for n, (metric, factor, unit, better, cell) in enumerate(figures):
        value, why = figure(cell)
        if why:
            made.leave(f"{metric}: {why}")
            continue
        case = f"{model} {scenario}"
        if (name, case, metric, value) in seen:
            if n == 0:
                made.leave("the same row again")
            continue
        seen.add((name, case, metric, value))
        tally["inferred"] += metric not in _DESCRIBING and said["inferred"] == "1"
        m = Measurement("mlperf_inference", case, metric, value * factor, unit, better)
        entry = Row(
            name,
            m,
            _CLASSES.get(scenario, "gpu-compute"),
            place,
            headline=metric not in _DESCRIBING,
            standing=standing,
            version=version,
        )
        made.add(name, {}, labels, entry)


def _training(
    made: Collector,
    seen: set[tuple[object, ...]],
    place: str,
    row: Mapping[str, object],
    said: Mapping[str, str],
    standing: Standing | None,
) -> None:
    what = f"{place} ({said['submitter']} {said['system']}, {said['model']})"
    factor = _MINUTES.get(said["units"].lower())
    if factor is None:
        raise FleetmarkError(f"{what}: {_no_unit(said['units'])}; a time to train is in {', '.join(_MINUTES)}")
    value, why = figure(row["result"])
    if why:
        made.leave(f"time_to_train: {why}")
        return
    division, version = said["division"].lower(), _version(said["round"])
    name = f"{said['submitter']}/{said['system']} {version}" + ("" if division == "closed" else f" {division}")
    identity = {"accelerators": said["accelerators"], "accelerator": said["accelerator"]}
    if (name, *identity.values(), said["model"], value) in seen:
        made.leave("the same row again")
        return
    seen.add((name, *identity.values(), said["model"], value))
    labels = _labels(said, version, division) | {"suite": "training"}
    m = Measurement("mlperf_training", said["model"], "time_to_train", value * factor, "s", Better.LOWER)
    made.add(name, identity, labels, Row(name, m, "gpu-train", place, standing=standing, version=version))


def _labels(said: Mapping[str, str], version: str, division: str) -> dict[str, str | list[str]]:
    """What a machine can be chosen by. ``accelerators`` and ``gpus`` count those of all its nodes."""
    each, nodes = said["accelerators"], said.get("nodes", "") or "1"
    count = str(int(each) * int(nodes)) if _COUNT.fullmatch(each) and _COUNT.fullmatch(nodes) else each or "0"
    count = "0" if count == "N/A" else count
    accelerator = "" if said["accelerator"] in ("N/A", "0") else said["accelerator"]
    return {
        "round": version,
        "submitter": said["submitter"],
        "division": division,
        "availability": _availability(said["availability"]),
        "system": said["system"],
        "accelerator": accelerator,
        "accelerators": count,
        "gpus": count if _COUNT.fullmatch(count) and int(count) else "",
        "nodes": said.get("nodes", ""),
        "processor": said["processor"],
        "processors": said["processors"],
        "precision": sorted(set(_PRECISION.findall(said.get("precision", "").lower()))),
        "software": said["software"],
    }


def _parts(text: str) -> list[str]:
    """``edge,datacenter`` as its parts: a comma would end a selector's term."""
    return [part.strip() for part in text.split(",")]


def _availability(text: str) -> str:
    """MLPerf's three categories, however a table spells them; another word stays what it is."""
    lower = text.lower()
    if lower.startswith("available") or lower in ("onprem", "cloud"):
        return "available"
    return "rdi" if lower.startswith("research") else lower


def _version(text: str) -> str:
    match = _ROUND.fullmatch(text)
    return f"v{match[1]}.{match[2]}" if match else text


def _unit(what: str, printed: str) -> tuple[str, float, str, Better]:
    found = _UNITS.get(printed.lower())
    if found is None:
        raise FleetmarkError(f"{what}: {_no_unit(printed)}; MLPerf's are Samples/s, Queries/s, Tokens/s, Latency (ms)")
    return found


def _no_unit(printed: str) -> str:
    return f"the unit {printed!r} is not known" if printed else "it has no unit"


def _model(used: str, official: str, division: str) -> str:
    """The benchmark by its one name; in the open division the network that ran, where that is another."""
    same = re.sub(r"\W|_", "", used).lower() == re.sub(r"\W|_", "", official).lower()
    name = official if official and (same or division == "closed") else used
    return _ALIASES.get(name, name)


def _in_tokens(model: str, scenario: str, version: str) -> bool:
    match = _ROUND.fullmatch(version)
    here = (int(match[1]), int(match[2])) if match else (0, 0)
    return any(model.startswith(name) and scenario in its and here >= since for name, its, since in _TOKENS)
