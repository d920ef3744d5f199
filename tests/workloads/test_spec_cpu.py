"""SPEC CPU before any host is touched: what is planned, what is refused, the config files, and the scripts of the role."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

from fleetmark import workloads
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.campaign.schedule import make_schedule, settings_of
from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.hosts.inventory import Host
from fleetmark.record.steps import HostSchedule
from fleetmark.workloads import load_suite
from tests.corpus import ROOT as CORPUS
from tests.schedules import GiB, facts
from tests.standins.spec_cpu import medium
from tests.standins.spec_cpu.specconfig import Config, Wrong

ROLE = PLAYBOOKS / "roles" / "spec_cpu2017"
SCRIPTS = ROLE / "files"
SUITES = ("intrate", "fprate", "intspeed", "fpspeed")
COMPILERS = {"gcc": "/usr/bin/gcc", "g++": "/usr/bin/g++", "gfortran": "/usr/bin/gfortran", "bsdtar": "/usr/bin/bsdtar"}


def suite(tmp_path: Path, release: int = 2017, **settings: Any) -> Any:
    file = tmp_path / "mine.yml"
    workload = {"set": {"tree": "/opt/cpu", **settings}}
    file.write_text(yaml.safe_dump({"description": "x", "repeats": 1, "workloads": {f"spec_cpu{release}": workload}}))
    return load_suite(str(file))


def plan(tmp_path: Path, release: int = 2017, host_facts: Facts | None = None, **settings: Any) -> HostSchedule:
    host_facts = host_facts or facts(tools=COMPILERS)
    scheduled = make_schedule([(Host("h1", "10.0.0.1", "10.0.0.1"), host_facts)], suite(tmp_path, release, **settings), {},
                     campaign="c", seed=1, repeats=None)  # fmt: skip
    return scheduled.hosts["h1"]


def benchmarks(release: int, name: str) -> list[str]:
    names: list[str] = workloads.load(f"spec_cpu{release}").parameters[name].default
    return names


# -- names and scores


@pytest.mark.parametrize("release", [2017, 2026])
def test_scores_are_means_over_whole_suites(release: int) -> None:
    manifest = workloads.load(f"spec_cpu{release}")
    scores = {name: score for name, score in manifest.scores.items() if str(release) in name}
    assert len(scores) == 8
    for name, score in scores.items():
        kind, tune = re.fullmatch(rf"SPEC(\w+){release}_(\w+)_(?:base|peak)", name), name.rpartition("_")[2]
        assert kind
        assert list(score.cases) == benchmarks(release, kind[2] + kind[1])
        assert (score.metric, score.mean) == (f"{tune}_ratio", "geometric")
        assert score.metric in manifest.metrics


def test_suites_have_the_sizes_that_spec_names_and_nothing_in_common() -> None:
    assert [len(benchmarks(2017, s)) for s in SUITES] == [10, 13, 10, 10]
    assert [len(benchmarks(2026, s)) for s in SUITES] == [14, 12, 13, 13]
    names = [b for r in (2017, 2026) for s in SUITES for b in benchmarks(r, s)]
    assert len(set(names)) == len(names)
    assert all(
        b.endswith("_r" if s.endswith("rate") else "_s") for r in (2017, 2026) for s in SUITES for b in benchmarks(r, s)
    )


@pytest.mark.parametrize(
    ("file", "release", "name"),
    [
        ("spec_cpu2017/intrate_epyc7713.csv", 2017, "intrate"),
        ("spec_cpu2017/fprate_epyc7713.csv", 2017, "fprate"),
        ("spec_cpu2017/fpspeed_epyc7713.txt", 2017, "fpspeed"),
        ("spec_cpu2026/intrate1_epyc7551_est.txt", 2026, "intrate"),
    ],
)
def test_benchmarks_are_those_of_published_results(file: str, release: int, name: str) -> None:
    if not (CORPUS / file).exists():
        pytest.skip("no corpus here")
    names = re.findall(r"^([0-9]{3}\.\w+_[rs])[ ,]", (CORPUS / file).read_text(errors="replace"), re.MULTILINE)
    assert list(dict.fromkeys(names)) == benchmarks(release, name)


# -- plans


def test_each_benchmark_is_a_case_of_its_own(tmp_path: Path) -> None:
    steps = plan(tmp_path).steps
    assert {s.case for s in steps} == set(benchmarks(2017, "intrate"))
    (perl,) = [s for s in steps if s.case == "500.perlbench_r"]
    assert perl.argv[1:] == (
        "--noreportable", "--ignore_errors", "--tune=base", "--size=ref", "--iterations=1", "--copies=32", "500.perlbench_r"
    )  # fmt: skip
    assert re.fullmatch(r"/var/tmp/fleetmark-0/tools/spec_cpu2017-[0-9a-f]{8}/run", perl.argv[0])
    assert perl.output == "report"


def test_speed_runs_take_threads(tmp_path: Path) -> None:
    steps = plan(tmp_path, suites="intspeed,fpspeed", tune="all", iterations=3).steps
    assert len(steps) == 20
    assert all("--threads=16" in s.argv and "--tune=all" in s.argv and "--iterations=3" in s.argv for s in steps)
    assert not any("--copies" in w for s in steps for w in s.argv)


def test_single_benchmarks_replace_suites(tmp_path: Path) -> None:
    steps = plan(tmp_path, benchmarks="505.mcf_r,619.lbm_s").steps
    assert {s.case for s in steps} == {"505.mcf_r", "619.lbm_s"}


def test_a_reportable_run_is_a_case_for_each_suite(tmp_path: Path) -> None:
    steps = plan(tmp_path, suites="intrate,fpspeed", reportable=True).steps
    assert {s.case for s in steps} == {"intrate", "fpspeed"}
    (rate,) = [s for s in steps if s.case == "intrate"]
    assert rate.argv[1:] == ("--reportable", "--tune=base", "--size=ref", "--iterations=3", "--copies=32", "intrate")
    assert rate.timeout_s > 10 * 28800


def test_memory_is_asked_for_by_copy(tmp_path: Path) -> None:
    small = facts(tools=COMPILERS, memory=60 * GiB)
    assert plan(tmp_path, host_facts=small).steps
    assert (
        "needs 66.0 GB of memory for 33 copies and has 64.4 GB"
        in plan(tmp_path, host_facts=small, copies=33).skipped["spec_cpu2017"]
    )
    assert plan(tmp_path, host_facts=small, copies=33, size="test").steps, "only the reference workload is that large"
    assert plan(tmp_path, host_facts=small, copies=99, suites="intspeed").steps
    tiny = facts(tools=COMPILERS, memory=8 * GiB)
    assert (
        "needs 16.0 GB of memory for speed runs"
        in plan(tmp_path, host_facts=tiny, suites="fpspeed").skipped["spec_cpu2017"]
    )
    reason = plan(tmp_path, 2026, facts(tools=COMPILERS, memory=32 * GiB), suites="fpspeed").skipped["spec_cpu2026"]
    assert "needs 64.0 GB of memory for speed runs" in reason


def test_disk_is_asked_for_before_anything_is_installed(tmp_path: Path) -> None:
    iso = tmp_path / "cpu.iso"
    iso.write_bytes(b"medium")
    settings: dict[str, Any] = {"tree": "", "iso": str(iso), "sha256": hashlib.sha256(b"medium").hexdigest()}
    room = {"tools": COMPILERS, "work_free": 40 * 10**9}
    assert (
        "needs 48.0 GB of free disk at /var/tmp/fleetmark-0"
        in plan(tmp_path, host_facts=facts(**room), **settings).skipped["spec_cpu2017"]
    )
    installed = facts(**room, cached=(f"spec_cpu/{settings['sha256'][:12]}/complete",))
    assert plan(tmp_path, host_facts=installed, **settings).steps
    assert plan(tmp_path, host_facts=facts(**room), disk="30GB", **settings).steps


def test_an_ordinary_user_needs_a_tool_that_unpacks_and_compilers_that_are_there(tmp_path: Path) -> None:
    iso = tmp_path / "cpu.iso"
    iso.write_bytes(b"medium")
    settings: dict[str, Any] = {"tree": "", "iso": str(iso), "sha256": hashlib.sha256(b"medium").hexdigest()}
    bare = {k: v for k, v in COMPILERS.items() if k != "bsdtar"}
    user = facts(root=False, tools=bare)
    assert (
        "needs bsdtar, xorriso or 7z to unpack the medium"
        in plan(tmp_path, host_facts=user, **settings).skipped["spec_cpu2017"]
    )
    assert plan(tmp_path, host_facts=user).steps, "a tree needs none"
    assert plan(tmp_path, host_facts=facts(root=True, tools=bare), **settings).steps, "root may mount"
    no_fortran = facts(root=False, tools={"gcc": "/usr/bin/gcc", "g++": "/usr/bin/g++"})
    reason = plan(tmp_path, host_facts=no_fortran).skipped["spec_cpu2017"]
    assert (
        reason
        == "needs gcc g++ gfortran: sudo apt-get install gcc g++ gfortran, or let Fleetmark do it as root (--become)"
    )
    assert plan(tmp_path, host_facts=no_fortran, cc="clang", cxx="clang++", fc="flang").steps


def test_what_changes_the_programs_makes_another_deployment(tmp_path: Path) -> None:
    config = tmp_path / "my.cfg"
    config.write_text("label = a\n")

    def provides(release: int = 2017, **settings: Any) -> str:
        return plan(tmp_path, release, **settings).deploy[0].provides

    usual = provides()
    changed = [
        provides(base_flags="-O2"),
        provides(cc="gcc-14"),
        provides(tree="/opt/other"),
        provides(huge_pages=True),
    ]
    changed += [provides(config=str(config)), provides(2026)]
    config.write_text("label = bb\n")
    changed.append(provides(config=str(config)))
    assert len({usual, *changed}) == 8
    assert provides(copies=3, iterations=2, bind="1") == usual


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tree": ""}, "SPEC's medium, iso=FILE with sha256=SUM, or a tree"),
        ({"tree": "", "iso": "ISO"}, "sha256, the checksum of .*: it has SUM; compare it with the checksum from SPEC"),
        ({"tree": "", "iso": "ISO", "sha256": "abc"}, "to have sha256 abc, and it has SUM"),
        ({"tree": "", "iso": "http://x/cpu.iso"}, "sha256, the checksum of http://x/cpu.iso$"),
        ({"tree": "/opt/cpu", "iso": "ISO", "sha256": "SUM"}, "iso or tree, not both"),
        ({"tree": "", "iso": "/no/such.iso"}, "is not a file on this machine or a URL"),
        ({"config": "http://x/my.cfg"}, "config to be a file on this machine"),
        ({"benchmarks": ["perlbench", "505.mcf_r"]}, "such as 500.perlbench_r: there is no perlbench$"),
        ({"benchmarks": "706.stockfish_r"}, "there is no 706.stockfish_r"),
        ({"reportable": True, "size": "test"}, "for a reportable run size=ref"),
        ({"reportable": True, "iterations": 1}, "2 or 3 iterations"),
        ({"reportable": True, "tune": "peak"}, "tune=base or all"),
        ({"reportable": True, "benchmarks": "505.mcf_r"}, "complete suites"),
        ({"suites": "int"}, "not one of intrate, fprate, intspeed, fpspeed"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_before_any_host_is_touched(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    iso = tmp_path / "cpu.iso"
    iso.write_bytes(b"medium")
    replacements = {"ISO": str(iso), "SUM": hashlib.sha256(b"medium").hexdigest()}
    settings = {k: replacements.get(v, v) if isinstance(v, str) else v for k, v in settings.items()}
    with pytest.raises(
        FleetmarkError,
        match=words.replace("SUM;", replacements["SUM"] + ";").replace("has SUM", "has " + replacements["SUM"]),
    ):
        settings_of(suite(tmp_path, **settings), {})


def test_the_other_release_has_its_own_medium_and_names(tmp_path: Path) -> None:
    assert {s.case for s in plan(tmp_path, 2026).steps} == set(benchmarks(2026, "intrate"))
    assert plan(tmp_path, 2026).steps[0].argv[0].startswith("/var/tmp/fleetmark-0/tools/spec_cpu2026-")
    with pytest.raises(FleetmarkError, match="2017 is not one of 2026"):
        settings_of(suite(tmp_path, 2026), {"spec_cpu2026": {"release": "2017"}})
    with pytest.raises(FleetmarkError, match="there is no 505.mcf_r"):
        settings_of(suite(tmp_path, 2026, benchmarks="505.mcf_r"), {})


# -- the config files


def config(tmp_path: Path, release: int, gcc: int, arch: str = "x86_64", **settings: Any) -> Config:
    """The config file for this compiler, as the role writes it and a runcpu reads it."""
    manifest = workloads.load(f"spec_cpu{release}")
    params = {"release": release, "cc": "gcc", "cxx": "g++", "fc": "gfortran", "base_flags": "-O3", "peak_flags": "-Ofast",
              "huge_pages": False, "threads": 6, **settings}  # fmt: skip
    variables = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    if release == 2026:
        tasks = yaml.safe_load((PLAYBOOKS / "roles" / "spec_cpu2026" / "tasks" / "deploy.yml").read_text())
        variables |= tasks[0]["vars"]
    values = {
        **variables,
        "fm_params": params,
        "fm_seen": {"gcc": gcc, "arch": arch, "compiler": f"gcc {gcc}", "cpus": 2},
    }
    environment = jinja2.Environment(trim_blocks=True, undefined=jinja2.StrictUndefined)
    values["fm_sections"] = environment.from_string(variables["fm_sections"]).render(values)
    text = environment.from_string((ROLE / "templates" / "config.cfg.j2").read_text()).render(values)
    file = tmp_path / f"{release}-{gcc}.cfg"
    file.write_text(text)
    sections = {"default", "openmp", "cxxthreads", "doconcurrent"} if release == 2026 else {"default"}
    return Config(file, {*sections, *SUITES, *(b for s in SUITES for b in manifest.parameters[s].default)})


def flags(parsed: Config, benchmark: str, tune: str = "base") -> dict[str, str]:
    release = 2017 if benchmark[0] in "56" else 2026
    return parsed.options(benchmark, tune, [s for s in SUITES if benchmark in benchmarks(release, s)])


def test_2017_gets_what_each_gcc_needs(tmp_path: Path) -> None:
    old, usual, new = (config(tmp_path, 2017, gcc) for gcc in (9, 12, 15))
    assert "EXTRA_FFLAGS" not in flags(old, "521.wrf_r"), "gcc 9 does not know the flag"
    assert flags(usual, "521.wrf_r")["EXTRA_FFLAGS"] == "-fallow-argument-mismatch"
    assert flags(usual, "628.pop2_s")["FPORTABILITY"] == "-fconvert=big-endian"
    assert flags(usual, "521.wrf_r")["CPORTABILITY"] == "-DSPEC_CASE_FLAG"
    assert "-fgnu89-inline" in flags(usual, "502.gcc_r")["EXTRA_CFLAGS"]
    assert "-fcommon" in flags(usual, "625.x264_s")["EXTRA_CFLAGS"]
    assert flags(usual, "500.perlbench_r")["PORTABILITY"] == "-DSPEC_LINUX_X64"
    assert flags(usual, "523.xalancbmk_r")["PORTABILITY"] == "-DSPEC_LINUX"
    assert "-Wno-error=implicit-int" in flags(usual, "627.cam4_s")["EXTRA_CFLAGS"]
    assert flags(new, "523.xalancbmk_r")["EXTRA_CXXFLAGS"] == "-Wno-error=template-body"
    assert "EXTRA_CXXFLAGS" not in flags(usual, "523.xalancbmk_r")
    assert all(flags(usual, b)["EXTRA_PORTABILITY"] == "-DSPEC_LP64" for s in SUITES for b in benchmarks(2017, s))
    arm = config(tmp_path, 2017, 13, "aarch64")
    assert flags(arm, "600.perlbench_s")["PORTABILITY"] == "-DSPEC_LINUX_AARCH64"
    assert "PORTABILITY" not in flags(config(tmp_path, 2017, 13, "riscv64"), "600.perlbench_s")


def test_base_has_the_same_optimisation_throughout_a_suite(tmp_path: Path) -> None:
    """SPEC's rule: in base only portability flags may differ from benchmark to benchmark."""
    for release in (2017, 2026):
        parsed = config(tmp_path, release, 14)
        for name in SUITES:
            every = [flags(parsed, b) for b in benchmarks(release, name)]
            assert len({tuple((k, v) for k, v in sorted(f.items()) if "PORTABILITY" not in k) for f in every}) == 1, (
                name
            )
            assert all(f["OPTIMIZE"] == "-O3" for f in every)
    assert flags(parsed, "777.zstd_r", "peak")["OPTIMIZE"] == "-Ofast"


