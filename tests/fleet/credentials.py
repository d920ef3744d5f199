"""A server that wants credentials, and a watch on all command lines for them."""

from __future__ import annotations

import base64
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROLE = Path(__file__).parents[2] / "playbooks/roles/stream/files"
NAME, PASSWORD, TOKEN, ELSE = "jane-of-tests", "S3cr3t/of%tests", "t0ken-of-tests", "aws-key-of-tests"
LEAKS = [w.encode() for w in (NAME, PASSWORD, "S3cr3t%2Fof%25tests", TOKEN)]


class Server:
    """A server with a stream.c for clients with a log-in and a token; ``hold`` delays its answers."""

    def __init__(self) -> None:
        # The kernels take size and passes from the command line; the official stream.c has them compiled in.
        source = (ROLE / "stream.c").read_text().replace("int main(", "static int with(")
        self.source = (
            source + "\n#define S_(x) #x\n#define S(x) S_(x)\nint main(void)\n{\n"
            '    char *v[] = {"stream", S(STREAM_ARRAY_SIZE), S(NTIMES), 0};\n    return with(3, v);\n}\n'
        ).encode()
        self.requested, self.hold = threading.Event(), threading.Event()
        self.hold.set()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                authorization = "Basic " + base64.b64encode(f"{NAME}:{PASSWORD}".encode()).decode()
                if self.headers.get("Authorization") != authorization or f"token={TOKEN}" not in self.path:
                    self.send_response(401)
                    self.send_header("WWW-Authenticate", 'Basic realm="x"')
                    self.end_headers()
                    return
                server.requested.set()
                server.hold.wait(60)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(server.source)

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def url(self, password: str = "S3cr3t%2Fof%25tests") -> str:
        return f"http://{NAME}:{password}@127.0.0.1:{self.http.server_port}/stream.c?token={TOKEN}"


class Watch:
    """Watches all command lines on this machine, those of the fleet's hosts included, for credentials."""

    def __init__(self, words: Sequence[bytes] = LEAKS, every_s: float = 0.02) -> None:
        self.words, self.every_s = words, every_s
        self.exposed: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(self.every_s):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    words = file.read_bytes()
                except OSError:
                    continue  # gone meanwhile
                if any(leak in words for leak in self.words):
                    self.exposed.add(words.replace(b"\0", b" ").decode(errors="replace")[:300])
