"""Describe what surrounds a served page's document: links to other pages, a form, and addresses of names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fleetmark.base.text import Message


@dataclass(frozen=True, slots=True)
class Link:
    """Link to another page. ``is_current``: the link leads to the page that shows it."""

    text: str | Message
    address: str
    is_current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a form. ``choices``: suggestions while the reader types."""

    name: str
    label: str | Message
    value: str = ""
    choices: tuple[str, ...] = ()
    placeholder: str = ""
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """A form that opens ``action`` with its fields in the query. ``submit``: the text of its button."""

    action: str
    submit: str | Message
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The pages around a document.

    ``links``: the main pages. ``related``: other pages and files about the same subject. ``address``: returns the page
    about a name in a table, such as a host's; empty if there is none. ``file``: returns the address of a file below the
    document's folder; empty if the file is not shown.
    """

    links: tuple[Link, ...]
    related: tuple[Link, ...] = ()
    form: Form | None = None
    address: Callable[[str], str]
    file: Callable[[str], str]
