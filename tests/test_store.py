"""A results root in an object store: what every verb makes of it is what it makes of the same files in a folder."""

from __future__ import annotations

import fcntl
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from botocore.exceptions import ClientError
from typer.testing import CliRunner

from fleetmark.base.errors import CannotKeep, FleetmarkError
from fleetmark.cli.app import app
from fleetmark.cli.roots import results
from fleetmark.record.store import Need, copy_of, held, name_of, url_of
from fleetmark.record.store.objects import Objects
from fleetmark.record.store.refusals import sentence as sentence_of
from tests import stores
from tests.commands import refused, run
from tests.records import IOPS, TRIAD, record

HOSTS = {f"{gen}{n}": {"gen": gen} for gen in ("old", "new") for n in range(6)}


def speed(host: str) -> float:
    return {"o": 1.0, "n": 1.5}[host[0]] * (1 + 0.001 * int(host[-1])) * (0.7 if host == "new5" else 1.0)


def lab(root: Path, name: str = "20261101T000000-lab-0001") -> None:
    measured = {(h, b): [speed(h) * 1e9 * (1 + 0.001 * r) for r in range(3)] for h in HOSTS for b in (TRIAD, IOPS)}
    record(root, name, HOSTS, measured)


@pytest.fixture
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[stores.Store]:
    with stores.store(tmp_path / "copies", f"b-{abs(hash(request.node.name))}") as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "results"
    lab(root)
    return root


COMPARE = ("compare", "-b", "gen=old", "-c", "gen=new", "--format", "csv")


def test_a_store_gives_what_a_folder_gives(store: stores.Store, folder: Path) -> None:
    store.put(folder)
    shutil.move(folder, folder.with_name("elsewhere"))
    folder = folder.with_name("elsewhere")
    assert run(Path(store.url), *COMPARE) == run(folder, *COMPARE)

    def printed(root: Path, kept: Path, *words: str) -> list[str]:
        done = CliRunner().invoke(app, [*words, "--results", str(root)], catch_exceptions=False)
        assert done.exit_code in (0, 1), done.output
        return done.stdout.replace(str(kept), "ROOT").replace(str(root), "ROOT").replace(store.url, "ROOT").splitlines()

    copy = copy_of(store.url).root
    for words in (
        ("report", "last", "--format", "md"),
        ("diagnose", "--format", "md"),
        ("history", "--format", "json"),
    ):
        assert printed(Path(store.url), copy, *words) == printed(folder, folder, *words), words
    (listed,) = json.loads(run(Path(store.url), "campaigns", "--format", "json"))
    assert listed["campaign"] == "20261101T000000-lab-0001"
    assert listed["hosts"] == 12


def test_only_what_differs_is_fetched_again(store: stores.Store, folder: Path) -> None:
    store.put(folder)
    with results(Path(store.url)) as here:
        file = here / "20261101T000000-lab-0001" / "campaign.json"
        first = file.stat()
    with results(Path(store.url)):
        assert file.stat().st_mtime_ns == first.st_mtime_ns
    document = json.loads(file.read_text()) | {"suite": "other"}
    store.client.put_object(
        Bucket=store.bucket,
        Key="lab/results/20261101T000000-lab-0001/campaign.json",
        Body=json.dumps(document).encode(),
    )
    with results(Path(store.url)):
        assert json.loads(file.read_text())["suite"] == "other"


def test_a_campaign_that_the_store_has_no_more_is_not_counted(store: stores.Store, folder: Path) -> None:
    lab(folder, "20261102T000000-lab-0002")
    store.put(folder)
    assert len(json.loads(run(Path(store.url), "campaigns", "--format", "json"))) == 2
    for key in store.objects():
        if key.startswith("20261102"):
            store.client.delete_object(Bucket=store.bucket, Key=f"lab/results/{key}")
    assert len(json.loads(run(Path(store.url), "campaigns", "--format", "json"))) == 1


def test_what_a_verb_writes_is_stored_and_nothing_else(store: stores.Store, folder: Path) -> None:
    store.put(folder)
    before = set(store.objects())
    run(Path(store.url), "reference", "save", "old", "--from", "gen=old")
    assert set(store.objects()) - before == {".fleetmark", "references/old.1.json"}
    run(Path(store.url), "report", "last")
    assert set(store.objects()) - before == {".fleetmark", "references/old.1.json"}, "reading stores nothing"


