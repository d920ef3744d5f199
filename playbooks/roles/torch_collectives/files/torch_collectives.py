"""Time collectives and point-to-point of torch.distributed over sizes. Print one JSON document per line.

Sizes and bandwidths are defined as in nccl-tests (its doc/PERFORMANCE.md). Times are those of the slowest rank:
``time`` is the mean over a series of calls, and ``p50`` and ``p99`` are percentiles of single calls.
"""

import json
import sys
import time

import torch_ranks

LEAST, MOST = 5, 5000  # number of timed calls per size
# minimum share of the size that each of n ranks sends, which relates algorithm and bus bandwidth
FACTOR = {
    "all_reduce": lambda n: 2.0 * (n - 1) / n,
    "all_gather": lambda n: (n - 1.0) / n,
    "reduce_scatter": lambda n: (n - 1.0) / n,
    "all_to_all": lambda n: (n - 1.0) / n,
    "broadcast": lambda n: 1.0,
    "reduce": lambda n: 1.0,
    "sendrecv": lambda n: 1.0,
}
SPLIT = ("all_gather", "reduce_scatter", "all_to_all")  # their size is the total over all ranks


def add_words(parser):
    parser.add_argument("--op", choices=sorted(FACTOR), required=True)
    parser.add_argument("--sizes", required=True, help="bytes, separated by commas")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds for each size")
    parser.add_argument("--check", type=int, default=1)


def renamed(dist, name, before):
    """Return a function of torch.distributed by its current name, or by its former one."""
    return getattr(dist, name, None) or getattr(dist, before)


class Operation(object):
    """One operation at one size: its buffers, its call, and the check of its result."""

    def __init__(self, group, op, count, dtype):
        self.group, self.op, self.torch, self.dist = group, op, group.torch, group.dist
        n = group.world
        self.share = count // n if op in SPLIT else count
        size_in = self.share if op == "all_gather" else count
        size_out = self.share if op == "reduce_scatter" else count
        self.source = self.torch.zeros(size_in, dtype=dtype, device=group.device)
        self.target = self.source if op in ("all_reduce", "broadcast", "reduce") else self.torch.zeros(
            size_out, dtype=dtype, device=group.device
        )  # fmt: skip

    def call(self):
        dist, op = self.dist, self.op
        if op == "all_reduce":
            dist.all_reduce(self.source)
        elif op == "all_gather":
            renamed(dist, "all_gather_single", "all_gather_into_tensor")(self.target, self.source)
        elif op == "reduce_scatter":
            renamed(dist, "reduce_scatter_single", "reduce_scatter_tensor")(self.target, self.source)
        elif op == "all_to_all":
            dist.all_to_all_single(self.target, self.source)
        elif op == "broadcast":
            dist.broadcast(self.source, 0)
        elif op == "reduce":
            dist.reduce(self.source, 0)
        else:
            self.ring()

    def ring(self):
        """Send from every rank to the next one, and receive from the previous one."""
        n, rank = self.group.world, self.group.rank
        sending = self.dist.P2POp(self.dist.isend, self.source, (rank + 1) % n)
        receiving = self.dist.P2POp(self.dist.irecv, self.target, (rank - 1) % n)
        for work in self.dist.batch_isend_irecv([sending, receiving]):
            work.wait()

    def pattern(self, rank, start, count):
        """Return the values that ``rank`` sends: small whole numbers, whose sums are exact in every type."""
        places = self.torch.arange(start, start + count, device=self.group.device)
        return ((places % 3) + (rank % 4)).to(self.source.dtype)

    def allowed(self):
        """Return the allowed relative error of a result: 0 if the type holds the sums exactly, else that of adding n
        numbers.
        """
        dtype, n = self.source.dtype, self.group.world
        if not dtype.is_floating_point or 5 * n * self.torch.finfo(dtype).eps < 1:
            return 0.0
        return n * self.torch.finfo(dtype).eps

    def wrong(self):
        """Return the number of wrong elements in this rank's result."""
        rank, n, share = self.group.rank, self.group.world, self.share
        count = self.source.numel()
        self.source.copy_(self.pattern(rank, 0, count))
        self.call()
        self.group.synchronize()
        if self.op in ("all_reduce", "reduce"):
            if self.op == "reduce" and rank:
                return 0
            must = sum(self.pattern(r, 0, count) for r in range(n))
        elif self.op == "all_gather":
            must = self.torch.cat([self.pattern(r, 0, share) for r in range(n)])
        elif self.op == "reduce_scatter":
            must = sum(self.pattern(r, rank * share, share) for r in range(n))
        elif self.op == "all_to_all":
            must = self.torch.cat([self.pattern(r, rank * share, share) for r in range(n)])
        else:
            must = self.pattern(0 if self.op == "broadcast" else (rank - 1) % n, 0, count)
        off = (self.target.double() - must.double()).abs()
        differ = int((off > self.allowed() * must.double()).sum().item())
        self.source.zero_()
        return differ


