"""A bundle on hosts without a route: their sources and packages come from it, and the network is never asked."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import platform
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetmark.campaign.bundle import check
from fleetmark.campaign.bundle.fetch import here
from tests.fleet.command import FLEETMARK, Command
from tests.fleet.hosts import Fleet, missing

pytestmark = pytest.mark.fleet

STREAM = """#include <stdio.h>
int main(void) {
    puts("STREAM version $Revision: 5.10 $");
    puts("Array size = 10000000 (elements), Offset = 0 (elements)");
    puts("Number of Threads counted = 1");
    puts("Function    Best Rate MB/s  Avg time     Min time     Max time");
    puts("Copy:           10000.0     0.016000     0.016000     0.016000");
    puts("Scale:          10000.0     0.016000     0.016000     0.016000");
    puts("Add:            10000.0     0.024000     0.024000     0.024000");
    puts("Triad:          10000.0     0.024000     0.024000     0.024000");
    puts("Solution Validates: avg error less than 1.000000e-13 on all three arrays");
    return 0;
}
"""


@pytest.fixture(scope="module")
def lonely() -> Iterator[Fleet]:
    """One host, from which fio was removed."""
    if reason := missing():
        pytest.skip(reason)
    with Fleet(1) as fleet:
        fleet.exec("h1", ["dpkg", "--remove", "--force-depends", "fio"])
        yield fleet


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A server with stream.c: its URL and its SHA-256."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "stream.c").write_text(STREAM)
    serve = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/stream.c", hashlib.sha256(STREAM.encode()).hexdigest()
        server.shutdown()


def test_hosts_without_a_route_take_sources_and_packages_from_a_bundle(
    lonely: Fleet, site: tuple[str, str], tmp_path: Path
) -> None:
    if not here() or not shutil.which("apt-get"):
        pytest.skip("collecting packages needs a Debian or Ubuntu that bundles know")
    command = Command(lonely, tmp_path)
    command.env["XDG_CACHE_HOME"] = str(tmp_path / "cache")  # which has nothing
    suite = tmp_path / "suite.yml"
    fio = {"runtime": 1, "ramp": 0, "size": "16MiB", "seq": ["read"], "rand": ["randread"], "rand_iodepth": 1}
    stream = {"source": site[0], "source_sha256": site[1]}
    suite.write_text(
        json.dumps({"description": "x", "repeats": 1, "workloads": {"fio": {"set": fio}, "stream": {"set": stream}}})
    )
    bundle = tmp_path / "bundle.tar"
    words = [FLEETMARK, "bundle", "--for", here(), "--suite", str(suite), "--no-wheels", "-o", str(bundle)]
    done = subprocess.run(words, capture_output=True, text=True, env=command.env, cwd=tmp_path)
    if "apt cannot read the package lists" in done.stdout:
        pytest.skip("no package mirror here")
    assert done.returncode == 0, done.stdout + done.stderr
    names = [entry.path for entry in check(bundle).entries]
    assert names == [f"sources/{site[1]}-stream.c", f"packages/{here()}-{platform.machine()}.tar"]

    (tmp_path / "site" / "stream.c").unlink()  # nobody else has it from here on
    assert "default" not in lonely.exec("h1", ["ip", "route"]).stdout
    assert lonely.exec("h1", ["sh", "-c", "command -v fio"], check=False).returncode
    command.passes("--suite", str(suite), "--bundle", str(bundle))
    assert lonely.exec("h1", ["dpkg-query", "-W", "-f", "${db:Status-Status}", "fio"]).stdout == "installed"
    assert not (tmp_path / "cache" / "fleetmark").exists() or not list((tmp_path / "cache/fleetmark").glob("*stream*"))

    damaged = bytearray(bundle.read_bytes())
    damaged[damaged.index(b"#include <stdio.h>")] = ord("$")
    bundle.write_bytes(damaged)
    done = command.run("--suite", str(suite), "--bundle", str(bundle))
    assert done.returncode == 2 and f"not {site[1]}; copy it again" in " ".join(done.stderr.split())