def test_a_campaign_made_here_is_stored_with_its_head_last(store: stores.Store) -> None:
    copy = copy_of(store.url)
    lab(copy.root)
    (copy.root / "20261101T000000-lab-0001" / "raw").mkdir()
    raw = copy.root / "20261101T000000-lab-0001" / "raw" / "old0>old1 100%"
    raw.write_text("x")
    assert copy.push() == ["20261101T000000-lab-0001"]
    keys = store.objects()
    assert "20261101T000000-lab-0001/raw/old0>old1 100%" in keys
    assert not [k for k in keys if ".driven" in k or "controller.lock" in k or ".store" in k]
    assert copy.push() == []


def test_nothing_is_lost_when_the_store_fails_after_measuring(store: stores.Store) -> None:
    url = Path(store.url)
    with pytest.raises(CannotKeep) as error, results(url, "shelves", writes=True) as here:
        lab(here)
        store.server.stop()
    assert "the results are kept in" in str(error.value)
    assert (here / "20261101T000000-lab-0001" / "measurements.parquet").exists()
    assert "\n" not in str(error.value)


def test_what_could_not_be_stored_is_stored_by_the_next_that_writes(store: stores.Store, folder: Path) -> None:
    store.put(folder)
    url = Path(store.url)
    name = "20261101T000000-lab-0001"
    with pytest.raises(RuntimeError), results(url, campaign="last", writes=True):
        raise RuntimeError
    copy = copy_of(store.url)
    (copy.root / name / "summary.html").write_text("<p>")
    deny(store)
    with pytest.raises(CannotKeep, match="no right to write"):
        copy.push([name])
    store.client.delete_bucket_policy(Bucket=store.bucket)
    with results(url, "shelves", writes=True):
        pass
    assert f"{name}/summary.html" in store.objects()


def test_what_changed_on_both_sides_is_overwritten_on_neither(store: stores.Store, folder: Path) -> None:
    store.put(folder)
    name = "20261101T000000-lab-0001"
    with results(Path(store.url)) as here:
        (here / name / "campaign.json").write_text(json.dumps({"schema": 1, "hosts": [], "suite": "mine"}))
    store.client.put_object(
        Bucket=store.bucket, Key=f"lab/results/{name}/campaign.json", Body=b'{"schema": 1, "hosts": []}'
    )
    with pytest.raises(FleetmarkError, match="changed in the store since it was read, so nothing is stored"):
        copy_of(store.url).push([name])
    assert "changed locally and in s3://" in refused(Path(store.url), *COMPARE)


def test_one_controller_at_a_time_has_a_campaign(store: stores.Store, folder: Path) -> None:
    store.put(folder)
    name = "20261101T000000-lab-0001"
    objects = copy_of(store.url).objects
    with held(objects, [name]):
        holder = r"is in use by another fleetmark process \(.* on .*, since 20"
        with pytest.raises(FleetmarkError, match=holder) as error, held(objects, [name]):
            pass
        assert f"aws s3 rm {store.url}/{name}/.driven.json" in str(error.value)
        assert "is in use by" in refused(Path(store.url), "rebuild", "last")
        mine = json.loads(objects.read(f"{name}/.driven.json"))
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    assert objects.read(f"{name}/.driven.json") == b"", "it is gone with its holder"
    left = mine | {"pid": int(dead.stdout), "user": "x", "since": "2026"}
    objects.create(f"{name}/.driven.json", json.dumps(left).encode())
    with held(objects, [name]):
        assert b"2026-" in objects.read(f"{name}/.driven.json"), "one of a process that was killed here is taken over"
    objects.create(f"{name}/.driven.json", json.dumps(left | {"among": "those of a container"}).encode())
    with pytest.raises(FleetmarkError, match="x on .*, since 2026"), held(objects, [name]):
        pass  # that has this machine's name
    objects.remove([f"{name}/.driven.json"])
    objects.create(f"{name}/.driven.json", b"[" * 100_000)
    with pytest.raises(FleetmarkError, match="somebody on another machine"), held(objects, [name]):
        pass


