"""MLPerf Inference's manifest and what it puts on hosts: cases, refusals, packages, official commands, placement."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Cache, Cpu, Gpu, NumaNode
from fleetmark.campaign.schedule import settings_of
from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.record.steps import HostSchedule, Step
from fleetmark.workloads import load_suite
from fleetmark.workloads.manifest import HERE
from tests.schedules import GiB, schedule, suite

ROLE = PLAYBOOKS / "roles" / "mlperf_inference"
FILES = ROLE / "files"
SERVER = Cpu(
    arch="x86_64",
    sockets=2,
    cores=64,
    threads=128,
    caches=(Cache(level=3, type="unified", size=64 << 20, instances=2),),
)
OFFICIAL = {"command": "make run", "logs": "/srv/mlperf"}


def planned(tmp_path: Path, settings: Mapping[str, Any] | None = None, **more: Any) -> HostSchedule:
    facts = {"cpu": SERVER, "numa": (NumaNode(id=0), NumaNode(id=1)), **more}
    return schedule(
        suite(tmp_path, "  mlperf_inference:\n"), {"mlperf_inference": settings or {}}, repeats=1, **facts
    ).hosts["h1"]


def steps(tmp_path: Path, settings: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Step]:
    planned_host = planned(tmp_path, settings, **more)
    assert not planned_host.skipped, planned_host.skipped
    return {step.case: step for step in planned_host.steps}


def module(name: str) -> ModuleType:
    spec = spec_from_file_location(name, FILES / f"{name}.py")
    assert spec
    assert spec.loader
    result = module_from_spec(spec)
    spec.loader.exec_module(result)
    return result


def test_the_manifest_names_the_role_that_it_deploys() -> None:
    """What hosts keep from an older Fleetmark must not be taken for this one's: put the digest below into the manifest."""
    parts = [p for p in sorted(ROLE.rglob("*")) if p.is_file() and "__pycache__" not in p.parts]
    digest = hashlib.sha256(b"".join(p.name.encode() + b"\0" + p.read_bytes() for p in parts)).hexdigest()[:8]
    named = re.search(r"mlperf_inference-\{\{ digest\('([0-9a-f]{8})'", (HERE / "mlperf_inference.yml").read_text())
    assert named
    assert named[1] == digest


# ------------------------------------------------------------ cases


def test_all_cores_are_shared_out_among_an_instance_for_each_socket(tmp_path: Path) -> None:
    by_case = steps(tmp_path)
    assert set(by_case) == {"resnet50-SingleStream-60s", "resnet50-Offline-60s", "resnet50-Server-60s"}
    words = by_case["resnet50-Offline-60s"].argv
    assert {"--instances=2", "--threads=32", "--batch=8", f"--cache-bytes={128 << 20}", "--devices=0"} <= set(words)
    assert words[:2] == ("/usr/bin/python3", by_case["resnet50-Offline-60s"].argv[1])
    assert words[1].startswith("/var/tmp/fleetmark-0/tools/mlperf_inference-")
    assert by_case["resnet50-Offline-60s"].output == "mlperf_log_summary.txt"


def test_a_vm_that_calls_every_cpu_a_socket_gets_one_instance(tmp_path: Path) -> None:
    words = steps(tmp_path, cpu=Cpu(arch="x86_64", sockets=16, cores=16), numa=(NumaNode(id=0),))[
        "resnet50-Offline-60s"
    ].argv
    assert {"--instances=1", "--threads=16"} <= set(words)


def test_a_run_as_long_as_the_rules_want_bears_no_time_in_its_name(tmp_path: Path) -> None:
    settings = {"duration": "10m", "models": "resnet50,bert-large", "scenarios": "Offline,MultiStream"}
    assert set(steps(tmp_path, settings)) == {
        f"{m}-{s}" for m in ("resnet50", "bert-large") for s in ("Offline", "MultiStream")
    }
    assert "--duration=600.0" in steps(tmp_path, settings)["resnet50-Offline"].argv
    assert set(steps(tmp_path, {"duration": 7.5, "scenarios": "Offline"})) == {"resnet50-Offline-7.5s"}


def test_a_limit_and_a_rate_reach_the_server_scenario_only(tmp_path: Path) -> None:
    by_case = steps(tmp_path, {"server_qps": 40, "latency_limit": 0.05})
    with_rate = [case for case, step in by_case.items() if any(w.startswith("--server-qps") for w in step.argv)]
    assert with_rate == ["resnet50-Server-60s"]
    assert {"--server-qps=40.0", "--latency-limit=0.05"} <= set(by_case["resnet50-Server-60s"].argv)


