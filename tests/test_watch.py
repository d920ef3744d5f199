"""Test the parts of ``fleetmark watch``: windows, shares, the webhook, judgements over time, and what it installs."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

from fleetmark.base.errors import FleetmarkError
from fleetmark.campaign.options import Options
from fleetmark.cli.app import app
from fleetmark.record import watched
from fleetmark.record.campaigns import find
from fleetmark.record.watched import HostState, OpenFinding, WatchState
from fleetmark.reports.diagnosis import openmetrics
from fleetmark.reports.kit.openmetrics import Family, render
from fleetmark.verbs.watch import install, judging, metrics, probe, round, webhook, windows
from fleetmark.verbs.watch.judging import Judgement
from tests.fleets import HOSTS, campaign, scaled, usual
from tests.records import TRIAD


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("22:00-06:00", [time(22), time(23, 59), time(0), time(5, 59)], [time(6), time(21, 59), time(12)]),
        ("9:30-17:00", [time(9, 30), time(16, 59)], [time(17), time(9, 29), time(0)]),
    ],
)
def test_windows(text: str, inside: list[time], outside: list[time]) -> None:
    one = windows.window(text)
    assert all(one.has(moment) for moment in inside) and not any(one.has(moment) for moment in outside)
    assert windows.is_open([], time(12)) and not windows.is_open([one], outside[0])


@pytest.mark.parametrize("text", ["22-6", "24:00-06:00", "10:61-11:00", "10:00-10:00", "night"])
def test_a_wrong_window_is_refused(text: str) -> None:
    with pytest.raises(FleetmarkError, match="--window"):
        windows.window(text)


def test_rounds_reach_every_host() -> None:
    names = [f"n{n}" for n in range(10)]
    measured: dict[str, str] = {}
    seen: list[str] = []
    for number in range(4):
        now = windows.chosen(names, measured, windows.share("25%"))
        assert len(now) == 3
        measured |= dict.fromkeys(now, f"2026-01-0{number + 1}T00:00:00Z")
        seen += now
    assert set(seen) == set(names)
    assert windows.chosen([], {}, 0.5) == []


@pytest.mark.parametrize("text", ["0%", "101%", "3 GB"])
def test_a_wrong_share_is_refused(text: str) -> None:
    with pytest.raises(FleetmarkError):
        windows.share(text)


def test_durations() -> None:
    assert windows.duration("30min") == 1800 and windows.duration("6h") == 21600
    for text in ("0s", "8d", "soon", "-1h"):
        with pytest.raises(FleetmarkError, match="--every"):
            windows.duration(text)


@contextmanager
def server(*statuses: int) -> Iterator[tuple[str, list[bytes]]]:
    """A webhook that answers with these statuses in turn, its address, and the bodies that it got."""
    bodies: list[bytes] = []
    left = list(statuses)

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(left.pop(0))
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    http = HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}/services/SECRET", bodies
    finally:
        http.shutdown()
        http.server_close()


def test_the_webhook_is_tried_again_with_growing_pauses() -> None:
    pauses: list[float] = []
    with server(503, 429, 200) as (address, bodies):
        assert webhook.post(address, ["h1: <slow> & hot"], pauses.append) is None
    assert len(bodies) == 3 and pauses == [1.0, 2.0]
    assert json.loads(bodies[-1]) == {"text": "h1: &lt;slow&gt; &amp; hot"}


@pytest.mark.parametrize(("statuses", "tries"), [((404,), 1), ((302,), 1), ((500,) * 5, 5)])
def test_a_webhook_that_fails_is_reported_without_its_address(statuses: tuple[int, ...], tries: int) -> None:
    with server(*statuses) as (address, bodies):
        reason = webhook.post(address, ["x"], lambda _: None)
    assert len(bodies) == tries and reason and "SECRET" not in reason and str(statuses[0]) in reason


def test_a_webhook_file_is_not_quoted(tmp_path: Path) -> None:
    file = tmp_path / "hook"
    file.write_text("https://hooks.example/SECRET\n")
    assert webhook.address_in(file) == "https://hooks.example/SECRET"
    for text in ("SECRET", "ftp://SECRET/", "https://a/ SECRET", ""):
        file.write_text(text)
        with pytest.raises(FleetmarkError, match="--webhook-file") as error:
            webhook.address_in(file)
        assert "SECRET" not in str(error.value)


def test_openmetrics_escapes_and_merges() -> None:
    one, two = Family("a", "A.", "counter"), Family("a", "A.", "counter")
    one.add(1, {"host": 'x"\n\\', "empty": ""})
    two.add(float("nan"))
    assert render([one, two]) == '# HELP a A.\n# TYPE a counter\na_total{host="x\\"\\n\\\\"} 1\na_total NaN\n# EOF\n'


@pytest.fixture
def sick(tmp_path: Path) -> Path:
    values = usual()
    scaled(values, "n03", TRIAD, 0.7)
    campaign(tmp_path, values)
    return tmp_path


@pytest.mark.parametrize("verb", ["diagnose", "history", "gate"])
def test_three_commands_speak_openmetrics(sick: Path, verb: str) -> None:
    rules = sick / "rules.yml"
    rules.write_text("rules: [{name: bandwidth, metric: stream/*/triad, at_least: 250 GB/s}]\n")
    words = [verb, *([str(rules)] if verb == "gate" else []), "--results", str(sick), "--format", "openmetrics"]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.stdout.endswith("# EOF\n")
    line = re.compile(r'# (HELP|TYPE) .*|\w+(\{(\w+="[^"]*",?)+\})? [-+.e0-9]+|# EOF')
    assert all(line.fullmatch(one) for one in done.stdout.splitlines())
    expected = {
        "diagnose": 'fleetmark_finding_deficit_ratio{kind="slow",host="n03",workload="stream"',
        "history": 'fleetmark_history_value{host="n03",workload="stream"',
        "gate": 'fleetmark_gate_accepted{host="n03"} 0',
    }
    assert expected[verb] in done.stdout
    assert done.exit_code == (0 if verb == "history" else 1)


@pytest.fixture
def options(sick: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    """Return the options of a watch over idle hosts; its campaigns are the recorded one, in which n03 is slow."""
    (sick / "hosts.yml").write_text(json.dumps({"all": {"hosts": {host: {} for host in HOSTS}}}))
    monkeypatch.setattr(round.probe, "ask", lambda hosts, *_: {host.name: probe.Reading() for host in hosts})
    monkeypatch.setattr(round.campaign, "run", lambda *_: (find(sick, "last"), False))
    monkeypatch.setattr(round, "_measured", lambda _, names: set(names))
    return Options(suite="quick", inventory=(str(sick / "hosts.yml"),), root=sick)


def test_a_round_posts_its_finding_and_tries_again_after_an_error(options: Options) -> None:
    with server(500, 200) as (address, bodies):
        question = round.WatchQuestion(options=options, webhook=address)
        assert not round.run(question, Console(file=io.StringIO()))[0]
    assert len(bodies) == 2 and bodies[0] == bodies[1]
    text = json.loads(bodies[1])["text"]
    assert text.startswith("New: n03") and "triad" in text and watched.load(options.root).unsent == []
    with server() as (address, bodies):  # the next round has nothing new to say
        round.run(round.WatchQuestion(options=options, webhook=address), Console(file=io.StringIO()))
    assert bodies == []


def test_a_finding_that_could_not_be_posted_is_posted_by_the_next_round(options: Options) -> None:
    for status in (404, 200):
        with server(status) as (address, bodies):
            round.run(round.WatchQuestion(options=options, webhook=address), Console(file=io.StringIO()))
        assert len(bodies) == 1 and json.loads(bodies[0])["text"].startswith("New: n03")
        assert len(watched.load(options.root).unsent) == (1 if status == 404 else 0)


def slow(*hosts: str, source: str = "diagnose", needs_all: bool = True) -> OpenFinding:
    labels = {"host": hosts[0], "source": source}
    return OpenFinding(source=source, hosts=hosts, labels=labels, text=f"{hosts[0]} slow", needs_all=needs_all)


def verdict(*findings: OpenFinding, judged: frozenset[str] = frozenset({"diagnose"})) -> Judgement:
    return Judgement(findings=findings, judged=judged, families=(), problems=())


def test_a_finding_stays_until_its_hosts_are_measured_again() -> None:
    before = [slow("n1"), slow("n2", "n3"), slow("n4", source="gate")]
    assert judging.merged(before, verdict(), {"n3"}) == before  # one end of a link was measured
    after = judging.merged(before, verdict(slow("n5")), {"n1", "n5"})
    assert after == [*before[1:], slow("n5")]
    assert judging.news(before, after) == ["New: n5 slow", "Recovered: n1 slow"]
    assert judging.merged(before, verdict(judged=frozenset()), {"n1", "n2", "n3", "n4"}) == before  # nobody judged


def test_a_campaign_is_judged_and_its_state_is_stored(sick: Path) -> None:
    judgement = judging.judge(find(sick, "last"), sick, None, None)
    large = judging.judge(find(sick, "last"), sick, None, None, {"": 0.9})
    assert not [f for f in large.findings if f.source == "diagnose"]
    assert [f.labels["host"] for f in judgement.findings] == ["n03"] and "diagnose" in judgement.judged
    state = WatchState(rounds=3, findings=list(judgement.findings))
    state.hosts["n03"] = HostState(status="idle", counters={"memory:mc0": {"corrected": 7.0}})
    text = render(metrics.families(state, judgement.families, 1.5))
    assert 'fleetmark_host_errors_total{host="n03",device="memory:mc0",name="corrected"} 7.0' in text
    assert 'fleetmark_watch_open_findings{source="diagnose"} 1' in text
    watched.save(sick, state, text)
    assert watched.load(sick) == state and watched.metrics(sick) == text.encode()
    (sick / "watch" / "state.json").write_text("[]")
    with pytest.raises(FleetmarkError, match="delete it"):
        watched.load(sick)


@pytest.mark.parametrize(
    "out", [b"", b"FLEETMARK{", b"FLEETMARK[]", b'FLEETMARK{"load": 1}', b'FLEETMARK{"load": "x", "cpus": 0}']
)
def test_a_host_may_answer_anything(out: bytes) -> None:
    assert probe.parsed(out).problem == "sent an invalid answer"


def test_names_of_a_host_stay_on_their_line() -> None:
    answer = {"load": 0.1, "cpus": 2, "sessions": 0, "boot": "b", "last": 1, "gauges": {}, "events": {}}
    answer["counters"] = {"drive:\nn02: all is well\x1b[2J": {"io\nerrors": 1}}
    reading = probe.parsed(b"FLEETMARK" + json.dumps(answer).encode())
    assert reading.counters == {"drive: n02: all is well␛[2J": {"io errors": 1.0}}


def test_busy_hosts_are_left_out() -> None:
    idle = probe.Reading(load=0.05)
    assert not idle.busy(0.1, allows_sessions=False)
    assert probe.Reading(load=0.5).busy(0.1, allows_sessions=False) == "load of 0.50 per CPU"
    assert probe.Reading(sessions=2).busy(0.1, allows_sessions=False) == "2 logged in"
    assert not probe.Reading(sessions=2).busy(0.1, allows_sessions=True)


def test_units_and_rules_are_valid(tmp_path: Path) -> None:
    words = ["/bin/true", "watch", "-i", "my hosts.yml", "100%", "$x"]
    texts = install.contents(watch=words, serve=["/bin/true"], every_s=1800, folder=tmp_path, user="", becomes=False)
    paths = install.write(tmp_path / "units", texts)
    assert 'ExecStart=/bin/true watch -i "my hosts.yml" 100%% $$x' in texts["fleetmark-watch.service"]
    assert "OnUnitInactiveSec=1800s" in texts["fleetmark-watch.timer"]
    assert not any("@" in text for name, text in texts.items() if name.startswith("fleetmark-"))
    if shutil.which("systemd-analyze"):
        units = [str(path) for path in paths if path.suffix in (".service", ".timer")]
        done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "units/" not in done.stderr, done.stderr
    if shutil.which("promtool"):
        for check in (["rules", "fleetmark-rules.yml"], ["config", "prometheus.yml"]):
            done = subprocess.run(
                ["promtool", "check", *check], cwd=tmp_path / "units", capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
    with pytest.raises(FleetmarkError, match="control characters"):
        install.contents(watch=["a\nb"], serve=[], every_s=1, folder=tmp_path, user="", becomes=False)


def indented(heading: str) -> str:
    """Return the indented block below a heading of docs/how-to/watch.md."""
    page = (Path(__file__).parents[1] / "docs/how-to/watch.md").read_text()
    lines = page.split(f"## {heading}\n")[1].split("\n## ")[0].splitlines()
    return "\n".join(line[4:] for line in lines if line.startswith("    ")) + "\n"


def test_the_cron_job_has_the_fields_of_its_api() -> None:
    job = yaml.safe_load(indented("Kubernetes"))
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "CronJob") and set(job) == {
        *("apiVersion", "kind", "metadata", "spec")
    }
    assert re.fullmatch(r"[a-z0-9-]{1,52}", job["metadata"]["name"])  # the name of a job adds 11 characters
    assert len(job["spec"]["schedule"].split()) == 5 and job["spec"]["concurrencyPolicy"] in (
        "Allow",
        "Forbid",
        "Replace",
    )
    assert set(job["spec"]) == {"schedule", "concurrencyPolicy", "jobTemplate"}
    run = job["spec"]["jobTemplate"]["spec"]
    pod = run["template"]["spec"]
    assert isinstance(run["backoffLimit"], int) and pod["restartPolicy"] in ("Never", "OnFailure")
    assert all(isinstance(value, str) for value in pod["nodeSelector"].values())
    volumes = {volume["name"]: set(volume) - {"name"} for volume in pod["volumes"]}
    assert all(sources == {"hostPath"} for sources in volumes.values())
    for container in pod["containers"]:
        assert set(container) == {"name", "image", "command", "volumeMounts"}
        assert all(isinstance(word, str) for word in container["command"])
        assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
        assert container["command"][0] == "fleetmark" and "--share" in container["command"]
        done = CliRunner().invoke(app, [*container["command"][1:3], "--help"])
        assert done.exit_code == 0


def test_the_dashboard_shows_only_metrics_that_exist() -> None:
    folder = files("fleetmark.verbs.watch").joinpath("files")
    texts = [folder.joinpath(f"fleetmark-{n}").read_text() for n in ("dashboard.json", "rules.yml")]
    shown = {name for text in texts for name in re.findall(r"fleetmark_[a-z_]+", text)}
    sources = "".join(path.read_text() for path in (Path(metrics.__file__), Path(openmetrics.__file__)))
    known = set(re.findall(r"fleetmark_[a-z_]+", sources))
    assert shown and all(name.removesuffix("_total") in known for name in shown)
    assert len(json.loads(texts[0])["panels"]) == 9


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--dry-run"], "--dry-run without --install"),
        (["--once", "--listen", "1"], "--listen with --once"),
        (["--token-file", "x"], "--token-file without --listen"),
        (["--rules", "/nowhere.yml"], "there is no such file"),
    ],
)
def test_wrong_options_are_one_sentence(words: list[str], sentence: str) -> None:
    done = CliRunner().invoke(app, ["watch", *words])
    assert isinstance(done.exception, FleetmarkError) and sentence in str(done.exception)
