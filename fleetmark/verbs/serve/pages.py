"""Create pages of the record from a URL's path and query fields."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlencode

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.base.inside import read_inside
from fleetmark.base.text import Message, message
from fleetmark.base.yaml import names_yaml
from fleetmark.record import watched
from fleetmark.record.archive import Archive, utc
from fleetmark.record.commands import command
from fleetmark.record.diagnosis.history import history
from fleetmark.reports.formats import html
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Document
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.openmetrics import TYPE as OPENMETRICS
from fleetmark.reports.kit.site import Field, Form, Link, Site
from fleetmark.reports.lists import campaigns as campaign_list
from fleetmark.reports.lists import recorded
from fleetmark.verbs.documents import Documents, renderers
from fleetmark.verbs.serve.shelf import Recorded, Shelf, Stamp, stamp_of

ROWS = 100  # rows per page
MOST_CHOICES = 200  # maximum suggestions in a form field
MOST_RAW = 8 << 20  # maximum bytes of a raw file to show
KINDS = {
    "pdf": "application/pdf",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "md": "text/markdown; charset=utf-8",
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
}
_HTML, _TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"


class Missing(FleetmarkError):
    """Report in one sentence that a URL has no page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An HTTP response.

    ``filename``: the name under which a browser saves the file; empty for a page to show. ``refresh_s``: seconds until
    the browser reloads the page; 0 for never.
    """

    body: bytes
    type: str
    status: str = "200 OK"
    filename: str = ""
    refresh_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A document with the context of its page.

    ``stamp``: changes when the document changes; None if the document is not cached. ``archive``: the campaign whose
    files the document names.
    """

    document: Document
    stamp: Stamp | None = None
    related: tuple[Link, ...] = ()
    form: Form | None = None
    archive: Archive | None = None