def test_threads_only_in_speed_runs(tmp_path: Path) -> None:
    parsed = config(tmp_path, 2017, 12)
    assert "-fopenmp" in flags(parsed, "619.lbm_s")["EXTRA_OPTIMIZE"]
    assert "EXTRA_OPTIMIZE" not in flags(parsed, "519.lbm_r")
    assert flags(parsed, "627.cam4_s")["preENV_OMP_STACKSIZE"] == "120M"
    new = config(tmp_path, 2026, 14)
    assert (
        new.options("800.pot3d_s", "base", ["fpspeed", "doconcurrent"])["EXTRA_FOPTIMIZE"]
        == "-ftree-parallelize-loops=6"
    )
    assert new.options("801.xz_s", "base", ["intspeed", "cxxthreads"])["EXTRA_OPTIMIZE"] == "-pthread"
    assert flags(new, "706.stockfish_r")["CXX"] == "g++ -std=c++17"
    assert flags(new, "767.nest_r")["PORTABILITY"] == "-fno-finite-math-only"


def test_huge_pages_are_asked_for_in_the_config_alone(tmp_path: Path) -> None:
    parsed = config(tmp_path, 2017, 12, huge_pages=True)
    assert parsed.sections[0][2]["preENV_GLIBC_TUNABLES"] == "glibc.malloc.hugetlb=1"
    assert "GLIBC" not in config(tmp_path, 2017, 12).text