def test_a_key_is_one_word_of_the_commands_that_are_suggested(
    store: stores.Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "20261101T000000-lab $(touch x);"
    (folder / "20261101T000000-lab-0001").rename(folder / name)
    store.put(folder)
    copy = copy_of(store.url)
    monkeypatch.setattr("fleetmark.record.store.copy._MOST", 0)
    _, (sentence,) = copy.pull_campaign("last")
    words = ["aws", "s3", "sync", f"{store.url}/{name}/raw", f"{copy.root / name}/raw"]
    assert shlex.split(sentence.partition("is left out: ")[2]) == words
    with held(copy.objects, [name]), pytest.raises(FleetmarkError) as error, held(copy.objects, [name]):
        pass
    words = ["aws", "s3", "rm", f"{store.url}/{name}/.driven.json"]
    assert shlex.split(str(error.value).partition("is dead: ")[2]) == words


def deny(store: stores.Store, *actions: str) -> None:
    every = f"arn:aws:s3:::{store.bucket}"
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Deny",
                "Principal": "*",
                "Action": list(actions or ("s3:PutObject",)),
                "Resource": [every, f"{every}/*"],
            }
        ],
    }
    store.client.put_bucket_policy(Bucket=store.bucket, Policy=json.dumps(policy))


def test_no_right_to_write_is_said_before_anything_is_measured(store: stores.Store) -> None:
    deny(store)
    sentence = refused(Path(store.url), "run", "--suite", "quick")
    assert sentence == (
        f"{store.url}: no right to write in it; ask its owner for s3:PutObject there, or choose another --results"
    )


def test_no_right_to_read(store: stores.Store, folder: Path) -> None:
    store.put(folder)
    deny(store, "s3:GetObject")
    sentence = refused(Path(store.url), "report", "last")
    assert sentence.startswith(f"{store.url}: no right to read it; ask its owner for s3:GetObject there")


def test_a_name_that_was_saved_elsewhere_meanwhile_stays(store: stores.Store, folder: Path) -> None:
    store.put(folder)
    with (
        pytest.raises(CannotKeep, match="changed in the store since it was read"),
        results(Path(store.url), writes=True) as here,
    ):
        (here / "references").mkdir()
        (here / "references" / "old.1.json").write_text("{}")
        key = "lab/results/references/old.1.json"
        store.client.put_object(Bucket=store.bucket, Key=key, Body=b"theirs")


def test_a_name_saved_here_and_not_stored_is_not_replaced(store: stores.Store, folder: Path) -> None:
    store.put(folder)
    copy = copy_of(store.url)
    (copy.root / "references").mkdir()
    (copy.root / "references" / "old.1.json").write_text("mine")
    put = {"Bucket": store.bucket, "Key": "lab/results/references/old.1.json"}
    store.client.put_object(**put, Body=b"theirs")
    with pytest.raises(FleetmarkError, match="changed locally and in s3://"):
        copy.pull(Need.SHELVES)
    assert (copy.root / "references" / "old.1.json").read_text() == "mine"
    store.client.put_object(**put, Body=b"mine")
    copy.pull(Need.SHELVES)
    assert copy.push() == []


def test_a_root_below_another_has_a_copy_of_its_own(store: stores.Store, folder: Path) -> None:
    store.put(folder)
    lower = copy_of(f"{store.url}/site-a")
    lab(lower.root)
    lower.push()
    key = "lab/results/site-a/20261101T000000-lab-0001/campaign.json"
    store.client.put_object(Bucket=store.bucket, Key=key, Body=b"newer")
    with results(Path(store.url), writes=True) as here:
        assert not (here / "site-a").exists()
    assert store.client.get_object(Bucket=store.bucket, Key=key)["Body"].read() == b"newer"
    assert not [k for k in store.objects() if ".store" in k]


