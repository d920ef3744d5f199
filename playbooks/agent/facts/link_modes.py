"""Ask the kernel for the link modes that a network port supports, as ethtool prints them, without root or ethtool.

Standard library only, Python 3.6 and later.
"""

import array
import fcntl
import os
import socket
import struct

SIOCETHTOOL, GLINKSETTINGS = 0x8946, 0x4C  # linux/sockios.h, linux/ethtool.h
SETTINGS = struct.Struct("=II7Bb4B7I")  # struct ethtool_link_settings up to its masks; field 9 counts their words
WORDS = 9
MOST_WORDS = 64  # the kernel has 4


def supported(nic):
    """Return the mask of supported link modes in hexadecimal, or None if the driver does not report any."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:

        def ask(words):
            fields = [0] * len(SETTINGS.unpack(bytes(SETTINGS.size)))
            fields[0], fields[WORDS] = GLINKSETTINGS, words
            data = array.array("B", SETTINGS.pack(*fields) + bytes(3 * 4 * words))
            fcntl.ioctl(sock, SIOCETHTOOL, struct.pack("16sP16x", os.fsencode(nic), data.buffer_info()[0]))
            return data.tobytes()

        try:
            words = -SETTINGS.unpack_from(ask(0))[WORDS]  # the kernel's number of words, negative
            if not 0 < words <= MOST_WORDS:
                return None
            answer = ask(words)
        except OSError:  # a driver without this request, an interface that has just gone
            return None
    if SETTINGS.unpack_from(answer)[WORDS] != words:
        return None
    masks = struct.unpack_from("=%dI" % words, answer, SETTINGS.size)
    return "%x" % sum(mask << 32 * place for place, mask in enumerate(masks)) if any(masks) else None
