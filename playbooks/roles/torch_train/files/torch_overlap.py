"""Measure with torch.profiler how much of a step's communication overlaps with computation, and how much is

exposed. On devices, kernels of NCCL or RCCL count as communication, and all other kernels as computation. On CPUs,
gloo's threads count as communication, and operators of other threads as computation. Times are unions of intervals, so
that two operations at the same time count once.
"""

STEPS = 3
_COLLECTIVES = ("nccl", "rccl", "oneccl")


def measure(group, step):
    """Return (seconds of communication, seconds without overlap) per step; None if the profiler does not support the
    device.

    ``step`` runs one training step. Every rank must call this at the same time.
    """
    torch = group.torch
    from torch.profiler import ProfilerActivity, profile

    activity = {"cpu": "CPU", "cuda": "CUDA", "xpu": "XPU"}.get(group.kind)
    if activity is None or not hasattr(ProfilerActivity, activity):
        return None
    with profile(activities=list({ProfilerActivity.CPU, getattr(ProfilerActivity, activity)})) as profiler:
        for _ in range(STEPS):
            step()
        group.synchronize()
    communication, computing = intervals(profiler.events(), torch.autograd.DeviceType.CPU, group.kind == "cpu")
    total = length(union(communication))
    return (total / STEPS, (total - common(union(communication), union(computing))) / STEPS) if total else None


def intervals(events, cpu, on_cpu):
    """Return the intervals (begin and end, in s) of communication and of computing in a profile."""
    here = [event for event in events if (event.device_type == cpu) == on_cpu]
    if on_cpu:
        communication = [event for event in here if event.name.startswith("gloo:")]
        threads = {event.thread for event in communication}
        computing = [e for e in here if e.name.startswith("aten::") and e.thread not in threads]
    else:
        kernels = [e for e in here if not e.name.startswith(("Memset", "nccl:"))]
        communication = [e for e in kernels if any(name in e.name.lower() for name in _COLLECTIVES)]
        names = {e.name for e in communication}
        computing = [e for e in kernels if e.name not in names]
    return tuple(
        [(e.time_range.start / 1e6, e.time_range.end / 1e6) for e in part] for part in (communication, computing)
    )


def union(spans):
    """Return sorted intervals without overlaps that cover the same time."""
    merged = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > begin:
            merged.append((begin, end))
    return merged


def length(spans):
    return sum(end - begin for begin, end in spans)


def common(spans, others):
    """Return the length of the intersection of two lists of sorted intervals without overlaps."""
    total, i, j = 0.0, 0, 0
    while i < len(spans) and j < len(others):
        begin, end = max(spans[i][0], others[j][0]), min(spans[i][1], others[j][1])
        total += max(0.0, end - begin)
        if spans[i][1] < others[j][1]:
            i += 1
        else:
            j += 1
    return total