def test_profiles_and_addresses_with_one_name_of_a_bucket_have_copies_of_their_own(
    store: stores.Store, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store.put(folder)
    config = tmp_path / "config"
    other = store.endpoint.replace("127.0.0.1", "localhost")
    config.write_text(
        f"[profile a]\nendpoint_url={store.endpoint}\n[profile b]\nendpoint_url={other}\n"
        f"[profile c]\nendpoint_url={other}\n[profile aws]\n[profile china]\nregion=cn-north-1\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    copies = [copy_of(store.url)]
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    for profile in ("a", "b", "c", "aws", "china"):
        monkeypatch.setenv("AWS_PROFILE", profile)
        copies.append(copy_of(store.url))
    assert len({copy.root for copy in copies}) == 6
    assert {name_of(copy.root) for copy in copies} == {store.url}
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    sentence = refused(Path(store.url), "campaigns")
    assert "The config profile (nobody) could not be found; set AWS_PROFILE to a profile in" in sentence


def test_what_waits_in_another_copy_is_named_once(
    store: stores.Store, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    mine = copy_of(store.url)
    lab(mine.root)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "new")
    theirs = copy_of(store.url)
    (warning,) = recwarn
    sentence = str(warning.message)
    assert sentence.startswith(f"20261101T000000-lab-0001 in {mine.root} is left out: of other credentials")
    assert sentence.endswith(f"move it to {theirs.root}")
    copy_of(store.url)
    assert len(recwarn) == 1
    assert not theirs.push(), "nobody's campaign goes into another's store"


def test_a_copy_that_told_no_credentials_apart_is_gone_on_with(store: stores.Store, folder: Path) -> None:
    store.put(folder)
    copy = copy_of(store.url)
    copy.pull(Need.LIST)
    lab(copy.root, "20261102T000000-lab-0002")
    parent = copy.root.parents[3]
    assert parent.name == "by=tests"
    before = parent.parent / copy.root.relative_to(parent)
    before.parent.mkdir(parents=True)
    copy.root.rename(before)
    assert copy_of(store.url).unstored() == ["20261102T000000-lab-0002"]
    assert not before.exists()


def test_a_file_and_a_folder_of_one_name_are_named(store: stores.Store, folder: Path) -> None:
    store.put(folder)
    url = f"{store.url}/20261101T000000-lab-0001/facts"
    key = "lab/results/20261101T000000-lab-0001/facts"
    store.client.put_object(Bucket=store.bucket, Key=f"{key}/a", Body=b"x")
    with results(Path(store.url)):
        pass
    store.client.put_object(Bucket=store.bucket, Key=f"{key}/a/b", Body=b"x")
    sentence = refused(Path(store.url), "report", "last")
    assert sentence.startswith(f"{url}/a: both an object and a folder (facts/a/b); ")
    store.client.delete_object(Bucket=store.bucket, Key=f"{key}/a")
    sentence = refused(Path(store.url), "report", "last")
    assert "facts/a/b is a file on one side and a folder on the other (s3://" in sentence
    assert sentence.endswith("move or rename one of them")


def test_what_is_no_store_is_not_measured_for(store: stores.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Objects, "folders", lambda _: [])
    monkeypatch.setattr(Objects, "write", lambda *_: None)  # as a web server that answers anything does
    assert "written data cannot be read back" in refused(Path(store.url), "run", "--suite", "quick")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("ExpiredToken", "the credentials have expired (ExpiredToken); log in again"),
        ("InvalidAccessKeyId", "the store does not accept these credentials (InvalidAccessKeyId); set AWS_PROFILE"),
        ("RequestTimeTooSkewed", "the store does not accept this machine's time (RequestTimeTooSkewed); set its clock"),
        ("SlowDown", "cannot list it (SlowDown: "),
    ],
)
def test_why_a_store_refuses(code: str, words: str) -> None:
    error = ClientError({"Error": {"Code": code, "Message": "no"}}, "ListObjectsV2")  # type: ignore[typeddict-item]
    assert words in sentence_of(error, "s3://lab/results", "list")


@pytest.mark.parametrize("address", ["nonsense", "http://", "ftp://127.0.0.1:9"])
def test_an_address_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    for name, value in {**stores.KEYS, "FLEETMARK_STORES": str(tmp_path), "AWS_ENDPOINT_URL": address}.items():
        monkeypatch.setenv(name, value)
    printed = refused(Path("s3://lab-bucket/x"), "campaigns")
    assert "the store's address does not work" in printed and "https://HOST:PORT" in printed


def test_what_a_killed_command_changed_is_stored_by_the_next(store: stores.Store, folder: Path) -> None:
    store.put(folder)
    name = "20261101T000000-lab-0001"
    with pytest.raises(RuntimeError), results(Path(store.url), campaign="last", writes=True) as here:
        (here / name / "journal.jsonl").write_text("more\n")
        raise RuntimeError
    with results(Path(store.url), "shelves", writes=True):
        pass
    key = f"lab/results/{name}/journal.jsonl"
    assert store.client.get_object(Bucket=store.bucket, Key=key)["Body"].read() == b"more\n"


