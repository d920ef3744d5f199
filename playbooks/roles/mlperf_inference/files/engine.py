"""Implement the system under test: instances of a network in onnxruntime, each with its own CPUs and a shared queue."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

Done = Callable[[Sequence[int], Any], None]  # ids of the samples, and their answers


class Engine:
    """Run a network. ``batch``: maximum samples per pass; ``gather``: whether to combine waiting requests."""

    def __init__(
        self,
        model: Path,
        samples: dict[str, Any],
        cpus: Sequence[frozenset[int]],
        threads: int,
        batch: int,
        gather: bool,
        provider: str,
        devices: int,
    ) -> None:
        self.model, self.samples, self.threads = model, samples, threads
        self.batch, self.gather = batch, gather
        self.provider, self.devices = provider, devices
        self.done: Done = lambda ids, answers: None
        self.waiting: queue.SimpleQueue[tuple[Sequence[int], Sequence[int]]] = queue.SimpleQueue()
        self.moved_s = time.monotonic()  # when a query last came, or its answer was last accepted
        self.answering = [False] * len(cpus)  # whether each instance is at work
        self.instances = len(cpus)
        ready = threading.Barrier(self.instances + 1)
        for i, cpu_set in enumerate(cpus):
            threading.Thread(target=self._guard, args=(i, cpu_set, ready), daemon=True).start()
        ready.wait()

    def issue(self, ids: Sequence[int], indices: Sequence[int]) -> None:
        """Accept a query, and divide its samples evenly into passes of at most ``batch``."""
        self.moved_s = time.monotonic()
        share = min(self.batch, -(-len(ids) // self.instances))
        for start in range(0, len(ids), share):
            self.waiting.put((ids[start : start + share], indices[start : start + share]))

    def flush(self) -> None:
        """Do nothing, because no query is delayed. LoadGen requires this method."""

    @contextlib.contextmanager
    def watched(self, idle_s: float) -> Iterator[None]:
        """End the process if no query comes and no instance is at work for ``idle_s``.

        LoadGen has no time limit of its own. A run that stands still would last until the case's timeout.
        """
        over = threading.Event()
        self.moved_s = time.monotonic()

        def watch() -> None:
            while not over.wait(idle_s / 20):
                if time.monotonic() - self.moved_s > idle_s and not any(self.answering):
                    sys.stderr.write(f"LoadGen neither sent a query nor ended for {idle_s:g} s\n")
                    sys.stderr.flush()
                    os._exit(1)

        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def seconds(self, count: int) -> float:
        """Return the duration of a query of the first ``count`` samples in seconds."""
        left, over = [count], threading.Event()
        lock = threading.Lock()

        def done(ids: Sequence[int], answers: Any) -> None:
            with lock:
                left[0] -= len(ids)
                if not left[0]:
                    over.set()

        self.done = done
        size = len(next(iter(self.samples.values())))
        begun = time.perf_counter()
        self.issue(range(count), [i % size for i in range(count)])
        over.wait()
        return time.perf_counter() - begun

    def _guard(self, i: int, cpus: frozenset[int], ready: threading.Barrier) -> None:
        """Run a worker. End the process if it fails, because LoadGen would wait for its answers forever."""
        try:
            self._work(i, cpus, ready)
        except BaseException as error:  # noqa: BLE001
            traceback.print_exc()
            sys.stderr.write(f"instance {i} failed: {' '.join(str(error).split()) or type(error).__name__}\n")
            sys.stderr.flush()
            os._exit(1)

    def _work(self, i: int, cpus: frozenset[int], ready: threading.Barrier) -> None:
        os.sched_setaffinity(0, cpus)  # affects this thread; threads of onnxruntime inherit it
        session = self._session(i)
        names = [node.name for node in session.get_inputs()]
        ready.wait()
        while True:
            ids, indices = self.waiting.get()
            if self.gather:
                ids, indices = self._more(ids, indices)
            self.answering[i] = True
            feed = {name: self._rows(self.samples[name], indices) for name in names}
            answers = session.run(None, feed)[0]
            self.answering[i] = False
            self.done(ids, answers)
            self.moved_s = time.monotonic()

    def _more(self, ids: Sequence[int], indices: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """Add requests that are already in the queue, without waiting."""
        try:
            while len(ids) < self.batch:
                more = self.waiting.get_nowait()
                ids, indices = [*ids, *more[0]], [*indices, *more[1]]
        except queue.Empty:
            pass
        return ids, indices

    @staticmethod
    def _rows(array: Any, indices: Sequence[int]) -> Any:
        if len(indices) == 1:
            return array[indices[0] : indices[0] + 1]
        return array[np.asarray(indices)]

    def _session(self, i: int) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        chosen: Any = self.provider
        if self.devices:
            if hasattr(onnxruntime, "preload_dlls"):
                onnxruntime.preload_dlls()  # CUDA's libraries, if they are installed as Python packages
            chosen = (self.provider, {"device_id": str(i % self.devices)})
        available = onnxruntime.get_available_providers()
        if self.provider not in available:
            raise ValueError(f"onnxruntime has no {self.provider} here, it has {', '.join(available)}")
        session = onnxruntime.InferenceSession(str(self.model), options, providers=[chosen])
        if session.get_providers()[0] != self.provider:  # onnxruntime falls back to the CPU silently
            raise ValueError(f"{self.provider} does not start on this host: its libraries or its device are missing")
        return session