def test_the_stand_in_notices_nonsense(tmp_path: Path) -> None:
    for line, words in (
        ("999.nothing_r:", "unknown section specifier"),
        ("what is this", "makes no sense"),
        ("%undo x", "unknown prepro"),
    ):
        file = tmp_path / "bad.cfg"
        file.write_text(f"label = x\n{line}\n")
        with pytest.raises(Wrong, match=words):
            Config(file, {"default"})


# -- the scripts of the role


def run(script: str, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-s", *arguments],
        input=(SCRIPTS / script).read_text(),
        capture_output=True,
        text=True,
        env={"PATH": path or os.environ["PATH"]},
    )


def only(folder: Path, *tools: str) -> str:
    """A PATH with the usual commands and, of those that unpack an image, only ``tools``."""
    folder.mkdir()
    usual = [
        "sh",
        "dd",
        "ls",
        "tail",
        "head",
        "find",
        "grep",
        "rm",
        "rmdir",
        "mkdir",
        "mv",
        "chmod",
        "dirname",
        "id",
        "tar",
        "cat",
        "cp",
        "seq",
        "umount",
        "true",
    ]
    for tool in (*usual, *tools):
        (folder / tool).symlink_to(shutil.which(tool) or pytest.skip(f"no {tool} here"))
    (folder / "python3").symlink_to(sys.executable)  # the PATH's may be a script that needs more than this PATH
    return str(folder)


