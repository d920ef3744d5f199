"""Start ranks of torch.distributed on this host, one process per device, and join them with those of other hosts.

A script passes its own options and ``work(options, group)`` to ``run(add_words, work)``. Every host of a group runs the
same command except for ``--node``. No launcher and no login between hosts is needed. If a rank fails, the first host
prints one sentence to standard error and exits with a non-zero status.
"""

import argparse
import datetime
import fcntl
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

POLL_S = 0.5
GRACE_S = 5.0  # timeout for other ranks to report why they ended, before this one reports the library's error
BACKENDS = {"cpu": "gloo", "cuda": "nccl", "npu": "hccl", "xpu": "xccl"}
LEFT = ("connection closed", "connection reset", "broken pipe", "timed out", "recvvalue failed", "connection refused")


# "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] ": where a library raised an error.
PLACE = re.compile(r"\[?(?:[\w.-]*/)+[\w.-]+\.(?:cc|cpp|cu|h|hpp|cuh|py):\d+\]?:?\s*")


class Wrong(Exception):
    """Report in one sentence why a run fails and what to do."""


class Group(object):
    """Represent this rank in its group. ``device``: a torch device; ``name``: the name of this host for others."""

    def __init__(self, options, torch):
        self.torch = torch
        self.rank, self.local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
        self.world, self.nodes, self.node = options.nodes * options.ranks, options.nodes, options.node
        self.kind = device_kind(torch, options.device)
        self.device = torch.device(self.kind, 0 if self.kind == "cpu" else self.local)
        self.backend = options.backend or BACKENDS.get(self.kind, "gloo")
        self.patience, self.store = options.patience, None
        self.name = socket.gethostname()

    @property
    def leads(self):
        return self.rank == 0

    def library(self):
        """Return torch.cuda, torch.npu, ..., or None for CPUs."""
        return None if self.kind == "cpu" else getattr(self.torch, self.kind)

    def synchronize(self):
        if self.kind != "cpu":
            self.library().synchronize()

    def join(self, options):
        """Connect to all other ranks. Raise Wrong if they do not connect, or if the backend is missing."""
        import torch.distributed as dist

        if not backend_is_there(dist, self.torch, self.backend):
            raise Wrong("torch %s has no backend %s: choose another" % (self.torch.__version__, self.backend))
        if self.kind != "cpu":
            self.library().set_device(self.device)
        name_interface(options)
        host, port = options.master.rpartition(":")[0], int(options.master.rpartition(":")[2])
        wait = datetime.timedelta(seconds=options.patience)
        try:
            self.store = dist.TCPStore(host, port, self.world, self.rank == 0, wait, wait_for_workers=False)
            self.store.set("here/%d" % self.rank, self.name)
            threading.Thread(target=self.heed, args=(dist, host, port), daemon=True).start()
            self.store.wait(["here/%d" % rank for rank in range(self.world)], wait)
        except (RuntimeError, ValueError) as error:
            raise Wrong(self.absent(host, port, options, error)) from error
        words = {"store": dist.PrefixStore("group", self.store), "rank": self.rank, "world_size": self.world}
        if self.kind != "cpu" and self.backend != "gloo":
            words["device_id"] = self.device
        try:
            dist.init_process_group(self.backend, timeout=wait, **words)
            dist.barrier()
        except RuntimeError as error:
            raise Wrong(
                "the ranks met at %s, but %s cannot connect them: name the interface they share (%s)"
                % (options.master, self.backend, first_line(error))
            ) from error
        return dist

    def absent(self, host, port, options, error):
        if "address already in use" in str(error).lower() or "EADDRINUSE" in str(error):
            return "port %d is in use on %s: choose another with port" % (port, self.name)
        if self.rank == 0:
            missing = [rank for rank in range(self.world) if not self.store or not self.store.check(["here/%d" % rank])]
            ranks = "rank%s %s of %d" % ("s" if len(missing) > 1 else "", ", ".join(map(str, missing[:8])), self.world)
            return "%s did not come to %s:%d within %g s: check address, port and firewalls, or name the interface" % (
                ranks, host, port, options.patience,
            )  # fmt: skip
        return "%s does not reach %s:%d within %g s (%s): check address, port and firewalls, or name the interface" % (
            self.name, host, port, options.patience, first_line(error),
        )  # fmt: skip

    def wait_for_first(self, work):
        """Run ``work()`` on the first rank alone and return its result; other ranks wait as long as it takes.

        They poll the store, because a barrier of a backend has a timeout.
        """
        if self.leads:
            result = work()
            self.store.set("alone", "done")
            return result
        while not self.store.check(["alone"]):
            time.sleep(POLL_S / 5)
        return None

    def heed(self, dist, host, port):
        """End this process, the first rank, when another rank reports a failure, because a collective would hang."""
        if self.rank:
            return
        wait = datetime.timedelta(seconds=self.patience)
        store = dist.TCPStore(host, port, self.world, False, wait, wait_for_workers=False)
        while True:
            time.sleep(POLL_S)
            try:
                if store.check(["failed"]):
                    fail(store.get("failed").decode("utf-8", "replace"))
            except RuntimeError:
                return  # the store has ended, so the run has ended

    def tell(self, sentence):
        """Leave ``sentence`` for the first rank. Return an earlier sentence of another rank, or else ``sentence``."""
        try:
            if self.store is None:
                return sentence
            deadline = time.time() + (GRACE_S if any(word in sentence.lower() for word in LEFT) else 0)
            while time.time() < deadline and not self.store.check(["failed"]):
                time.sleep(POLL_S / 5)
            if self.store.check(["failed"]):
                return self.store.get("failed").decode("utf-8", "replace")
            suffix = " (rank %d on %s)" % (self.rank, self.name) if self.world > 1 else ""
            self.store.set("failed", sentence + suffix)
            time.sleep(2 * POLL_S if self.rank else 0)  # wait until the first rank has read it
            return sentence + suffix
        except RuntimeError:
            return sentence


