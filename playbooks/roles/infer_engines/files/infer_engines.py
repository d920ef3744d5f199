"""Time small networks on inference engines side by side, and check their outputs against a reference in fp64.

    infer_engines.py --network=NAME --engines=A,B --batches=1,8 [--device=cpu|cuda|xpu] [--threads=N] [--budget=S]
    infer_engines.py --export=FOLDER     (a model repository for Triton, for the engine kserve)

Prints one JSON document per line. Each engine runs in a separate process, so that its threads and its end do not
disturb the next one.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

TOLERANCE = 1e-4  # largest difference over the largest output; fp32 gives 1e-6 here, tf32 and bf16 at least 4e-4
WARMUP_CALLS, WARMUP_S, LEAST_CALLS, LEAST_FOR_P99 = 5, 0.2, 20, 200
MOST_CALLS = 1000000


def options_of(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", default="mlp")
    parser.add_argument("--engines", default="onnxruntime")
    parser.add_argument("--batches", default="1")
    parser.add_argument("--export", default="")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", type=float, default=2.0)
    parser.add_argument("--limit", type=float, default=600.0, help="time limit of one engine in seconds")
    parser.add_argument("--only", default="", help="the engine that this process runs")
    parser.add_argument("--reference", default="")
    return parser.parse_args(words)


def say(**document):
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def timed(call, inputs, budget):
    """Return the seconds of each call, after a warm-up."""
    until, calls = time.perf_counter() + min(WARMUP_S, budget), 0
    while calls < WARMUP_CALLS or time.perf_counter() < until:
        call(inputs)
        calls += 1
    seconds, begin = [], time.perf_counter()
    while len(seconds) < MOST_CALLS and (len(seconds) < LEAST_CALLS or time.perf_counter() - begin < budget):
        before = time.perf_counter()
        call(inputs)
        seconds.append(time.perf_counter() - before)
    return seconds


def child(options, batches):
    """Run one engine at each batch size."""
    import engines
    import networks
    import numpy as np

    net = networks.NETWORKS[options.network]()
    expected = np.load(options.reference)
    for batch in batches:
        inputs = net.inputs(batches[-1])[:batch].copy()
        begin = time.perf_counter()
        engine = engines.ENGINES[options.only](net, batch, options.device, options.threads)
        output = engine(inputs)
        build = time.perf_counter() - begin
        exact = expected[:batch]
        error = float(np.abs(output - exact).max() / np.abs(exact).max()) if output.shape == exact.shape else None
        seconds = sorted(timed(engine, inputs, options.budget))
        say(
            engine=options.only, version=engine.version, batch=batch, build=build, calls=len(seconds),
            mean=sum(seconds) / len(seconds), p50=seconds[len(seconds) // 2],
            p99=seconds[int(0.99 * len(seconds))] if len(seconds) >= LEAST_FOR_P99 else None,
            error=error if error is not None and np.isfinite(error) else "not a number",
        )  # fmt: skip
        del engine


def run_child(options, name, path, cache):
    """Run one engine in its own process. Return None, or why it gave no figures and whether it is missing."""
    words = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--only=" + name, "--reference=" + path]
    env = dict(os.environ, OMP_NUM_THREADS=str(options.threads), TORCHINDUCTOR_CACHE_DIR=cache, TRITON_CACHE_DIR=cache)
    process = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, errors = process.communicate(timeout=options.limit)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "it took more than %g s" % options.limit, False
    for line in out.decode(errors="replace").splitlines():
        if line.startswith('{"engine"'):
            sys.stdout.write(line + "\n")
    if process.returncode:
        last = (errors.decode(errors="replace").strip().splitlines() or ["exit status %d" % process.returncode])[-1]
        return last[:300], last.startswith(("ImportError", "ModuleNotFoundError"))
    return None


def export(networks, folder):
    """Write every network as a model of Triton's: fleetmark-NAME/1/model.onnx and its configuration."""
    for name, build in networks.NETWORKS.items():
        model = os.path.join(folder, "fleetmark-" + name)
        os.makedirs(os.path.join(model, "1"), exist_ok=True)
        with open(os.path.join(model, "1", "model.onnx"), "wb") as file:
            file.write(networks.onnx_model(build(), "batch"))
        with open(os.path.join(model, "config.pbtxt"), "w") as file:
            file.write('name: "fleetmark-%s"\nbackend: "onnxruntime"\nmax_batch_size: 0\n' % name)


def main(words):
    options = options_of(words)
    batches = sorted({int(part) for part in options.batches.split(",")})
    if options.only:
        child(options, batches)
        return
    try:
        import networks
        import numpy as np
    except ImportError as error:
        sys.exit("infer_engines: %s in this Python; install numpy, onnx and the engines" % error)
    if options.export:
        export(networks, options.export)
        return
    net = networks.NETWORKS[options.network]()
    folder = tempfile.mkdtemp()
    try:
        path = os.path.join(folder, "reference.npy")
        np.save(path, networks.reference(net, net.inputs(batches[-1])))
        say(
            tool="infer_engines", network=options.network, device=options.device, threads=options.threads,
            precision="fp32", tolerance=TOLERANCE,
            parameters=int(sum(w.size for w in net.weights.values() if w.dtype.kind == "f")),
        )  # fmt: skip
        for name in options.engines.split(","):
            failure = run_child(options, name, path, os.path.join(folder, name))
            if failure:
                say(missing=name, why=failure[0], is_absent=failure[1])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say(end=True)


if __name__ == "__main__":
    main(sys.argv[1:])