def put(tmp_path: Path, source: Path) -> Path:
    store = tmp_path / "store"
    store.mkdir()
    shutil.copy(source, store / "medium")
    return store


@pytest.fixture(scope="module")
def iso(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("xorriso"):
        pytest.skip("xorriso makes the stand-in's medium")
    return medium.make(tmp_path_factory.mktemp("medium") / "cpu2017.iso")


@pytest.mark.parametrize("tool", ["bsdtar", "xorriso"])
def test_the_medium_is_unpacked_with_what_is_there(tmp_path: Path, iso: Path, tool: str) -> None:
    store = put(tmp_path, iso)
    done = run("install.sh", str(store), "500.perlbench_r", "2017", path=only(tmp_path / "bin", tool))
    assert done.returncode == 0, done.stderr
    assert (store / "installed" / "tree" / "bin" / "runcpu").exists()
    assert sorted(p.name for p in store.iterdir()) == ["complete", "install.log", "installed"]


@pytest.mark.parametrize("form", ["contents", "image"])
def test_a_tar_of_the_medium_does_as_well(tmp_path: Path, iso: Path, form: str) -> None:
    tar = medium.make(tmp_path / "cpu.tar")
    if form == "image":
        with tarfile.open(tar, "w:xz") as out:
            out.add(iso, arcname="cpu2017-1.1.9.iso")
    store = put(tmp_path, tar)
    done = run("install.sh", str(store), "500.perlbench_r", "2017")
    assert done.returncode == 0, done.stderr
    assert (store / "complete").exists()


def test_what_cannot_be_installed_says_why_and_leaves_nothing_complete(tmp_path: Path, iso: Path) -> None:
    store = put(tmp_path, iso)
    bare = only(tmp_path / "bare")
    done = run("install.sh", str(store), "500.perlbench_r", "2017", path=bare)
    assert "nothing on this host unpacks an ISO image: apt-get install libarchive-tools" in done.stderr.splitlines()[-1]
    (store / "medium").write_text("a letter")
    done = run("install.sh", str(store), "500.perlbench_r", "2017")
    assert "the medium is neither an ISO image nor a tar" in done.stderr.splitlines()[-1]
    shutil.copy(iso, store / "medium")
    done = run("install.sh", str(store), "706.stockfish_r", "2026")
    assert "the medium is not SPEC CPU 2026 (it has no 706.stockfish_r)" in done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert not (store / "complete").exists()


def look(tree: Path | str, *compilers: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    return run("look.sh", str(tree), "/nowhere", "500.perlbench_r", "2017", *(compilers or ("", "", "")), path=path)


def test_a_tree_is_looked_at_before_it_is_used(tmp_path: Path) -> None:
    assert "holds no installed SPEC CPU" in look(tmp_path).stderr
    (tmp_path / "bin").mkdir()
    (tmp_path / "shrc").touch()
    (tmp_path / "bin" / "runcpu").touch(0o755)
    assert "is not SPEC CPU 2017 (it has no benchspec/CPU/500.perlbench_r)" in look(tmp_path).stderr
    (tmp_path / "benchspec" / "CPU" / "500.perlbench_r").mkdir(parents=True)
    assert yaml.safe_load(look(tmp_path).stdout)["installed"] is True


def test_the_compiler_says_which_gcc_it_is(tmp_path: Path) -> None:
    for name, macros in (
        ("gcc", "#define __GNUC__ 13"),
        ("clang", "#define __clang__ 1\n#define __GNUC__ 4"),
        ("odd", ""),
    ):
        (tmp_path / name).write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && echo "{name} \\"1\\"" || printf "%s\\n" "{macros}"\n'
        )
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    reports = {c: yaml.safe_load(look("", c, c, c, path=path).stdout) for c in ("gcc", "clang", "odd")}
    assert {c: s["gcc"] for c, s in reports.items()} == {"gcc": 13, "clang": 0, "odd": 0}
    assert reports["gcc"]["compiler"] == "gcc 1"
    missing = look("", "gcc", "no-such-compiler -m64", "gcc", path=path)
    assert "no no-such-compiler on this host" in missing.stderr


def wrapper(tmp_path: Path, call: str, cpus: dict[int, tuple[str, int]], allowed: str, **more: str) -> str:
    """What a function of run.sh prints on a machine with these CPUs: number to (thread siblings, node)."""
    for cpu, (siblings, node) in cpus.items():
        folder = tmp_path / "sys/devices/system/cpu" / f"cpu{cpu}"
        (folder / "topology").mkdir(parents=True)
        (folder / f"node{node}").mkdir()
        (folder / "topology" / "thread_siblings_list").write_text(f"{siblings}\n")
    (tmp_path / "status").write_text(f"Name:\tsh\nCpus_allowed:\tff\nCpus_allowed_list:\t{allowed}\n")
    text = (SCRIPTS / "run.sh").read_text().replace("/sys/", f"{tmp_path}/sys/")
    text = text.replace("/proc/self/status", f"{tmp_path}/status")
    functions = text[text.index("newest()") : text.index("\ntrap ")]
    environment = {"PATH": os.environ["PATH"], **more}
    script = f"set -eu\n{functions}\n{call}"
    return subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True, env=environment).stdout


