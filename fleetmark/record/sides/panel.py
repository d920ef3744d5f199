"""Resolve the panel of a comparison: the benchmarks that a user names as headlines, as titles."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

from fleetmark.base.errors import FleetmarkError

MOST_NAMED = 6  # maximum number of titles in a sentence


def panel(words: Sequence[str], titles: Iterable[str]) -> list[str]:
    """Return the titles that ``words`` select: a title, a part of only one title, a pattern with ``*``, or several
    separated by commas.

    Raise FleetmarkError for a word that matches no title, or for a word without ``*`` that matches several.
    """
    every = sorted(set(titles))
    return list(dict.fromkeys(title for word in words for title in _named(word, every)))


def _named(word: str, every: Sequence[str]) -> list[str]:
    if titles := _matching(word, every):
        return titles
    parts = [part.strip() for part in word.split(",") if part.strip()]
    if len(parts) > 1:
        return [title for part in parts for title in _named(part, every)]
    raise FleetmarkError(f"--panel {word}: no machine ran this benchmark; use one of {_some(every)}")


def _matching(word: str, every: Sequence[str]) -> list[str]:
    if word in every:
        return [word]
    if any(sign in word for sign in "*?"):
        return [title for title in every if fnmatch.fnmatchcase(title.lower(), word.lower())]
    parts = [title for title in every if word.strip() and word.strip().lower() in title.lower()]
    if len(parts) > 1:
        raise FleetmarkError(
            f"--panel {word} is part of {len(parts)} benchmarks: {_some(parts)}; write more of its name, or a "
            f"pattern such as '*{word}*' for all"
        )
    return parts


def _some(titles: Sequence[str]) -> str:
    further = f"; and {len(titles) - MOST_NAMED} more" if len(titles) > MOST_NAMED else ""
    return "; ".join(titles[:MOST_NAMED]) + further
