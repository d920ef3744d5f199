"""Read a server's own counts of its prefix cache from its Prometheus metrics.

Imported by client.py on the host. Standard library only, Python 3.6 and later. vLLM and SGLang count tokens that were
looked up and tokens that were found; TensorRT-LLM and older servers report only a rate.
"""

import math
import re

COUNTERS = (  # (tokens found, tokens looked up)
    ("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"),
    ("vllm:gpu_prefix_cache_hits_total", "vllm:gpu_prefix_cache_queries_total"),
    ("sglang:cached_tokens_total", "sglang:prompt_tokens_total"),
)
RATES = ("sglang:cache_hit_rate", "vllm:gpu_prefix_cache_hit_rate", "trtllm_kv_cache_hit_rate")
LINE = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})?[ \t]+([^ \t]+)(?:[ \t]+-?[0-9]+)?[ \t]*$")
MODEL = re.compile(r'(?:^|,)model_name="((?:[^"\\]|\\.)*)"')


def read(text, model):
    """Return the values of the metrics above by name: sums over all engines that serve ``model``."""
    wanted = {name for pair in COUNTERS for name in pair} | set(RATES)
    mine, others = {}, {}
    for line in text.splitlines():
        match = LINE.match(line)
        if not match or match.group(1) not in wanted:
            continue
        try:
            value = float(match.group(3))
        except ValueError:
            continue
        if not math.isfinite(value) or value < 0:
            continue
        name = MODEL.search(match.group(2) or "")
        values = mine if name is None or name.group(1) == model else others
        values.setdefault(match.group(1), []).append(value)
    chosen = mine or others  # behind a proxy, the model may have another name
    return {name: sum(values) / len(values) if name in RATES else sum(values) for name, values in chosen.items()}


def rate(before, after):
    """Return (share of prompt tokens that the cache served between two readings, the metric's name), or None.

    A counter that decreased, for example after a restart of the server, gives None.
    """
    for hit_name, query_name in COUNTERS:
        if query_name in before and query_name in after and hit_name in after:
            hits = after.get(hit_name, 0.0) - before.get(hit_name, 0.0)
            queries = after[query_name] - before[query_name]
            if queries > 0 and 0 <= hits <= queries:
                return hits / queries, hit_name
    for name in RATES:
        if name in after and after[name] <= 1:
            return after[name], name
    return None