def test_gpus_take_an_instance_each_where_a_provider_for_them_is_named(tmp_path: Path) -> None:
    gpus = tuple(Gpu(index=i, name="H100", vendor="nvidia") for i in range(4))
    settings = {"provider": "CUDAExecutionProvider", "packages": "onnxruntime-gpu==1.23.2"}
    words = steps(tmp_path, settings, gpus=gpus)["resnet50-Offline-60s"].argv
    assert {"--instances=4", "--threads=16", "--devices=4", "--provider=CUDAExecutionProvider"} <= set(words)


def test_an_official_command_takes_the_place_of_the_built_in_scenarios_unless_they_are_asked_for(
    tmp_path: Path,
) -> None:
    by_case = steps(tmp_path, {**OFFICIAL, "command_env": ["A=1", "B=x, y"], "names": "resnet-offline,bert-offline"})
    assert set(by_case) == {"resnet-offline", "bert-offline"}
    step = by_case["bert-offline"]
    assert step.argv[1].endswith("/official.py")
    assert step.argv[2:] == ("/srv/mlperf", "make run", "A=1\nB=x, y")
    assert step.env["FLEETMARK_CASE"] == "bert-offline"
    assert step.timeout_s == 4 * 3600
    assert set(steps(tmp_path, {**OFFICIAL, "scenarios": "Offline"})) == {"official", "resnet50-Offline-60s"}
    assert steps(tmp_path, OFFICIAL)["official"].argv[2:] == ("/srv/mlperf", "make run")


def test_what_is_deployed_goes_by_all_that_shapes_it(tmp_path: Path) -> None:
    def provides(settings: Mapping[str, Any] | None = None, **more: Any) -> str:
        return planned(tmp_path, settings, **more).deploy[0].provides

    variants: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({}, {"python_version": "3.12.3"}),
        ({"packages": "onnxruntime==1.22.0"}, {}),
        ({"wheels": "/srv/wheels"}, {}),
        ({"python": "/opt/python/bin/python3", "python_version": "3.12"}, {}),
        (OFFICIAL, {}),
    ]
    assert len({provides(settings, **more) for settings, more in variants}) == len(variants)
    assert provides({"duration": 5}) == provides()


# ------------------------------------------------------------ what is refused, and who is skipped


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"command": "x"}, "needs mlperf_inference.logs"),
        ({"command": "x", "logs": "logs"}, "absolute path"),
        ({"scenarios": "none"}, "needs mlperf_inference.scenarios or mlperf_inference.command"),
        ({"wheels": "wheels"}, "absolute path of the folder mlperf_inference.wheels"),
        ({"models": "gpt"}, "is not one of resnet50"),
        ({"scenarios": "Interactive"}, "is not one of SingleStream"),
    ],
)
def test_mistakes_are_told_before_any_host_is_touched(tmp_path: Path, settings: Mapping[str, Any], words: str) -> None:
    with pytest.raises(FleetmarkError, match=words):
        settings_of(load_suite(suite(tmp_path, "  mlperf_inference:\n")), {"mlperf_inference": settings})


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"python_version": "3.6.8"}, "wheels for Python 3.6 on x86_64"),
        ({"python_version": "3.14.1"}, "wheels for Python 3.14 on x86_64"),
        ({"cpu": Cpu(arch="aarch64", cores=64)}, "wheels for Python 3.11 on aarch64"),
        ({"os_family": "alpine"}, "with musl"),
        ({"memory_available": 1 << 30}, "1.8 GB of free memory for resnet50 in 1 instance;"),
        ({"work_free": 500 << 20}, "0.6 GB of free disk under /var/tmp/fleetmark-0"),
    ],
)
def test_a_host_that_cannot_is_skipped_and_told_why(tmp_path: Path, facts: Mapping[str, Any], words: str) -> None:
    small = {"cpu": Cpu(arch="x86_64", cores=8), **facts}
    assert words in planned(tmp_path, **small).skipped["mlperf_inference"]
    official_only = planned(tmp_path, OFFICIAL, **small)
    assert not official_only.skipped, "an official command brings its own software"


