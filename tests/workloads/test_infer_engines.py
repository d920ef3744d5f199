"""Inference engines side by side: real engines on this CPU, a real server of the KServe v2 protocol, wrong outputs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetmark import parsers
from fleetmark.base.errors import FleetmarkError, ParseError
from fleetmark.hosts.agent import PLAYBOOKS
from tests.parsers.reading import cases, value
from tests.schedules import schedule, suite
from tests.torches import PYTHON, needs_torch

FILES = PLAYBOOKS / "roles" / "infer_engines" / "files"
SERVER = Path(__file__).parents[1] / "standins" / "kserve" / "server.py"
pytestmark = needs_torch


def python() -> str:
    given = Path(PYTHON)
    return str(given / "bin/python" if given.is_dir() else given)


def has(*packages: str) -> bool:
    code = f"import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, {packages!r})))"
    return bool(PYTHON) and subprocess.run([python(), "-c", code], check=False).returncode == 0


def run(*words: str, **env: str) -> bytes:
    line = [python(), str(FILES / "infer_engines.py"), "--threads=1", "--budget=0.1", *words]
    done = subprocess.run(line, capture_output=True, timeout=300, env={"PATH": "/usr/bin:/bin", **env}, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("network", ["mlp", "convnet", "encoder"])
def test_engines_agree_with_the_reference(network: str) -> None:
    if not has("onnx", "onnxruntime", "openvino"):
        pytest.skip("no onnx, onnxruntime or openvino beside torch: scripts/prepare test installs them")
    raw = run(f"--network={network}", "--engines=torch_eager,onnxruntime,openvino,tensorrt", "--batches=3")
    parsed = parsers.parse("infer_engines", raw)
    assert parsed.invalid is None
    assert cases(parsed) == {f"{e}-b{b}" for e in ("torch_eager", "onnxruntime", "openvino") for b in (3,)}
    for case in cases(parsed):
        error = value(parsed, "output_error", case=case)
        assert error is not None and error < 2e-5  # the tolerance is five times that
        rate, median = (value(parsed, name, case=case) for name in ("samples_per_second", "latency_p50"))
        assert rate and median
    (note,) = parsed.notes
    assert note.startswith("tensorrt is not installed")


def test_torchinductor_compiles(tmp_path: Path) -> None:
    parsed = parsers.parse("infer_engines", run("--engines=torch_compile", HOME=str(tmp_path)))
    if parsed.notes:  # pragma: no cover
        pytest.skip(f"no compiler: {parsed.notes[0]}")
    assert parsed.invalid is None and cases(parsed) == {"torch_compile-b1"}


def test_a_lower_precision_is_caught() -> None:
    """The reference is exact enough to tell bf16 and tf32 from fp32, on every network."""
    code = """
import networks, engines, numpy as np, torch, json
worst = {}
for name, build in networks.NETWORKS.items():
    net = build()
    inputs = net.inputs(2)
    exact = networks.reference(net, inputs)
    model = engines.module(torch, net)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        low = model(torch.from_numpy(inputs)).float().numpy()
    cut = {n: (w.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) if w.dtype == np.float32 else w for n, w in net.weights.items()}
    net.weights = cut  # weights with the 10 bits of tf32
    tf32 = networks.reference(net, inputs)
    worst[name] = [float(np.abs(out - exact).max() / np.abs(exact).max()) for out in (low, tf32)]
print(json.dumps(worst))
"""
    done = subprocess.run([python(), "-c", code], cwd=FILES, capture_output=True, timeout=300, check=True)
    errors = json.loads(done.stdout)
    assert set(errors) == {"mlp", "convnet", "encoder"}
    assert all(error > 1e-4 for pair in errors.values() for error in pair), errors


@pytest.fixture(params=["binary", "json", "wrong"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    process = subprocess.Popen([python(), SERVER, str(FILES), request.param], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield request.param, f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.kill()
        process.wait()


def test_a_server_of_the_kserve_protocol(server: tuple[str, str]) -> None:
    kind, url = server
    parsed = parsers.parse("infer_engines", run("--engines=kserve", "--batches=2", FLEETMARK_KSERVE_URL=url))
    assert cases(parsed) == {"kserve-b2"} and parsed.version == f"kserve standin-{kind}"
    if kind == "wrong":
        assert parsed.invalid is not None and "wrong outputs" in parsed.invalid
        assert set(parsed.invalid_cases) == cases(parsed)
    else:
        assert parsed.invalid is None
    if kind == "json":
        with pytest.raises(ParseError, match=r"kserve failed: .*status 404"):
            parsers.parse("infer_engines", run("--engines=kserve", "--network=convnet", FLEETMARK_KSERVE_URL=url))


def test_no_server_is_one_sentence() -> None:
    raw = run("--engines=kserve", FLEETMARK_KSERVE_URL="http://127.0.0.1:9")
    with pytest.raises(ParseError, match="kserve failed: ConnectionRefusedError"):
        parsers.parse("infer_engines", raw)


def test_the_exported_models_compute_the_same(tmp_path: Path) -> None:
    if not has("onnx", "onnxruntime"):
        pytest.skip("no onnx or onnxruntime beside torch")
    run(f"--export={tmp_path}")
    code = """
import sys, networks, numpy as np, onnxruntime
for name, build in networks.NETWORKS.items():
    net = build()
    session = onnxruntime.InferenceSession(f"{sys.argv[1]}/fleetmark-{name}/1/model.onnx")
    out = session.run(None, {"input": net.inputs(3)})[0]
    exact = networks.reference(net, net.inputs(3))
    assert np.abs(out - exact).max() < 1e-4 * np.abs(exact).max(), name
"""
    subprocess.run([python(), "-c", code, str(tmp_path)], cwd=FILES, timeout=300, check=True)
    assert len(list(tmp_path.glob("*/config.pbtxt"))) == 3


def test_the_users_words_reach_the_program(tmp_path: Path) -> None:
    text = suite(tmp_path, "  infer_engines:\n")
    with pytest.raises(FleetmarkError, match="kserve_url together"):
        schedule(text, {"infer_engines": {"engines": ["kserve"]}}, repeats=1)


def test_wrong_or_cut_output() -> None:
    head = {"tool": "infer_engines", "network": "mlp", "tolerance": 1e-4, "parameters": 10}
    row = {"engine": "openvino", "version": "1", "batch": 2, "mean": 0.5, "p50": 0.4, "build": 1.0, "error": 2e-4}
    lines = [json.dumps(part) for part in (head, row, {**row, "batch": 4, "error": 1e-6}, {"end": True})]
    parsed = parsers.parse("infer_engines", "\n".join(lines).encode())
    assert parsed.invalid_cases == ("openvino-b2",) and parsed.invalid is not None
    assert "differ from the reference by 0.0002" in parsed.invalid
    assert value(parsed, "samples_per_second", case="openvino-b4") == 8
    cut = parsers.parse("infer_engines", "\n".join(lines[:-1]).encode())
    assert cut.invalid is not None and "the output is cut" in cut.invalid
