"""Serve Fleetmark's network ``mlp`` by the KServe v2 protocol, computed with NumPy: server.py FILES binary|json|wrong.

Prints its port. ``binary`` offers binary tensors, ``json`` does not, and ``wrong`` returns outputs that are 1% too large.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

sys.path.insert(0, sys.argv[1])

import networks  # type: ignore[import-not-found]
import numpy as np

KIND = sys.argv[2]
NET = networks.NETWORKS["mlp"]()
MODEL = "/v2/models/fleetmark-mlp"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status: int, head: dict[str, object], data: bytes | None = None) -> None:
        text = json.dumps(head).encode()
        self.send_response(status)
        if data is not None:
            self.send_header("Inference-Header-Content-Length", str(len(text)))
        self.send_header("Content-Length", str(len(text) + len(data or b"")))
        self.end_headers()
        self.wfile.write(text + (data or b""))

    def do_GET(self) -> None:
        if self.path == "/v2":
            extensions = ["binary_tensor_data"] if KIND == "binary" else []
            self.answer(200, {"name": "standin", "version": KIND, "extensions": extensions})
        elif self.path == MODEL:
            self.answer(200, {"name": "fleetmark-mlp", "inputs": [{"name": "input", "datatype": "FP32"}]})
        else:
            self.answer(404, {"error": "no such model"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        size = int(self.headers.get("Inference-Header-Content-Length", len(body)))
        request = json.loads(body[:size])
        (tensor,) = request["inputs"]
        if KIND == "binary":
            assert tensor["parameters"]["binary_data_size"] == len(body) - size
            inputs = np.frombuffer(body[size:], np.float32).reshape(tensor["shape"])
        else:
            inputs = np.array(tensor["data"], np.float32).reshape(tensor["shape"])
        output = networks.reference(NET, inputs).astype(np.float32) * np.float32(1.01 if KIND == "wrong" else 1)
        entry: dict[str, object] = {"name": "output", "datatype": "FP32", "shape": list(output.shape)}
        if KIND == "binary":
            entry["parameters"] = {"binary_data_size": output.nbytes}
            self.answer(200, {"outputs": [entry]}, output.tobytes())
        else:
            self.answer(200, {"outputs": [{**entry, "data": output.ravel().tolist()}]})

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