def test_own_wheels_or_another_python_serve_hosts_that_pypi_does_not(tmp_path: Path) -> None:
    arm = Cpu(arch="aarch64", cores=64)
    assert steps(tmp_path, {"wheels": "/srv/wheels"}, cpu=arm)
    settings = {"python": "/usr/bin/python3.11", "python_version": "3.11"}
    by_case = steps(tmp_path, settings, python_version="3.6.8", python="/usr/libexec/platform-python")
    assert {step.argv[0] for step in by_case.values()} == {"/usr/bin/python3.11"}


def test_bert_wants_the_memory_of_bert(tmp_path: Path) -> None:
    short = planned(tmp_path, {"models": "bert-large"}, memory_available=4 * GiB)
    assert "7.0 GB of free memory for bert-large in 2 instances" in short.skipped["mlperf_inference"]
    assert planned(tmp_path, {"models": "bert-large", "instances": 1}, memory_available=5 * GiB).steps


# ------------------------------------------------------------ packages, where fleetmark runs


def wheel(folder: Path, name: str, version: str = "1.0", text: str = "") -> Path:
    """A whole wheel of one module."""
    folder.mkdir(parents=True, exist_ok=True)
    path, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr(f"{name}.py", text)
        out.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        out.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        out.writestr(f"{info}/RECORD", "")
    return path


