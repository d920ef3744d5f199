"""Credentials are recognised by where they stand, and a schedule is made without them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import tarfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.redact import access, conceal, git_credentials, lacks_credentials, redact
from fleetmark.campaign.options import Options, command_of
from fleetmark.campaign.resumed.credentials import credentials_again, refuse_without
from fleetmark.campaign.schedule import make_schedule, secrets_of, settings_of
from fleetmark.hosts.inventory import Host
from fleetmark.workloads import load_suite
from tests.schedules import facts

URL = "https://jane:pa%2Fss@files.test:8443/stream.c?v=2&X-Amz-Signature=c0ffee#top"
SHOWN = "https://***@files.test:8443/stream.c?v=2&X-Amz-Signature=***#top"
SETTINGS = {"stream": {"source": URL, "source_sha256": "0" * 64}}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (URL, SHOWN),
        (f"Fetch {URL}: HTTP Error 401", f"Fetch {SHOWN}: HTTP Error 401"),
        ("http://ghp_token@github.test/x", "http://***@github.test/x"),
        ("https://u:p@w@h/x", "https://***@h/x"),
        ("https://u:p/w@h/x", "https://***@h/x"),
        ("HTTPS://U:P@h", "HTTPS://***@h"),
        ("postgres://u:p@h/x", "postgres://***@h/x"),
        ("https://h/x?api_key=1&a=2", "https://h/x?api_key=***&a=2"),
        ("https://h/x?access_token=1", "https://h/x?access_token=***"),
        # no credentials
        ("ssh://git@h/x", "ssh://git@h/x"),
        ("git@github.test:x/y", "git@github.test:x/y"),
        ("https://h:80/@x/y@1", "https://h:80/@x/y@1"),
        ("https://h/x?mail=a@b&tokens=3", "https://h/x?mail=a@b&tokens=3"),
        ("http://h, or mail root@h", "http://h, or mail root@h"),
    ],
)
def test_credentials_are_left_out_and_nothing_else(text: str, shown: str) -> None:
    assert redact(text) == shown
    assert redact(shown) == shown
    assert lacks_credentials(shown) == (text != shown)


_WORD = st.text(st.characters(categories=("L", "N")), min_size=8, max_size=12)


@given(_WORD, _WORD, st.sampled_from(["http", "https", "ftp"]))
def test_no_password_of_a_url_is_left(name: str, password: str, scheme: str) -> None:
    assert password not in redact(f"cannot read {scheme}://{name}:{password}@host/x?token={password}: no")


def test_settings_are_parted_from_their_secrets() -> None:
    concealed, secrets = conceal({"a": {"source": URL, "urls": ["http://x@h", "b"], "hub_token": "abc", "tokens": 3}})
    assert concealed == {"a": {"source": SHOWN, "urls": ["http://***@h", "b"], "hub_token": "***", "tokens": 3}}
    assert secrets == {SHOWN: URL, "http://***@h": "http://x@h", "a.hub_token": "abc"}
    assert conceal(concealed) == (concealed, {})
    url = "https://files.test:8443/stream.c?v=2&X-Amz-Signature=c0ffee#top"
    assert access(secrets)[SHOWN] == {"url": url, "username": "jane", "password": "pa/ss"}
    assert git_credentials(secrets) == "https://jane:pa%2Fss@files.test:8443\nhttp://x@h\n"
    with pytest.raises(FleetmarkError, match="given twice with different credentials"):
        conceal({"a": {"x": "http://a:1@h", "y": "http://b:2@h"}})


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("VLLM_API_KEY=sk-abc vllm serve m", "VLLM_API_KEY"),
        ("cd /x; export HF_TOKEN='sk-abc' && vllm serve m", "HF_TOKEN"),
        ('env AWS_SECRET_ACCESS_KEY="sk-abc" run', "AWS_SECRET_ACCESS_KEY"),
        ("sh -c 'db_password=sk-abc run'", "db_password"),
        ("podman run -e OPENAI_API_KEY=sk-abc image", "OPENAI_API_KEY"),
        ("A=$(cat f) TOKEN=sk-abc run", "TOKEN"),
        ("vllm serve m --api-key sk-abc", "--api-key"),
        ("vllm serve m --hf-token='sk-abc'", "--hf-token"),
        ("x --password=sk-abc", "--password"),
        ("vllm serve m --api_key sk-abc", "--api_key"),
        ("vllm serve m --hf_token=sk-abc", "--hf_token"),
        ("x --token sk-abc", "--token"),
        ("x --apikey sk-abc", "--apikey"),
        ("x --registry-auth-key=sk-abc", "--registry-auth-key"),
        ("x --s3-secret-access-key sk-abc", "--s3-secret-access-key"),
        ("curl -H 'Authorization: Bearer sk-abc' u", "Authorization: Bearer"),
        ('x --headers \'{"authorization": "Bearer sk-abc"}\'', "authorization: Bearer"),
        ('curl -H "X-API-Key: sk-abc" u', "X-API-Key:"),
    ],
)
def test_a_command_with_a_secret_is_refused_and_does_not_show_it(command: str, name: str) -> None:
    for value in (command, ["first", command]):
        with pytest.raises(FleetmarkError) as refused:
            conceal({"w": {"command": value}})
        assert f"w.command contains the value of {name}" in str(refused.value)
        assert "sk-abc" not in str(refused.value)


@pytest.mark.parametrize(
    "command",
    [
        'VLLM_API_KEY="$(cat /etc/key)" vllm serve m',
        "VLLM_API_KEY=$(cat /etc/key) vllm serve m",
        "HF_TOKEN=$HF_TOKEN vllm serve m",
        'HF_TOKEN="${OTHER}" vllm serve m',
        "TOKEN=`cat f` run",
        'vllm serve m --api-key "$(cat key)" --port 1',
        "HF_TOKEN= vllm serve m",
        "TOKENIZERS_PARALLELISM=false PWD=/x OLDPWD=/y run --max-tokens 5 --ssl-keyfile k --eos-token x --keys=3",
        "monkey=3; --api-key-file f",
        "x --max-tokens 128 --max_token 5 --tokenizer x --token-count 3 --tokens 4 --token_count=3 --no-token x",
        'curl -H "Authorization: Bearer $(cat FILE)" -H "X-API-Key: $KEY" u; echo Authorization: none',
    ],
)
def test_a_command_that_reads_its_secret_elsewhere_is_kept(command: str) -> None:
    assert conceal({"w": {"command": command}}) == ({"w": {"command": command}}, {})


def test_a_schedule_holds_none() -> None:
    suite = load_suite("quick")
    assert settings_of(suite, SETTINGS)["stream"]["source"] == SHOWN
    assert secrets_of(suite, SETTINGS) == {SHOWN: URL}
    schedule = make_schedule([(Host("h", "h", "h"), facts())], suite, SETTINGS, campaign="c", seed=1, repeats=1)
    deployed = {d.workload: d for d in schedule.hosts["h"].deploy}["stream"]
    assert deployed.params["source"] == SHOWN
    assert "jane" not in repr(schedule)
    assert "c0ffee" not in repr(schedule)
    # The tool's folder tells nothing of the password either: its name is a hash that others could try words on.
    other = {"stream": {**SETTINGS["stream"], "source": URL.replace("pa%2Fss", "word")}}
    again = make_schedule([(Host("h", "h", "h"), facts())], suite, other, campaign="c", seed=1, repeats=1)
    assert {d.workload: d for d in again.hosts["h"].deploy}["stream"].dest == deployed.dest
    assert f"stream.source={SHOWN}" in command_of(Options(suite="quick", settings=SETTINGS), 1)


def test_a_command_that_would_show_them_is_refused() -> None:
    suite = {"lmbench": {"path": "https://u:p@h"}}
    with pytest.raises(FleetmarkError, match="every user of the host could read"):
        make_schedule(
            [(Host("h", "h", "h"), facts(tools={"gcc": "/usr/bin/gcc"}))],
            load_suite("quick"), suite, campaign="c", seed=1, repeats=1,
        )  # fmt: skip


# --- a campaign that goes on -----------------------------------------------------------------------------------------

RECORDED: dict[str, Any] = {"suite": "quick", "settings": {"stream": {"source": SHOWN, "ntimes": 20}}}


def test_they_are_given_again() -> None:
    assert credentials_again(**RECORDED, overrides={"stream": {"source": URL}}) == {SHOWN: URL}
    assert credentials_again(**RECORDED, overrides={}) == {}


def test_a_suite_that_has_them_is_asked(tmp_path: Path) -> None:
    suite = tmp_path / "s.yml"
    suite.write_text(
        json.dumps({"description": "x", "repeats": 1, "workloads": {"stream": {"set": SETTINGS["stream"]}}})
    )
    assert credentials_again(**{**RECORDED, "suite": str(suite)}, overrides={}) == {SHOWN: URL}


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"stream": {"ntimes": "30"}}, "stream.ntimes with --resume: a resumed campaign keeps its settings"),
        ({"stream": {"cc": "clang"}}, "stream.cc with --resume: a resumed campaign keeps its settings"),
        ({"fio": {"size": "1g"}}, "fio.size with --resume: a resumed campaign keeps its settings"),
        ({"stream": {"source": "https://u:secret@other.test/x.c"}}, "the campaign has https://***@files.test"),
    ],
)
def test_nothing_else_changes(overrides: Any, words: str) -> None:
    with pytest.raises(FleetmarkError) as refused:
        credentials_again(**RECORDED, overrides=overrides)
    assert words in str(refused.value)
    assert "secret" not in str(refused.value)


def test_where_they_are_wanted_and_absent_a_sentence_says_so() -> None:
    variables = {"h1": {"fm_deploy": [{"workload": "stream", "params": {"source": SHOWN, "ntimes": 3, "l": ["a"]}}]}}
    refuse_without({SHOWN: URL}, variables, "c")
    refuse_without({}, {"h1": {"fm_deploy": []}}, "c")
    with pytest.raises(FleetmarkError) as refused:
        refuse_without({}, variables, "results/c")
    assert f"fleetmark run --resume results/c --set stream.source='{SHOWN}'" in str(refused.value)


# --- git -------------------------------------------------------------------------------------------------------------


def test_git_fetches_by_a_file_of_credentials(tmp_path: Path) -> None:
    """The script of the role nccl_tests, against a server that wants a log-in."""
    script = Path(__file__).parents[1] / "playbooks/roles/source/files/archive.sh"
    home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(tmp_path / "cache")}
    authors = {f"GIT_{r}_{k}": "x@y" for r in ("AUTHOR", "COMMITTER") for k in ("NAME", "EMAIL")}
    work = tmp_path / "work"

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], env=home | authors, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "-q", str(work))
    (work / "a.c").write_text("int a;\n")
    git("-C", str(work), "add", ".")
    git("-C", str(work), "commit", "-q", "-m", "x")
    commit = git("-C", str(work), "rev-parse", "HEAD")
    packed = subprocess.run(["git", "-C", str(work), "archive", commit], env=home, capture_output=True, check=True)
    git("clone", "-q", "--bare", str(work), str(tmp_path / "served"))
    git("-C", str(tmp_path / "served"), "update-server-info")

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *more: Any) -> None:
            super().__init__(*more, directory=str(tmp_path / "served"))

        def do_GET(self) -> None:
            if self.headers.get("Authorization") == "Basic " + base64.b64encode(b"jane:pa/ss").decode():
                super().do_GET()
                return
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        real = f"http://jane:pa%2Fss@127.0.0.1:{server.server_port}/"
        file = tmp_path / "git's credentials"
        file.write_text(git_credentials({redact(real): real}))
        words = ["/bin/sh", str(script), redact(real), commit, hashlib.sha256(packed.stdout).hexdigest()]
        refused = subprocess.run(words, env=home, capture_output=True, text=True)
        done = subprocess.run([*words, str(file)], env=home, capture_output=True, text=True)
        server.shutdown()
    assert refused.returncode == 1
    assert done.returncode == 0, done.stderr
    archive = Path(done.stdout.splitlines()[0])
    with tarfile.open(archive) as contents:
        assert "a.c" in contents.getnames()