def backend_is_there(dist, torch, backend):
    """Return whether this torch has the backend. Backends of other packages (hccl) require the loaded package."""
    known = getattr(dist, "is_backend_available", None)
    return bool(known(backend)) if known else hasattr(dist, "is_%s_available" % backend)


def device_kind(torch, wanted):
    """Return torch's name of the type of device. Raise Wrong if this torch does not support it."""
    try:
        import torch_npu  # noqa: F401
    except ImportError:
        pass
    accelerator = getattr(torch, "accelerator", None)
    have = accelerator.current_accelerator().type if accelerator and accelerator.is_available() else "cpu"
    if wanted and wanted not in (have, "cpu"):
        raise Wrong("torch %s sees no device %s here: it has %s" % (torch.__version__, wanted, have))
    return wanted or have


def name_interface(options):
    """Set the interface to other hosts for the libraries: the requested one, or else that of the route."""
    names = [name for _, name in socket.if_nameindex()]
    if options.interface and options.interface not in names:
        raise Wrong(
            "%s has no interface %s: it has %s" % (socket.gethostname(), options.interface, ", ".join(sorted(names)))
        )
    interface = options.interface or ("lo" if options.nodes == 1 else route_to(options.towards, names))
    for library in ("GLOO", "NCCL", "HCCL"):
        if interface:
            os.environ.setdefault(library + "_SOCKET_IFNAME", interface)


def route_to(address, names):
    """Return the interface that this host uses to reach ``address``; empty if unknown."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))  # sends nothing
            local_address = probe.getsockname()[0]
            for name in names:
                request = struct.pack("256s", name[:15].encode())
                try:
                    if (
                        socket.inet_ntoa(fcntl.ioctl(probe.fileno(), 0x8915, request)[20:24]) == local_address
                    ):  # SIOCGIFADDR
                        return name
                except OSError:
                    continue  # the interface has no IPv4 address
    except OSError:
        pass
    return ""


def first_line(error):
    """Return the first line of an error, without the place in a library's source that raised it."""
    lines = [PLACE.sub("", line).strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line]
    return (lines or [type(error).__name__])[0][:160]