def pack(archive: Path, *words: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """pack.py without a reachable index, for any pip configuration of this machine."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PIP_")}
    env |= {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "HOME": str(archive.parent)}
    return subprocess.run(
        [python, str(FILES / "pack.py"), str(archive), *words], capture_output=True, text=True, env=env
    )


def last(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


def test_packages_come_out_of_a_folder_of_wheels_and_are_packed_once(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheel(wheels, "first")
    wheel(wheels, "second", "2.0")
    archive = tmp_path / "cache" / "packages.tar.gz"
    done = pack(archive, "3.9", "aarch64", str(wheels), "first==1.0", "second==1.0", "second==2.0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == hashlib.sha256(archive.read_bytes()).hexdigest()
    with tarfile.open(archive) as tar:
        assert {"./first.py", "./second.py", "./second-2.0.dist-info/METADATA"} <= set(tar.getnames())
    assert [p.name for p in archive.parent.iterdir() if "pack" in p.name] == ["packages.tar.gz"]
    (wheels / "first-1.0-py3-none-any.whl").unlink()
    again = pack(archive, "3.9", "aarch64", str(wheels), "first==1.0", "second==2.0")
    assert again.stdout == done.stdout


def test_packing_loads_no_module_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pip.py").write_text("open('ran', 'w')\n")
    wheel(tmp_path / "wheels", "first")
    done = pack(tmp_path / "a.tar.gz", "3.11", "x86_64", str(tmp_path / "wheels"), "first==1.0")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_missing_wheel_is_named_with_the_python_and_cpu_it_is_for(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheel(wheels, "first")
    message = last(pack(tmp_path / "a.tar.gz", "3.14", "aarch64", str(wheels), "first==1.0", "second==2.0"))
    assert (
        message
        == f"mlperf_inference.wheels: {wheels} has no second==2.0 for Python 3.14 on aarch64: put that wheel there"
    )
    assert not (tmp_path / "a.tar.gz").exists()
    none = last(pack(tmp_path / "a.tar.gz", "3.11", "x86_64", str(tmp_path / "nowhere"), "first"))
    assert f"there is no folder {tmp_path}/nowhere on the machine that runs fleetmark" in none


def test_without_an_index_the_user_is_told_what_to_download_elsewhere(tmp_path: Path) -> None:
    message = last(pack(tmp_path / "a.tar.gz", "3.11", "x86_64", "", "first==1.0"))
    assert "pip reaches no package index" in message
    assert "pip download -d wheels --no-deps" in message
    assert "--python-version 3.11 --platform=manylinux_2_28_x86_64" in message
    assert message.endswith("first==1.0, and set mlperf_inference.wheels to that folder")


def test_a_python_without_pip_says_so(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    message = last(pack(tmp_path / "a.tar.gz", "3.11", "x86_64", "", "first", python=str(tmp_path / "bare/bin/python")))
    assert "has no pip" in message
    assert "ensurepip" in message


def test_what_the_user_names_takes_the_place_of_ours() -> None:
    pins = ["mlcommons-loadgen==6.0.17", "onnxruntime==1.23.2", "typing-extensions==4.16.0"]
    named = ["onnxruntime-gpu==1.24", "Typing_Extensions>=5", "nvidia-cudnn-cu12[x]~=9.0"]
    assert module("pack").settled(pins + named) == [pins[0], *named]


# ------------------------------------------------------------ the harness onto the host


def install(
    dest: Path, python: str = f"{sys.version_info[0]}.{sys.version_info[1]}"
) -> subprocess.CompletedProcess[str]:
    files = {"harness.py": "h", "engine.py": "é"}
    encoded = base64.b64encode(json.dumps(files).encode()).decode()
    return subprocess.run(
        [sys.executable, str(FILES / "install.py"), str(dest), python], input=encoded, capture_output=True, text=True
    )


def archive(dest: Path, **modules: str) -> None:
    dest.mkdir(parents=True)
    with tarfile.open(dest / "packages.tar.gz", "w:gz") as tar:
        for name, text in modules.items():
            (dest / name).write_text(text)
            tar.add(dest / name, arcname=f"./{name}.py")
            (dest / name).unlink()


def test_the_harness_comes_after_packages_that_work(tmp_path: Path) -> None:
    dest = tmp_path / "tools"
    archive(dest, mlperf_loadgen="", numpy="", onnx="", onnxruntime="")
    done = install(dest)
    assert done.returncode == 0, done.stderr
    assert {p.name for p in dest.iterdir()} == {"harness.py", "engine.py", "packages"}
    assert (dest / "engine.py").read_text(encoding="utf-8") == "é"


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        (
            {"mlperf_loadgen": "raise ImportError('GLIBC_2.28 not found')"},
            "on this host: ImportError: GLIBC_2.28 not found",
        ),
        ({"mlperf_loadgen": "import os; os.kill(os.getpid(), 4)"}, "on this host: killed by signal 4"),
    ],
)
def test_packages_that_do_not_work_leave_no_harness(tmp_path: Path, modules: Mapping[str, str], words: str) -> None:
    dest = tmp_path / "tools"
    archive(dest, **modules)
    assert words in last(install(dest))
    assert not (dest / "harness.py").exists()


def test_a_damaged_archive_and_a_wrong_python_are_told(tmp_path: Path) -> None:
    dest = tmp_path / "tools"
    dest.mkdir()
    (dest / "packages.tar.gz").write_bytes(b"\x1f\x8b no archive")
    assert "the harness could not be put into" in last(install(dest))
    assert "set mlperf_inference.python_version to that" in last(install(dest, "3.1"))
    assert not (dest / "harness.py").exists()


@pytest.mark.parametrize(("since", "names"), [("3.6-", ("install.py", "official.py")), ("3.9-", ())])
def test_what_runs_on_hosts_keeps_to_the_python_found_there(since: str, names: tuple[str, ...]) -> None:
    for file in [FILES / n for n in names] or sorted(FILES.glob("*.py")):
        vermin = Path(sys.executable).with_name("vermin")
        done = subprocess.run(
            [vermin, f"-t={since}", "--no-tips", "--eval-annotations", file], capture_output=True, text=True
        )
        assert done.returncode == 0, f"{file.name}: {done.stdout}"


# ------------------------------------------------------------ official commands


@pytest.fixture
def official(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    (tmp_path / "logs" / "old").mkdir(parents=True)
    (tmp_path / "logs" / "old" / "mlperf_log_summary.txt").write_text("last year's\n")
    (tmp_path / "scratch").mkdir()

    def run(command: str, logs: Path = tmp_path / "logs", environment: str = "") -> subprocess.CompletedProcess[str]:
        words = [
            sys.executable,
            str(FILES / "official.py"),
            str(logs),
            command,
            *([environment] if environment else []),
        ]
        return subprocess.run(words, capture_output=True, text=True, cwd=tmp_path / "scratch")

    return run


def test_new_logs_are_brought_together_and_old_ones_left(
    official: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "scratch" / "1-accuracy.txt").write_text("of a run that was cut")
    done = official(
        """cd ../logs; mkdir a b b/TEST01; echo A=$A > a/mlperf_log_summary.txt; echo detail > a/mlperf_log_detail.txt
        echo B > b/mlperf_log_summary.txt; echo accuracy=76.1% > b/accuracy.txt; cp b/mlperf_log_summary.txt b/TEST01""",
        environment="A=one two\nnonsense",
    )
    assert done.returncode == 0, done.stderr
    contents = {p.name: p.read_bytes() for p in (tmp_path / "scratch").iterdir()}
    assert set(contents) == {"mlperf_log_summary.txt", "1-mlperf_log_detail.txt.gz", "1-accuracy.txt"}
    logs = tmp_path / "logs"
    assert contents["mlperf_log_summary.txt"].decode() == (
        f"# {logs}/a/mlperf_log_summary.txt\nA=one two\n\n# {logs}/b/mlperf_log_summary.txt\nB\n\n"
        f"# {logs}/b/accuracy.txt\naccuracy=76.1%\n\n"
    )
    assert gzip.decompress(contents["1-mlperf_log_detail.txt.gz"]) == b"detail\n"
    assert f"left out, a compliance test: {logs}/b/TEST01/mlperf_log_summary.txt" in done.stdout


def test_a_log_written_over_is_new(official: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    assert official("echo again > ../logs/old/mlperf_log_summary.txt").returncode == 0
    assert "again" in (tmp_path / "scratch" / "mlperf_log_summary.txt").read_text()


def test_a_command_that_leaves_no_logs_is_told_what_to_set(
    official: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    assert "has no new mlperf_log_summary.txt below it: set mlperf_inference.logs" in last(official("true"))
    assert "nowhere is not a folder on this host" in last(official("true", logs=tmp_path / "nowhere"))
    assert not (tmp_path / "scratch" / "mlperf_log_summary.txt").exists()


def test_it_ends_as_the_command_did_and_keeps_its_logs(
    official: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = official("echo half > ../logs/mlperf_log_summary.txt; echo 'CUDA out of memory' >&2; exit 7")
    assert (done.returncode, done.stderr) == (7, "CUDA out of memory\n")
    assert "half" in (tmp_path / "scratch" / "mlperf_log_summary.txt").read_text()
    assert official("kill -9 $$").returncode == 128 + 9


# ------------------------------------------------------------ placement


@pytest.fixture
def placement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Two sockets of four cores with two threads each; Linux numbers second threads behind all first ones."""
    for cpu in range(16):
        core = cpu % 8
        here = tmp_path / f"cpu{cpu}"
        (here / "topology").mkdir(parents=True)
        (here / "topology" / "physical_package_id").write_text(f"{core // 4}\n")
        (here / "topology" / "thread_siblings_list").write_text(f"{core},{core + 8}\n")
        (here / f"node{core // 4}").mkdir()
    loaded = module("placement")
    monkeypatch.setattr(loaded, "CPUS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)))
    return loaded


def test_an_instance_for_each_socket_stays_on_it(placement: ModuleType) -> None:
    sets, note = placement.place(2, 4)
    assert sets == [{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}]
    assert note == "2 x 4 of 8 cores"


def test_fewer_threads_than_cores_lie_side_by_side(placement: ModuleType) -> None:
    assert placement.place(1, 4)[0] == [{0, 1, 2, 3, 8, 9, 10, 11}]
    assert placement.place(3, 2)[0] == [{0, 1, 8, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}]


def test_more_threads_than_cores_are_not_pinned_and_it_says_so(placement: ModuleType) -> None:
    sets, note = placement.place(2, 8)
    assert sets == [set(range(16))] * 2
    assert note == "not pinned: 2 x 8 threads are more than the 8 cores"


def test_a_container_gets_only_what_it_may_use(placement: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1, 9, 5, 20})
    assert placement.cores() == [(1, 9), (20,), (5,)]  # nothing is known of 20


@pytest.mark.parametrize(
    ("slowdown", "probes", "attempts"),
    [
        (1.0, 5, 4),  # a quiet host bisects to the end: 10 s of probes and 40 s of runs
        (4.0, 5, 2),  # runs take four times as long: 33 s of probes, and 80 s for one invalid run and a valid one
        (40.0, 1, 1),
    ],
)
def test_the_search_of_server_is_bounded_by_the_time_that_was_expected(
    slowdown: float, probes: int, attempts: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No valid run is thrown away, and none starts that would end after eight times the duration of 10 s."""
    monkeypatch.chdir(tmp_path)
    program: Any = module("harness")
    clock, truth = [0.0], 52.0
    program.time = SimpleNamespace(monotonic=lambda: clock[0])
    harness: Any = program.Harness.__new__(program.Harness)
    harness.options = SimpleNamespace(duration=10.0, server_qps=0.0)
    harness.ends, harness.report, harness.limit_s = 7000.0, {}, 0.015

    def settings() -> SimpleNamespace:
        return SimpleNamespace(min_query_count=1, min_duration_ms=10_000, server_target_qps=0.0)

    def start(settings: Any, folder: Path) -> str:
        folder.mkdir()
        clock[0] += slowdown * settings.min_duration_ms / 1000
        late = settings.server_target_qps > truth * 1.1  # short runs take a rate that is a little too high for good
        return f"99.00 percentile latency (ns) : {20_000_000 if late else 10_000_000}"

    kept: list[float] = []

    def finish(settings: Any, keep: bool) -> bool:
        clock[0] += slowdown * 10.0
        is_valid = settings.server_target_qps <= truth
        kept.extend([settings.server_target_qps] if is_valid or keep else [])
        return is_valid

    harness.settings, harness._start, harness._finish = settings, start, finish
    harness._rate, harness._pace, harness._afford = lambda: 100.0, lambda count: 0.001, lambda *_: None
    harness._server()
    tried = harness.report["attempts"]
    assert (len(harness.report["probes"]), len(tried)) == (probes, attempts)
    assert kept[-1] == max(a["qps"] for a in tried if a["valid"]), "the best valid run's logs are kept"


@pytest.mark.parametrize(
    ("ends", "took_s", "left_s", "expected"),
    [
        (["short", "short", "valid"], 10.0, 1000.0, [120.0, 180.0, 270.0]),
        (["short"] * 4, 10.0, 1000.0, [120.0, 180.0, 270.0]),  # and no more
        (["short", "valid"], 2.5, 1000.0, [120.0, 720.0]),  # the pace was far too slow: a quarter of the duration
        (["short", "valid"], 2.5, 30.0, [120.0]),  # no time for that
        (["slow", "valid"], 10.0, 1000.0, [120.0]),  # another reason, which more samples do not mend
        (["short", "valid"], 10.0, -1.0, [120.0]),  # no time left
    ],
)
def test_offline_that_ends_early_is_run_again_with_more_samples(
    ends: list[str], took_s: float, left_s: float, expected: list[float]
) -> None:
    program: Any = module("harness")
    clock = [0.0]
    program.time = SimpleNamespace(monotonic=lambda: clock[0])
    harness: Any = program.Harness.__new__(program.Harness)
    harness.options = SimpleNamespace(duration=10.0)
    harness.ends, harness.report, harness.too_short = left_s, {}, False
    settings = SimpleNamespace(min_query_count=1, offline_expected_qps=0.0)
    settings.multi_stream_samples_per_query, settings.multi_stream_expected_latency_ns = 8, 0
    seen: list[float] = []

    def finish(settings: Any) -> bool:
        seen.append(settings.offline_expected_qps)
        clock[0] += took_s
        harness.too_short = ends[len(seen) - 1] == "short"
        return ends[len(seen) - 1] == "valid"

    harness.settings, harness._rate = lambda: settings, lambda: 100.0
    harness._afford, harness._finish = lambda *_: None, finish
    harness._offline()
    assert seen == pytest.approx(expected)
    assert [a["valid"] for a in harness.report["attempts"]] == [e == "valid" for e in ends[: len(seen)]]
    runs = len(seen)
    seen.clear()
    clock[0] = 0.0
    harness._pace = lambda at_once: 2.0 * at_once
    harness._finish = lambda settings: finish(settings) and settings.multi_stream_expected_latency_ns > 0
    harness._multistream()
    latencies = [a["multi_stream_expected_latency_ns"] for a in harness.report["attempts"]]
    assert latencies == pytest.approx([8e9 * expected[0] / e for e in expected[:runs]], rel=1e-6), (
        "MultiStream likewise"
    )


WATCHED = """
import sys, time, types
sys.modules["onnxruntime"] = types.ModuleType("onnxruntime")
sys.path.insert(0, sys.argv[1])
import engine
watched = engine.Engine.__new__(engine.Engine)
watched.answering = [True, False]
with watched.watched(0.2):
    time.sleep(2)
time.sleep(1)
print("a long pass and a run that ended are left alone", flush=True)
watched.answering = [False, False]
with watched.watched(0.2):
    time.sleep(600)
"""


def test_a_loadgen_that_stands_still_is_ended() -> None:
    done = subprocess.run([sys.executable, "-c", WATCHED, str(FILES)], capture_output=True, text=True)
    assert done.stdout == "a long pass and a run that ended are left alone\n"
    assert (done.returncode, done.stderr) == (1, "LoadGen neither sent a query nor ended for 0.2 s\n")
