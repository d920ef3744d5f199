"""Ask a server for inference by the KServe v2 protocol over HTTP (Triton, OpenVINO Model Server, KServe, MLServer).

Tensors are sent as binary data if the server supports the extension ``binary_tensor_data``, else as JSON. One
connection stays open. Answers are limited in size and time.
"""

import http.client
import json
import os
import urllib.parse

import networks
import numpy as np

MOST_BYTES = 256 << 20
TIMEOUT_S = 60.0
BINARY = "binary_tensor_data"


class RefusedError(Exception):
    """Report an answer without an inference result."""


class KServe(object):
    """The model ``fleetmark-NETWORK`` on the server at $FLEETMARK_KSERVE_URL; a call includes the network."""

    def __init__(self, net, batch, device, threads):
        address = urllib.parse.urlsplit(os.environ["FLEETMARK_KSERVE_URL"])
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        self.connection = kind(address.hostname, address.port, timeout=TIMEOUT_S)
        self.base = address.path.rstrip("/") + "/v2"
        server = self.json("GET", self.base)
        self.version = ("%s-%s" % (server.get("name"), server.get("version")))[:60]
        self.is_binary = BINARY in (server.get("extensions") or [])
        self.path = "%s/models/fleetmark-%s" % (self.base, net.name)
        model = self.json("GET", self.path)
        names = [entry.get("name") for entry in model.get("inputs") or []]
        if names != [networks.INPUT]:
            raise RefusedError("%s has the inputs %s: serve the model that --export writes" % (self.path, names))

    def __call__(self, inputs):
        tensor = {"name": networks.INPUT, "shape": list(inputs.shape), "datatype": "FP32"}
        request = {"inputs": [tensor], "outputs": [{"name": networks.OUTPUT}]}
        if not self.is_binary:
            tensor["data"] = inputs.ravel().tolist()
            return self.array(self.json("POST", self.path + "/infer", json.dumps(request).encode()), b"")
        tensor["parameters"] = {"binary_data_size": inputs.nbytes}
        request["outputs"][0]["parameters"] = {"binary_data": True}
        head = json.dumps(request).encode()
        headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
        size, body = self.ask("POST", self.path + "/infer", head + inputs.tobytes(), headers)
        size = int(size) if size else len(body)
        return self.array(self.decode(body[:size]), body[size:])

    def array(self, answer, data):
        """Return the output in an answer, whose tensor is in ``data`` or in the JSON."""
        output = next((o for o in answer.get("outputs") or [] if o.get("name") == networks.OUTPUT), None)
        if output is None or output.get("datatype") != "FP32":
            raise RefusedError("%s: the answer has no output of FP32 named %s" % (self.path, networks.OUTPUT))
        if "binary_data_size" in (output.get("parameters") or {}):
            values = np.frombuffer(data[: output["parameters"]["binary_data_size"]], np.float32)
        else:
            values = np.array(output["data"], np.float32)
        return values.reshape(output["shape"])

    def json(self, method, path, body=None):
        return self.decode(self.ask(method, path, body, {"Content-Type": "application/json"})[1])

    def decode(self, body):
        document = json.loads(body)
        if not isinstance(document, dict):
            raise RefusedError("%s: the answer is not a JSON object" % self.path)
        return document

    def ask(self, method, path, body=None, headers=None):
        """Return the length of the JSON that the answer names, and its body."""
        self.connection.request(method, path, body, headers or {})
        answer = self.connection.getresponse()
        content = answer.read(MOST_BYTES + 1)
        if answer.status != 200 or len(content) > MOST_BYTES:
            reason = content[:200].decode(errors="replace").replace("\n", " ")
            raise RefusedError("%s %s: status %d, %s" % (method, path, answer.status, reason))
        return answer.headers.get("Inference-Header-Content-Length"), content
