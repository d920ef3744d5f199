"""Run AIPerf and guidellm beside Fleetmark's client against one server, and hold each definition to the server's log.

``python -m benchmarks.clients BIN``: BIN is the folder of programs of a virtual environment that has ``aiperf`` and
``guidellm`` (``pip install aiperf guidellm``). The server is that of the tests. For each client, a row is a metric as its
client defines it, the median that the client tells, and the median of the same definition by the server's own times.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fleetmark.parsers import parse

HOUSE = Path(__file__).parents[2]
CLIENT = HOUSE / "playbooks" / "roles" / "llm_serve" / "files" / "client.py"
SERVER = HOUSE / "tests" / "llm" / "server.py"
STREAMS, REQUESTS, PROMPT, ANSWER = 4, 60, 40, 16
LIMIT = 300  # seconds of one client
COMMIT = "0" * 40  # of the tokenizer in a cache of Hugging Face's, from which AIPerf loads it
TOKENIZER = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
words = ["<s>", "</s>", *("w%d" % n for n in range(998))]
made = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="w0"))  # text of other words stays
made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>").save_pretrained(sys.argv[1])
"""
Times = Mapping[str, Any]
DEFINITIONS: dict[str, tuple[str, Callable[[Times], float]]] = {
    "ttft_p50": ("first token - request", lambda r: r["stamps"][0] - r["came"]),
    "tpot_p50": ("(last - first token) / (tokens - 1)", lambda r: (r["stamps"][-1] - r["stamps"][0]) / (ANSWER - 1)),
    "token_mean_p50": ("(last token - request) / tokens", lambda r: (r["stamps"][-1] - r["came"]) / ANSWER),
    "e2e_p50": ("last token - request", lambda r: r["stamps"][-1] - r["came"]),
}
NAMES = {
    "aiperf": {"tpot_p50": "inter_token_latency", "e2e_p50": "request_latency"},
    "guidellm": {"tpot_p50": "inter_token_latency_ms", "token_mean_p50": "time_per_output_token_ms"},
}


def tokenizer(python: Path, folder: Path) -> None:
    """Write a tokenizer whose tokens are words, as the server counts them, into a cache of Hugging Face's."""
    cache = folder / "hub" / "models--local--words"
    snapshot = cache / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    subprocess.run([python, "-c", TOKENIZER, snapshot], check=True, stdout=subprocess.DEVNULL)
    (snapshot / "config.json").write_text('{"model_type": "llama"}')
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(COMMIT)


def commands(programs: Path, url: str, folder: Path) -> dict[str, tuple[list[str], Path]]:
    """Return the command of each client, and the file that it writes."""
    words = folder / "hub" / "models--local--words" / "snapshots" / COMMIT
    aiperf = f"profile -m tiny --url {url} --endpoint-type completions --streaming --tokenizer local/words --ui none"
    aiperf += f" --concurrency {STREAMS} --request-count {REQUESTS} --synthetic-input-tokens-mean {PROMPT}"
    aiperf += f" --synthetic-input-tokens-stddev 0 --output-tokens-mean {ANSWER} --extra-inputs ignore_eos:true"
    aiperf += f" --use-server-token-count --artifact-dir {folder / 'aiperf'}"
    guide = f"run --backend kind=openai_http,target={url},model=tiny,request_format=/v1/completions --disable-progress"
    guide += f" --profile kind=concurrent,streams={STREAMS} --constraint kind=max_requests,count={REQUESTS}"
    guide += f" --data kind=synthetic_text,prompt_tokens={PROMPT},output_tokens={ANSWER}"
    guide += f" --tokenizer kind=hf_auto,model={words} --output kind=json,path={folder / 'guidellm.json'}"
    client = f"{CLIENT} --url={url} --model=tiny --prompt={PROMPT} --answer={ANSWER} --concurrency={STREAMS}"
    client += " --seconds=5 --warmup=1"
    return {
        "llm_serve": ([sys.executable, *client.split()], folder / "llm_serve"),
        "aiperf": ([str(programs / "aiperf"), *aiperf.split()], folder / "aiperf" / "profile_export_aiperf.json"),
        "guidellm": ([str(programs / "guidellm"), *guide.split()], folder / "guidellm.json"),
    }


def rows(client: str, raw: bytes, log: Sequence[Times]) -> list[tuple[str, str, str, float, float]]:
    """Return (client, its name of a metric, definition, its median, the server's median), in seconds."""
    values = {m.metric: m.value for m in parse(client, raw).measurements}
    return [
        (
            client,
            NAMES.get(client, {}).get(metric, metric),
            definition,
            values[metric],
            statistics.median(map(compute, log)),
        )
        for metric, (definition, compute) in DEFINITIONS.items()
        if metric in values
    ]


def main(programs: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer(programs / "python", folder)
        environment = {**os.environ, "HF_HOME": name, "HF_HUB_OFFLINE": "1"}
        print(f"{'client':10} {'its name':26} {'definition':36} {'client':>10} {'server':>10} {'difference':>10}")
        for client in ("llm_serve", "aiperf", "guidellm"):
            log = folder / f"{client}.jsonl"
            serve = [sys.executable, str(SERVER), "--log", str(log)]
            with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout
                try:
                    url = f"http://127.0.0.1:{process.stdout.readline().strip()}"
                    words, file = commands(programs, url, folder)[client]
                    done = subprocess.run(words, env=environment, capture_output=True, timeout=LIMIT, check=False)
                finally:
                    process.kill()
            raw = done.stdout if client == "llm_serve" else file.read_bytes() if file.is_file() else b""
            if done.returncode or not raw:
                raise SystemExit(f"{client}: {(done.stderr or done.stdout).decode()[-800:]}")
            served = [json.loads(line) for line in log.read_text().splitlines()]
            for _, metric, definition, measured, expected in rows(client, raw, served):
                times = f"{1e3 * measured:8.2f} ms {1e3 * expected:7.2f} ms {1e3 * (measured - expected):7.2f} ms"
                print(f"{client:10} {metric:26} {definition:36} {times}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
