"""Test that ``fleetmark hosts`` shows what would be installed, and sources that cannot be fetched, with real servers."""

from __future__ import annotations

import base64
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fleetmark.hosts import sources
from fleetmark.hosts.inventory import Host
from fleetmark.reports.hosts.survey import Entry, document
from tests.reports.rendered import shown
from tests.schedules import facts

ANSWERED = threading.Event()  # the test has all answers
LOGINS: list[str | None] = []  # of GET requests


class Handler(BaseHTTPRequestHandler):
    """Answer HEAD by path: a status in it, a wait, or a log-in."""

    def do_HEAD(self) -> None:
        status = {"/gone": 404, "/nohead": 405, "/moved": 302}.get(self.path, 200)
        if self.path == "/slow":
            ANSWERED.wait(60)
        login = "Basic " + base64.b64encode(b"ops:sesame").decode()
        if self.path == "/private" and self.headers.get("Authorization") != login:
            status = 401
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/there")
        self.end_headers()

    def do_GET(self) -> None:
        LOGINS.append(self.headers.get("Authorization"))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{http.server_address[1]}"
        http.shutdown()


def test_sources_are_asked_with_one_head_request(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "TIMEOUT_S", 60.0)
    url = f"http://{server}"
    urls = [f"{url}/{name}" for name in ("there", "gone", "nohead", "moved", "private")]
    assert sources.unfetchable([*urls, urls[1], "http://127.0.0.1:1/x"], {}) == {
        "http://127.0.0.1:1/x": "does not answer (Connection refused)",
        f"{url}/gone": "HTTP status 404",
        f"{url}/private": "HTTP status 401",
    }


def test_a_source_that_does_not_answer_in_time_is_named(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "TIMEOUT_S", 0.5)
    slow = f"http://{server}/slow"
    try:
        reasons = sources.unfetchable([slow], {})
    finally:
        ANSWERED.set()
    assert reasons[slow] in ("did not answer within 0.5 s", "does not answer (timed out)")


def test_credentials_are_sent_and_not_shown(server: str) -> None:
    public, real = f"http://***@{server}/private", f"http://ops:sesame@{server}/private"
    assert sources.unfetchable([public], {public: real}) == {}
    wrong = sources.unfetchable([public], {public: real.replace("sesame", "other")})
    assert wrong == {public: "HTTP status 401"}


def test_the_survey_shows_what_would_be_installed() -> None:
    entries = [
        Entry(host=Host(f"n{n}", "x", "x"), facts=facts(), skipped={}, deploy=("lmbench", "stream")) for n in range(9)
    ]
    text = shown(document(entries, {"http://mirror/x.tgz": "HTTP status 404"}), 80)
    assert "Would install" in text and "lmbench  [n[0-8]]" in text
    assert text.count("http://mirror/x.tgz: HTTP status 404") == 1


def test_credentials_stay_with_the_server_that_asked_for_them(server: str) -> None:
    class Away(Handler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", f"http://{server}/there")
            self.end_headers()

    LOGINS.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Away) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        login = {"url": f"http://127.0.0.1:{http.server_address[1]}/private", "username": "ops", "password": "sesame"}
        with urllib.request.urlopen(sources.request_for(login), timeout=60):
            pass
        http.shutdown()
    assert LOGINS == [None]