class Pages:
    """Create the pages of the record under ``root``. Safe to use from several threads."""

    def __init__(self, root: Path, language: Language) -> None:
        self._root, self._language = root, language
        self._shelf = Shelf(root)

    def reply(self, path: str, fields: Mapping[str, str]) -> Reply:
        """Return the page or file at ``path``.

        Raise Missing if there is no such page, and FleetmarkError if its fields are invalid.
        """
        if path == "/metrics":
            return _metrics(self._root)
        now = self._shelf.recorded()
        match PurePosixPath(path).parts:
            case ("/",):
                page = self._campaigns(now, fields)
            case ("/", "hosts"):
                page = self._hosts(now, fields)
            case ("/", "host"):
                page = self._host(now, fields.get("name", ""))
            case ("/", "history"):
                page = self._history(now)
            case ("/", "compare"):
                page = self._compare(now, fields)
            case ("/", "campaigns", name):
                page = self._campaign(_archive(now, name))
            case ("/", "campaigns", name, "findings"):
                page = self._findings(_archive(now, name))
            case ("/", "campaigns", name, "raw", *parts) if parts:
                return _raw(_archive(now, name), parts)
            case _:
                raise Missing(f"{fmt.clean(path)}: there is no such page; start at /")
        kind = fields.get("as", "")
        if kind and kind not in KINDS:
            raise FleetmarkError(f"as={fmt.clean(kind)}: unknown format; use {', '.join(KINDS)}")

        def make() -> Reply:
            return self._file(page.document, kind) if kind else self._shown(now, page, path)

        key = ("reply", path, tuple(sorted(fields.items())))
        return make() if page.stamp is None else self._shelf.kept(key, page.stamp, make)

    def close(self) -> None:
        """Wait for the page in progress, and create no further pages."""
        self._shelf.close()

    def make_newest(self) -> None:
        """Cache the pages that a reader opens first: the report and findings of the newest campaign.

        Raise FleetmarkError if the pages cannot be created.
        """
        newest = next(reversed(list(self._shelf.recorded().summaries)), None)
        for path in (f"/campaigns/{newest}", f"/campaigns/{newest}/findings") if newest else ():
            self.reply(path, {})

    def failure(self, sentence: str, status: str) -> Reply:
        """Return an error page with one sentence."""
        document = Document(title=message("Not shown"), answer=sentence, tone="bad", sections=())
        return replace(self._shown(None, Page(document=document), ""), status=status)

    def being_made(self) -> Reply:
        """Return a waiting page, which reloads until the requested page is ready."""
        text = message("Reading the record. The page opens by itself when it is ready.")
        document = Document(title=message("Reading the record"), answer=text, sections=())
        return replace(self._shown(None, Page(document=document), ""), status="202 Accepted", refresh_s=1)

    def _file(self, document: Document, kind: str) -> Reply:
        body = renderers(document, Documents(language=self._language))[kind]()
        return Reply(body=body, type=KINDS[kind], filename=f"{_file_name(document.title)}.{kind}")

    # --- documents ---------------------------------------------------------------------------------------------------

    def _campaigns(self, now: Recorded, fields: Mapping[str, str]) -> Page:
        words = fields.get("q", "").lower().split()
        newest = [s for s in reversed(list(now.summaries.values())) if _has(words, s.campaign, s.suite)]
        start = _start(fields, len(newest))
        listed = campaign_list.document(newest[start : start + ROWS], str(self._root))
        document = replace(listed, details=(_part(start, len(newest), "campaigns"),) if newest else ())
        form = Form(
            "/", message("Search"), (Field(name="q", label=message("Campaign or suite"), value=" ".join(words)),)
        )
        return Page(document=document, form=form, related=_pager("/", fields, start, len(newest)))

    def _hosts(self, now: Recorded, fields: Mapping[str, str]) -> Page:
        words = fields.get("q", "").lower().split()
        names = [
            name
            for name, by_campaign in now.campaigns_by_host.items()
            if _has(words, name, *(f"{k}={v}" for k, v in list(by_campaign.values())[-1].labels.items()))
        ]
        start = _start(fields, len(names))
        shown = [_recorded_host(now, name) for name in names[start : start + ROWS]]
        nothing = message("No recorded host matches.") if words else message("No host is recorded.")
        document = recorded.document(shown, _part(start, len(names), "hosts"), nothing)
        form = Form(
            "/hosts", message("Search"), (Field(name="q", label=message("Host or label"), value=" ".join(words)),)
        )
        return Page(document=document, form=form, related=_pager("/hosts", fields, start, len(names)))

    def _host(self, now: Recorded, name: str) -> Page:
        if name not in now.campaigns_by_host:
            raise Missing(f"host {fmt.clean(name)!r} is not recorded; search it under /hosts")
        host = _recorded_host(now, name)

        def make() -> Document:
            words = command(self._root, "history", "--limit", name)
            try:
                series = history(self._root, (), name=name)
            except FleetmarkError as error:  # no campaign of the host has figures
                return recorded.one(host, None, str(error), utc(), fmt.typed(words))
            return recorded.one(host, series, "", utc(), fmt.typed(words))

        return Page(document=self._shelf.kept(("host", name), now.stamp, make), stamp=now.stamp)

    def _history(self, now: Recorded) -> Page:
        from fleetmark.reports.diagnosis.history import document

        def make() -> Document:
            return document(history(self._root, ()), utc(), fmt.typed(command(self._root, "history")))

        return Page(document=self._shelf.kept(("history",), now.stamp, make), stamp=now.stamp)

    def _campaign(self, archive: Archive) -> Page:
        from fleetmark.verbs.report import campaign_document

        def make() -> Document:
            return campaign_document(archive, Documents(language=self._language))[1]

        stamp = stamp_of(archive)
        document = self._shelf.kept(("campaign", archive.id), stamp, make)
        return Page(document=document, stamp=stamp, archive=archive, related=_about(archive, "report"))

    def _findings(self, archive: Archive) -> Page:
        from fleetmark.record.diagnosis import diagnose
        from fleetmark.record.diagnosis.reruns import settled
        from fleetmark.record.diagnosis.roofs import roofs_of
        from fleetmark.reports.diagnosis.document import document

        def make() -> Document:
            diagnosis = settled(archive, diagnose(archive))
            words = fmt.typed(command(self._root, "diagnose", archive.id))
            return document(diagnosis, roofs_of(archive), utc(), words, self._language)

        stamp = stamp_of(archive)
        shown = self._shelf.kept(("findings", archive.id), stamp, make)
        return Page(document=shown, stamp=stamp, archive=archive, related=_about(archive, "findings"))

    def _compare(self, now: Recorded, fields: Mapping[str, str]) -> Page:
        from fleetmark.record.compare import Question, compare
        from fleetmark.verbs.report import comparison_document

        form = _question(now, fields)
        if "baseline" not in fields or not fields.get("candidate", "").strip("; "):
            text = message(
                "Choose a baseline and a candidate by labels or facts, such as gen=icelake or cpu.cores>=64."
            )
            return Page(document=Document(title=message("Compare"), answer=text, sections=()), form=form)
        if names_yaml(fields.get("mix", "")):
            raise FleetmarkError(f"mix {fmt.clean(fields['mix'])}: write shares, such as cpu-int=0.6,disk-iops=0.4")
        candidates = [part.strip() for part in fields["candidate"].split(";") if part.strip()]
        question = Question(
            root=self._root,
            baseline=fields["baseline"],
            candidates=candidates,
            per=fields.get("per", "server"),
            mix=fields.get("mix"),
        )

        def make() -> Document:
            answer = compare(question, turn=True)
            return comparison_document(question, answer, Documents(language=self._language), has_evidence=True)

        key = ("compare", question.baseline, tuple(question.candidates), question.per, question.mix)
        try:
            document = self._shelf.kept(key, now.stamp, make)
        except FleetmarkError as error:  # keep the form with the user's input
            document = Document(title=message("Compare"), answer=str(error), tone="bad", sections=())
            return Page(document=document, form=form)
        return Page(document=document, stamp=now.stamp, form=form, related=_files("/compare", fields))

    # --- the context of a document -----------------------------------------------------------------------------------

    def _shown(self, now: Recorded | None, page: Page, path: str) -> Reply:
        main = (
            Link(message("Campaigns"), "/", path == "/"),
            Link(message("Hosts"), "/hosts", path == "/hosts"),
            Link(message("History"), "/history", path == "/history"),
            Link(message("Compare"), "/compare", path == "/compare"),
        )
        place = f"/campaigns/{quote(page.archive.id, safe='')}" if page.archive else ""
        site = Site(
            links=main,
            related=page.related,
            form=page.form,
            address=_addresses(now) if now else lambda _: "",
            file=lambda file: f"{place}/{quote(file)}" if place and file.startswith("raw/") else "",
        )
        return Reply(body=html.render(page.document, self._language, site=site).encode(), type=_HTML)


