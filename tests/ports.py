"""Choose a TCP port for a program that a test starts."""

from __future__ import annotations

import random
import socket

PORTS = range(20_000, 32_000)  # below those that the kernel gives to outgoing connections


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody uses, and that no connection of a test beside this one gets meanwhile."""
    while True:
        port = random.SystemRandom().choice(PORTS)
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