def timed(group, operation, calls):
    """Return (seconds of a series of calls, seconds of each call) on this rank."""
    event = getattr(group.torch, "Event", None)
    if group.kind == "cpu" or event is None:
        each = []
        begin = before = time.perf_counter()
        for _ in range(calls):
            operation.call()
            group.synchronize()
            now = time.perf_counter()
            each.append(now - before)
            before = now
        return before - begin, each
    marks = [event(device=group.device, enable_timing=True) for _ in range(calls + 1)]
    group.synchronize()
    marks[0].record()
    for mark in marks[1:]:
        operation.call()
        mark.record()
    group.synchronize()
    each = [a.elapsed_time(b) * 1e-3 for a, b in zip(marks[:-1], marks[1:])]  # noqa: B905, RUF007
    return sum(each), each


def slowest(group, values):
    """Return the largest of each value over all ranks."""
    tensor = group.torch.tensor(values, dtype=group.torch.float32, device=group.device)
    group.dist.all_reduce(tensor, op=group.dist.ReduceOp.MAX)
    return tensor.tolist()


def agreed(group, number):
    tensor = group.torch.tensor([number], dtype=group.torch.int64, device=group.device)
    group.dist.broadcast(tensor, 0)
    return int(tensor.item())


def quantile(ordered, q):
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def measure(group, options, size, dtype):
    """Check, warm up and time one size within the budget. Return its output document; None if it has no elements."""
    width = group.torch.empty(0, dtype=dtype).element_size()
    count = size // width
    if options.op in SPLIT:
        count -= count % group.world
    if count == 0:
        return None
    operation = Operation(group, options.op, count, dtype)
    wrong = operation.wrong() if options.check else 0
    calls = max(2, LEAST // 2)
    spent, _ = timed(group, operation, calls)  # the first calls of a size make connections and choose algorithms
    spent, _ = timed(group, operation, calls)
    wanted = agreed(group, max(LEAST, min(MOST, int(options.budget / max(spent / calls, 1e-7)))))
    group.dist.barrier()
    total, each = timed(group, operation, wanted)
    wrong += operation.wrong() if options.check else 0
    worst = slowest(group, [total, *each])
    ordered = sorted(worst[1:])
    bad = group.torch.tensor([wrong], dtype=group.torch.int64, device=group.device)
    group.dist.all_reduce(bad)
    calls_in_all = 2 * calls + wanted + (2 if options.check else 0)
    return {
        "size": count * width, "count": count, "calls": wanted, "time": worst[0] / wanted,
        "p50": quantile(ordered, 0.5), "p99": quantile(ordered, 0.99), "min": ordered[0],
        "wrong": int(bad.item()) if options.check else None,
        "sent": calls_in_all * count * width * FACTOR[options.op](group.world),
    }  # fmt: skip


def work(options, group):
    torch = group.torch
    dtype = getattr(torch, options.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise torch_ranks.Wrong("torch has no type %s" % options.dtype)
    if group.world < 2:
        raise torch_ranks.Wrong("one rank has nobody to exchange data with: set ranks or nodes higher")
    say(group, {
        "tool": "torch_collectives", "torch": torch.__version__, "backend": group.backend, "device": group.kind,
        "op": options.op, "dtype": options.dtype, "ranks": group.world, "nodes": group.nodes,
    })  # fmt: skip
    for size in (int(word) for word in options.sizes.split(",")):
        row = measure(group, options, size, dtype)
        if row:
            say(group, row)
    say(group, {"end": True})


def say(group, document):
    if group.leads:
        sys.stdout.write(json.dumps(document) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    torch_ranks.run(__doc__.splitlines()[0], add_words, work)
