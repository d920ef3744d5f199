"""Remove serial numbers, UUIDs, MAC addresses and long parts from command output before it leaves the host.

Standard library only, Python 3.6 and later.
"""

import re


def without_lines(pattern):
    """Return a filter that drops the lines that match ``pattern``."""
    return lambda text: "".join(line for line in text.splitlines(True) if not re.search(pattern, line))


def only_lines(pattern):
    """Return a filter that keeps the lines that match ``pattern``."""
    return lambda text: "".join(line for line in text.splitlines(True) if re.search(pattern, line))


def before(words):
    """Return a filter that drops the line with ``words`` and all following lines."""
    return lambda text: text.partition(words)[0].rpartition("\n")[0] + "\n" if words in text else text


def trim_nvidia(text):
    """Return nvidia-smi's XML without serial numbers, user processes, and hundreds of supported clocks."""
    text = re.sub(r"(?s)<(supported_clocks|processes|accounted_processes)>.*?</\1>", "", text)
    return re.sub(r"<([a-z_]*(?:serial|uuid|pdi|guid)[a-z_]*)>[^<]*</\1>", "", text, flags=re.IGNORECASE)


def without_uuid(text):
    return re.sub(r" *\(UUID: [^)]*\)", "", text)


TRIM = {
    "dmidecode": without_lines(r"Serial Number:|UUID:|Asset Tag:"),
    "ip": without_lines(r"link/|inet6 fe80:|inet6 \S*ff:fe\w\w:\w+/"),  # these addresses contain the MAC address
    "lspci": only_lines(r"^\S|LnkCap:|LnkSta:|ACSCtl:|NUMA node:|Kernel driver in use:|access denied"),
    "nvidia_smi": trim_nvidia,
    "nvlink": without_uuid,
    "nvlink_errors": without_uuid,
    "npu_smi": before("Process id"),
}