def _addresses(now: Recorded) -> Callable[[str], str]:
    """Return a function that returns the URL of the page about a campaign or host, or an empty text."""

    def address(name: str) -> str:
        if name in now.summaries:
            return f"/campaigns/{quote(name, safe='')}"
        return f"/host?{urlencode({'name': name})}" if name in now.campaigns_by_host else ""

    return address


def _archive(now: Recorded, name: str) -> Archive:
    """Return a recorded campaign. No other path is ever opened."""
    if name not in now.summaries:
        raise Missing(f"campaign {fmt.clean(name)!r} is not recorded; / lists the campaigns")
    return Archive(now.summaries[name].path)


def _raw(archive: Archive, parts: list[str]) -> Reply:
    """Return a raw file as text. Raise Missing if it is not a plain file below the campaign's folder."""
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise Missing("raw files have no such path; follow the links of a campaign's page")
    file = archive.path.joinpath("raw", *parts)
    try:
        body = read_inside(file, archive.path, MOST_RAW)
    except OSError as error:
        raise Missing(f"{fmt.clean('/'.join(parts))}: cannot be shown: {error.strerror}") from error
    return Reply(body=body, type=_TEXT)


def _recorded_host(now: Recorded, name: str) -> recorded.RecordedHost:
    by_campaign = now.campaigns_by_host[name]
    last = list(by_campaign.values())[-1]
    facts: Facts | None = None
    with contextlib.suppress(FleetmarkError):
        facts = last.facts()
    return recorded.RecordedHost(name=name, campaigns=tuple(by_campaign), labels=last.labels, facts=facts)


