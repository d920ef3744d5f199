#!/usr/bin/env -S python3 -B
"""Plays SPEC's runcpu: takes its options, builds with the compilers that the config file names, runs copies through its
submit command, and leaves log, CSV, text and raw report in the forms that SPEC's tools have.

The "benchmarks" sleep. Their outcome is set by standin.json in the tree and /etc/spec_standin.json: see medium.py.
"""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from specconfig import Config, Wrong
from specreports import Results

TOP = Path(os.environ.get("SPEC") or Path(__file__).resolve().parent.parent)
C = """#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv)
{
    double s = atof(argv[1]);
    struct timespec t;
    t.tv_sec = (time_t)s;
    t.tv_nsec = (long)((s - (double)(long)s) * 1e9);
    nanosleep(&t, NULL);
    puts(argv[2]);
    return argc > 3 ? atoi(argv[3]) : 0;
}
"""
FORTRAN = "program p\n  print *, 'right'\nend program p\n"
LANGUAGES = {"C": ("CC", "C", "c", C), "CXX": ("CXX", "CXX", "cpp", C), "F": ("FC", "F", "f90", FORTRAN)}


def now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def behaviour() -> dict[str, Any]:
    doc: dict[str, Any] = json.loads((TOP / "standin.json").read_text())
    more = Path("/etc/spec_standin.json")
    return doc | (json.loads(more.read_text()) if more.exists() else {})


