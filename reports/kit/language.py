"""Translate the fixed text of reports: English, or a catalogue of translations beside this module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.text import Message
from fleetmark.base.yaml import read_yaml

_HERE = Path(__file__).parent / "languages"
ENGLISH = "en"
_STOPPED = re.compile(r"(?<=[。；：）]) +(?=\S)")  # full-width punctuation includes its own space


@dataclass(frozen=True, slots=True)
class Language:
    """A language's ``code`` (as in HTML's lang) and its ``texts``, which map English templates to translations."""

    code: str = ENGLISH
    texts: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, text: str, **values: Any) -> str:
        """Return ``text`` (a template, or a sentence made by ``message``) in this language.

        Text without a translation stays English.
        """
        if isinstance(text, Message):
            return self(text.template, **text.values)
        translation = self.texts.get(text, text)
        if values:
            translation = translation.format_map(
                {k: self(v) if isinstance(v, Message) else v for k, v in values.items()}
            )
        return _STOPPED.sub("", translation) if self.texts else translation


def languages() -> list[str]:
    """Return the codes of all languages."""
    return [ENGLISH, *sorted(p.stem for p in _HERE.glob("*.yml"))]


def language(code: str) -> Language:
    """Return the language ``code``. Raise FleetmarkError with the known codes for any other code."""
    if code == ENGLISH:
        return Language()
    if code not in languages():
        raise FleetmarkError(f"no language {code!r}{suggest(code, languages())}; there are {', '.join(languages())}")
    return Language(code, {str(k): str(v) for k, v in read_yaml(_HERE / f"{code}.yml").items()})