def sentence_of(error, group):
    """Return the message for the user about an error of torch."""
    if isinstance(error, Wrong):
        return str(error)
    text = str(error)
    if type(error).__name__ == "OutOfMemoryError" or "not enough memory" in text or "can't allocate" in text:
        return "out of memory: %s; %s" % (first_line(error), free_memory(group))
    if "timed out" in text.lower() or "timeout" in text.lower():
        return "a rank waited longer than %g s for another: raise patience, or look at what the slow host does" % (
            group.patience
        )
    return "%s: %s" % (type(error).__name__, first_line(error))


def free_memory(group):
    library = group.library()
    if library is None:
        with open("/proc/meminfo") as source:
            kib = next((int(line.split()[1]) for line in source if line.startswith("MemAvailable")), 0)
        return "%.2f GiB of the host's memory are free" % (kib / 1048576.0)
    free, total = library.mem_get_info()
    return "%.2f of %.2f GiB of the device are free" % (free / 2.0**30, total / 2.0**30)


def fail(sentence):
    sys.stderr.write(" ".join(sentence.split()) + "\n")
    sys.stderr.flush()
    os._exit(1)


def leave():
    """Exit without torch's own cleanup, in which its threads sometimes abort a successful process."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def one_rank(options, work):
    """Run this process as a rank: join the group, do the work, and leave the group."""
    group = None
    try:
        import torch

        torch.set_num_threads(max(1, options.threads))
        group = Group(options, torch)
        group.dist = group.join(options)
        work(options, group)
        group.dist.barrier()
        group.dist.destroy_process_group()
        leave()
    except ImportError as error:
        fail("this Python cannot import %s (%s)" % (getattr(error, "name", None) or "torch", first_line(error)))
    except (Wrong, RuntimeError, MemoryError, ValueError, OSError) as error:
        fail(group.tell(sentence_of(error, group)) if group else sentence_of(error, group))


def all_ranks(options):
    """Start this host's ranks and wait for them. The first failure ends the others. Return the exit status."""
    children = []
    for local in range(options.ranks):
        env = dict(os.environ, RANK=str(options.node * options.ranks + local), LOCAL_RANK=str(local))
        env.setdefault("OMP_NUM_THREADS", str(options.threads))
        out = None if local == 0 and options.node == 0 else subprocess.DEVNULL
        children.append(subprocess.Popen([sys.executable, *sys.argv], env=env, stdout=out))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        waiting = list(children)
        while waiting:
            time.sleep(0.05)
            for child in list(waiting):
                if child.poll() is not None:
                    waiting.remove(child)
                    if child.returncode:
                        for _ in range(int(GRACE_S / 0.05)):  # the first rank may still read why
                            if children[0].poll() is not None:
                                break
                            time.sleep(0.05)
                        return 1
        return 0
    finally:
        for child in children:
            if child.poll() is None:
                child.kill()
                child.wait()


def run(description, add_words, work):
    """Parse the command line, and start the ranks or act as one."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--node", type=int, default=0, help="this host's number")
    parser.add_argument("--nodes", type=int, default=1, help="number of hosts")
    parser.add_argument("--ranks", type=int, default=1, help="processes on each host")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of each process")
    parser.add_argument("--master", default="127.0.0.1:29511", help="address and port of the first host")
    parser.add_argument("--towards", default="127.0.0.1", help="address of another host")
    parser.add_argument("--interface", default="", help="network interface to the other hosts")
    parser.add_argument("--device", default="", help="cpu, cuda, npu, xpu; empty: the one that torch has")
    parser.add_argument("--backend", default="", help="gloo, nccl, hccl, xccl; empty: by the device")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds that ranks wait for one another")
    add_words(parser)
    options = parser.parse_args()
    if "LOCAL_RANK" in os.environ:
        one_rank(options, work)
    else:
        sys.exit(all_ranks(options))
