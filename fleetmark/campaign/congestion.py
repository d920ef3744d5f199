"""What network devices counted of congestion and loss while a step ran, as guardrails. Pure.

Drivers name their counters as they like; these rules know those of mlx5, bnxt_en and bnxt_re, ice and irdma, i40e,
ixgbe, be2net and hns3 (``ethtool -S``, ``hw_counters``). What no rule knows is in ``result.json``, and no figure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from fleetmark.base.measurement import Better, Measurement
from fleetmark.record.replies import Telemetry

_RULES: Mapping[str, re.Pattern[str]] = {
    "pause_received": re.compile(r"(?=.*(pause|pfc|xoff))(.*_)?rx(_.*)?"),
    "pause_sent": re.compile(r"(?=.*(pause|pfc|xoff))(.*_)?tx(_.*)?"),
    "ecn_marked": re.compile(r".*ecn_?ma?rk.*"),
    "cnp_received": re.compile(r"(?=.*cnp)((.*_)?rx(_.*)?|.*handled)"),
    "cnp_sent": re.compile(r"(?=.*cnp)((.*_)?tx(_.*)?|.*sent)"),
    "nic_discards": re.compile(r".*discard.*|.*out_of_buffer|[rt]x_drop(s|ped)"),
    "rdma_retries": re.compile(r"out_of_sequence|packet_seq_err|.*ack_timeout.*|.*retrans.*"),
}
_OTHER = re.compile(r"duration|transition|storm|xon|ignored|time_us|_us$")  # times and other events than these


def counted(telemetry: Telemetry | None) -> list[Measurement]:
    """How often each of these happened on the host's devices; nothing of what no device counts.

    Several counters may count the same event (per priority and in all; by the card and by its RDMA device). Those that
    differ in a digit alone are added up, as are devices; of the sums, the greatest stands.
    """
    sums: dict[str, dict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
    for device, counters in (telemetry.counters if telemetry else {}).items():
        for counter, number in counters.items():
            name = re.sub(r"\.nic$", "", counter.lower())
            event = next((e for e, rule in _RULES.items() if rule.fullmatch(name)), None)
            if event and not _OTHER.search(name):
                sums[event][device.partition(":")[0], re.sub(r"[0-9]+", "", name)] += number
    return [
        Measurement("telemetry", "", event, float(max(sums[event].values())), "1", Better.LOWER)
        for event in _RULES
        if event in sums
    ]