def test_a_campaign_being_driven_here_stays_in_sight(store: stores.Store, folder: Path) -> None:
    store.put(folder)
    copy, name = copy_of(store.url), "20261101T000000-lab-0001"
    copy.pull(Need.LIST)
    for key in store.objects():
        store.client.delete_object(Bucket=store.bucket, Key=f"lab/results/{key}")
    with (copy.root / name / "controller.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        copy.pull(Need.LIST)
        assert (copy.root / name / "campaign.json").exists()
    copy.pull(Need.LIST)
    assert not (copy.root / name).exists()


def test_what_this_machine_has_no_room_for_is_not_fetched(
    store: stores.Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(folder)
    free = shutil.disk_usage(folder)._replace(free=(1 << 30) + 1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    sentence = refused(Path(store.url), *COMPARE)
    assert "0 MiB, but" in sentence and ": needs " in sentence and "FLEETMARK_STORES" in sentence
    assert not list(copy_of(store.url).root.glob("2026*"))


def test_a_bucket_that_is_not_there(store: stores.Store) -> None:
    url = "s3://no-such-bucket-here/x"
    for words in (("campaigns",), ("run",), COMPARE):
        assert "s3://no-such-bucket-here: no such bucket" in refused(Path(url), *words)


def test_a_store_that_does_not_answer(store: stores.Store) -> None:
    store.server.stop()
    sentence = refused(Path(store.url), "campaigns")
    assert sentence.startswith(f"s3://{store.bucket}: the store does not answer")
    assert sentence.endswith("check the network, and AWS_ENDPOINT_URL if it is set")


def test_no_credentials(store: stores.Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    assert "no credentials; set AWS_PROFILE" in refused(Path(store.url), "campaigns")


def test_without_the_package(store: stores.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    assert refused(Path(store.url), "campaigns").endswith("pip install 'fleetmark[stores]'")


@pytest.mark.parametrize("url", ["gs://bucket/x", "s3://B/x", "s3:///x", "https://x/y", "s3://bucket/a/../b"])
def test_what_is_no_store_is_refused(url: str) -> None:
    assert "write it as s3://BUCKET/PATH, or name a folder" in refused(Path(url), "campaigns")


def test_keys_lead_nowhere_else(store: stores.Store, folder: Path, tmp_path: Path) -> None:
    store.put(folder)
    name = "20261101T000000-lab-0001"
    for key in (
        f"{name}/raw/%2E%2E/%2E%2E/%2E%2E/out",
        f"{name}/facts/%2Fout",
        f"{name}/raw/{'x' * 256}",
        f"{name}//out",
    ):
        response = requests.put(f"{store.endpoint}/{store.bucket}/lab/results/{key}", data=b"x", timeout=120)
        assert response.ok
    run(Path(store.url), *COMPARE)
    run(Path(store.url), "report", "last")
    assert [p.name for p in tmp_path.rglob("*out*") if "copies" not in p.parts] == []


def test_paths_and_urls() -> None:
    assert url_of(Path("s3://b/p/q")) == "s3://b/p/q"
    assert url_of(Path("/s3/b")) is None
    assert url_of(Path("fleetmark-results")) is None
    assert name_of(Path("results")) == "results"


def test_a_command_that_repeats_names_the_store(store: stores.Store, folder: Path) -> None:
    store.put(folder)
    page = folder.parent / "page.html"
    run(Path(store.url), *COMPARE, "--html", str(page))
    assert store.url in page.read_text()


@pytest.mark.job
def test_a_campaign_is_run_into_a_store_and_read_on_another_machine(
    store: stores.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleetmark = Path(sys.executable).with_name("fleetmark")

    def typed(*words: str) -> subprocess.CompletedProcess[str]:
        command = [fleetmark, *words, "--results", store.url]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)

    done = typed("run", "--suite", "selftest", "--set", "selftest.commands=2")
    assert done.returncode == 0, done.stderr
    (folder,) = {key.partition("/")[0] for key in store.objects() if "/" in key}
    here = copy_of(store.url).root / folder
    kept = {str(p.relative_to(here.parent)) for p in here.rglob("*") if p.is_file() and p.name != "controller.lock"}
    assert {key for key in store.objects() if "/" in key} == kept, "and nobody's lock"
    assert any("/raw/" in name for name in kept)
    monkeypatch.setenv("FLEETMARK_STORES", str(tmp_path / "another"))
    again = typed("rebuild", "last", "--format", "json")
    assert json.loads(again.stdout)["changed"] == 0, again.stderr
    assert typed("report", "last").returncode == 0
    resumed = typed("run", "--resume", "last")
    assert resumed.returncode == 0, resumed.stderr
