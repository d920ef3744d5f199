"""Test that a changed, missing, added or moved byte of a campaign is named, and that a crash does not break the chain."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fleetmark.base import schema
from fleetmark.base.errors import FleetmarkError
from fleetmark.campaign.resumed.owed import owed_steps, set_aside_lost
from fleetmark.campaign.resumed.scheduled import digest
from fleetmark.cli.app import app
from fleetmark.record import journal
from fleetmark.record.archive import Archive, chain, ssh_signature
from fleetmark.record.archive.integrity import Integrity, check
from fleetmark.record.documents import Scheduled
from fleetmark.reports.kit.document import Note
from fleetmark.reports.lists.integrity import document
from tests.commands import refused
from tests.drives import save_step
from tests.records import row

NAME = "20261125T000000-selftest-aaaa"
STEPS = [("h1", 0), ("h1", 1), ("h2", 0)]
FILES = {"stderr": b"a warning\n", "result.json": b'{"ended": "exit", "started": 1, "wall_s": 1}'}


def step(repeat: int) -> dict[str, Any]:
    usual = {"id": f"{repeat:05d}", "workload": "selftest", "case": "uptime-6", "subject": "host", "serves": False}
    return {**usual, "repeat": repeat, "argv": ["uptime"], "env": {}, "expect_s": 1, "timeout_s": 5}


def save(archive: Archive, host: str, repeat: int) -> Path:
    folder = save_step(archive, host, step(repeat), FILES | {"stdout": f"load 0.5 of {host} {repeat}\n".encode()})
    usual = {"workload": "selftest", "case": "uptime-6", "subject": "host", "reason": "x", "status": "failed"}
    archive.note("outcome", host=host, repeat=repeat, **usual)
    return folder


def begun(root: Path) -> Archive:
    """Return a campaign of two hosts whose steps have not run."""
    jobs = {h: json.dumps({"host": h, "steps": [step(0)], "deploy": [], "skipped": {}}) for h in ("h1", "h2")}
    facts = {h: json.dumps({"facts": {}, "raw": {"host": h}}) for h in jobs}
    document = {"id": NAME, "hosts": [{"name": h} for h in jobs], "created": "2026-11-25T00:00:00Z"}
    document |= {"jobs": {h: digest(t) for h, t in jobs.items()}, "facts": {h: digest(t) for h, t in facts.items()}}
    return Archive.create(root, NAME, document, {h: Scheduled(facts[h], jobs[h]) for h in jobs}).writable()


def finish(archive: Archive) -> None:
    archive.record("campaign.json")
    archive.end("ended", owed=0)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    archive = begun(tmp_path / "results")
    for host, repeat in STEPS:
        save(archive, host, repeat)
    usual = {"workload": "selftest", "case": "uptime-6", "metric": "uptime", "labels": schema.packed({}), "unit": "s"}
    usual |= {"campaign": NAME, "subject": "host", "class": "other", "kind": "", "better": "none", "members": ""}
    archive.write_measurements(
        row(**usual, host=host, repeat=repeat, value=1.0, status="passed", standing="") for host, repeat in STEPS
    )
    finish(archive)
    archive.close()
    return archive


def checked(archive: Archive, signers: Path | None = None) -> Integrity:
    return check(Archive.open(archive.path), signers)


def counted(archive: Archive) -> list[str]:
    """Return the files that figures depend on."""
    uncounted = ("controller.lock",)
    return sorted(archive.named(p) for p in archive.path.rglob("*") if p.is_file() and p.name not in uncounted)


def test_a_campaign_is_equal_to_its_record(archive: Archive) -> None:
    result = checked(archive)
    assert result.is_equal and result.is_own
    assert result.files == len(counted(archive)) - 1 == 18  # the journal is counted by its lines
    assert result.lines == len((archive.path / "journal.jsonl").read_bytes().splitlines())
    assert result.head == archive.head


def flip(file: Path) -> None:
    """Change one bit in the middle of a file."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def grow(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\n")


def replace(file: Path) -> None:
    file.write_bytes(b"0" * len(file.read_bytes()))


def link(file: Path) -> None:
    file.unlink()
    file.symlink_to("/etc/hostname")


