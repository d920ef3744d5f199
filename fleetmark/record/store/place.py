"""Find the folder of a store's local copy, and the store of a copy."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from fleetmark.record.store.objects import Objects

ABOUT = ".store"  # the folder in a copy that holds the store's URL and the copy's state
_COPY = "@"  # subfolder of the URL's folder, so that no copy is inside another copy
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "FSSPEC_S3_ENDPOINT_URL")


def url_of(root: Path) -> str | None:
    """Return the URL given with ``--results``, or None for a folder. ``Path`` has shortened ``s3://`` to ``s3:/``."""
    kind, slash, rest = str(root).partition(":/")
    return f"{kind}://{rest.lstrip('/')}" if slash and kind.isalnum() and not root.exists() else None


def name_of(root: Path) -> str:
    """Return the value of ``--results`` for ``root``: the URL for a store or its copy."""
    file = root.absolute() / ABOUT / "url"
    try:
        return file.read_text() if file.is_relative_to(_home()) else url_of(root) or str(root)
    except OSError:
        return str(root)


def copy_root(objects: Objects) -> Path:
    """Return the root of the copy. Raise FleetmarkError if the store's address or profile is invalid."""
    return _folder(*objects.place(), *_path(objects))


def before(objects: Objects) -> Path | None:
    """Return the path that earlier versions used for a store's copy, which did not depend on the credentials."""
    named = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), "")
    return _folder(re.sub(r"//[^/]*@", "//", named), *_path(objects)) if named else None


def others(objects: Objects) -> Sequence[Path]:
    """Return other copies of this URL, made with other credentials or from another address."""
    end = "/".join((*map(_quoted, _path(objects)), _COPY))
    ours = copy_root(objects)
    return [root for depth in ("*", "*/*") for root in _home().glob(f"{depth}/{end}") if root != ours]


def _path(objects: Objects) -> list[str]:
    return objects.url.removeprefix("s3://").split("/")


def _folder(*parts: str) -> Path:
    return _home().joinpath(*map(_quoted, parts), _COPY)


def _quoted(part: str) -> str:
    return quote(part, safe=" +=,")


def _home() -> Path:
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    home = os.environ.get("FLEETMARK_STORES") or f"{data}/fleetmark/stores"
    return Path(home).expanduser().absolute()
