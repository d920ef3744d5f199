"""What Slurm's engine refuses: shared folders of others, files that are no files, jobs of others. No Slurm runs."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import pytest
from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.campaign import run, slurm
from fleetmark.campaign.slurm import job_on_record, shared_folder
from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.reach import LinkLost, ReachError
from fleetmark.hosts.slurm import cluster
from fleetmark.hosts.slurm.cluster import Node, Request, State
from fleetmark.hosts.slurm.job import UNSAFE, UNSEEN, Job
from fleetmark.hosts.slurm.reach import SlurmReach


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shared_folder(tmp_path / "new", tmp_path, "campaign") / "1"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of submitted scripts."""
    submitted: list[str] = []

    def submit(_request: Request, _name: str, script: str) -> str:
        submitted.append(script)
        return "7"

    monkeypatch.setattr(cluster, "submit", submit)
    return submitted


@pytest.fixture
def job(folder: Path, scripts: list[str]) -> Job:
    return Job.submit(Request(), "fleetmark", folder)


@pytest.fixture
def reach(job: Job) -> SlurmReach:
    """The reach of a node whose agent has reported."""
    job.state = State("RUNNING")
    reach = SlurmReach(Host("h1", "h1", "h1"), job)
    reach.folder.mkdir()
    (reach.folder / "up").write_text('{"restart": 0}')
    return reach


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(PLAYBOOKS / "agent")
    for name in ("files", "lock", "private", "steps", "node"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import node  # type: ignore[import-not-found]

    module: ModuleType = node
    return module


def test_every_level_of_the_shared_folder_is_private(job: Job) -> None:
    levels = [job.folder / "nodes", job.folder, job.folder.parent, job.folder.parent.parent]
    assert [level.stat().st_mode & 0o777 for level in levels] == [0o700] * 4
    assert levels[-1].name == f".slurm-{os.geteuid()}"


@pytest.mark.parametrize("way", ["link", "writable"])
def test_a_level_that_others_control_is_refused(folder: Path, tmp_path: Path, way: str) -> None:
    level = folder.parent
    level.parent.mkdir(parents=True, mode=0o700)
    if way == "link":
        level.symlink_to(tmp_path)
    else:
        level.mkdir()
        level.chmod(0o770)
    reason = "not a folder; remove it" if way == "link" else "other users can write in it"
    with pytest.raises(FleetmarkError, match=f"^--shared {level}: {reason}"):
        Job.submit(Request(), "fleetmark", folder)


@pytest.mark.parametrize(("mode", "owner"), [(0o775, "every member of its group"), (0o777, "every user")])
def test_nothing_is_submitted_below_a_folder_that_others_can_change(
    folder: Path, tmp_path: Path, scripts: list[str], mode: int, owner: str
) -> None:
    project = tmp_path / "new"
    project.mkdir()
    project.chmod(mode)
    with pytest.raises(
        FleetmarkError, match=rf"^--shared {project}: {owner} can replace {project}/.slurm-\d+; run `chmod"
    ):
        Job.submit(Request(), "fleetmark", folder)
    assert not scripts
    project.chmod(mode | 0o1000)
    assert Job.submit(Request(), "fleetmark", folder).id == "7"


class FakeNode:
    """Run the submitted script as Slurm would on node h1, with an agent that exits as soon as it has reported."""

    def __init__(self, script: str, tmp_path: Path) -> None:
        self.script, self.bin, self.cwd = script, tmp_path / "bin", tmp_path / "cwd"
        for path in (self.bin, self.cwd):
            path.mkdir()
        srun = self.bin / "srun"
        srun.write_text('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nexec "$@"\n')
        srun.chmod(0o755)
        (self.bin / "python3").symlink_to(sys.executable)

    def runs(self) -> int:
        env = {"PATH": f"{self.bin}:/usr/bin:/bin", "SLURMD_NODENAME": "h1", "SLURM_JOB_NUM_NODES": "1"}
        done = subprocess.run(
            ["sh"], input=self.script, env=env, cwd=self.cwd, text=True, capture_output=True, timeout=120
        )
        assert not done.stderr, done.stderr
        return done.returncode


@pytest.fixture
def h1(job: Job, scripts: list[str], tmp_path: Path) -> FakeNode:
    (job.folder / "done").touch()
    return FakeNode(scripts[0], tmp_path)


def test_a_node_runs_the_agent_of_the_script_and_logs_beside_it(job: Job, h1: FakeNode) -> None:
    assert h1.runs() == 0
    assert json.loads((job.folder / "nodes" / "h1" / "up").read_text()) == {"restart": 0}
    assert (job.folder / "log.h1").read_text() == ""


def test_a_node_imports_nothing_from_the_folder_it_starts_in(job: Job, h1: FakeNode, tmp_path: Path) -> None:
    for name in ("json", "zlib", "base64", "files", "sitecustomize"):
        (h1.cwd / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert h1.runs() == 0
    assert not (tmp_path / "ran").exists()


def test_a_node_knows_the_folder_by_its_token(job: Job, h1: FakeNode) -> None:
    (job.folder / "token").write_text("another")
    assert h1.runs() == UNSEEN
    (job.folder / "token").unlink()
    assert h1.runs() == UNSEEN
    assert not (job.folder / "nodes" / "h1").exists()


def test_a_node_uses_no_folder_that_others_can_change_meanwhile(job: Job, h1: FakeNode, tmp_path: Path) -> None:
    (tmp_path / "new").chmod(0o775)
    assert h1.runs() == UNSAFE
    assert not (job.folder / "nodes" / "h1").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_folder_put_in_place_of_ours_while_the_job_is_queued_is_not_used(
    job: Job, h1: FakeNode, tmp_path: Path
) -> None:
    """Let another group member replace our folder by one with a symlink to ours, which could be redirected later."""
    ours = job.folder.parent.parent
    moved = ours.rename(ours.with_name("moved"))
    ours.mkdir(mode=0o755)
    (ours / "campaign").symlink_to(moved / "campaign")
    assert h1.runs() == 0, "only we can have changed it so far"
    os.chown(ours, 65534, 65534)
    assert h1.runs() == UNSAFE


def test_the_log_of_a_node_follows_no_link(job: Job, h1: FakeNode, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (job.folder / "log.h1").symlink_to(victim)
    assert h1.runs() == UNSEEN
    assert not victim.exists()


def test_a_node_goes_on_in_the_folder_that_it_opened(job: Job, scripts: list[str], tmp_path: Path) -> None:
    """Move the folder while the job runs: the node must keep using the folder that it checked."""
    h1 = FakeNode(scripts[0], tmp_path)
    env = {"PATH": f"{h1.bin}:/usr/bin:/bin", "SLURMD_NODENAME": "h1", "SLURM_JOB_NUM_NODES": "1"}
    with subprocess.Popen(["sh", "-c", scripts[0]], env=env) as running:
        until = time.monotonic() + 120
        while not (job.folder / "nodes" / "h1" / "up").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        moved = job.folder.rename(tmp_path / "moved")
        planted = job.folder / "nodes" / "h1" / "00001"
        planted.mkdir(parents=True)
        (planted / "in").touch()
        (planted / "request").write_text(json.dumps({"argv": ["touch", str(tmp_path / "ran")]}))
        real = moved / "nodes" / "h1" / "00001"
        real.mkdir()
        (real / "in").touch()
        (real / "request").write_text(json.dumps({"argv": ["touch", str(tmp_path / "real")]}))
        while not (real / "rc").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        (moved / "done").touch()
        assert running.wait(60) == 0
    assert (tmp_path / "real").exists() and not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("id_", "name"), [("7", "/srv/1"), ("7", "{shared}/x"), ("7", "{shared}/../1"), ("-u root", "{shared}/1"), ("", "")]
)
def test_a_job_of_another_campaign_is_refused(folder: Path, id_: str, name: str) -> None:
    shared = folder.parent
    assert job_on_record({"job": "7", "folder": str(folder)}, shared, None).folder == folder
    with pytest.raises(FleetmarkError, match="the journal "):
        job_on_record({"job": id_, "folder": name.format(shared=shared)}, shared, None)


def test_what_a_dead_job_left_is_removed_once_all_is_collected(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    owed: list[dict[str, set[str]]] = [{"h1": {"1"}}, {}]
    monkeypatch.setattr(run, "owed_steps", lambda *_: owed.pop(0))
    monkeypatch.setattr(run, "_last_job", lambda *_: job)
    monkeypatch.setattr(run, "_drive", lambda *_, **__: False)
    monkeypatch.setattr(run.scheduled, "hosts", lambda *_, **__: [])
    monkeypatch.setattr(run.scheduled, "jobs", lambda *_: {})
    monkeypatch.setattr(cluster, "state", lambda _: State("CANCELLED"))
    nothing: Any = Mock()
    assert run._resume_lent(nothing, nothing, Request(), nothing, nothing, {}) is False
    assert not job.folder.parent.exists()


@pytest.mark.parametrize("owed", [[{}], [{"h1": {"1"}}, {}]], ids=["nothing owed", "a step that is collected"])
def test_a_job_whose_controller_was_killed_at_the_end_is_ended_by_the_resume(
    job: Job, monkeypatch: pytest.MonkeyPatch, owed: list[dict[str, set[str]]]
) -> None:
    cancelled: list[str] = []
    (job.folder / "done").touch()
    remaining = iter(owed)
    monkeypatch.setattr(run, "owed_steps", lambda *_: next(remaining))
    monkeypatch.setattr(run, "_last_job", lambda *_: job)
    monkeypatch.setattr(run, "_drive", lambda *_, **__: False)
    monkeypatch.setattr(run, "_is_finished", lambda _: True)
    monkeypatch.setattr(run.scheduled, "hosts", lambda *_, **__: [])
    monkeypatch.setattr(run.scheduled, "jobs", lambda *_: {})
    monkeypatch.setattr(cluster, "state", lambda _: State("PENDING"))
    monkeypatch.setattr(cluster, "cancel", cancelled.append)
    nothing: Any = Mock()
    assert run._resume_lent(nothing, nothing, Request(), nothing, nothing, {}) is False
    assert cancelled == [job.id]
    assert not job.folder.parent.exists()


PARTITION = [
    Node(
        name=f"n{n}",
        partition="all",
        state=state,
        cpus=2,
        memory_b=1 << 30,
        features=features,
        gres="",
        address=f"n{n}",
    )
    for n, state, features in (
        (1, "idle", ("old", "ib")),
        (2, "idle", ("new", "ib")),
        (3, "down", ("new",)),
        (4, "mixed", ("new",)),
    )
]


@pytest.mark.parametrize(
    ("slurm_request", "nodes"),
    [
        (Request(), 3),
        (Request(nodes=2), 2),
        (Request(constraint="new"), 2),
        (Request(constraint="new&ib"), 1),
        (Request(constraint="old|new"), 3),
        (Request(constraint="[old*1&new*1]", nodes=2), 2),
        (Request(nodelist="n1,n[3-4]"), 3),
        (Request(nodelist="n1", nodes=2), 2),
    ],
)
def test_as_many_nodes_as_the_options_name(monkeypatch: pytest.MonkeyPatch, slurm_request: Request, nodes: int) -> None:
    monkeypatch.setattr(cluster, "hostnames", lambda text: {"n1": ["n1"], "n1,n[3-4]": ["n1", "n3", "n4"]}[text])
    assert slurm.number_of_nodes(slurm_request, PARTITION, "all") == nodes


@pytest.mark.parametrize(
    ("slurm_request", "sentence"),
    [
        (Request(nodes=5), "--nodes 5: partition all has 4 nodes"),
        (Request(nodelist="n[1-2]", nodes=1), "--nodes 1: --nodelist names 2; remove --nodes"),
        (Request(nodelist="n9"), "--nodelist n9: partition all has no node n9"),
        (Request(nodelist="n[1-"), r"--nodelist n\[1-: write it as Slurm does"),
        (Request(nodelist="n[1-99999]"), r"--nodelist n\[1-99999\]: write it as Slurm does"),
        (Request(constraint="[old&new]"), r"--constraint \[old&new\]: specify the number of nodes with --nodes"),
        (
            Request(constraint="old", nodes=2),
            "--constraint old: 1 of the 4 nodes of partition all fit; the available features are ",
        ),
        (Request(constraint="gpu"), "--constraint gpu: none of the 4 nodes of partition all fit"),
    ],
)
def test_nodes_that_the_partition_lacks_are_named(
    monkeypatch: pytest.MonkeyPatch, slurm_request: Request, sentence: str
) -> None:
    def hostnames(nodelist: str) -> list[str]:
        if "99999" in nodelist:
            raise FleetmarkError("Slurm refuses: memory allocation failure")
        return {"n[1-2]": ["n1", "n2"], "n9": ["n9"]}[nodelist]

    monkeypatch.setattr(cluster, "hostnames", hostnames)
    with pytest.raises(FleetmarkError, match=f"^{sentence}"):
        slurm.number_of_nodes(slurm_request, PARTITION, "all")


@pytest.mark.parametrize(
    ("printed", "sentence"),
    [
        ("sbatch: error: Batch job submission failed: Requested node configuration is not available", "refuses: Batch"),
        ("sbatch: unrecognized option '--x'\nTry \"sbatch --help\" for more information", "refuses: unrecognized"),
        ("sbatch: error: Batch job submission failed: Unable to contact slurm controller", "does not answer: Batch"),
        ("sbatch: fatal: Unable to process configuration file", "does not answer: fatal"),
    ],
)
def test_slurm_that_refuses_is_told_from_one_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, sentence: str
) -> None:
    tool = tmp_path / "sbatch"
    tool.write_text(f"#!/bin/sh\ncat >&2 <<'E'\n{printed}\nE\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(FleetmarkError, match=f"^Slurm {sentence}"):
        cluster.submit(Request(), "x", "")


def test_a_submission_that_slurm_refuses_leaves_nothing_and_can_be_repeated(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise FleetmarkError("Slurm refuses: no")

    second, other = job.folder.with_name("2"), job.folder.parent.with_name("other") / "1"
    with monkeypatch.context() as patch:
        patch.setattr(cluster, "submit", refuse)
        for folder in (second, other):
            with pytest.raises(FleetmarkError, match="Slurm refuses: no"):
                Job.submit(Request(), "fleetmark", folder)
    assert [path.name for path in job.folder.parent.iterdir()] == ["1"]
    assert not other.parent.exists()
    assert Job.submit(Request(), "fleetmark", second).folder == second


def test_a_job_that_never_began_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled: list[str] = []
    monkeypatch.setattr(cluster, "submit", lambda *_: "7")
    monkeypatch.setattr(cluster, "state", lambda _: State("PENDING", "PartitionTimeLimit"))
    monkeypatch.setattr(cluster, "cancel", cancelled.append)
    with pytest.raises(FleetmarkError, match=r"Slurm job 7 can never start \(PartitionTimeLimit\)"):
        slurm.lend(Request(), "fleetmark", folder, Console(quiet=True), lambda _: None)
    assert cancelled == ["7"]
    assert not folder.parent.parent.exists()


def test_a_job_that_began_anew_has_the_nodes_that_it_has_now(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "hostnames", lambda nodelist: nodelist.split(","))
    reasons = {}
    states = [("RUNNING", "h1,h2"), ("COMPLETING", "h2"), ("PENDING", ""), ("RUNNING", "h1,h3")]
    for state in (State(word, nodelist=nodelist) for word, nodelist in states):
        monkeypatch.setattr(cluster, "state", lambda _, state=state: state)
        job.look()
        reasons[state.word, state.nodelist] = [job.why_over(name) for name in ("h1", "h2")]
    anew = "Slurm job 7 restarted on other nodes"
    assert list(reasons.values()) == [["", ""], ["", ""], ["", ""], ["", anew]]


def test_a_node_that_fails_is_out_of_its_job_which_goes_on(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "hostnames", lambda nodelist: nodelist.split(","))
    for nodelist in ("h1,h2,h3", "h1,h3"):
        monkeypatch.setattr(cluster, "state", lambda _, nodelist=nodelist: State("RUNNING", nodelist=nodelist))
        job.look()
    assert [job.why_over(name) for name in ("h1", "h2")] == ["", "Slurm removed the node from job 7"]
    job.dead = {"h2": "down*"}
    assert job.why_over("h2") == "Slurm reports the node as down"


def test_a_job_held_from_the_beginning_is_not_waited_for(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "HELD_S", -1)
    monkeypatch.setattr(cluster, "state", lambda _: State("PENDING", "JobHeldUser"))
    with pytest.raises(FleetmarkError, match=r"Slurm job 7 is held \(JobHeldUser\)"):
        slurm.wait(job, Console(quiet=True))


def test_a_held_job_may_never_come_back(reach: SlurmReach) -> None:
    states = {
        State("PENDING", "Resources"): True,
        State("PENDING", "JobHeldUser"): None,
        State("PENDING", "launch_failed_requeued_held"): None,
        State("REQUEUE_HOLD"): None,
        State("SPECIAL_EXIT"): None,
        State("RUNNING"): None,
    }
    for state, returns in states.items():
        reach.job.state = state
        assert reach.returns() is returns, state


def test_processes_are_numbered_beside_names_that_are_no_numbers(reach: SlurmReach) -> None:
    for name in ("²", "٣", "1" * 10, "00004"):
        (reach.folder / name).mkdir()
    assert reach._request("{}").name == "00005"


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EEXIST])
def test_a_request_that_cannot_be_stored_ends(reach: SlurmReach, monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    def fail(*_: object) -> Path:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(ReachError, match=f"h1: cannot write in .*: {os.strerror(error)}"):
        reach.open(["true"])
    assert [path.name for path in reach.folder.iterdir()] == ["up"]


@pytest.mark.parametrize("text", [b"\xff", b"[" * 100_000, b'{"restart": Infinity}', b"[]", b" " * (2 << 20)])
def test_a_damaged_report_of_a_node_is_none(reach: SlurmReach, text: bytes) -> None:
    assert reach.start_of_job() == 0
    (reach.folder / "up").write_bytes(text)
    assert reach.start_of_job() is None


@pytest.mark.parametrize("name", ["out", "err", "rc"])
@pytest.mark.parametrize("way", ["pipe", "link", "folder"])
def test_what_a_node_left_in_place_of_a_file_is_not_read(reach: SlurmReach, name: str, way: str) -> None:
    channel = reach.open(["true"])
    file = reach.folder / "00001" / name
    if way == "pipe":
        os.mkfifo(file)
    elif way == "link":
        file.symlink_to("/etc/hostname")
    else:
        file.mkdir()
    with pytest.raises(LinkLost, match=f"h1: cannot read {file}"):
        channel.readline(timeout=60)


def test_output_of_slurm_may_hold_any_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "scontrol"
    tool.write_text("#!/bin/sh\nprintf 'JobState=RUNNING Comment=\\377 ExitCode=0:0'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert cluster.state("7").word == "RUNNING"


def test_a_node_ends_only_jobs_that_it_began_or_follows(
    node: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [
        ({"argv": ["python3", "-c", "boot"], "again": True}, {"job": {"folder": "/w/jobs/began"}}),
        ({"argv": ["python3", "/w/jobs/followed/follow.py", "/w/jobs/followed"]}, {}),
        ({"argv": ["sh", "-c", "cat"]}, {"job": {"folder": "/w/jobs/other"}}),
    ]
    for number, (request, payload) in enumerate(requests, 1):
        process = tmp_path / "nodes" / "h1" / f"{number:05d}"
        process.mkdir(parents=True)
        (process / "request").write_text(json.dumps(request))
        (process / "in").write_text(json.dumps(payload))
    (tmp_path / "nodes" / "h1" / "²").mkdir()
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: killed.append(pid))
    for pid, folder in enumerate(["began", "followed", "other"]):
        monkeypatch.setattr(
            node, "lock_holder", lambda _, pid=pid, folder=folder: {"pid": pid, "dir": f"/w/jobs/{folder}"}
        )
        node.Node(str(tmp_path), "h1").stop_job()
    assert killed == [0, 1]


@pytest.mark.parametrize("is_begun", [False, True])
def test_nodes_that_no_controller_used_remove_the_files_of_their_job(
    node: ModuleType, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_begun: bool
) -> None:
    """The controller was killed before it recorded its campaign, so no resume will ever remove them."""
    monkeypatch.setattr(node, "ALONE_S", 0.0)
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    (tmp_path / "new" / "notes").touch()
    for name in ("h1", "h2"):
        (job.folder / f"log.{name}").touch()
        process = job.folder / "nodes" / name / "00001"
        process.mkdir(parents=True)
        (process / "request").write_text(json.dumps({"argv": ["sh"], "again": is_begun and name == "h2"}))
        (process / "rc").touch()
    for name in ("h1", "h2"):
        assert job.folder.exists()
        node.Node(str(job.folder), name).run()
    left = {str(file.relative_to(job.folder)) for file in job.folder.rglob("up")}
    assert left == ({"nodes/h1/up", "nodes/h2/up"} if is_begun else set())
    assert job.folder.exists() == is_begun
    assert {file.name for file in (tmp_path / "new").iterdir()} == {"notes", *[f".slurm-{os.geteuid()}"] * is_begun}