WAYS: dict[str, Callable[[Path], None]] = {
    "flip": flip,
    "cut": cut,
    "grow": grow,
    "replace": replace,
    "link": link,
    "remove": Path.unlink,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_file_that_is_changed_is_named(archive: Archive, tmp_path: Path, way: str) -> None:
    for name in counted(archive):
        copy = tmp_path / "copy" / NAME
        shutil.copytree(archive.path, copy)
        before = (copy / name).read_bytes()
        WAYS[way](copy / name)
        changed = not (copy / name).exists() or (copy / name).read_bytes() != before
        try:
            result = check(Archive.open(copy))
        except FleetmarkError as error:  # a journal that is gone, or a campaign.json that cannot be read
            assert name in str(error)
        else:
            if name == "journal.jsonl" and way in ("remove", "link", "replace"):
                assert not result.is_chained
            else:
                assert changed and not result.is_equal
                assert any(d.place.startswith(name) for d in result.differences), result.differences
        shutil.rmtree(copy.parent)


def test_every_byte_of_the_journal_counts(archive: Archive, tmp_path: Path) -> None:
    file = archive.path / "journal.jsonl"
    content = file.read_bytes()
    for place in range(0, len(content), 7):
        changed = bytearray(content)
        changed[place] ^= 2
        file.write_bytes(changed)
        result = checked(archive)
        assert not result.is_equal, (place, content[place : place + 20])


def test_lines_of_the_journal_that_move_vanish_or_come_twice_are_named(archive: Archive) -> None:
    file = archive.path / "journal.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    for n in range(len(lines) - 1):
        swapped = [*lines[:n], lines[n + 1], lines[n], *lines[n + 2 :]]
        removed = [*lines[:n], *lines[n + 1 :]]
        twice = [*lines[: n + 1], *lines[n:]]
        for number, some in ((n, swapped), (n, removed), (n + 1, twice)):
            file.write_bytes(b"".join(some))
            places = [d.place for d in checked(archive).differences]
            assert any(p.startswith(f"journal.jsonl line {number + 1} ") for p in places), (n, places)
    file.write_bytes(b"".join(lines[:-1]))
    assert next(d.reason for d in checked(archive).differences).startswith("it has no end")


def test_steps_that_are_added_removed_or_swapped_are_named(archive: Archive) -> None:
    raw = archive.path / "raw"
    first, second = raw / "h1/selftest/uptime-6/0", raw / "h1/selftest/uptime-6/1"
    shutil.copytree(first, raw / "h1/selftest/uptime-6/2")
    assert [(d.place, str(d.reason)) for d in checked(archive).differences] == [
        ("raw/h1/selftest/uptime-6/2", "the journal does not list this step: it was added")
    ]
    shutil.rmtree(raw / "h1/selftest/uptime-6/2")
    (first / "stdout").rename(raw / "x")
    (second / "stdout").rename(first / "stdout")
    (raw / "x").rename(second / "stdout")
    assert {d.place for d in checked(archive).differences} == {
        "raw/h1/selftest/uptime-6/0/stdout",
        "raw/h1/selftest/uptime-6/1/stdout",
    }
    shutil.rmtree(raw / "h2")
    places = {d.place: str(d.reason) for d in checked(archive).differences}
    assert "selftest uptime-6, repeat 0, of h2" in places["raw/h2/selftest/uptime-6/0"]
    (archive.path / "facts" / "h3.json").write_text("{}")
    assert "facts/h3.json" in {d.place for d in checked(archive).differences}


def test_a_chain_that_others_made_again_lacks_the_users_signature(archive: Archive) -> None:
    """Whoever can write to the root can hash everything again, but has no key of this user."""
    (archive.path / "raw/h1/selftest/uptime-6/0/stdout").write_bytes(b"load 9.9\n")
    head, lines = chain.START, []
    for line in (archive.path / "journal.jsonl").read_text().splitlines():
        event = json.loads(line)
        del event["chain"]
        if event.get("folder") == "raw/h1/selftest/uptime-6/0":
            event["files"] = Archive(archive.path).digests(archive.path / event["folder"])
        if "after" in event:
            event["after"] = head
        text, head = chain.chained(json.dumps(event), head)
        lines.append(f"{text}\n")
    (archive.path / "journal.jsonl").write_text("".join(lines))
    (difference,) = checked(archive).differences
    assert difference.reason == f"your signature covers 0 of its {len(lines)} lines"


def test_an_older_archive_is_read_and_is_not_chained(archive: Archive) -> None:
    file = archive.path / "journal.jsonl"
    events = [json.loads(line) for line in file.read_text().splitlines()]
    older = [{k: v for k, v in e.items() if k != "chain"} for e in events if e["e"] in ("outcome", "ended")]
    file.write_text("".join(json.dumps(e) + "\n" for e in older))
    result = checked(archive)
    assert (result.is_chained, result.is_equal, result.differences) == (False, False, [])
    again = Archive.open(archive.path).writable()
    again.note("resumed", owed={})
    assert again.head is None
    set_aside_lost(again)
    assert len(list(again.steps())) == 3, "the journal of an older archive lists no files"
    again.close()
    assert len(journal.read(Archive.open(archive.path))[0]) == 3
    done = CliRunner().invoke(app, ["verify", str(archive.path)])
    assert done.exit_code == 1 and "has no hash chain: an older version of Fleetmark recorded it" in " ".join(
        done.output.split()
    )


# ------------------------------------------------------------ crashes


def killed(archive: Archive) -> Archive:
    """Return the campaign as the next controller opens it after a kill."""
    archive.close()
    return Archive.open(archive.path).writable()


def test_a_kill_between_the_line_and_the_files_loses_no_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = begun(tmp_path)
    save(archive, "h1", 0)

    def kill(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("fleetmark.record.archive.move_inside", kill)
        with pytest.raises(KeyboardInterrupt):
            save(archive, "h2", 0)
    archive = killed(archive)
    set_aside_lost(archive)
    jobs = {h: archive.job(h) or {} for h in ("h1", "h2")}
    assert owed_steps(archive, jobs, ()) == {"h2": {"00000"}}
    save(archive, "h2", 0)
    finish(archive)
    assert checked(archive).is_equal


@pytest.mark.parametrize("event", ["stored", "outcome"])
def test_a_crash_that_cuts_the_journal_anywhere_in_a_line_heals(tmp_path: Path, event: str) -> None:
    archive = begun(tmp_path)
    save(archive, "h1", 0)
    save(archive, "h2", 0)
    file = archive.path / "journal.jsonl"
    content = file.read_bytes()
    begin = content.rfind(f'"e": "{event}"'.encode())
    begin = content.rfind(b"\n", 0, begin) + 1
    for place in range(begin, content.find(b"\n", begin) + 1, 9):
        copy = tmp_path / "copy" / NAME
        shutil.copytree(archive.path, copy)
        (copy / "journal.jsonl").write_bytes(content[:place])
        again = Archive.open(copy).writable()
        set_aside_lost(again)
        save(again, "h2", 0)
        finish(again)
        again.close()
        assert checked(again).differences == []
        assert len(list(again.steps())) == 2
        shutil.rmtree(copy.parent)


def test_a_kill_while_a_step_is_set_aside_heals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = begun(tmp_path)
    folder = save(archive, "h1", 0)

    def kill(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("fleetmark.record.archive.move_inside", kill)
        with pytest.raises(KeyboardInterrupt):
            archive.set_aside(folder)
    archive = killed(archive)
    set_aside_lost(archive)
    assert not list(archive.steps())
    save(archive, "h1", 0)
    finish(archive)
    assert checked(archive).differences == []


def test_a_campaign_that_was_killed_is_not_equal_before_it_is_resumed(tmp_path: Path) -> None:
    archive = begun(tmp_path)
    save(archive, "h1", 0)
    assert [str(d.reason)[:14] for d in checked(archive).differences] == ["it has no end:"]


def test_facts_and_verdicts_do_not_see_the_lines_of_files(archive: Archive) -> None:
    outcomes, events, _ = journal.read(Archive.open(archive.path))
    assert len(outcomes) == 3
    assert [e["e"] for e in events] == ["ended"]


# ------------------------------------------------------------ SSH keys


def key(folder: Path, name: str, passphrase: str = "") -> Path:
    file = folder / name
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "secret comment", "-f", str(file)]
    subprocess.run(words, check=True)
    return file


def allowed(folder: Path, *names: str) -> Path:
    lines = [f"{name} {(folder / f'{name}.pub').read_text()}" for name in names]
    (folder / "signers").write_text("".join(lines))
    return folder / "signers"


def signed(archive: Archive, file: Path) -> None:
    again = Archive.open(archive.path).writable()
    again.sign(file)
    again.close()


def test_a_signed_record_names_its_signer(archive: Archive, tmp_path: Path) -> None:
    alice = key(tmp_path, "alice")
    key(tmp_path, "bob")
    assert str(checked(archive, allowed(tmp_path, "alice")).differences[0].reason).startswith("no SSH key signed it")
    signed(archive, alice)
    result = checked(archive, allowed(tmp_path, "bob", "alice"))
    assert result.is_equal and result.signer == "alice"
    known = subprocess.run(["ssh-keygen", "-l", "-f", f"{alice}.pub"], check=True, capture_output=True, text=True)
    assert result.key == known.stdout.split()[1]
    stored = (archive.path / "journal.jsonl").read_text()
    assert str(tmp_path) not in stored.splitlines()[-1] and "secret comment" not in stored
    assert all(line not in stored for line in alice.read_text().splitlines()[1:-1])


def test_no_signature_is_said_to_cover_what_differs(archive: Archive, tmp_path: Path) -> None:
    signed(archive, key(tmp_path, "alice"))
    signers = allowed(tmp_path, "alice")

    def notes() -> list[str]:
        sections = document(checked(archive, signers), str(signers)).sections
        return [str(e.text) for s in sections if s.key == "signature" for e in s.exhibits if isinstance(e, Note)]

    (before, recorded) = notes()
    assert before.startswith("alice signed ") and recorded.endswith("your signature on this machine covers it")
    file = archive.path / "journal.jsonl"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    (after, recorded) = notes()
    assert after == f"{before}, but the signature does not cover the differences"
    assert recorded.endswith("your signature on this machine does not cover what differs")


def test_a_foreign_key_a_changed_byte_and_later_lines_are_one_sentence_each(archive: Archive, tmp_path: Path) -> None:
    alice = key(tmp_path, "alice")
    key(tmp_path, "bob")
    signed(archive, alice)
    (difference,) = checked(archive, allowed(tmp_path, "bob")).differences
    assert "does not allow this key" in difference.reason
    file = archive.path / "journal.jsonl"
    content = file.read_text()
    line = json.loads(content.splitlines()[-1])
    other = ssh_signature.sign("another text", alice)
    *before, _ = content.splitlines(keepends=True)
    for signature, words in ((other, "does not match the journal"), ("no signature", "its signature is damaged")):
        event = {"t": line["t"], "e": "signed", "key": "x", "signature": signature}
        text, _ = chain.chained(json.dumps(event), chain.stated(before[-1].encode()))
        file.write_text("".join(before) + f"{text}\n")
        (difference,) = checked(archive, allowed(tmp_path, "alice")).differences
        assert words in difference.reason
    file.write_text(content)
    again = Archive.open(archive.path).writable()
    again.end("rebuilt")
    again.close()
    (difference,) = checked(archive, allowed(tmp_path, "alice")).differences
    assert "signed up to here, and 1 lines came later" in difference.reason


def test_a_key_that_cannot_sign_stops_before_anything_runs(tmp_path: Path) -> None:
    locked = key(tmp_path, "locked", "passphrase")
    for name, words in ((locked, "if it has a passphrase"), (tmp_path / "none", "there is no such file")):
        assert words in refused(tmp_path / "results", "run", "-s", "selftest", "--sign", str(name))
    assert not (tmp_path / "results").exists()


def test_signers_that_cannot_be_read_are_one_sentence(archive: Archive, tmp_path: Path) -> None:
    signed(archive, key(tmp_path, "alice"))
    absent = str(tmp_path / "absent")
    assert f"--signers {absent}: cannot be read" in refused(archive.root, "verify", "last", "--signers", absent)
