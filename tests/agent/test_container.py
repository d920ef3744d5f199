"""A step in a container: the words that its engine gets, what it sees of the host, and that none outlives its step."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Container
from fleetmark.campaign.schedule import containers, make_schedule, settings_of
from fleetmark.hosts.agent import PLAYBOOKS, agent_source
from fleetmark.hosts.inventory import Host, this_machine
from fleetmark.hosts.preflight import check_hosts
from fleetmark.parsers.facts._raw import Raw
from fleetmark.parsers.facts._torch import containers as read_containers
from fleetmark.workloads import Choice, Suite
from tests.agent.job import Job, step
from tests.schedules import facts

pytestmark = pytest.mark.job
AGENT = PLAYBOOKS / "agent"
IMAGE = "podman:fleetmark-test:1"
# A machine that may raise no limits needs them said; an own store leaves the machine's images alone.
CONF = '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n[engine]\nruntime = "runc"\n'
STORAGE = '[storage]\ndriver = "vfs"\ngraphroot = "{0}/store"\nrunroot = "{0}/run"\n'


def words(step: dict[str, Any], argv: list[str], scratch: Path) -> list[str]:
    code = "import json, sys; sys.path.insert(0, sys.argv[1]); import container\n"
    code += "print(json.dumps(container.command_of(*json.loads(sys.argv[2]))))"
    arguments = json.dumps([step, argv, {"PATH": "/bin", "LC_ALL": "C", "OMP_NUM_THREADS": "2"}, str(scratch)])
    ran = subprocess.run(
        [sys.executable, "-c", code, str(AGENT), arguments], capture_output=True, text=True, check=True
    )
    return list(json.loads(ran.stdout))


def test_a_step_without_a_container_is_left_as_it_is(tmp_path: Path) -> None:
    assert words({}, ["fio", "/srv"], tmp_path) == ["fio", "/srv"]
    assert words({"container": IMAGE}, [], tmp_path) == []


def test_an_engine_gets_the_folders_that_the_command_names_and_no_path_of_programs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    argv = ["/usr/bin/fio", f"--filename={data}/a:{data}/b", "--output=/etc/passwd", "--ioengine=libaio", "/nowhere/x"]
    engine_words = words({"container": IMAGE}, argv, tmp_path)
    mounts = [engine_words[n + 1] for n, word in enumerate(engine_words) if word == "-v"]
    assert f"{data}:{data}" in mounts and f"{tmp_path}:{tmp_path}" in mounts and not any("/etc" in m for m in mounts)
    assert [engine_words[n + 1] for n, word in enumerate(engine_words) if word == "-e"] == ["LC_ALL", "OMP_NUM_THREADS"]
    assert engine_words[-len(argv) - 2 :] == ["--entrypoint", "/usr/bin/fio", "fleetmark-test:1", *argv[1:]]
    assert {"--rm", "--pull=never", "--network=host", "--ipc=host"} <= set(engine_words)


def test_every_step_of_the_workload_has_it_and_packages_stay_away() -> None:
    image = {IMAGE: Container(engine="podman")}
    hosts = [
        (Host(f"h{n}", f"10.0.0.{n}", f"10.0.0.{n}"), facts(containers=image, tools={}, root=False)) for n in (1, 2)
    ]
    suite = Suite(name="s", description="x", workloads={"iperf3": Choice(in_container=IMAGE), "selftest": None})
    assert containers(suite) == [IMAGE]
    schedule = make_schedule(hosts, suite, {}, campaign="c", seed=1, repeats=1)
    for host in schedule.hosts.values():
        used = {(s.container, s.serves) for s in host.steps if s.workload == "iperf3"}
        assert used == {(IMAGE, True), (IMAGE, False)}
        assert {s.container for s in host.steps if s.workload == "selftest"} == {""}
        assert not host.deploy and not host.skipped, "iperf3 is the image's, and needs no root here"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"rc": 0, "out": '{"error": "podman is not on this host"}', "err": ""}, "podman is not on this host"),
        ({"rc": None, "out": "", "err": "no answer in time"}, "did not answer (no answer in time)"),
        ({"rc": 0, "out": '"x"', "err": ""}, "gave an unreadable answer"),
    ],
)
def test_a_host_without_the_image_is_skipped_with_the_reason(answer: dict[str, Any], words: str) -> None:
    lacking = facts(containers=read_containers(Raw({"containers": {IMAGE: answer}})))
    suite = Suite(name="s", description="x", workloads={"stream": Choice(in_container=IMAGE)})
    schedule = make_schedule([(Host("h1", "-", "-"), lacking)], suite, {}, campaign="c", seed=1, repeats=1)
    assert schedule.hosts["h1"].skipped["stream"].startswith(f"needs its container: {IMAGE} {words}")


def test_a_workload_of_torch_names_its_container_itself() -> None:
    suite = Suite(name="s", description="x", workloads={"torch_ops": Choice(in_container=IMAGE)})
    with pytest.raises(
        FleetmarkError,
        match=r"torch_ops cannot use in_container; set its container with torch_ops.python \(docker:IMAGE\)",
    ):
        settings_of(suite, {})
    with pytest.raises(ValueError, match="in_container"):
        Choice(in_container="--privileged")


def test_the_preflight_looks_for_the_image() -> None:
    (checked,) = check_hosts([this_machine()], [], containers=["podman:no-such-image-here:1"])
    assert checked.facts
    error = checked.facts.containers["podman:no-such-image-here:1"].error or ""
    assert error == "needs podman, which is not on this host" or error.startswith(
        "is not an image that podman has on this host"
    )


def test_it_runs_on_old_pythons() -> None:
    vermin = [str(Path(sys.executable).with_name("vermin")), "-t=3.6-", "--no-tips"]
    for name in ("container.py", "nic_counters.py"):
        ran = subprocess.run([*vermin, str(AGENT / name)], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout
    assert b"import" in agent_source("container.py")


class Engine:
    """``podman`` or ``docker`` with ``env``, in which it has an image of one shell and its libraries."""

    def __init__(self, name: str, env: dict[str, str]) -> None:
        self.name, self.env = name, env
        self.image = f"{name}:{IMAGE.partition(':')[2]}"

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.name, *words], env=self.env, capture_output=True, text=True)


@pytest.fixture(scope="module", params=["podman", "docker"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """An engine of this machine; docker where its daemon runs (DOCKER_HOST names another folder it listens)."""
    name = request.param
    if not shutil.which(name) or not shutil.which("dash") or (name == "podman" and not shutil.which("runc")):
        pytest.skip(f"no {name}, runc or dash on this machine (make test installs podman as root)")
    tmp_path = tmp_path_factory.mktemp("engine")
    root = tmp_path / "image"
    linked = subprocess.run(["ldd", "/bin/dash", "/bin/sleep"], capture_output=True, text=True, check=True).stdout
    libraries = {word for word in linked.split() if word.startswith("/") and not word.endswith(":")}
    for path in ("/bin/dash", "/bin/sleep", *libraries):
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / path[1:])
    subprocess.run(["tar", "-C", str(root), "-cf", str(tmp_path / "image.tar"), "."], check=True)
    (tmp_path / "containers.conf").write_text(CONF)
    (tmp_path / "storage.conf").write_text(STORAGE.format(tmp_path))
    env = {"CONTAINERS_CONF": f"{tmp_path}/containers.conf", "CONTAINERS_STORAGE_CONF": f"{tmp_path}/storage.conf"}
    env |= {key: value for key, value in os.environ.items() if key == "DOCKER_HOST"}
    env["PATH"] = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    result = Engine(name, env)
    begun = result("import", str(tmp_path / "image.tar"), "fleetmark-test:1")
    if begun.returncode or result("run", "--rm", "--network=host", "fleetmark-test:1", "/bin/dash").returncode:
        pytest.skip(f"{name} runs no container on this machine")
    return result


def check_image(engine: Engine, **more: str) -> dict[str, Any]:
    """Return what a host says of the engine's image."""
    words = [sys.executable, str(AGENT / "interpreter.py"), "--image", engine.image]
    ran = subprocess.run(words, env={**engine.env, **more}, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


def test_an_image_counts_if_its_engine_can_start_it(tmp_path: Path, engine: Engine) -> None:
    assert check_image(engine)["image"]
    if engine.name == "docker":
        return  # its daemon knows the runtimes
    broken = CONF.replace('"runc"', '"broken"') + '[engine.runtimes]\nbroken = ["/bin/false"]\n'
    (tmp_path / "broken.conf").write_text(broken)
    error = check_image(engine, CONTAINERS_CONF=str(tmp_path / "broken.conf"))["error"]
    assert error.startswith("cannot be started by podman on this host (")


def test_the_user_s_settings_of_the_engine_are_kept_from_the_container(tmp_path: Path, engine: Engine) -> None:
    settings = {name: value for name, value in engine.env.items() if name.startswith("CONTAINERS_")}
    show = step(0, ["/bin/dash", "-c", "echo =$CONTAINERS_CONF="], env={}, container=engine.image)
    job = Job(tmp_path, [show], campaign="configured")
    job.start(env={**os.environ, **settings})
    assert job.results()["00000"]["files"]["stdout"] == "==\n"


def test_a_real_container_works_in_the_step_s_folder_and_its_time_is_counted(tmp_path: Path, engine: Engine) -> None:
    busy = "n=0; while [ $n -lt 400000 ]; do n=$((n+1)); done; pwd; echo left > left.txt; echo $OMP_NUM_THREADS"
    env = {**engine.env, "OMP_NUM_THREADS": "3"}
    job = Job(
        tmp_path,
        [
            step(0, ["/bin/dash", "-c", busy], env=env, container=engine.image, files=["*.txt"]),
            step(1, ["/bin/python-of-nowhere"], env=env, container=engine.image),
            step(2, ["/bin/sleep", "600"], env=env, container=engine.image, timeout_s=3),
        ],
        campaign="contained",  # of no other test: what bears a campaign's mark is ended on this machine
    )
    job.start()
    results = job.results()
    assert results["00000"]["files"]["stdout"] == f"{job.folder}/scratch/w\n3\n"
    assert results["00000"]["files"]["left.txt"] == "left\n"
    if engine.name == "podman":  # below docker's daemon it is nobody's child here
        assert results["00000"]["cpu_s"] > 0.1, "a loop of that length takes longer"
    assert results["00000"]["argv"][-3:] == ["fleetmark-test:1", "-c", busy]
    assert results["00001"]["rc"] in (126, 127) and "python-of-nowhere" in results["00001"]["files"]["stderr"]
    assert results["00002"]["ended"] == "timeout"
    none_left(engine)


def test_a_container_whose_client_is_killed_ends_with_its_step(tmp_path: Path, engine: Engine) -> None:
    """The step counts as ended by itself here, and yet its container must not go on beside the next one."""
    steps = [step(0, ["/bin/sleep", "600"], env=engine.env, container=engine.image, timeout_s=600)]
    job = Job(tmp_path, steps, campaign="client-killed")
    job.start()
    deadline = time.monotonic() + 1200
    while not engine("ps", "-q").stdout:
        assert time.monotonic() < deadline, "no container began"
        time.sleep(0.1)
    os.kill(int((job.folder / "children").read_text().split()[0]), signal.SIGKILL)
    (result,) = job.results().values()
    assert (result["ended"], result["rc"]) == ("exit", -signal.SIGKILL)
    none_left(engine, "-a")


def none_left(engine: Engine, *more: str) -> None:
    deadline = time.monotonic() + 120
    while engine("ps", *more, "--format", "{{.Names}}").stdout:
        assert time.monotonic() < deadline, "a container outlives its step"
        time.sleep(0.2)
