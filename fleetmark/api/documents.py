"""Declare the JSON documents of ``--format json``, from which the published schemas are generated.

Numbers are in base units with full precision. A missing number is null. Tables whose columns depend on the
measured metrics are lists of rows.
"""

from __future__ import annotations

from typing import (
    Any,
    NotRequired,  # pydantic needs this one before Python 3.12
)

from typing_extensions import TypedDict

from fleetmark.planner.peers import Outlier
from fleetmark.reports.comparison.model import RatioRow

PlainRow = dict[str, str | int | float | bool | None]


class TablePart(TypedDict):
    """A title, notes, and tables by name."""

    title: str
    notes: list[str]


class NextStep(TypedDict):
    """A next step, and the command for it."""

    advice: str
    command: str


class Run(TypedDict):
    """The outcome of a run. ``started``: ISO 8601, UTC. ``foreign_cores``: cores that other processes used."""

    host: str
    workload: str
    case: str
    repeat: int
    status: str
    reason: str
    started: str
    wall_s: float | None
    foreign_cores: float | None
    subject: NotRequired[str]
    notes: NotRequired[list[str]]


class CampaignReport(TypedDict):
    """A campaign (``fleetmark report --format json``).

    ``page``: the path of the written page. ``odd``: hosts that differ from their peers. ``headlines``: the main
    figures, each with ``value_unit``. ``outcomes``: how every run ended. ``measurements``: every value, as in
    measurements.schema.json, with null for missing text.
    """

    campaign: str
    path: str
    page: str | None
    finished: bool
    status: str
    machines: list[str]
    means: list[str]
    odd: list[str]
    next: list[NextStep]
    notes: list[str]
    sha256: dict[str, str]
    footnotes: list[str]
    headlines: list[PlainRow]
    causes: list[PlainRow]
    outcomes: list[Run]
    measurements: list[PlainRow]
    roofs: NotRequired[list[TablePart]]
    operators: NotRequired[list[TablePart]]
    frontiers: NotRequired[list[TablePart]]
    remarks: NotRequired[list[TablePart]]


ClassAnswer = TypedDict(
    "ClassAnswer",
    {
        "class": str,
        "title": str,
        "kind": str,
        "benchmarks": int,
        "remark": str,
        "candidates": dict[str, dict[str, str]],
    },
)


class FirstScreen(TypedDict):
    """The first screen of a comparison as sentences."""

    sentence: str
    sides: str
    basis: str
    bought: str
    totals: list[str]
    costs: list[str]
    gets_worse: list[str]
    may_get_worse: str
    guardrails: str
    not_measured: str
    becomes: str
    classes: list[ClassAnswer]
    before_you_rely_on_this: list[str]
    legend: list[str]


Covered = TypedDict(
    "Covered",
    {
        "class": str,
        "side": str,
        "state": str,
        "hosts": int,
        "benchmarks": int,
        "known_benchmarks": int,
        "reason": str,
    },
)


class Gap(TypedDict):
    """The workloads that a side lacks, and the command that runs them there; the command is empty for imported
    tables.
    """

    workloads: list[str]
    classes: list[str]
    sides: list[str]
    command: str


class ComparisonReport(TypedDict):
    """Compare candidates with a baseline (``fleetmark compare --format json``).

    ``selectors``: the selector of each side. ``confidence``: the level of all intervals. ``rows``: every class and
    benchmark. ``costs``: a row for each side and class if prices are known. ``coverage``: the measured part of each
    class by side.
    """

    answer: FirstScreen
    baseline: str
    candidates: list[str]
    selectors: dict[str, str]
    per: str
    pairing: str
    confidence: float
    panel: list[str] | None
    intervals: dict[str, str]
    rows: list[RatioRow]
    costs: list[PlainRow]
    coverage: list[Covered]
    gaps: list[Gap]
    outliers: list[Outlier]
    warnings: list[str]
    notes: list[str]
    footnotes: list[str]
    frontiers: NotRequired[list[TablePart]]


class PeerGroup(TypedDict):
    """A group of hosts of one kind, which are compared with each other."""

    kind: str
    firmware: str
    hosts: list[str]
    judged_against: int


class DiagnosisFinding(TypedDict):
    """One finding. ``deficit``: the share by which it is slower. ``q``: the adjusted p-value."""

    kind: str
    host: str
    benchmark: dict[str, Any]
    deficit: float
    value: float | None
    expected: float | None
    peers: int
    z: float | None
    q: float | None
    sure: bool
    firmware_differs: bool
    cohort: str
    evidence: list[str]
    settled: dict[str, Any] | None
    other: NotRequired[str]
    link_or_host: NotRequired[bool]
    worst_run: NotRequired[float | None]
    worst_run_of_peers: NotRequired[float | None]
    baseline: NotRequired[str]
    members: NotRequired[list[str]]
    because: NotRequired[list[dict[str, str]]]


class DiagnosisStep(TypedDict):
    """A next step, and the command for it if there is one."""

    what: str
    command: str | None


