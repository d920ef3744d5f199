"""Define rules about processors: clocks, idle states, threads, and CPU time that other virtual machines use."""

from __future__ import annotations

from fleetmark.base.text import Message, message
from fleetmark.planner.diagnosis.tuning.rule import AGAIN, KERNEL, Rule, Subject
from fleetmark.planner.diagnosis.tuning.setting import Item, Setting, file

DEEP_S = 50e-6  # wake-up time of an idle state above which it affects a 99th percentile
SLEPT = 0.05  # minimum share of the time since boot for a deep idle state to count as used
THREADS_MATTER = 0.05
TAKEN = 0.01  # maximum share of CPU time taken by others
FAST = 0.90  # minimum share of the highest clock under load
_CPU = "/sys/devices/system/cpu"


def _governor(s: Subject) -> Message | None:
    governor = s.facts.governor or ""
    if "powersave" not in governor or "performance" in (s.facts.epp or ""):
        return None
    if s.clock is None or not s.facts.cpu.max_hz:
        return message("CPU frequency governor is {governor}", governor=governor)
    share = s.clock / s.facts.cpu.max_hz
    if share >= FAST:
        return None
    return message(
        "CPU frequency governor is {governor}; under load the clock was {share} of the highest",
        governor=governor,
        share=f"{share:.0%}",
    )


def _boost(s: Subject) -> Message | None:
    return message("CPU boost is off") if s.facts.boost is False else None


def _idle(s: Subject) -> Message | None:
    deep = [i for i in s.facts.idle_states if i.latency_s >= DEEP_S and not i.disabled]
    slept = sum(i.share or 0.0 for i in deep)
    if not deep or not s.responsive or slept < SLEPT:
        return None
    deepest = max(deep, key=lambda i: i.latency_s)
    return message(
        "CPUs were in deep idle states for {share} of the time since boot; waking from {state} takes {wake} µs",
        share=f"{slept:.0%}",
        state=deepest.name,
        wake=f"{deepest.latency_s * 1e6:.0f}",
    )


def _clocksource(s: Subject) -> Message | None:
    physical = s.physical and s.facts.cpu.arch in (None, "x86_64")
    if physical and s.facts.clocksource and s.facts.clocksource != "tsc":
        return message("clocksource is {name}", name=s.facts.clocksource)
    return None


def _mitigations(s: Subject) -> Message | None:
    active = [n for n, state in s.facts.mitigations.items() if state.startswith("Mitigation")]
    return message("active mitigations: {n}", n=len(active)) if active else None


def _threads(s: Subject) -> Message | None:
    changes = [c for c in s.trials.get("smt", ()) if c.exceeds(THREADS_MATTER)]
    if not changes:
        return None
    largest = max(changes, key=lambda c: abs(c.ratio.value - 1))
    return message(
        "with one thread a core {benchmark} is {ratio} times as good",
        benchmark=largest.title,
        ratio=f"{largest.ratio.value:.2f}",
    )


def _others(s: Subject) -> Message | None:
    if s.stolen is not None and s.stolen > TAKEN:
        return message("the hypervisor took {share} of the CPU time of a run", share=f"{s.stolen:.1%}")
    if s.waited is not None and s.waited > TAKEN:
        return message("something waited for a CPU in {share} of the time of a run", share=f"{s.waited:.1%}")
    return None


def _set_governor(s: Subject) -> Setting | None:
    if not s.facts.governor:
        return None
    return file(f"{_CPU}/cpufreq/policy*/scaling_governor", "performance")


def _set_boost(s: Subject) -> Setting | None:
    if s.facts.boost is None:
        return None
    return Setting(
        (Item(value="1", path=f"{_CPU}/cpufreq/boost"), Item(value="0", path=f"{_CPU}/intel_pstate/no_turbo"))
    )


def _set_idle(s: Subject) -> Setting | None:
    deep = [i.number for i in s.facts.idle_states if i.latency_s >= DEEP_S]
    items = tuple(Item(value="1", path=f"{_CPU}/cpu[0-9]*/cpuidle/state{number}/disable") for number in deep)
    return Setting(items) if items else None


def _set_clocksource(s: Subject) -> Setting | None:
    if not s.facts.clocksource:
        return None
    return file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc")


def _set_threads(s: Subject) -> Setting | None:
    if s.facts.smt is None:
        return None
    return file(f"{_CPU}/smt/control", "off")


RULES = (
    Rule(
        4,
        "governor",
        "cpufreq governor, energy_performance_preference; clock of runs that kept the CPUs busy",
        _governor,
        message("set the governor to performance (cpupower frequency-set -g performance)"),
        retest=AGAIN,
        source=f"{KERNEL}/pm/cpufreq.html",
        setting=_set_governor,
    ),
    Rule(
        5,
        "boost",
        "cpufreq boost",
        _boost,
        message("enable boost, or note that it is off on purpose"),
        retest=AGAIN,
        source=f"{KERNEL}/pm/cpufreq.html",
        setting=_set_boost,
    ),
    Rule(
        6,
        "idle-states",
        "idle states of CPUs, their wake-up time and residency; a latency measured",
        _idle,
        message("limit deep idle states on hosts that must answer fast"),
        retest=AGAIN,
        source=f"{KERNEL}/pm/cpuidle.html",
        setting=_set_idle,
    ),
    Rule(
        10,
        "clocksource",
        "current clocksource",
        _clocksource,
        message("find out why the kernel rejected the TSC (dmesg), usually firmware"),
        retest=message("the operating system suite again"),
        source=f"{KERNEL}/kernel-parameters.html",
        classes=("os",),
        setting=_set_clocksource,
    ),
    Rule(
        11,
        "mitigations",
        "vulnerabilities of the processor",
        _mitigations,
        message("no change suggested; security decides"),
        retest=AGAIN,
        source=f"{KERNEL}/hw-vuln/index.html",
    ),
    Rule(
        12,
        "smt",
        "a trial with SMT off",
        _threads,
        message("one setting of SMT per class of work, by what the trial showed"),
        retest=AGAIN,
        source=f"{KERNEL}/hw-vuln/l1tf.html",
        measured=True,
        setting=_set_threads,
    ),
    Rule(
        13,
        "busy",
        "steal and pressure of the runs",
        _others,
        message("run it again when nothing else runs there"),
        retest=AGAIN,
        source="https://docs.kernel.org/accounting/psi.html",
        measured=True,
    ),
)
