"""Sample documents of every kind, built from records in this module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from socket import AF_UNSPEC

import yaml

from fleetmark import workloads
from fleetmark.base.facts import Dimm
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.campaign.options import Options
from fleetmark.campaign.prepare.dryrun import plan
from fleetmark.campaign.prepare.past import Past
from fleetmark.campaign.schedule import make_schedule
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.preflight import Checked
from fleetmark.hosts.slurm.cluster import Node
from fleetmark.hosts.ssh.target import Target, UnknownKey
from fleetmark.planner.capacity.analysis.results import Alternative, Binding, Conflict, Limit
from fleetmark.planner.capacity.analysis.tornado import Effect
from fleetmark.planner.capacity.answer import Answer, Scenario
from fleetmark.planner.capacity.uncertainty import futures
from fleetmark.planner.diagnosis.isolation.partners import Fault, Reason, Suspicion
from fleetmark.planner.diagnosis.trial import TrialChange
from fleetmark.planner.diagnosis.tuning.rules import RULES
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.predict.serving.architecture import known
from fleetmark.planner.predict.serving.calibration import shipped
from fleetmark.planner.predict.serving.chips import from_sheet
from fleetmark.planner.predict.serving.frontier import Question as ServingQuestion
from fleetmark.planner.predict.serving.frontier import loads
from fleetmark.planner.predict.serving.roofline import Layout
from fleetmark.planner.predict.transfer import Prediction
from fleetmark.planner.ratio import Ratio
from fleetmark.record import profiles, references
from fleetmark.record.campaigns import Summary
from fleetmark.record.diagnosis import diagnose, isolations
from fleetmark.record.diagnosis.gate import hold, read_rules
from fleetmark.record.diagnosis.history import history
from fleetmark.record.diagnosis.roofs import roofs_of
from fleetmark.record.diagnosis.trials import Tried
from fleetmark.record.diagnosis.tuning import tune
from fleetmark.reports.campaign import document as campaign_report
from fleetmark.reports.diagnosis import document as diagnosis
from fleetmark.reports.diagnosis import gate, isolation, trial, tuning
from fleetmark.reports.diagnosis import history as history_report
from fleetmark.reports.frontier.predicted import Predicted
from fleetmark.reports.frontier.predicted import document as predicted_serving
from fleetmark.reports.hosts import survey
from fleetmark.reports.hosts.survey import Entry
from fleetmark.reports.kit.document import Document
from fleetmark.reports.kit.language import Language
from fleetmark.reports.lists import campaigns, catalogue, measurements, nodes, predictions, saved
from fleetmark.reports.lists.predictions import BenchmarkPrediction
from fleetmark.reports.profile.document import document as profile_document
from fleetmark.reports.testplan import document as testplan
from fleetmark.workloads import load_suite
from tests.commands import run
from tests.fleets import campaign, sick, usual
from tests.profiles import record_generations
from tests.records import TRIAD, record
from tests.reports import compared, fleet, plan_sample, sample
from tests.reports.loads import PRICE
from tests.reports.loads import measured as served
from tests.schedules import facts

DAY = "2026-11-22T10:00:00Z"


def _campaigns(root: Path) -> Document:
    return campaigns.document(
        [
            Summary(
                campaign="20261122T100000-quick-0001",
                path=root,
                created=DAY,
                suite="quick",
                hosts=1200,
                statuses={"passed": 9000, "failed": 2},
                finished=True,
            ),
            Summary(
                campaign="=2+3",
                path=root,
                created=DAY,
                suite="standard",
                hosts=3,
                statuses={"passed": 3},
                finished=False,
            ),
            Summary(
                campaign="c3",
                path=root,
                created="",
                suite="",
                hosts=None,
                statuses={},
                finished=False,
                damaged=f"{root}/campaign.json: not JSON",
            ),
        ],
        str(root),
    )


def _references(root: Path) -> Document:
    sick(root)
    run(root, "reference", "save", "genoa", "--from", "last")
    return saved.references(references.references(root))


def _nodes(_: Path) -> Document:
    return nodes.document(
        [
            Node(
                name="n1",
                partition="gpu",
                state="idle",
                cpus=192,
                memory_b=1536 << 30,
                features=("gen=genoa",),
                gres="gpu:h100:8",
                address="n1",
            )
        ]
    )


def _measurements(_: Path) -> Document:
    listed = (
        Measurement(
            "iperf3", "tcp", "bitrate", 1.2487e9, "B/s", better=Better.HIGHER, subject="n1>n2", labels={"streams": "4"}
        ),
        Measurement("iperf3", "tcp", "retransmits", 17, "1", better=Better.LOWER),
    )
    fields = [{"metric": m.metric, "value": m.value, "unit": m.unit} for m in listed]
    return measurements.document("iperf3", [Parsed("3.18", listed)], fields)


def _predictions(_: Path) -> Document:
    log = Estimate(3.0, 2.9, 3.1)
    known = Prediction(
        target="stream triad", log=log, level=0.9, ratio=Ratio(1.5, 1.4, 1.6), machines=("a", "b"), families=2
    )
    silent = Prediction(target="fio iops", log=None, level=0.9, reason="too few machines")
    listed = [BenchmarkPrediction(p, unit, "higher") for p, unit in ((known, "B/s"), (silent, "1/s"))]
    return predictions.document(listed)


def _overview(_: Path) -> Document:
    manifests = [workloads.load(name) for name in workloads.names()]
    return catalogue.overview(manifests, [workloads.load_suite(name) for name in workloads.suite_names()])


def _workload(_: Path) -> Document:
    return catalogue.workload(workloads.load("fio"))


def _serving(_: Path) -> Document:
    model = known()["gpt-oss-120b"]
    question = ServingQuestion(model=model, precision="fp4", prompt=1024, answer=1024, software="vllm")
    layouts = [Layout(1), Layout(8)]
    predicted = [
        Predicted(chip, list(loads(question, chip, layouts, shipped())))
        for chip in (from_sheet("H200"), from_sheet("MI355X"))
    ]
    return predicted_serving(question, predicted, 200.0, shipped())


def _testplan(root: Path) -> Document:
    (root / "mine.yml").write_text("description: x\nworkloads:\n  stream:\n  fio:\n  mlc:\n")
    suite, name = load_suite(str(root / "mine.yml")), str(root / "mine.yml")
    hosts = [(Host(f"h{n}", f"h{n}", f"h{n}"), facts(product=f"p{n}")) for n in range(2)]
    checked = [Checked(host=host, reach=None, facts=known, raw={}) for host, known in hosts]
    schedule = make_schedule(hosts, suite, {}, campaign="x", seed=1, repeats=None)
    return testplan.document(plan(Options(suite=name), suite, checked, schedule, Past(), 1), DAY)


def _gate(root: Path) -> Document:
    archive = sick(root)
    rules = [
        {"name": "bandwidth", "metric": "stream/*/triad", "at_least": "250 GB/s"},
        {"name": "ghost", "metric": "nothing/*/*", "at_least": 1, "severity": "warn"},
    ]
    (root / "rules.yml").write_text(yaml.safe_dump({"description": "x", "rules": rules}))
    return gate.document(hold(archive, read_rules(root / "rules.yml"), "rules.yml"))


def _history(root: Path) -> Document:
    for day in range(1, 9):
        slower = {
            key: [value * (0.9 if day > 5 and key[1] == TRIAD else 1) for value in values]
            for key, values in usual(("a", "b"), seed=day).items()
        }
        archive = record(root, f"202601{day:02}T000000-x", {"a": {}, "b": {}}, slower)
        archive.save_campaign(archive.campaign() | {"created": f"2026-01-{day:02}T00:00:00Z"})
    return history_report.document(history(root, []), DAY, "fleetmark history")


def _tuning(root: Path) -> Document:
    archive = campaign(root, usual(("a", "b")))
    dimms = tuple(Dimm(slot=f"{n}", size=32 << 30, type="DDR5", rated_mts=4800, configured_mts=4800) for n in range(24))
    for host in "ab":
        archive.save_facts(host, facts(dimms=dimms, boost=host == "a", governor="powersave"), {})
    return tuning.document(tune(archive))


def _trial(_: Path) -> Document:
    changes = (
        TrialChange("stream all-cores triad", Ratio(1.104, 1.09, 1.12), 3),
        TrialChange("fio randread iops", Ratio(0.9, 0.85, 0.95), 3),
        TrialChange("lmbench null", Ratio(1.0), 1),
    )
    tried = Tried(
        "a",
        "hugepages",
        ("thp",),
        ("always",),
        ("madvise",),
        changes=changes,
        campaign="trials/x",
        left="x was 1",
        lost=2,
    )
    return trial.document(tried)


def _rules(_: Path) -> Document:
    return trial.rules(RULES)


def _profile(root: Path) -> Document:
    record_generations(root)
    resources = ["cpu=spec_cpu2017/*/base_ratio", "mem=stream/*/triad"]
    profiled = profiles.profile(root, "nginx/*/rps", resources, None)
    gains = profiles.gains_of(profiled, profiles.upgrades(["mem=1.2@800", "cpu=2,mem=1.5@4000"]))
    predictions = [profiles.predict(root, profiled, "gen=turin", "gen=icelake")]
    return profile_document(profiled, gains, predictions)


def _cannot_profile(root: Path) -> Document:
    record_generations(root)
    resources = ["cpu=spec_cpu2017/*/base_ratio", "mem=stream/*/triad"]
    return profile_document(profiles.profile(root, "nginx/*/rps", resources, "gen=icelake"), [], [])


def _diagnosis(root: Path) -> Document:
    archive = sick(root)
    return diagnosis.document(diagnose(archive), roofs_of(archive), DAY, "fleetmark diagnose last", Language())


def _brief(root: Path) -> Document:
    return diagnosis.brief(diagnose(sick(root)))


def _isolation(root: Path) -> Document:
    archive = sick(root)
    faults = (
        Fault("node", ("n2",), Reason.ALL_PARTNERS, 0.9),
        Fault("link", ("n3", "n4"), Reason.ONE_PAIR, 1.0),
    )
    suspicion = Suspicion(faults, 8, 9, (frozenset(("n5", "n6")),))
    of_pairs = isolations.question(archive, "iperf3/tcp-1")
    return isolation.document(
        isolations.Isolated(archive.id, of_pairs, suspicion, ("isolations/x",)), root, DAY, "fleetmark"
    )


def _plan(_: Path) -> Document:
    q = plan_sample.question()
    plan = plan_sample.plan(q)
    bindings = [
        Binding("power at ams", "W", 520.5, 1.234),
        Binding("demand of web in 2027-Q4", "requests/s", 9, 987.6, demand=True),
    ]
    effects = [
        Effect("demand of web", 0.8, 1.25, True, -200_000.4, at_high=412_345.6),
        Effect("utilisation of web", 0.9, 1.1, False, None, at_high=-1),
    ]
    more = plan_sample.decided(q, {("new", "ams", 1): 30}, {}, {}, {})
    answer = Answer(
        q,
        plan,
        alternatives=[Alternative("without new", more, 1e5, 2e4, {"purchases": 1e4, "servers": -3.0})],
        bindings=bindings,
        futures=futures(q, plan, 100, 1),
        tornado=effects,
        scenarios=[Scenario("more <new>", q, more), Scenario("=none", q, None)],
    )
    return plan_sample.document(answer)


def _cannot_plan(_: Path) -> Document:
    limits = [Limit("power at ams", 42_000.0, "W", 3.1e6), Limit("demand of web in 2027-Q2", None, "servers")]
    return plan_sample.document(Answer(plan_sample.question(), None, Conflict(limits)))


def _survey(_: Path) -> Document:
    known = facts(skew=-3.0, notes=("dmidecode: not permitted",))
    reason = "needs fio: sudo apt-get install fio"
    target = Target(
        hostname="h3",
        port=22,
        user="root",
        family=AF_UNSPEC,
        key_name="h3",
        key_names=("h3",),
        known_hosts=(),
        strict="yes",
        hash_known_hosts=False,
        identities=(),
        identities_only=False,
        agent=None,
        proxy=None,
        through="",
        timeout=None,
    )
    key = UnknownKey("h3", "its host key (x) is not known", target, Path("/root/known hosts"))
    return survey.document(
        [
            Entry(host=Host("h1", "h1", "h1", labels={"gen": "old"}), facts=known, skipped={"fio": reason}),
            Entry(host=Host("=h2", "h2", "h2"), facts=facts(), skipped={"fio": reason}, refused=("iperf3 tcp-1 no",)),
            Entry(host=Host("h3", "h3", "h3"), facts=None, skipped={}, unknown_key=key),
            Entry(host=Host("h4", "h4", "h4"), facts=None, skipped={}, reason="timed out"),
        ]
    )


def _comparison(root: Path) -> Document:
    """Return a comparison of two sides, one benchmark of which only one side ran."""
    compared.archives(root, ("icelake", "genoa"))
    return compared.document(compared.compared(root, "gen=icelake", ["gen=genoa"], values=True), has_appendix=True)


def _priced(root: Path) -> Document:
    """Return a comparison of three sides with prices, a slow host and settings that differ."""
    fleet.fleet(root)
    return compared.document(compared.compared(root, values=True))


def _published(root: Path) -> Document:
    """Return a comparison of single published runs of two systems."""
    rates = {"nginx": (100, 205), "redis": (90, 171), "build": (12, 11)}
    lines = [
        f"{side}1,{side},{name},{value},requests/s,higher,capacity,app"
        for name, values in rates.items()
        for side, value in zip(("old", "new"), values, strict=True)
    ]
    head = "machine,gen,benchmark,value,unit,better,kind,class"
    (root / "table.csv").write_text("\n".join([head, *lines]))
    run(root, "import", "table", str(root / "table.csv"))
    return compared.document(compared.compared(root, "gen=old", ["gen=new"], values=True))


def _served(root: Path) -> Document:
    """Return a comparison of language models at equal service."""
    old, new = ["o1", "o2", "o3"], ["n1", "n2", "n3"]
    record(root, "c-old", {h: {"gen": "old", **PRICE} for h in old}, served(old, 1.0))
    record(root, "c-new", {h: {"gen": "new", **PRICE} for h in new}, served(new, 3.0))
    return compared.document(compared.compared(root, "gen=old", ["gen=new"], values=True))


KINDS: Mapping[str, Callable[[Path], Document]] = {
    "campaign": lambda _: campaign_report.document(sample.six(), has_appendix=True),
    "campaign of a host": lambda _: campaign_report.document(sample.one()),
    "campaigns": _campaigns,
    "references": _references,
    "nodes": _nodes,
    "measurements": _measurements,
    "predictions": _predictions,
    "predicted serving": _serving,
    "workloads": _overview,
    "workload": _workload,
    "test plan": _testplan,
    "gate": _gate,
    "history": _history,
    "profile": _profile,
    "profile refused": _cannot_profile,
    "tuning": _tuning,
    "diagnosis": _diagnosis,
    "brief diagnosis": _brief,
    "isolation": _isolation,
    "trial": _trial,
    "rules": _rules,
    "hosts": _survey,
    "plan": _plan,
    "plan refused": _cannot_plan,
    "comparison": _comparison,
    "comparison of three sides": _priced,
    "comparison of published runs": _published,
    "comparison at equal service": _served,
}
