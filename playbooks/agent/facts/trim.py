"""Drops parts of commands' answers before they leave the host: serial numbers, UUIDs, MAC addresses, what is long.

Standard library only, Python 3.6 and later.
"""

import re


def without_lines(pattern):
    """A filter that drops the lines that match ``pattern``."""
    return lambda text: "".join(line for line in text.splitlines(True) if not re.search(pattern, line))


def only_lines(pattern):
    """A filter that keeps the lines that match ``pattern``."""
    return lambda text: "".join(line for line in text.splitlines(True) if re.search(pattern, line))


def before(words):
    """A filter that drops the line with ``words`` and all behind it."""
    return lambda text: text.partition(words)[0].rpartition("\n")[0] + "\n" if words in text else text


def trim_nvidia(text):
    """nvidia-smi's XML without serial numbers, the processes of users, and hundreds of supported clocks."""
    text = re.sub(r"(?s)<(supported_clocks|processes|accounted_processes)>.*?</\1>", "", text)
    return re.sub(r"<([a-z_]*(?:serial|uuid|pdi|guid)[a-z_]*)>[^<]*</\1>", "", text, flags=re.IGNORECASE)


def without_uuid(text):
    return re.sub(r" *\(UUID: [^)]*\)", "", text)


TRIM = {
    "dmidecode": without_lines(r"Serial Number:|UUID:|Asset Tag:"),
    "ip": without_lines(r"link/|inet6 fe80:|inet6 \S*ff:fe\w\w:\w+/"),  # such addresses contain the MAC
    "lspci": only_lines(r"^\S|LnkCap:|LnkSta:|ACSCtl:|NUMA node:|Kernel driver in use:|access denied"),
    "nvidia_smi": trim_nvidia,
    "nvlink": without_uuid,
    "nvlink_errors": without_uuid,
    "npu_smi": before("Process id"),
}
