"""Test ``fleetmark serve``: its pages, what it refuses, and that it only reads."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.reports.kit.language import Language
from fleetmark.verbs import serve
from fleetmark.verbs.serve import waiting
from fleetmark.verbs.serve.application import application
from fleetmark.verbs.serve.guard import Guard
from fleetmark.verbs.serve.pages import ROWS, Pages, Reply
from tests.fleets import campaign, scaled, usual
from tests.records import TRIAD, record

HOSTS = tuple(f"n{number:02}" for number in range(1, 13))
LABELS = {host: {"gen": "genoa" if number % 2 else "icelake"} for number, host in enumerate(HOSTS)}
FIRST, LAST = "20260101T000000-c0", "20260102T000000-c1"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results")
    for seed, name in enumerate((FIRST, LAST)):
        values = usual(HOSTS, 3, seed=seed)
        for host in HOSTS[1::2]:
            scaled(values, host, TRIAD, 2.0)
        scaled(values, "n05", TRIAD, 0.7)
        archive = campaign(root, values, LABELS, name)
        (archive.path / "raw").mkdir()
        (archive.path / "raw" / "x").write_text("<script>alert(1)</script>")
    return root


@pytest.fixture(scope="module")
def pages(root: Path) -> Pages:
    return Pages(root, Language())


def get(
    pages: Pages, path: str, query: str = "", guard: Guard | None = None, **environ: str
) -> tuple[str, dict[str, str], str]:
    """Return status, headers and body of a request."""
    sent: list[Any] = []
    plain = {"REQUEST_METHOD": "GET", "PATH_INFO": path, "QUERY_STRING": query, "HTTP_HOST": "localhost:8300"}
    body = application(pages, guard or Guard(None, ("localhost",)))(
        plain | environ, lambda status, headers: sent.extend((status, dict(headers)))
    )
    return sent[0], sent[1], b"".join(body).decode("utf-8", "replace")


def test_a_list_links_to_its_campaigns_and_hosts(pages: Pages) -> None:
    status, _, campaigns = get(pages, "/")
    assert status == "200 OK"
    assert campaigns.index(f'href="/campaigns/{LAST}"') < campaigns.index(f'href="/campaigns/{FIRST}"')
    hosts = get(pages, "/hosts")[2]
    assert 'href="/host?name=n05"' in hosts and f'href="/campaigns/{LAST}"' in hosts
    chosen = get(pages, "/hosts", "q=gen%3Dgenoa")[2]
    assert "n02" in chosen and "n01" not in chosen


def test_a_host_has_its_history_configuration_and_campaigns(pages: Pages) -> None:
    page = get(pages, "/host", "name=n05")[2]
    assert "n05: There is no lasting change over 2 campaigns." in page
    assert "stream all-cores triad" in page and "197 GB/s" in re.sub(r"19[5-9]\S* GB/s", "197 GB/s", page)
    assert 'id="configuration"' in page and f'href="/campaigns/{FIRST}"' in page
    assert "n06" not in page


def test_findings_lead_to_hosts_and_raw_files(pages: Pages) -> None:
    page = get(pages, f"/campaigns/{LAST}/findings")[2]
    assert "1 of 12 hosts slower than expected: n05." in page
    assert f'href="/campaigns/{LAST}/raw/x"' in page and "file://" not in page
    status, headers, body = get(pages, f"/campaigns/{LAST}/raw/x")
    assert (status, headers["Content-Type"], body) == (
        "200 OK",
        "text/plain; charset=utf-8",
        "<script>alert(1)</script>",
    )
    assert "sandbox" in headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff"


def test_the_report_of_a_campaign_and_every_other_format(pages: Pages) -> None:
    assert FIRST in get(pages, f"/campaigns/{FIRST}")[2]
    for kind, start in (("json", "{"), ("csv", "workload,"), ("md", "#")):
        status, headers, body = get(pages, f"/campaigns/{FIRST}", f"as={kind}")
        assert status == "200 OK" and body.startswith(start), body[:80]
        assert headers["Content-Disposition"] == f'attachment; filename="{FIRST}.{kind}"'


def test_a_comparison_on_the_spot(pages: Pages) -> None:
    empty = get(pages, "/compare")[2]
    assert '<option value="gen=genoa">' in empty and "Choose a baseline" in empty
    page = get(pages, "/compare", "baseline=gen%3Dicelake&candidate=gen%3Dgenoa")[2]
    assert "genoa replaces" in page and 'value="gen=genoa"' in page
    wrong = get(pages, "/compare", "baseline=gen%3Dnone&candidate=gen%3Dgenoa")
    assert "matches no machine" in wrong[2] and 'value="gen=none"' in wrong[2]


@pytest.mark.parametrize(
    ("path", "query", "status", "sentence"),
    [
        ("/nothing", "", "404", "there is no such page"),
        ("/campaigns/none", "", "404", "not recorded"),
        ("/campaigns/..", "", "404", "not recorded"),
        (f"/campaigns/{FIRST}/raw/../campaign.json", "", "404", "no such path"),
        (f"/campaigns/{FIRST}/raw/none", "", "404", "cannot be shown"),
        (f"/campaigns/{FIRST}/raw", "", "404", "no such page"),
        ("/host", "name=none", "404", "is not recorded"),
        ("/host", "", "404", "is not recorded"),
        ("/", "start=x", "400", "must be a whole number"),
        ("/", "as=exe", "400", "unknown format"),
        ("/compare", "baseline=a%3Db&candidate=c%3Dd&mix=a%3D/etc/x.yml", "400", "write shares"),
        ("/hosts", "&".join(f"f{n}=1" for n in range(40)), "200", "Hosts 1–12"),
        ("/", "q=" + "a" * 5000, "414", "shorten it"),
    ],
)
def test_a_wrong_address_is_answered_by_a_sentence(
    pages: Pages, path: str, query: str, status: str, sentence: str
) -> None:
    got, _, body = get(pages, path, query)
    assert got.startswith(status) and sentence in body and "Traceback" not in body


def test_a_slow_page_opens_by_itself(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "WAIT_S", 0.01)
    ready, pages = threading.Event(), Pages(root, Language())
    rendered_paths: list[str] = []
    make = pages.reply

    def slow(path: str, fields: Mapping[str, str]) -> Reply:
        rendered_paths.append(path)
        ready.wait()
        return make(path, fields)

    monkeypatch.setattr(pages, "reply", slow)
    sent: list[Any] = []
    answer = application(pages, Guard(None, ("localhost",)))

    def browse(path: str) -> tuple[str, str | None]:
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path, "QUERY_STRING": "", "HTTP_HOST": "localhost"}
        body = answer(environ | {"HTTP_ACCEPT": "text/html"}, lambda status, headers: sent.extend((status, headers)))
        return sent[-2][:3], dict(sent[-1]).get("Refresh") or b"".join(body).decode()

    assert browse("/hosts") == browse("/hosts") == browse("/none") == ("202", "1")
    assert rendered_paths == ["/hosts", "/none"]  # two requests for a page make it once
    ready.set()
    monkeypatch.setattr(waiting, "WAIT_S", 600.0)
    status, body = browse("/hosts")
    assert status == "200" and "n05" in str(body)
    assert browse("/none")[0] == "404"  # so does a failure
    assert browse("/hosts")[0] == "200" and len(rendered_paths) == 3  # what was shown is made again


def test_pages_without_a_reader_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "MAX_JOBS", 2)
    monkeypatch.setattr(waiting, "WAIT_S", 0.0)
    gate = threading.Event()
    here = threading.get_ident()
    direct: list[str] = []

    def make(path: str, fields: Mapping[str, str]) -> Reply:
        if threading.get_ident() == here:
            direct.append(path)
        else:
            gate.wait()
        return Reply(body=path.encode(), type="")

    meanwhile = Reply(body=b"wait", type="")
    replies = waiting.Waiting(make, lambda: meanwhile)
    assert [replies.reply(path, {}) for path in "ab"] == [meanwhile] * 2
    assert replies.reply("c", {}).body == b"c" and direct == ["c"]  # no room: the request waits itself
    gate.set()
    for job in list(replies._jobs.values()):
        job.result()
    replies.reply("d", {})
    assert [path for path, _ in replies._jobs] in (["b", "d"], ["b"])


def test_links_out_of_a_campaign_are_not_followed(tmp_path: Path) -> None:
    archive = campaign(tmp_path / "results", usual(HOSTS[:3], 2))
    (tmp_path / "secret").write_text("canary")
    (archive.path / "raw").mkdir()
    (archive.path / "raw" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "results" / "20270101T000000-link").symlink_to(tmp_path)
    os.mkfifo(archive.path / "raw" / "pipe")
    pages = Pages(tmp_path / "results", Language())
    for name in ("link", "pipe"):
        status, _, body = get(pages, f"/campaigns/{archive.id}/raw/{name}")
        assert status.startswith("404") and "canary" not in body
    assert get(pages, "/campaigns/20270101T000000-link")[0].startswith("404")


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    host = '<img src=x onerror="alert(1)">'
    record(tmp_path, "20260101T000000-x", {host: {"gen": "'><script>x</script>"}}, {(host, TRIAD): [1e9]})
    pages = Pages(tmp_path, Language())
    for path, query in (("/", ""), ("/hosts", ""), ("/compare", ""), ("/hosts", "q=%3Cscript%3E")):
        page = get(pages, path, query)[2]
        assert "<img" not in page and "<script>x" not in page
    assert "&lt;img" in get(pages, "/host", "name=%3Cimg+src%3Dx+onerror%3D%22alert(1)%22%3E")[2]


def test_a_damaged_campaign_is_listed_and_its_page_says_so(tmp_path: Path) -> None:
    campaign(tmp_path, usual(HOSTS[:3], 2))
    (tmp_path / "20260105T000000-bad").mkdir()
    (tmp_path / "20260105T000000-bad" / "campaign.json").write_text("{")
    pages = Pages(tmp_path, Language())
    assert "damaged" in get(pages, "/")[2]
    status, _, body = get(pages, "/campaigns/20260105T000000-bad")
    assert status.startswith("400") and "campaign.json" in body
    assert get(pages, "/hosts")[0] == "200 OK"


def test_an_empty_root_has_pages_that_say_so(tmp_path: Path) -> None:
    pages = Pages(tmp_path, Language())
    assert "no campaigns under" in get(pages, "/")[2]
    assert "No host is recorded." in get(pages, "/hosts")[2]
    assert get(pages, "/history")[0].startswith("400")


def test_a_new_campaign_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetmark.verbs.serve.shelf.FRESH_S", -1.0)
    campaign(tmp_path, usual(HOSTS[:3], 2), name=FIRST)
    pages = Pages(tmp_path, Language())
    assert LAST not in get(pages, "/host", "name=n01")[2]
    campaign(tmp_path, usual(HOSTS[:3], 2), name=LAST)
    assert LAST in get(pages, "/host", "name=n01")[2]


def test_the_pages_of_the_newest_campaign_are_made_before_anyone_asks(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = Pages(root, Language())
    pages.make_newest()
    monkeypatch.setattr("fleetmark.reports.formats.html.render", None)  # whatever is made from here on fails
    for path in (f"/campaigns/{LAST}", f"/campaigns/{LAST}/findings"):
        assert LAST.encode() in pages.reply(path, {}).body
    with pytest.raises(TypeError):
        pages.reply(f"/campaigns/{FIRST}", {})


def test_long_lists_have_pages(tmp_path: Path) -> None:
    hosts = {f"n{number:04}": {} for number in range(2 * ROWS + 1)}
    record(tmp_path, FIRST, hosts, {("n0000", TRIAD): [1.0]})
    pages = Pages(tmp_path, Language())
    second = get(pages, "/hosts", f"start={ROWS}")[2]
    assert f"Hosts {ROWS + 1}–{2 * ROWS} of {2 * ROWS + 1}" in second
    assert 'href="/hosts?start=0"' in second and f'href="/hosts?start={2 * ROWS}"' in second
    assert "n0200" in get(pages, "/hosts", "start=999999")[2]


def test_nothing_is_written(root: Path, pages: Pages) -> None:
    def state() -> dict[str, str]:
        files = sorted(p for p in root.rglob("*") if p.is_file())
        return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}

    before = state()
    for path in ("/", "/hosts", "/history", f"/campaigns/{FIRST}", f"/campaigns/{FIRST}/findings"):
        assert get(pages, path)[0] == "200 OK"
    assert state() == before


# --- who may read --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_only_reading(pages: Pages, method: str) -> None:
    status, headers, _ = get(pages, "/", REQUEST_METHOD=method)
    assert status.startswith("405") and headers["Allow"] == "GET, HEAD"


def test_a_head_request_has_no_body(pages: Pages) -> None:
    status, headers, body = get(pages, "/", REQUEST_METHOD="HEAD")
    assert status == "200 OK" and int(headers["Content-Length"]) > 1000 and not body


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:8300", "", "10.0.0.1"])
def test_another_name_for_this_machine_is_refused(pages: Pages, host: str) -> None:
    assert get(pages, "/", HTTP_HOST=host)[0].startswith("403")


def test_a_token_is_needed_once(pages: Pages) -> None:
    guard = Guard("correct-horse-battery", None)
    for query, more in (("", {}), ("token=wrong", {}), ("", {"HTTP_COOKIE": "fleetmark=wrong"})):
        status, headers, body = get(pages, "/hosts", query, guard, **more)
        assert status.startswith("401") and headers["WWW-Authenticate"] == "Bearer" and "n01" not in body
    status, headers, _ = get(pages, "/hosts", "token=correct-horse-battery&q=n01", guard)
    assert status.startswith("303") and headers["Location"] == "/hosts?q=n01"
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "correct-horse" not in cookie
    assert get(pages, "/hosts", "", guard, HTTP_COOKIE=cookie.split(";")[0])[0] == "200 OK"
    assert get(pages, "/hosts", "", guard, HTTP_AUTHORIZATION="Bearer correct-horse-battery")[0] == "200 OK"


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "/a\r\nX: y"])
def test_the_token_redirects_to_this_server_only(pages: Pages, path: str) -> None:
    location = get(pages, path, "token=correct-horse-battery", Guard("correct-horse-battery", None))[1]["Location"]
    assert re.fullmatch(r"/[^/\\\s]*", location)


@pytest.mark.parametrize("text", ["localhost", "127.0.0.1:x", "127.0.0.1:99999", ":-1", "h:٣"])
def test_a_wrong_address_to_listen_on(text: str) -> None:
    with pytest.raises(FleetmarkError, match="write HOST:PORT"):
        serve.address(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("8300", ("127.0.0.1", 8300)), ("[::1]:1", ("::1", 1)), ("db:80", ("db", 80))]
)
def test_an_address_to_listen_on(text: str, expected: tuple[str, int]) -> None:
    assert serve.address(text) == expected


def test_a_token_file_must_hold_one(tmp_path: Path) -> None:
    for content in (b"", b"short", b"two words\nin lines of it", b"\xff" * 40):
        (tmp_path / "token").write_bytes(content)
        with pytest.raises(FleetmarkError, match="token"):
            serve._token(tmp_path / "token")
    with pytest.raises(FleetmarkError, match="openssl rand"):
        serve._token(tmp_path / "none")


# --- the real server -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def served(root: Path, *words: str) -> Iterator[str]:
    """Yield the address that ``fleetmark serve`` prints; interrupt it at the end."""
    heeded = ["env", "--default-signal=INT"]  # tests in the background inherit an ignored Ctrl-C
    command = [*heeded, sys.executable, "-m", "fleetmark", "serve", "--results", str(root), *words]
    environment = os.environ | {"COLUMNS": "200", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as ran:
        try:
            assert ran.stdout is not None
            line = ran.stdout.readline()
            match = re.search(r"http://\S+", line)
            assert match, line + ran.stdout.read()
            yield match[0]
            ran.send_signal(signal.SIGINT)
            rest = ran.stdout.read()
            assert ran.wait() == 0 and "Traceback" not in rest and "terminate" not in rest, rest
        finally:
            ran.terminate()


def test_the_server_answers_and_ends(root: Path) -> None:
    pytest.importorskip("waitress", reason="needs waitress")
    with served(root, "--listen", "127.0.0.1:0") as address:
        with urllib.request.urlopen(address + "hosts", timeout=60) as reply:
            assert b"n05" in reply.read() and "frame" not in reply.headers.get("Server", "")
        request = urllib.request.Request(address, headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(request, timeout=60)
        question = "compare?baseline=gen%3Dicelake&candidate=gen%3Dgenoa"
        request = urllib.request.Request(address + question, headers={"Accept": "text/html"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            assert reply.status in (200, 202)  # 202: Ctrl-C comes while the page is being made


def test_other_addresses_than_loopback_need_a_token(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("waitress", reason="needs waitress")
    with pytest.raises(FleetmarkError, match="add --token-file"):
        serve.show(root, "0.0.0.0:0", None, Language())
    (tmp_path / "token").write_text("correct-horse-battery\n")
    with served(root, "--listen", "0.0.0.0:0", "--token-file", str(tmp_path / "token")) as address:
        port = address.rstrip("/").rpartition(":")[2]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60)
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/", headers={"Authorization": "Bearer correct-horse-battery"}
        )
        with urllib.request.urlopen(request, timeout=60) as reply:
            assert FIRST.encode() in reply.read()


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_a_reader_goes_from_a_search_to_a_host_and_a_comparison(root: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    pytest.importorskip("waitress", reason="needs waitress")
    with served(root, "--listen", "127.0.0.1:0") as address, sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(120_000)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda entry: errors.append(entry.text) if entry.type == "error" else None)
        page.goto(address + "hosts")
        assert page.locator("nav.site a[aria-current]").inner_text() == "Hosts"
        page.get_by_label("Host or label").fill("n05")
        page.get_by_role("button", name="Search").click()
        page.wait_for_url("**/hosts?q=n05")
        page.get_by_role("link", name="n05", exact=True).wait_for()
        assert page.locator("tbody tr").count() == 1
        page.get_by_role("link", name="n05", exact=True).click()
        page.wait_for_url("**/host?name=n05")
        page.locator("nav.site").get_by_role("link", name="Compare").click()
        page.get_by_role("combobox", name="Baseline").fill("gen=icelake")
        page.get_by_role("combobox", name="Candidates").fill("gen=genoa")
        page.get_by_role("button", name="Compare").click()
        page.wait_for_url("**/compare?baseline=gen%3Dicelake&candidate=gen%3Dgenoa**")
        page.get_by_role("heading", name=re.compile("genoa replaces")).wait_for()  # a slow page opens by itself
        violations = axe.Axe().run(page, context={"exclude": [["figure svg"]]}).response["violations"]
        assert [(v["id"], v["nodes"][0]["html"]) for v in violations] == []
        page.goto(f"{address}campaigns/{LAST}/raw/x")
        assert page.locator("body").inner_text() == "<script>alert(1)</script>"
        assert errors == []
        browser.close()
