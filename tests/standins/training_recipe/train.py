"""Train a small network in torch, save every fourth step, and fail once after the seventh: train.py CHECKPOINT."""

import json
import os
import sys
import time
from pathlib import Path

import torch


def say(**document: object) -> None:
    sys.stdout.write(json.dumps(document) + "\n")


def main(path: str) -> None:
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64))
    adamw = torch.optim.AdamW(model.parameters())
    done = 0
    if Path(path).exists():
        begin = time.perf_counter()
        state = torch.load(path)
        model.load_state_dict(state["model"])
        adamw.load_state_dict(state["adamw"])
        done = state["step"]
        say(checkpoint="load", seconds=time.perf_counter() - begin)
    for step in range(done + 1, 21):
        begin = time.perf_counter()
        x = torch.randn(32, 64)
        loss = (model(x) - x).square().mean()
        adamw.zero_grad()
        loss.backward()
        adamw.step()
        say(step=step, seconds=time.perf_counter() - begin, tokens=32, loss=loss.item())
        if step % 4 == 0:
            begin = time.perf_counter()
            torch.save({"model": model.state_dict(), "adamw": adamw.state_dict(), "step": step}, path)
            say(checkpoint="save", seconds=time.perf_counter() - begin)
        if step == 7 and os.environ["FLEETMARK_ATTEMPT"] == "0":
            sys.exit("a device fell off the bus")


if __name__ == "__main__":
    main(sys.argv[1])
