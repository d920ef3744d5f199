"""Make untrusted text visible: replace characters that control a terminal or reorder a line with printable ones."""

from __future__ import annotations

import re

# Control characters (C0 except tab and line feed, DEL, C1), bidirectional controls, line separators, zero-width
# characters, and single surrogates, which no encoding can represent.
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """Return ``text`` with every such character replaced: ESC by ``␛``, characters without a picture by their code."""
    return _ACTING.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else f"<U+{code:04X}>"