def _metrics(root: Path) -> Reply:
    body = watched.metrics(root)
    if body is None:
        raise Missing("There are no metrics yet; fleetmark watch creates them.")
    return Reply(body=body, type=OPENMETRICS)


def _question(now: Recorded, fields: Mapping[str, str]) -> Form:
    labels = dict.fromkeys(f"{name}={value}" for m in now.machines for name, value in m.labels.items())
    newest = (f"campaign={name}" for name in reversed(list(now.summaries)))
    choices = tuple([*labels, *newest][:MOST_CHOICES])

    def field(
        name: str, label: str, placeholder: str, *, is_required: bool = False, has_choices: bool = False
    ) -> Field:
        return Field(
            name=name,
            label=label,
            value=fields.get(name, ""),
            placeholder=placeholder,
            choices=choices if has_choices else (),
            is_required=is_required,
        )

    return Form(
        "/compare",
        message("Compare"),
        (
            field("baseline", message("Baseline"), "gen=icelake", is_required=True, has_choices=True),
            field("candidate", message("Candidates"), "gen=genoa; gen=turin", is_required=True, has_choices=True),
            field("mix", message("Mix"), "cpu-int=0.6,disk-iops=0.4"),
            field("per", message("Per"), "server"),
        ),
    )


def _about(archive: Archive, current: str) -> tuple[Link, ...]:
    place = f"/campaigns/{quote(archive.id, safe='')}"
    pages = (
        Link(message("Report"), place, current == "report"),
        Link(message("Findings"), f"{place}/findings", current == "findings"),
    )
    return (*pages, *_files(place if current == "report" else f"{place}/findings", {}))


def _files(place: str, fields: Mapping[str, str]) -> tuple[Link, ...]:
    """Return a link to the document in each other format."""
    return tuple(Link(kind.upper(), f"{place}?{urlencode({**fields, 'as': kind})}") for kind in KINDS)


def _pager(place: str, fields: Mapping[str, str], start: int, length: int) -> tuple[Link, ...]:
    """Return links to the previous and next rows."""
    turns = (
        (message("Previous"), start - ROWS, start > 0),
        (message("Next"), start + ROWS, start + ROWS < length),
    )
    return tuple(
        Link(text, f"{place}?{urlencode({**fields, 'start': max(0, first)})}")
        for text, first, exists in turns
        if exists
    )


def _part(start: int, length: int, noun: str) -> Message:
    shown = f"{min(start + 1, length):,}–{min(start + ROWS, length):,}"
    if noun == "hosts":
        return message("Hosts {shown} of {length}", shown=shown, length=f"{length:,}")
    return message("Campaigns {shown} of {length}, newest first", shown=shown, length=f"{length:,}")


def _start(fields: Mapping[str, str], length: int) -> int:
    text = fields.get("start", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise FleetmarkError(f"start={fmt.clean(text)}: must be a whole number")
    return min(int(text), max(0, length - 1)) // ROWS * ROWS


def _has(words: list[str], *texts: str) -> bool:
    together = " ".join(texts).lower()
    return all(word in together for word in words)


def _file_name(title: str) -> str:
    """Return a title as a file name of ASCII letters, digits, hyphens, underscores and dots."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in title)
    return plain.strip("-.")[:80] or "fleetmark"
