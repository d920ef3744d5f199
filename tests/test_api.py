"""The public interface: names, frames, documents and errors, on records that other tests' builders make."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import fleetmark
from fleetmark.base import schema
from fleetmark.base.errors import LeftOut
from tests.commands import run
from tests.comparisons import fleet, labels
from tests.parsers.test_selftest import *  # noqa: F403
from tests.records import TRIAD, record
from tests.reports.compared import archives

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("record")
    archives(folder)
    return folder


@pytest.fixture
def opened(root: Path) -> Iterator[fleetmark.Record]:
    with fleetmark.open(root) as record_:
        yield record_
