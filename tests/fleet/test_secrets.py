"""Canaries in the inventory, a vault, the environment, URLs, settings and keys of endpoints are found nowhere afterwards.

Every byte is searched that the controller and the hosts wrote, also inside compressed files, and all command lines.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pandas as pd
import pytest

from tests.fleet.command import FLEETMARK
from tests.fleet.credentials import NAME, PASSWORD, TOKEN, Server, Watch
from tests.fleet.hosts import Fleet, missing

pytestmark = [pytest.mark.fleet, pytest.mark.job]
SERVER = Path(__file__).parents[1] / "llm" / "server.py"
PORT = 18080  # in the namespace of a host
KEYS = "/etc/canaries"  # on a host; the user's own files
CANARIES = {
    "a variable of the inventory": "canary/of inventory",
    "a vault": "canary%of-vault",
    "the password of a vault": "canary-of-vault-password",
    "the environment": "canary-of-environment",
    "a URL's password": PASSWORD,
    "a URL's name": NAME,
    "a URL's query": TOKEN,
    "an endpoint's key": "sk-canary-of-endpoint",
    "an endpoint's wrong key": "sk-canary-that-is-wrong",
    "a URL of an endpoint": "canary-of-endpoint-url",
    "a refused setting": "canary-of-setting",
    "a proxy in the environment": "canary-of-proxy",
    "an argument of ssh": "canary-of-ssh",
    "a malformed argument of ssh": "canary-of-malformed",
    "a URL in a description": "canary-of-description",
    "a webhook": "canary-of-webhook",
    "a URL of an object store": "canary-of-store",
    "the kernel's command line of a host": "canary-of-kernel",
}
TYPED = ("a refused setting", "a URL of an object store")  # on a command line, which all users of a machine can read


def forms(secret: str) -> set[bytes]:
    """Return a secret as it may be written: as it is, in a URL, in JSON, in base64."""
    plain = secret.encode()
    coded = {base64.b64encode(b"x" * n + plain)[8 if n else 0 : -4] for n in (0, 1, 2)}
    return {
        plain,
        quote(secret, safe="").encode(),
        json.dumps(secret)[1:-1].encode(),
        *(c for c in coded if len(c) > 11),
    }


BOOT = "the kernel's command line of a host"
WORDS = {form: place for place, secret in CANARIES.items() for form in forms(secret)}


def held(data: bytes) -> set[str]:
    return {place for word, place in WORDS.items() if word in data}


def content(file: Path) -> bytes:
    """Return the bytes of a file, with what is compressed in it."""
    data = file.read_bytes()
    if file.suffix == ".parquet":
        return data + pd.read_parquet(file).to_csv().encode()
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as packed:
            return data + b"".join(packed.read(name) for name in packed.namelist())
    return data


def leaks(folder: Path, but: str = "") -> dict[str, set[str]]:
    """Return the files below a folder that hold a canary, or whose names do. ``but``: a path whose files may."""
    leaking = {}
    for file in folder.rglob("*"):
        name = str(file.relative_to(folder))
        is_own = bool(but) and f"/{name}".startswith(but)
        places = held(name.encode()) | (held(content(file)) if file.is_file() and not file.is_symlink() else set())
        if places and not is_own:
            leaking[name] = places
    return leaking


@pytest.fixture(scope="module")
def site() -> Iterator[Fleet]:
    """Two hosts: on h1 an endpoint takes the right key; on h2 an endpoint repeats the wrong key in its refusal."""
    if reason := missing():
        pytest.skip(reason)
    begin = (
        "import sys, runpy\n"
        f"key = open('{KEYS}/right').read()\n"
        f"sys.argv = ['server.py', '--port', '{PORT}', '--key', key]\n"
        "runpy.run_path('/srv/server.py', run_name='__main__')\n"
    )
    with Fleet(2) as fleet:
        for host, key in (("h1", CANARIES["an endpoint's key"]), ("h2", CANARIES["an endpoint's wrong key"])):
            for path, text in (("right", CANARIES["an endpoint's key"]), ("given", key)):
                fleet.exec(host, ["sh", "-ec", f"mkdir -p {KEYS}; cat > {KEYS}/{path}"], input=text)
            fleet.exec(host, ["sh", "-c", "cat > /srv/server.py"], input=SERVER.read_text())
            fleet.exec(
                host, ["sh", "-c", "cat > /srv/begin.py; setsid python3 /srv/begin.py >/dev/null 2>&1 &"], input=begin
            )
            line = f"ro rd.iscsi.password={CANARIES[BOOT]} inst.ks=https://jane:{CANARIES[BOOT]}@ks.example/x quiet"
            fleet.exec(
                host, ["sh", "-ec", f"cat > {KEYS}/cmdline; mount --bind {KEYS}/cmdline /proc/cmdline"], input=line
            )
        yield fleet


def inventory(fleet: Fleet, folder: Path) -> Path:
    """Write an inventory with a secret variable, and a vault with another one and with a password for sudo."""
    variables = folder / "group_vars" / "all"
    variables.mkdir(parents=True)
    (folder / "hosts.ini").write_text(fleet.inventory.read_text())
    (variables / "plain.yml").write_text(f"database_password: {json.dumps(CANARIES['a variable of the inventory'])}\n")
    (folder.parent / "vault-password").write_text(CANARIES["the password of a vault"])
    text = (
        f"ansible_become_password: {json.dumps(CANARIES['a vault'])}\nspare_token: {json.dumps(CANARIES['a vault'])}\n"
    )
    (variables / "vault.yml").write_text(text)
    vault = str(Path(sys.executable).with_name("ansible-vault"))
    words = [
        vault,
        "encrypt",
        "--vault-password-file",
        str(folder.parent / "vault-password"),
        str(variables / "vault.yml"),
    ]
    subprocess.run(words, check=True, capture_output=True)
    return folder


class Here:
    """The user's side. What they wrote themselves is in ``user_files``; everything else below ``root`` is searched."""

    def __init__(self, fleet: Fleet, root: Path) -> None:
        self.fleet, self.root = fleet, root / "searched"
        self.user_files = root / "own"
        self.inventory = inventory(fleet, self.user_files / "inventory")
        for name in ("home", "tmp", "cache", "state", "results", "documents"):
            (self.root / name).mkdir(parents=True)
        self.env = {
            **os.environ,
            "COLUMNS": "120",
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "XDG_CACHE_HOME": str(self.root / "cache"),
            "XDG_STATE_HOME": str(self.root / "state"),
            "FLEETMARK_RESULTS": str(self.root / "results"),
            "ANSIBLE_VAULT_PASSWORD_FILE": str(self.user_files / "vault-password"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(fleet.state),  # the path of a socket must be short
            "AWS_SECRET_ACCESS_KEY": CANARIES["the environment"],
            "COMPANY_TOKEN": CANARIES["the environment"],
            "https_proxy": f"http://jane:{CANARIES['a proxy in the environment']}@127.0.0.1:9",
        }
        self.output = b""

    def __call__(self, *words: str, statuses: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run([FLEETMARK, *words], capture_output=True, env=self.env, cwd=self.root / "documents")
        assert done.returncode in statuses, (done.stdout + done.stderr).decode()
        self.output += done.stdout + done.stderr
        return done.stdout.decode()


def test_no_canary_is_found_anywhere(site: Fleet, tmp_path: Path) -> None:
    server = Server()
    here = Here(site, tmp_path)
    client = {
        "url": f"http://127.0.0.1:{PORT}",
        "key_file": f"{KEYS}/given",
        "concurrency": [1],
        "ttft": 0,
        "duration": 1,
        "warmup": 0.1,
    }
    client |= {"prompt": "20", "output": "4", "patience": 20, "ready": 20, "late": 10, "quality": False}
    digest = hashlib.sha256(server.source).hexdigest()
    stream = {"source": server.url(), "source_sha256": digest, "array_elements": 1_000_000, "ntimes": 3, "threads": 1}
    suite = here.user_files / "suite.yml"
    chosen = {"stream": {"set": stream}, "llm_serve": {"set": client}, "selftest": {"set": {"commands": 1}}}
    description = f"see https://jane:{CANARIES['a URL in a description']}@wiki.example/x"
    suite.write_text(json.dumps({"description": description, "repeats": 1, "workloads": chosen}))
    refused = here.user_files / "refused.yml"  # credentials that the client's command would show to all users of a host
    chosen = {
        "llm_serve": {"set": client | {"url": f"http://jane:{CANARIES['a URL of an endpoint']}@127.0.0.1:{PORT}"}}
    }
    refused.write_text(json.dumps({"description": "x", "repeats": 1, "workloads": chosen}))
    proxied, malformed, webhook = (here.user_files / name for name in ("proxied.ini", "malformed.ini", "webhook"))
    ssh_args = f"-o ProxyCommand='sshpass -p {CANARIES['an argument of ssh']} ssh x'"
    proxied.write_text(f'h9 ansible_ssh_common_args="{ssh_args}"\n')
    malformed.write_text(f'h9 ansible_ssh_common_args="-o \'ProxyCommand={CANARIES["a malformed argument of ssh"]}"\n')
    webhook.write_text(f"http://127.0.0.1:9/{CANARIES['a webhook']}\n")
    bucket = f"s3://AKIA:{CANARIES['a URL of an object store']}@bucket/x"
    hosts = ("-i", str(here.inventory))
    run = ("run", *hosts, "--suite", str(suite))
    with Watch([secret.encode() for secret in CANARIES.values()], every_s=0.1) as watch:
        here(*run, statuses=(1,))  # the wrong key
        here(
            "run", *hosts, "--suite", "stream", "--set", f"stream.token={CANARIES['a refused setting']}", statuses=(2,)
        )
        formats = [word for ending in ("html", "xlsx", "md", "json") for word in ("-o", f"report.{ending}")]
        shown = here("report", "last", *formats)
        for words in (("history",), ("run", *hosts, "--suite", "selftest")):
            here(*words, "--results", bucket, statuses=(2,))
        here("run", "-i", str(malformed), "--suite", "selftest", statuses=(2,))
        here("run", "-i", str(proxied), "--suite", "selftest", statuses=(1,))
        here("report", "last", *formats)
        here(
            "watch",
            "-i",
            str(proxied),
            "--once",
            "--suite",
            "selftest",
            "--webhook-file",
            str(webhook),
            statuses=(0, 1),
        )
    server.http.shutdown()
    server.http.server_close()
    assert "selftest" in shown and "401" in here.output.decode(), "the run and the refusal took place"
    assert {"suite.yml", "inventory/group_vars/all/plain.yml"} <= leaks(here.user_files).keys(), (
        "the search finds what is there"
    )
    assert held(here.output) == set()
    assert leaks(here.root) == {}
    assert [line for line in watch.exposed if not any(CANARIES[place] in line for place in TYPED)] == []
    for host in site.names:
        for part in ("upper", "kept"):
            assert leaks(site.folder / host / part, KEYS) == {}, host
