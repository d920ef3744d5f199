"""Create and read the manifest of a document: the record, the options and the code that its figures come from."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

import fleetmark
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.inside import open_inside
from fleetmark.base.redact import redacted
from fleetmark.base.yaml import names_yaml
from fleetmark.planner.cost import SERVERS
from fleetmark.record import imports
from fleetmark.record.archive import Archive, chain
from fleetmark.record.documents import fault
from fleetmark.reports.kit import manifest as text_of

if TYPE_CHECKING:
    from fleetmark.reports.kit.document import Document
    from fleetmark.verbs.documents import Documents

LEAST_LOSS, MOST_LOSS = 0.005, 0.9  # limits of diagnose --least
MAX_RULES = 200_000  # characters
MAX_INPUT = 400_000  # characters of all files of a plan's question
MAX_LINE = 500  # characters
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}")  # a file name without a path
_GIT_S = 5.0
_MANY = 2000

Line = Annotated[str, Field(max_length=MAX_LINE)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Campaign = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,199}$")]
Source = Annotated[str, Field(pattern=r"^(imports/)?[A-Za-z0-9][A-Za-z0-9_.+-]{0,199}$")]  # no path outside the root
Pinned = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}(@[0-9]{1,6})?$")]
Share = Annotated[float, Field(ge=LEAST_LOSS, le=MOST_LOSS)]
Kind = Literal["html", "pdf", "xlsx", "md", "json", "csv"]


def _is_inline(mix: str) -> str:
    if names_yaml(mix) or "=" not in mix:
        raise ValueError("a manifest must not name a mix file")
    return mix


def _names_hosts(limit: str) -> str:
    """Refuse patterns that read a file or are a regular expression, because a document's author is not trusted."""
    if "@" in limit or "~" in limit:
        raise ValueError("a manifest must choose hosts by names or labels")
    return limit


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Comparing(_Strict):
    """The options of ``compare`` that determine its figures, named as in ``record.compare.Question``."""

    verb: Literal["compare"]
    baseline: Line | None = None
    candidates: Annotated[list[Line], Field(min_length=1, max_length=100)]
    reference: Pinned | None = None
    per: Annotated[str, Field(pattern=r"^[a-z]{1,20}$")] = "server"
    mix: Annotated[Line, AfterValidator(_is_inline)] | None = None
    panel: Annotated[list[Line], Field(max_length=200)] = []
    only: Annotated[list[Line], Field(max_length=200)] = []
    paired: bool = False
    host_label: Line | None = None
    best: bool = False
    names: Annotated[list[Line], Field(max_length=101)] = []
    prices: Annotated[list[Line], Field(max_length=101)] = []
    rates: Annotated[list[Line], Field(max_length=100)] = []
    watts: Annotated[list[Line], Field(max_length=101)] = []
    servers: Annotated[int, Field(ge=1, le=10**9)] = SERVERS
    term: Line | None = None
    energy: Line | None = None


class Reporting(_Strict):
    """The options of ``report`` that determine its figures."""

    verb: Literal["report"]
    campaign: Campaign


class Diagnosing(_Strict):
    """The options of ``diagnose`` that determine its findings.

    ``reference``: a pinned reference. ``least``: the smallest relevant loss by class of metrics. ``rules``: the rules
    as JSON. ``file``: their file name.
    """

    verb: Literal["diagnose"]
    campaign: Campaign
    everything: bool = False
    reference: Pinned | None = None
    least: Annotated[dict[Annotated[str, Field(max_length=40)], Share], Field(max_length=100)] = {}
    rules: Annotated[str, Field(max_length=MAX_RULES)] | None = None
    file: Line = ""


class Gating(_Strict):
    """The options of ``gate`` that determine its verdicts.

    ``rules``: the rules as JSON. ``file``: their file name.
    """

    verb: Literal["gate"]
    campaign: Campaign
    file: Line
    only: Annotated[Line, AfterValidator(_names_hosts)] | None = None
    rules: Annotated[str, Field(max_length=MAX_RULES)]


class Planning(_Strict):
    """The input of a plan and the options that determine its result.

    ``files``: the text of each input file by name. ``file``: the YAML file; empty for a folder of sheets. ``solved_s``,
    ``took_s``: the times of the solver and the whole analysis, which the document contains.
    """

    verb: Literal["plan"]
    file: Annotated[str, Field(pattern=f"^({NAME.pattern})?$")]
    files: Annotated[
        dict[Annotated[str, Field(pattern=f"^{NAME.pattern}$")], Annotated[str, Field(max_length=MAX_INPUT)]],
        Field(min_length=1, max_length=100),
    ]
    scenarios: Annotated[list[Annotated[str, Field(pattern=f"^{NAME.pattern}$")]], Field(max_length=50)] = []
    gap: Annotated[float, Field(ge=0, le=0.5)]
    seconds: Annotated[float, Field(ge=1, le=3600)]
    draws: Annotated[int, Field(ge=100, le=100_000)]
    seed: Annotated[int, Field(ge=0, le=2**31)]
    command: Line
    solved_s: Annotated[float, Field(ge=0, le=1e6)]
    took_s: Annotated[float, Field(ge=0, le=1e6)]


