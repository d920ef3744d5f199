"""A server that answers every request with the same bytes: hostile.py HEX [echo]. Prints its port.

With ``echo`` the model that it lists is the key that it was given.
"""

from __future__ import annotations

import json
import socket
import sys
import threading


def answer(peer: socket.socket, raw: bytes, *, echo: bool) -> None:
    """One connection: the list of models, or ``raw``."""
    with peer:
        text = b""
        while b"\r\n\r\n" not in text:
            piece = peer.recv(65536)
            if not piece:
                return
            text += piece
        if text.startswith(b"GET"):
            key = text.partition(b"Bearer ")[2].partition(b"\r\n")[0].decode()
            body = json.dumps({"data": [{"id": f"model {key}" if echo else "m" * 30_000}]}).encode()
            raw = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        peer.sendall(raw)
        peer.shutdown(socket.SHUT_WR)
        peer.recv(1 << 20)


def main() -> None:
    raw, echo = bytes.fromhex(sys.argv[1]), "echo" in sys.argv[2:]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)  # noqa: T201
        while True:
            peer = listening.accept()[0]
            threading.Thread(target=answer, args=(peer, raw), kwargs={"echo": echo}, daemon=True).start()


if __name__ == "__main__":
    main()
