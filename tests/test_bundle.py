"""Bundles are checked before anything of them is used, and everything that a role fetches is pinned."""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleetmark.base.errors import FleetmarkError
from fleetmark.campaign.bundle import SCHEMA, _bound_headers, check, fetch, target_of, unpack
from fleetmark.campaign.bundle.wanted import checksum_of, wanted
from fleetmark.workloads import load, load_suite, names

ROOT = Path(__file__).parents[1]
CONTENT = b"int main(void) { return 0; }\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PATH = f"sources/{SHA256}-stream.c"


def entry(**fields: Any) -> dict[str, Any]:
    return {"path": PATH, "sha256": SHA256, "bytes": len(CONTENT), **fields}


def member(name: str = PATH, content: bytes = CONTENT, **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, content


def bundle(folder: Path, entries: list[dict[str, Any]], *members: tuple[tarfile.TarInfo, bytes], **index: Any) -> Path:
    head = {"schema": SCHEMA, "fleetmark": "1", "created": "now", "suite": "quick", "targets": ["debian12"], **index}
    text = json.dumps({**head, "entries": entries}).encode()
    file = folder / "bundle.tar"
    with tarfile.open(file, "w") as tar:
        for info, content in (member("bundle.json", text), *members):
            tar.addfile(info, io.BytesIO(content))
    return file


def test_a_source_lies_where_the_role_looks_for_it(tmp_path: Path) -> None:
    file = bundle(tmp_path, [entry()], member())
    assert [e.path for e in check(file).entries] == [PATH]
    assert unpack(file, tmp_path / "out") == {}
    assert (tmp_path / "out/fleetmark" / PATH.removeprefix("sources/")).read_bytes() == CONTENT


def test_packages_are_found_by_distribution(tmp_path: Path) -> None:
    path = "packages/debian12-x86_64.tar"
    file = bundle(tmp_path, [entry(path=path)], member(path))
    unpacked = unpack(file, tmp_path / "out")
    assert unpacked == {"debian12-x86_64": (str(tmp_path / "out/fleetmark/debian12-x86_64.tar"), SHA256)}


LINKS = [
    {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd", "size": 0},
    {"type": tarfile.LNKTYPE, "linkname": "bundle.json", "size": 0},
    {"type": tarfile.FIFOTYPE, "size": 0},
    {"type": tarfile.DIRTYPE, "size": 0},
]
HOSTILE = {
    "another content": ([entry()], [member(content=CONTENT.replace(b"0", b"1"))], "has sha256"),
    "another size": ([entry()], [member(content=CONTENT + b" ")], "does not match bundle.json"),
    "not listed": ([], [member()], "does not match bundle.json"),
    "listed, not there": ([entry()], [], "is missing"),
    "twice in the tar": ([entry()], [member(), member()], "does not match bundle.json"),
    "twice in the index": ([entry(), entry()], [member()], "contains a file twice"),
    "a name that leads out": ([entry(path="sources/../../x")], [member("sources/../../x")], "entries.0.path"),
    "a whole path": ([entry(path="/etc/cron.d/x")], [member("/etc/cron.d/x")], "entries.0.path"),
    "a name with another hash": (
        [entry(path=f"sources/{'0' * 64}-stream.c")],
        [member(f"sources/{'0' * 64}-stream.c")],
        "the SHA-256 in its name is not",
    ),
    "an unknown key": ([entry(run="x")], [member()], "entries.0.run"),
    **{
        f"type {link['type']!r}": ([entry(bytes=0)], [member(content=b"", **link)], "is not a regular file")
        for link in LINKS
    },
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_bundle_with_anything_else_is_refused(case: str, tmp_path: Path) -> None:
    entries, members, sentence = HOSTILE[case]
    file = bundle(tmp_path, entries, *members)
    for read in (lambda: check(file), lambda: unpack(file, tmp_path / "out")):
        with pytest.raises(FleetmarkError, match=re.escape(sentence)) as error:
            read()
        assert "\n" not in str(error.value)
    assert not [p for p in tmp_path.rglob("*") if p.is_symlink()]
    assert {p.parent for p in tmp_path.rglob("*") if p.is_file()} <= {tmp_path, tmp_path / "out/fleetmark"}


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_that_would_fill_the_memory_is_refused(kind: bytes, tmp_path: Path) -> None:
    head = tarfile.TarInfo("x")
    head.type, head.size = kind, 100 << 30
    file = tmp_path / "bundle.tar"
    file.write_bytes(head.tobuf(tarfile.GNU_FORMAT))
    with file.open("r+b") as out:
        out.truncate(head.size)  # a sparse file, which takes no space
    with pytest.raises(FleetmarkError, match="is not a regular file"):
        check(file)


def test_a_source_of_more_than_eight_gibibytes_is_passed_over(tmp_path: Path) -> None:
    """Only an extended header has its size. The file is sparse, and its hash is not that of the index."""
    size = 9 << 30
    info, _ = member(f"sources/{SHA256}-" + "x" * 60)
    info.size = size
    file = bundle(tmp_path, [entry(path=info.name, bytes=size)])
    start = file.read_bytes().rstrip(b"\0")
    start += b"\0" * (-len(start) % tarfile.BLOCKSIZE)
    file.write_bytes(start + info.tobuf(tarfile.PAX_FORMAT))
    with file.open("r+b") as out:
        out.seek(0, 2)
        out.truncate(out.tell() + size + 2 * tarfile.BLOCKSIZE)
    _bound_headers(file)


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x"
    for content in (b"", b"hello", b"\0" * 20_000, b"\x1f\x8b" + b"x" * 2000):
        file.write_bytes(content)
        with pytest.raises(FleetmarkError, match=r"not a bundle"):
            check(file)
    content = bundle(tmp_path, [entry()], member()).read_bytes()
    file.write_bytes(content[: content.index(CONTENT) + 4])
    with pytest.raises(FleetmarkError, match=r"truncated|is missing|has sha256"):
        check(file)
    with pytest.raises(FleetmarkError, match="not a bundle: its first file"):
        with tarfile.open(file, "w") as tar:
            info, content = member("bundle.json", b" " * ((4 << 20) + 1))
            tar.addfile(info, io.BytesIO(content))
        check(file)


@pytest.mark.parametrize(
    ("system", "target"),
    [
        ("Debian GNU/Linux 12 (bookworm)", "debian12"),
        ("Ubuntu 24.04.1 LTS", "ubuntu24.04"),
        ("Rocky Linux 9.4 (Blue Onyx)", "rocky9"),
        ("AlmaLinux 9.5 (Teal Serval)", "alma9"),
        ("Red Hat Enterprise Linux 9.6 (Plow)", "rhel9"),
        ("Debian GNU/Linux trixie/sid", ""),
        ("", ""),
    ],
)
def test_distributions_have_short_names(system: str, target: str) -> None:
    assert target_of(system) == target


def tasks(node: Any) -> list[dict[str, Any]]:
    result = [node] if isinstance(node, dict) else []
    for below in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
        result += tasks(below)
    return result


def test_everything_a_role_fetches_is_pinned() -> None:
    """A URL and the archive of a commit have a SHA-256: in roles, and in the defaults of manifests."""
    fetching = re.compile(r"\b(curl|wget|urlopen|urlretrieve|git clone)\b")
    pairs = set()
    for file in sorted((ROOT / "playbooks").rglob("*.yml")):
        for task in tasks(yaml.safe_load(file.read_text())):
            if "ansible.builtin.get_url" in task:
                assert task["ansible.builtin.get_url"]["checksum"].startswith("sha256:{{ fm_sha256"), file
            assert "ansible.builtin.uri" not in task and "ansible.builtin.git" not in task, file
            if "fm_source" in task and file.parent.parent.name != "source":
                pairs.add((file.parents[1].name, task["fm_source"], task["fm_sha256"]))
            if "fm_git" in task:
                assert task["fm_commit_sha256"] == "{{ fm_params.commit_sha256 }}", file
    for file in sorted((ROOT / "playbooks" / "roles").glob("*/files/*.*")):
        text = "\n".join(line for line in file.read_text().splitlines() if not line.lstrip().startswith("#"))
        assert not fetching.search(text), f"{file} fetches by itself: use the role source"
    for role, source, digest in pairs:
        if match := re.fullmatch(r"\{\{ fm_params\.(\w+) \}\}", source):
            assert digest.startswith(f"{{{{ fm_params.{checksum_of(load(role), match[1])}"), role
    assert len(pairs) >= 5
    for name in names():
        manifest = load(name)
        for key, parameter in manifest.parameters.items():
            if parameter.type == "source":
                assert not parameter.default, f"{name}.{key}: a default source has no pin"
        if "git" in manifest.parameters:
            assert re.fullmatch(r"[0-9a-f]{40}", str(manifest.parameters["commit"].default)), name
            assert re.fullmatch(r"[0-9a-f]{64}", str(manifest.parameters["commit_sha256"].default)), name


def test_a_commit_is_collected_by_the_checksum_of_its_archive(tmp_path: Path) -> None:
    """The bundle has it under the name that the role looks for; another checksum, or none, is refused."""
    repository = tmp_path / "repository"
    me = ["-c", "user.name=x", "-c", "user.email=x@y"]
    for words in (["init", "-q"], [*me, "commit", "-q", "--allow-empty", "-m", "x"]):
        repository.mkdir(exist_ok=True)
        subprocess.run(["git", *words], cwd=repository, check=True)
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=repository, text=True).strip()
    archive = subprocess.check_output(["git", "-c", "tar.umask=0002", "archive", commit], cwd=repository)
    sha256 = hashlib.sha256(archive).hexdigest()
    settings = {"nvbandwidth": {"git": str(repository), "commit": commit, "commit_sha256": sha256.upper()}}
    (checkout,) = wanted(load_suite("nvbandwidth"), settings).checkouts
    path = fetch.checkout(checkout, tmp_path)
    assert path.relative_to(tmp_path) == Path(f"fleetmark/{sha256}-{commit}.tar") and path.read_bytes() == archive
    with pytest.raises(FleetmarkError, match=f"has sha256 {sha256}, not {SHA256}: correct the parameter commit_sha256"):
        fetch.checkout(replace(checkout, sha256=SHA256), tmp_path)
    del settings["nvbandwidth"]["commit_sha256"]
    with pytest.raises(FleetmarkError, match=r"needs a checksum; also set nvbandwidth\.commit_sha256"):
        wanted(load_suite("nvbandwidth"), settings)


def test_a_url_without_a_checksum_is_refused() -> None:
    url = "https://example.org/linux-6.12.tar.xz"
    settings = {"kernel_build": {"source": url}}
    with pytest.raises(FleetmarkError, match=r"kernel_build\.source_sha256, its checksum"):
        wanted(load_suite("kernel_build"), settings)
    settings["kernel_build"]["source_sha256"] = SHA256.upper()
    needs = wanted(load_suite("kernel_build"), settings)
    assert [(d.url, d.sha256) for d in needs.downloads] == [(url, SHA256)]
    assert wanted(load_suite("standard"), {}).packages["debian"][:3] == ("gcc", "libc6-dev", "fio")
