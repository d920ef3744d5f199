"""Predict the memory of a case and read the free memory, so that a case that does not fit is skipped."""

SHARE = 0.9  # share of the free memory that one case may use; allocators and the system need the rest
_CGROUP = "/sys/fs/cgroup/memory."


def needed(torch, operator, dims, maker, copies=1):
    """Return the bytes of inputs, results and known intermediate results of one case, at least.

    ``maker`` makes tensors on torch's meta device, which allocates nothing. ``copies``: the number of copies of the
    inputs.
    """
    inputs = operator.make(maker, dims)
    try:
        results = operator.run(*inputs)
        results = [results] if isinstance(results, torch.Tensor) else list(results)
    except Exception:  # a result whose size depends on values
        results = []
    if operator.out:
        results = results * 2  # memory for a second result
    scratch = operator.scratch(dims, maker.dtype.itemsize, maker.precision) if operator.scratch else 0
    return copies * (_bytes(torch, inputs) + _bytes(torch, results)) + int(scratch)


def reference_bytes(torch, operator, dims, maker):
    """Return the bytes of the fp64 reference on the CPU, which are negligible if only a part is checked."""
    if operator.part:
        return 0
    return 3 * sum(x.numel() * 8 for x in operator.make(maker, dims) if isinstance(x, torch.Tensor))


def _bytes(torch, tensors):
    return sum(x.numel() * x.element_size() for x in tensors if isinstance(x, torch.Tensor))


def available(torch, device):
    """Return the free bytes of the device, or of the host for CPUs; None if unknown."""
    if device != "cpu":
        try:
            library = getattr(torch, device)
            return library.mem_get_info()[0] + library.memory_reserved() - library.memory_allocated()
        except Exception:
            return None
    return min((n for n in (_host(), _cgroup()) if n is not None), default=None)


def _host():
    try:
        with open("/proc/meminfo") as source:
            return next(int(line.split()[1]) * 1024 for line in source if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return None


def _cgroup():
    """Return the remaining bytes within the container's limit, with page cache as free; None if there is no limit."""
    try:
        with open(_CGROUP + "max") as limit, open(_CGROUP + "current") as used, open(_CGROUP + "stat") as stat:
            cache = next((int(line.split()[1]) for line in stat if line.startswith("inactive_file ")), 0)
            return int(limit.read()) - int(used.read()) + cache
    except (OSError, ValueError):
        return None
