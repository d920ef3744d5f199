"""Train a small network on four gloo ranks of which one sleeps in each step: ranks.py SOURCE FOLDER SLOW SECONDS.

SOURCE says who tells for how long each rank worked: ``printed`` lines, ``lines`` of a file a rank, or ``traces``.
"""

import contextlib
import json
import os
import socket
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule

WORLD, STEPS = 4, 8


def work(rank: int, port: int, source: str, folder: str, slow: int, seconds: float) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(WORLD))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    sgd = torch.optim.SGD(model.parameters(), lr=0.01)
    trace = Path(folder) / f"rank{rank}_trace.json"
    active = schedule(wait=1, warmup=1, active=STEPS - 2)
    profiler = profile(
        activities=[ProfilerActivity.CPU],
        schedule=active,
        on_trace_ready=lambda done: done.export_chrome_trace(str(trace)),
    )
    with profiler if source == "traces" else contextlib.nullcontext(), contextlib.ExitStack() as files:
        out = files.enter_context((Path(folder) / f"rank{rank}.jsonl").open("w")) if source == "lines" else sys.stdout
        for step in range(1, STEPS + 1):
            begin = time.perf_counter()
            time.sleep(seconds if rank == slow else 0)
            with model.no_sync():  # gradients are summed below, so that the rank's own work has an end
                loss = model(torch.randn(16, 64)).square().mean()
                sgd.zero_grad()
                loss.backward()
            working = time.perf_counter() - begin
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
            sgd.step()
            if source != "traces":
                out.write(json.dumps({"step": step, "rank": rank, "working": working}) + "\n")
                out.flush()
            if rank == 0:
                document = {"step": step, "seconds": time.perf_counter() - begin, "tokens": 16 * WORLD}
                sys.stdout.write(json.dumps(document) + "\n")
                sys.stdout.flush()
            if source == "traces":
                profiler.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        number = free.getsockname()[1]
    torch.multiprocessing.spawn(work, (number, *sys.argv[1:3], int(sys.argv[3]), float(sys.argv[4])), nprocs=WORLD)
