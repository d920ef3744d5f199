"""Campaign files: names, atomic writes, the journal after a crash, finding a campaign."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts, Known, once
from fleetmark.base.files import write_atomic
from fleetmark.record.archive import Archive, safe_name
from fleetmark.record.campaigns import campaigns, find
from tests.drives import save_step
from tests.reports import sample


def step(**more: Any) -> dict[str, Any]:
    usual = {
        "id": "00000",
        "workload": "fio",
        "case": "randread-4k-qd1",
        "repeat": 0,
        "subject": "host",
        "serves": False,
    }
    return {**usual, **more}


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive.create(tmp_path, "c1", {"hosts": [{"name": "h/1"}], "created": "now"}).writable()


@pytest.mark.parametrize(
    "name", ["h1", "../../etc", "a/b", "..", ".", "<script>", "x" * 400, "имя", "a\0b", "-rf", "a b"]
)
def test_any_name_is_one_safe_path_component(tmp_path: Path, name: str) -> None:
    component = safe_name(name)
    assert "/" not in component
    assert "\0" not in component
    assert component not in ("", ".", "..")
    (tmp_path / component).mkdir()
    assert (tmp_path / component).parent == tmp_path


def test_names_stay_apart(tmp_path: Path) -> None:
    names = ["a/b", "a%2Fb", "x" * 400, "x" * 401, "A", "a"]
    assert len({safe_name(n) for n in names}) == len(names)


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    write_atomic(file, "first")
    with pytest.raises(FleetmarkError, match="cannot write"):
        write_atomic(file / "below a file", "second")
    assert file.read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_a_link_is_followed_and_what_is_no_file_stays(tmp_path: Path) -> None:
    (tmp_path / "page.html").touch()
    (tmp_path / "link.html").symlink_to("page.html")
    write_atomic(tmp_path / "link.html", "through")
    assert (tmp_path / "page.html").read_text() == "through" and (tmp_path / "link.html").is_symlink()
    os.mkfifo(tmp_path / "pipe.html")
    with pytest.raises(FleetmarkError, match=r"pipe.html: it is not a regular file"):
        write_atomic(tmp_path / "pipe.html", "lost")
    assert (tmp_path / "pipe.html").is_fifo()


def test_a_step_that_comes_twice_is_kept_as_it_first_was(archive: Archive) -> None:
    folder = save_step(archive, "h/1", step(), {"stdout": b"first", "result.json": b"{}"})
    assert save_step(archive, "h/1", step(), {"stdout": b"second", "result.json": b"{}"}) == folder
    stdout = archive.open_raw(folder, "stdout")
    assert stdout
    with stdout:
        assert stdout.read() == b"first"
    assert archive.tail(folder, "stdout", 3) == b"rst"
    assert archive.open_raw(folder, "absent") is None
    ((path, step_keys),) = archive.steps()
    assert (path, step_keys["host"], step_keys["case"]) == (folder, "h/1", "randread-4k-qd1")


def test_pairs_and_their_servers_do_not_collide(archive: Archive) -> None:
    places = {
        archive.raw_dir("h1", step(subject="h1>h2")),
        archive.raw_dir("h1", step(subject="h1>h3")),
        archive.raw_dir("h1", step(subject="h2>h1", serves=True)),
        archive.raw_dir("h1", step(subject="h2>h1")),
    }
    assert len(places) == 4


def test_what_is_set_aside_is_kept(archive: Archive) -> None:
    folder = save_step(archive, "h1", step(), {"stdout": b"lost", "result.json": b"{}"})
    archive.set_aside(folder)
    assert not list(archive.steps())
    assert [p.read_bytes() for p in archive.path.glob("superseded/*/h1/*/*/*/stdout")] == [b"lost"]


def test_a_journal_cut_off_in_its_last_line_is_read_to_there(archive: Archive) -> None:
    archive.note("launched", host="h1")
    archive.note("ended", owed=0)
    file = archive.path / "journal.jsonl"
    file.write_text(file.read_text()[:-9])
    assert [e["e"] for e in archive.journal()] == ["launched"]
    archive.close()
    again = Archive.open(archive.path).writable()  # and the next line is not glued to half of one
    again.note("resumed")
    assert [e["e"] for e in again.journal()] == ["launched", "resumed"]


def test_a_damaged_journal_names_its_line(archive: Archive) -> None:
    (archive.path / "journal.jsonl").write_text('{"e": "a"}\nrubbish\n{"e": "b"}\n')
    with pytest.raises(FleetmarkError, match=r"journal\.jsonl line 2: not JSON"):
        list(archive.journal())


def test_one_controller_at_a_time(archive: Archive) -> None:
    with pytest.raises(FleetmarkError, match="in use by another fleetmark process"):
        Archive.open(archive.path).writable()
    archive.close()
    Archive.open(archive.path).writable().close()


def test_a_campaign_is_found_by_what_people_type(tmp_path: Path) -> None:
    for name in ("20260101T000000-quick-aaaa", "20260102T000000-quick-bbbb"):
        Archive.create(tmp_path, name, {"hosts": []})
    assert [a.id[-4:] for a in campaigns(tmp_path)] == ["aaaa", "bbbb"]
    assert find(tmp_path, "last").id.endswith("bbbb")
    assert find(tmp_path, "20260101").id.endswith("aaaa")
    assert find(tmp_path, str(tmp_path / "20260101T000000-quick-aaaa")).id.endswith("aaaa")
    with pytest.raises(FleetmarkError, match="could be .*aaaa, .*bbbb"):
        find(tmp_path, "2026")
    with pytest.raises(FleetmarkError, match="no campaign 'x': the latest is"):
        find(tmp_path, "x")
    with pytest.raises(FleetmarkError, match="there are no campaigns under"):
        find(tmp_path / "empty", "last")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "cannot be read"),
        ('{"schema": 99}', "schema 99 is not supported by this version"),
        (None, "is not a campaign"),
    ],
)
def test_what_is_no_campaign_says_so(tmp_path: Path, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / "campaign.json").write_text(text)
    with pytest.raises(FleetmarkError, match=words):
        Archive.open(tmp_path)


def test_what_no_text_can_hold_does_not_stay_in_the_journal(tmp_path: Path) -> None:
    """Bytes of a tool's that Ansible could not decode come as halves of surrogate pairs; Arrow reads none."""
    archive = Archive.create(tmp_path, "c", {"hosts": []}).writable()
    archive.note("unreachable", host="h", reason="a\udc80b \U0001f600")
    assert [e["reason"] for e in archive.journal()] == ["a?b \U0001f600"]


def test_facts_that_hosts_have_alike_are_held_once_and_the_rest_is_checked() -> None:
    documents = [sample.facts(f"h{n}", sample.OLD, n).model_dump(mode="json") for n in range(3)]
    known: Known = {}
    read = [once(document, known) for document in documents]
    assert read == [Facts.model_validate(document) for document in documents]
    assert read[0].cpu is read[2].cpu and read[0].hostname != read[2].hostname
    for damaged in ([], {**documents[0], "numa": [{"id": -1}]}, {**documents[0], "memory": "x"}, {"cpu": {}}):
        with pytest.raises(ValueError):
            once(damaged, known)