class Check(TypedDict):
    """One rule checked on one host, in base units. ``evidence``: a raw file."""

    rule: str
    severity: str
    host: str
    benchmark: str
    verdict: str
    value: float | None
    limit: float | None
    unit: str
    text: str
    evidence: str | None


class GateReport(TypedDict):
    """The check of a campaign against acceptance rules (``fleetmark gate --format json``)."""

    campaign: str
    rules: str
    accepted: bool
    checks: list[Check]


class DiagnosisReport(TypedDict):
    """The hosts that are slower than their peers: ``fleetmark diagnose --format json``.

    ``acceptance``: the hosts against the rules of ``--rules``.
    """

    campaign: str
    path: str
    hosts: int
    benchmarks: int
    judged: int
    cohorts: list[PeerGroup]
    findings: list[DiagnosisFinding]
    notes: list[str]
    power: list[str]
    next: list[DiagnosisStep]
    acceptance: NotRequired[GateReport]


class PlanSummary(TypedDict):
    """The first screen of a plan as sentences. ``years``: each year with its cost."""

    answer: str
    now: str
    cost: str
    nothing: str
    sure: list[str]
    years: list[tuple[str, str]]
    risks: list[str]
    limits: list[str]


class Purchase(TypedDict):
    """An order of ``count`` servers in a period.

    ``arrives``: the period of delivery; None if it is after the last period.
    """

    period: str
    arrives: str | None
    site: str
    sku: str
    count: int
    money: float


class Retirement(TypedDict):
    """The retirement of ``count`` servers in a period."""

    period: str
    site: str
    sku: str
    count: int
    money: float


class ChosenPlan(TypedDict):
    """The best plan.

    ``gap``: its distance to the ``bound``. ``margin``: factors on the demand, by period. ``stopped``: whether a time
    limit ended the search, so that another machine may find another plan.
    """

    objective: float
    bound: float
    gap: float
    seconds: float
    stopped: bool
    currency: str
    margin: dict[str, list[float]]
    buy: list[Purchase]
    retire: list[Retirement]
    costs: list[PlainRow]
    stock: list[PlainRow]
    use: list[PlainRow]


class NextBestPlan(TypedDict):
    """Another plan. ``extra``: its additional cost. ``buy``: servers by SKU."""

    name: str
    objective: float
    extra: float
    least: float | None
    trades: dict[str, float]
    buy: dict[str, int]


class PlanFutures(TypedDict):
    """A plan in simulated futures.

    ``shortfall``: the share of futures with too little capacity, with its interval.
    """

    draws: int
    seed: int
    shortfall: float
    unshared: float
    open: int
    lo: float | None
    hi: float | None
    table: list[PlainRow]
    sizing: list[PlainRow]
    whole: list[PlainRow]


class PlanReport(TypedDict):
    schema: int
    created: str
    command: str
    seconds: float
    summary: PlanSummary
    nothing: dict[str, list[float]]
    question: dict[str, Any]
    plan: ChosenPlan
    costs: dict[str, Any]
    capacity: list[PlainRow]
    sites: list[PlainRow]
    worth: list[PlainRow]
    terms: dict[str, list[Any]]
    binding: list[PlainRow]
    alternatives: list[NextBestPlan]
    futures: PlanFutures | None
    tornado: list[PlainRow]
    scenarios: list[dict[str, Any]]
    differences: list[dict[str, Any]]
    conflict: None


class ReviewedLot(TypedDict):
    """Compare a delivered lot's measured performance for a workload with the ``promised`` one, and state the ``owed``
    compensation.

    ``arrives``: the period of delivery; None if it was before the first period of the review. ``measured_as``: the lot
    whose campaign also represents this one. ``probability_same``: the probability of so large a difference if the
    servers perform as the plan estimated.
    """

    lot: str
    sku: str
    site: str | None
    arrives: str | None
    servers: int
    price: float
    campaign: str
    measured_as: str | None
    workload: str
    unit: str
    promised: float
    measured: dict[str, float | None]
    verdict: str
    probability_below: float
    probability_same: float
    owed: dict[str, float | None]


class ReviewedPurchase(TypedDict):
    """The servers to order in a period: as ``planned``, and ``now``. ``money``: the change in cost."""

    period: str
    arrives: str | None
    site: str
    sku: str
    planned: int
    now: int
    money: float


class ReviewReport(TypedDict):
    """The review of a plan. ``late``: periods with unmet demand that no new order can reach in time."""

    schema: int
    created: str
    command: str
    currency: str
    periods: list[str]
    quantile: float
    is_sound: bool
    deliveries: list[ReviewedLot]
    worth: list[dict[str, Any]]
    purchases: list[ReviewedPurchase]
    costs: dict[str, float | None]
    shortfall: dict[str, dict[str, float | None] | None]
    late: list[str]
    conflict: list[str] | None


class PlanConflict(TypedDict):
    schema: int
    created: str
    command: str
    seconds: float
    question: dict[str, Any]
    plan: None
    conflict: dict[str, Any]
