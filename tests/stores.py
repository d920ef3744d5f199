"""An object store on this machine for tests: moto's S3 server on loopback, and what names it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import boto3
from moto.server import ThreadedMotoServer

KEYS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_DEFAULT_REGION": "us-east-1"}


@dataclass(frozen=True)
class Store:
    """A running store with an empty bucket. ``url``: a results root in it."""

    server: ThreadedMotoServer
    endpoint: str
    bucket: str

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/lab/results"

    @property
    def client(self) -> Any:
        return boto3.client("s3", endpoint_url=self.endpoint)

    def objects(self) -> list[str]:
        """Every object's key below the results root."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix="lab/results/")
        return sorted(o["Key"].removeprefix("lab/results/") for page in pages for o in page.get("Contents", ()))

    def put(self, folder: Path) -> None:
        """Put a results root into the store as any tool would, key by key."""
        for file in folder.rglob("*"):
            if file.is_file():
                self.client.upload_file(str(file), self.bucket, f"lab/results/{file.relative_to(folder)}")


@contextmanager
def store(copies: Path, bucket: str) -> Iterator[Store]:
    """A store whose copies lie under ``copies``, which the environment names meanwhile."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line per request
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        named = {
            **KEYS,
            "AWS_ENDPOINT_URL": endpoint,
            "FLEETMARK_STORES": str(copies),
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        with mock.patch.dict(os.environ, named):
            boto3.client("s3").create_bucket(Bucket=bucket)
            yield Store(server, endpoint, bucket)
    finally:
        server.stop()