class Runcpu:
    """One call of runcpu."""

    def __init__(self, options: argparse.Namespace, behaviour: dict[str, Any]) -> None:
        self.options, self.behaviour = options, behaviour
        self.suites: dict[str, dict[str, str]] = behaviour["suites"]
        names = {name: suite for suite, inside in self.suites.items() for name in inside}
        sections = {*names, *self.suites, "default", "specrate", "specspeed"}
        if behaviour["release"] >= 2026:
            sections |= {"openmp", "cxxthreads", "doconcurrent"}
        self.chosen: list[str] = []
        suites = set()
        for target in options.targets:
            if target not in self.suites and target not in names:
                raise Wrong(f"'{target}' is neither a benchmark nor a benchset")
            suites.add(names.get(target, target))
            self.chosen += [target] if target in names else list(self.suites[target])
        if len(suites) != 1:
            raise Wrong(f"several suites at once: {', '.join(options.targets)}")
        suite = suites.pop()
        self.config = Config(Path(options.config), sections)
        tunes = ["base", "peak"] if options.tune == "all" else [options.tune]
        many = options.copies if suite.endswith("rate") else options.threads
        full_suite = list(self.suites[suite])
        self.results = Results(
            release=behaviour["release"],
            version=behaviour["version"],
            suite=suite,
            benchmarks=full_suite,
            size=options.size,
            many=many,
            tunes=tunes,
            reportable=options.reportable,
        )
        if options.reportable and not (
            options.size == "ref" and self.chosen == full_suite and options.iterations in (2, 3) and "base" in tunes
        ):
            raise Wrong("A reportable run needs a whole suite, the workload ref, 2 or 3 iterations, and base tuning")
        self.root = Path(options.output_root or TOP)
        self.sets = [suite, f"spec{self.results.mode}"] + (["openmp"] if self.results.mode == "speed" else [])

    # The log is in tmp until the end, as it is where the config file has preENV settings.
    def begin(self) -> None:
        self.began = time.time()
        stem = f"CPU{self.results.release}.001"
        self.stem = self.root / "result" / stem
        self.stem.parent.mkdir(parents=True)
        self.log_file = self.root / "tmp" / stem / "templogs" / f"preenv.{self.results.suite}.001.0"
        self.log_file.parent.mkdir(parents=True)
        self.log(f'runcpu v6612 started at {now()} on "{os.uname().nodename}"')
        self.log(f"runcpu: runcpu {shlex.join(sys.argv[1:])}")
        self.log(f"suite: CPU{self.results.release} {self.results.version}")
        self.log(f"Benchmarks selected: {', '.join(self.chosen)}")
        stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
        self.log(f"stack size (kbytes, -s) {'unlimited' if stack == resource.RLIM_INFINITY else stack // 1024}")
        for key, value in self.config.options("", "", self.sets).items():
            if key.startswith("preENV_"):
                os.environ[key.removeprefix("preENV_")] = value
                self.log(f"{key.removeprefix('preENV_')} = {value}")

    def end(self) -> None:
        self.log(f"The log for this run is in {self.stem}.log\n")
        self.say(f"runcpu finished at {now()}; {time.time() - self.began:.0f} total seconds elapsed")
        self.log_file.rename(f"{self.stem}.log")

    def log(self, line: str) -> None:
        with self.log_file.open("a") as out:
            out.write(line + "\n")

    def say(self, line: str) -> None:
        print(line, flush=True)
        self.log(line)

    def place(self, name: str, kind: str) -> Path:
        return self.root / "benchspec" / "CPU" / name / kind

    def fate(self, name: str, tune: str) -> str | None:
        ends = self.behaviour.get("end", {})
        fate: str | None = ends.get(f"{name} {tune}") or ends.get(name)
        return fate

    def build(self, name: str, tune: str) -> Path | None:
        """The benchmark's program; None if it does not compile."""
        settings, label = self.config.options(name, tune, self.sets), self.config.label
        languages = self.suites[self.results.suite][name].split(",")
        commands = {language: self.command(name, tune, settings, language) for language in languages}
        opthash = hashlib.sha256(json.dumps(commands).encode()).hexdigest()
        program = self.place(name, "exe") / f"{name.split('.')[1]}_{tune}.{label}"
        if program.exists() and self.config.built.get(f"{name}={tune}") == opthash:
            self.say(f"  Up to date {name} {tune} {label}")
            return program
        folder = self.place(name, "build") / f"build_{tune}_{label}.0000"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.say(f"  Building {name} {tune} {label}: ({folder.name}) [{now()}]")
        with (folder / "make.out").open("w") as out:
            for language, command in commands.items():
                out.write(command + "\n")
                out.flush()
                (folder / f"program.{LANGUAGES[language][2]}").write_text(LANGUAGES[language][3])
                code = subprocess.call(["sh", "-c", command], cwd=folder, stdout=out, stderr=out)
                if code:
                    self.say(
                        f"Error with make 'specmake build':\n  Please review this file:\n    \"{folder}/make.out\""
                    )
                    self.say(
                        f"  Command returned exit code {code}\n  Error with make!\n*** Error building {name} {tune}"
                    )
                    return None
        program.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "program", program)
        self.config.note(name, tune, opthash)
        return program

    def command(self, name: str, tune: str, settings: dict[str, str], language: str) -> str:
        compiler, letter, suffix, _ = LANGUAGES[language]
        if compiler not in settings:
            raise Wrong(f"the config file names no {compiler}")
        keys = ["OPTIMIZE", f"{letter}OPTIMIZE", f"EXTRA_{letter}FLAGS", "EXTRA_OPTIMIZE", f"EXTRA_{letter}OPTIMIZE"]
        keys += ["PORTABILITY", f"{letter}PORTABILITY", "EXTRA_PORTABILITY"]
        flags = [settings[key] for key in keys if settings.get(key)]
        if self.fate(name, tune) == "CE":
            flags.append("-fno-such-option")
        libraries = settings.get("PORTABILITY_LIBS", "")
        return " ".join([settings[compiler], "-DSPEC", *flags, f"-o program program.{suffix}", libraries])

    def measure(self, name: str, tune: str, program: Path, size: str, iteration: int) -> tuple[str, float]:
        """All copies once: how it ended, and the seconds it took."""
        settings, fate, label = self.config.options(name, tune, self.sets), self.fate(name, tune), self.config.label
        rate = self.results.mode == "rate"
        copies = self.options.copies if rate else 1
        kind = size + self.results.mode if size == "ref" else size
        many = f"({copies} cop{'y' if copies == 1 else 'ies'})" if rate else f"threads:{self.options.threads}"
        self.say(f"  Running (#{iteration}) {name} {kind} ({size}) {tune} {label} {many} [{now()}]")
        seconds = 1000 if fate == "hang" else self.behaviour["seconds"]
        command = f"{program} {seconds:g} {'wrong' if fate == 'VE' else 'right'}{' 3' if fate == 'RE' else ''}"
        places = [self.place(name, "run") / f"run_{tune}_{kind}_{label}.{copy:04d}" for copy in range(copies)]
        began, running = time.time(), []
        for copy, folder in enumerate(places):
            folder.mkdir(parents=True, exist_ok=True)
            line = self.submitted(settings, command, copy) if rate and "submit" in settings else command
            self.log(f"Submit command for copy {copy}: {line}")
            with (folder / "out").open("w") as out, (folder / "program.err").open("w") as err:
                err.write("something went wrong in the stand-in\n" if fate == "RE" else "")
                err.flush()
                running.append(subprocess.Popen(["sh", "-c", line], cwd=folder, stdout=out, stderr=err))
        codes = [child.wait() for child in running]
        took = time.time() - began
        status = "S"
        if any(codes):
            self.say(f"{name}: copy 0 non-zero return code (exit code={max(codes)}, signal=0)")
            status = "RE"
        elif any((folder / "out").read_text().strip() != "right" for folder in places):
            (places[0] / "out.mis").write_text("0001:  right\n       wrong\n       ^\n")
            self.say(f"*** Miscompare of out; for details see\n    {places[0]}/out.mis")
            status = "VE"
        ratio = self.results.ratio(took) if size == "ref" else 0
        threads = 1 if rate else self.options.threads
        self.log(
            f" {'Success' if status == 'S' else 'Error'} {name} {tune} {kind} ratio={ratio:.2f}, runtime={took:.6f}, "
            f"copies={copies}, threads={threads}, power=0.00W, temp=0.00 degC, humidity=0.00%"
            + ("" if status == "S" else f", errorcode={status}")
        )
        return status, took

    def submitted(self, settings: dict[str, str], command: str, copy: int) -> str:
        numbers = sorted(int(k.removeprefix("bind")) for k in settings if k.removeprefix("bind").isdigit())
        text = settings["submit"].replace("$command", command).replace("$SPECCOPYNUM", str(copy))
        if "$BIND" in text and not numbers:
            raise Wrong("submit wants $BIND, and the config file has no bind0")
        return text.replace("$BIND", settings[f"bind{numbers[copy % len(numbers)]}"] if numbers else "")

    def work(self) -> None:
        results = self.results
        self.say("Compiling Binaries")
        programs = {(name, tune): self.build(name, tune) for tune in results.tunes for name in self.chosen}
        if missing := [key for key, program in programs.items() if program is None]:
            self.say(f"Build errors for {results.suite}: {', '.join(f'{name}({tune}; CE)' for name, tune in missing)}")
            results.runs |= {key: [("CE", None)] for key in missing}
            results.errors += [f"Error {name}: Error with make!" for name, _ in missing]
            if not self.options.ignore_errors:
                raise Wrong("Stopping because of build errors: ignore_errors is off")
        self.say("Setting Up Run Directories\nRunning Benchmarks")
        for size in ("test", "train", "ref") if results.reportable else (results.size,):
            for iteration in range(self.options.iterations if size == results.size else 1):
                for (name, tune), program in programs.items():
                    if program is None:
                        continue
                    ended = self.measure(name, tune, program, size, iteration + 1)
                    if size == results.size:
                        results.runs.setdefault((name, tune), []).append(ended)
                    if ended[0] != "S" and not self.options.ignore_errors:
                        raise Wrong("Stopping because of run errors: ignore_errors is off")
        for word, good in (("Success", True), ("Error", False)):
            names = [name for (name, _), runs in results.runs.items() for status, _ in runs if (status == "S") == good]
            if names:
                self.say(f"{word}: {' '.join(f'{names.count(name)}x{name}' for name in dict.fromkeys(names))}")
        self.say(f"Producing Raw Reports\n label: {self.config.label}\n  workload: {results.kind} ({results.size})")
        for suffix, text in (("rsf", results.raw()), ("csv", results.csv()), ("txt", results.text())):
            file = f"{self.stem}.{results.suite}.{results.kind}.{suffix}"
            Path(file).write_text(text)
            self.say(f"    format: {suffix} -> {file}")
        shutil.copy(self.config.path, f"{self.stem}.{results.suite}.{results.kind}.cfg")


def options_of(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="runcpu", allow_abbrev=False)
    add = parser.add_argument
    add("--config", "-c", required=True)
    add("--action", "-a", default="validate", choices=["validate"])
    add("--size", "-i", default="ref", choices=["test", "train", "ref"])
    add("--tune", "-T", default="base", choices=["base", "peak", "all"])
    add("--copies", "-C", type=int, default=1)
    add("--threads", type=int, default=1)
    add("--iterations", "-n", type=int, default=3)
    add("--reportable", action=argparse.BooleanOptionalAction, default=False)
    add("--noreportable", dest="reportable", action="store_false")
    add("--ignore_errors", "-I", action="store_true")
    add("--output_root", "--output-root")
    add("targets", nargs="+")
    return parser.parse_args(argv)


def main() -> int:
    settings = behaviour()
    print(f"SPEC CPU {settings['release']}: a stand-in\n\nruncpu v6612", flush=True)
    try:
        runcpu = Runcpu(options_of(sys.argv[1:]), settings)
        runcpu.begin()
        try:
            runcpu.work()
        finally:
            runcpu.end()
    except Wrong as wrong:
        print(f"\nERROR: {wrong}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
