"""Map the congestion and loss counters of network drivers to events, by their names.

The rules cover the names of mlx5, bnxt_en and bnxt_re, ice and irdma, i40e, ixgbe, be2net and hns3 (``ethtool -S``,
``hw_counters``). Counters without a rule are ignored.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

EVENTS: Mapping[str, re.Pattern[str]] = {
    "pause_storms": re.compile(r"[rt]x_pause_storm_(?:warning|error)_events"),
    "pause_received": re.compile(r"(?=.*(pause|pfc|xoff))(.*_)?rx(_.*)?"),
    "pause_sent": re.compile(r"(?=.*(pause|pfc|xoff))(.*_)?tx(_.*)?"),
    "ecn_marked": re.compile(r".*ecn_?ma?rk.*"),
    "cnp_received": re.compile(r"(?=.*cnp)((.*_)?rx(_.*)?|.*handled)"),
    "cnp_sent": re.compile(r"(?=.*cnp)((.*_)?tx(_.*)?|.*sent)"),
    "nic_discards": re.compile(r".*discard.*|.*out_of_buffer|[rt]x_drop(s|ped)"),
    "rdma_retries": re.compile(r"out_of_sequence|packet_seq_err|.*ack_timeout.*|.*retrans.*"),
}
_OTHER = re.compile(r"duration|transition|storm|xon|ignored|time_us|_us$")  # times and unrelated events


def event(counter: str) -> str | None:
    """Return the event that a counter counts; None if no rule matches."""
    name = _bare(counter)
    if EVENTS["pause_storms"].fullmatch(name):
        return "pause_storms"
    return None if _OTHER.search(name) else next((e for e, rule in EVENTS.items() if rule.fullmatch(name)), None)


def totals(devices: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return the number of events by kind; kinds that no device counts are omitted.

    ``devices``: maps a device (``net:eth0``, ``rdma:mlx5_0/1``) to its counters. Several counters may count the same
    event, for example per priority and in total. Counters that differ only in a digit are added up, as are devices. The
    largest of the resulting sums counts.
    """
    sums: dict[str, dict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
    for device, counters in devices.items():
        for counter, number in counters.items():
            if (name := event(counter)) is not None:
                sums[name][device.partition(":")[0], re.sub(r"[0-9]+", "", _bare(counter))] += number
    return {name: max(sums[name].values()) for name in EVENTS if name in sums}


def _bare(counter: str) -> str:
    return counter.lower().removesuffix(".nic")
