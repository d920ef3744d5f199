"""Names that shell-style patterns choose."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence


def is_chosen(name: str, patterns: Sequence[str]) -> bool:
    """Whether any of ``patterns`` matches ``name``; without patterns every name is chosen."""
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