AnyQuestion = Comparing | Reporting | Diagnosing | Gating | Planning


class Origin(_Strict):
    """Identify a source of a document: the digest of a campaign's hash chain, or of its files if it has no chain."""

    chain: Digest | None = None
    sha256: Digest | None = None


class Manifest(_Strict):
    """The manifest of a document. ``exhibits``: a digest of each exhibit's figures by name."""

    fleetmark_manifest: Literal[1]
    fleetmark: Annotated[str, Field(max_length=100)]
    commit: Annotated[str, Field(max_length=100)] = ""
    question: Annotated[AnyQuestion, Field(discriminator="verb")]
    language: Literal["en", "zh-CN"] = "en"
    created: Annotated[str, Field(max_length=40, pattern=r"^[0-9T:.Z+-]*$")] = ""
    kinds: Annotated[list[Kind], Field(max_length=6)]
    appendix: bool = False
    raw: bool = False
    templates: bool = False
    inputs: Annotated[dict[Source, Origin], Field(max_length=_MANY)]
    exhibits: Annotated[
        dict[Annotated[str, Field(max_length=300)], Annotated[str, Field(max_length=16)]], Field(max_length=_MANY)
    ]


def manifest_of(raw: bytes, kind: str) -> Manifest:
    """Return the manifest in an untrusted document. Raise FleetmarkError if it is not valid."""
    try:
        return Manifest.model_validate(text_of.read(raw, kind))
    except ValidationError as error:
        raise FleetmarkError(f"its manifest {fault(error)}: it was edited, or a newer Fleetmark wrote it") from None


def stamped(
    document: Document,
    question: AnyQuestion,
    root: Path,
    sources: Iterable[str],
    documents: Documents,
    kinds: Collection[str],
) -> Document:
    """Return the document with a manifest.

    ``sources``: the campaigns and ``imports/ID`` under ``root`` that the figures come from. ``kinds``: the formats of
    the document's files.
    """
    manifest = {
        "fleetmark": fleetmark.__version__,
        "commit": commit(),
        "question": redacted(question.model_dump(mode="json", exclude_defaults=True) | {"verb": question.verb}),
        "language": documents.language.code,
        "created": document.created,
        "kinds": sorted(kinds),
        "appendix": documents.appendix,
        "raw": documents.raw,
        "templates": documents.templates is not None,
        "inputs": {name: origin(root, name) for name in sorted(set(sources))[:_MANY]},
        "exhibits": digests(document, root, kinds),
    }
    return replace(document, manifest=manifest)


def origin(root: Path, name: str) -> dict[str, str]:
    """Return the digest of the data that a campaign or imported table contributes; empty if it cannot be read."""
    archive = Archive(root / name)
    try:
        if not name.startswith(f"{imports.FOLDER}/") and archive.is_chained():
            return {"chain": archive.last_digest()}
        digest = hashlib.sha256()
        for file in ("campaign.json", "import.json", "measurements.parquet"):
            if (archive.path / file).exists():
                with open_inside(archive.path / file, archive.path) as content:
                    digest.update(chain.digest_of(content)[1].encode())
        return {"sha256": digest.hexdigest()}
    except (OSError, FleetmarkError):
        return {}


def digests(document: Document, root: Path, kinds: Collection[str]) -> dict[str, str]:
    """Return a digest of the figures of each exhibit in ``kinds`` of files.

    Exhibits that name the results root are omitted, because they differ on other machines.
    """
    from fleetmark.reports.formats.json import exhibits

    return {
        name: text_of.digest(shown)
        for name, shown in exhibits(document, ["markdown" if kind == "md" else kind for kind in kinds])
        if not names_root(json.dumps(shown), root)
    }


def names_root(text: str, root: Path) -> bool:
    """Return whether a text contains the path of the results root, which may differ on other machines."""
    return any(word in text for word in root_words(root))


def root_words(root: Path) -> Collection[str]:
    """Return the spellings of the results root in documents."""
    resolved = root.resolve()
    return {str(resolved), resolved.as_uri(), f"--results {root}"}


@cache
def commit() -> str:
    """Return the commit of the source tree that contains this code, with -dirty for changes; empty for an installed
    package.
    """
    house = Path(str(fleetmark.__file__)).resolve().parents[1]
    if not (house / ".git").exists():
        return ""
    words = ["git", "-C", str(house), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_GIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()[:100]