def order(tmp_path: Path, cpus: dict[int, tuple[str, int]], allowed: str) -> list[int]:
    return [int(line) for line in wrapper(tmp_path, "cpus", cpus, allowed).split()]


def test_copies_take_cores_before_second_threads_and_nodes_in_turn(tmp_path: Path) -> None:
    apart = {c: (f"{c % 4},{c % 4 + 4}", c % 4 // 2) for c in range(8)}  # as servers number them: second threads last
    assert order(tmp_path / "a", apart, "0-7") == [0, 2, 1, 3, 4, 6, 5, 7]
    by_pairs = {c: (f"{c // 2 * 2}-{c // 2 * 2 + 1}", c // 4) for c in range(8)}  # as virtual machines do
    assert order(tmp_path / "b", by_pairs, "0-7") == [0, 4, 2, 6, 1, 5, 3, 7]
    assert order(tmp_path / "c", by_pairs, "1-5") == [1, 4, 2, 3, 5], "only what we may use: 0, sibling of 1, is not"


def test_copies_are_bound_by_what_is_there(tmp_path: Path) -> None:
    two = {0: ("0", 0), 1: ("1", 0)}
    usual = ("sh", "awk", "tr", "sed", "sort", "cut", "cat", "head", "true")
    for name, tools in (("numactl", ("numactl",)), ("taskset -c", ("taskset",)), ("", ())):
        folder = tmp_path / (tools or ("none",))[0]
        folder.mkdir()
        for tool in (*usual, *tools):
            (folder / tool).symlink_to(shutil.which(tool) or pytest.skip(f"no {tool} here"))
        printed = wrapper(folder, "bindings", two, "0-1", PATH=str(folder))
        binds = re.findall(r"^   (bind\d+) = (\d+)$", printed, re.MULTILINE)
        if name:
            assert re.search(rf"submit = {name}.*\$BIND \$command$", printed, re.MULTILINE)
            assert binds == [("bind0", "0"), ("bind1", "1")]
            bound = wrapper(folder, "bindings", {}, "0-1", PATH=str(folder), BIND="1,0,4-5")
            assert re.findall(r"bind\d+ = (\d+)", bound) == ["1", "0", "4", "5"]
        else:
            assert printed == "", "copies run unbound rather than not at all"
