"""Save documents by name and version under the results root. A new version never changes an old one.

The files are ``references/NAME.VERSION.json`` and ``profiles/NAME.VERSION.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from fleetmark import __version__
from fleetmark.base.errors import FleetmarkError, suggest, unread_schema
from fleetmark.base.files import decode_json
from fleetmark.base.inside import read_inside, replace_inside
from fleetmark.record.archive import utc
from fleetmark.record.documents import fault
from fleetmark.record.pinned.models import MODELS
from fleetmark.workloads.misfit import misfit

SCHEMA = 1
LARGEST_BYTES = 64 << 20  # maximum document size
_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,60}", re.ASCII)
_FILE = re.compile(r"(.+)\.(\d+)\.json")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shelf:
    """One kind of document: its noun (``word``; the folder is the plural), an ``example`` of a name, the
    command that saves one (``made_by``), and the advice for a ``damaged`` one.
    """

    word: str
    example: str
    made_by: str
    damaged: str

    def path(self, root: Path, name: str, version: int | str) -> Path:
        """Return the path of version ``version`` of ``name``."""
        return root / f"{self.word}s" / f"{name}.{version}.json"

    def versions(self, root: Path) -> list[tuple[str, int]]:
        """Return all saved documents as (name, version)."""
        matches = (_FILE.fullmatch(p.name) for p in (root / f"{self.word}s").glob("*.json"))
        return [(m[1], int(m[2])) for m in matches if m]

    def save(self, root: Path, name: str, content: Mapping[str, Any], after: int = 0) -> dict[str, Any]:
        """Save ``content`` as the next version of ``name``, with a number above ``after``. Return the document.

        Raise FleetmarkError if the name is invalid.
        """
        if not _NAME.fullmatch(name):
            raise FleetmarkError(
                f"{self.word} {name!r}: not a name; use letters, digits, - and _, such as {self.example}"
            )
        version = 1 + max((v for n, v in self.versions(root) if n == name), default=after)
        head = {"schema": SCHEMA, "name": name, "version": version, "created": utc(), "fleetmark": __version__}
        doc = head | dict(content)
        path = self.path(root, name, version)
        try:
            replace_inside(path, root, json.dumps(doc, indent=1), private=False)
        except OSError as error:
            raise FleetmarkError(f"cannot write {path}: {error.strerror}") from error
        return doc

    def find(self, root: Path, name: str) -> Path:
        """Return the path of ``name`` (the latest version) or ``name@2``. Raise FleetmarkError if there is none."""
        base, separator, version = name.partition("@")
        versions = sorted(v for n, v in self.versions(root) if n == base)
        if not versions or (separator and version not in map(str, versions)):
            names = sorted({n for n, _ in self.versions(root)})
            numbers = ", ".join(map(str, versions))
            have = f"{base} has versions {numbers}" if versions else f"there are {', '.join(names)}"
            hint = have if names else f"there is none yet: {self.made_by}"
            raise FleetmarkError(f"no {self.word} {name!r}{suggest(base, names) if not versions else ''}; {hint}")
        return self.path(root, base, version or versions[-1])

    def read(self, path: Path, build: Callable[[Mapping[str, Any]], T]) -> T:
        """Return the document at ``path`` as converted by ``build``. Raise FleetmarkError if it is damaged."""
        try:
            doc = decode_json(read_inside(path, path.parent.parent, LARGEST_BYTES))
            if doc["schema"] != SCHEMA:
                raise unread_schema(path, doc["schema"], SCHEMA)
            model = MODELS[self.word]
            model.model_validate(doc)
            return build(doc)
        except json.JSONDecodeError as error:
            location = f"line {error.lineno} column {error.colno}"
            raise FleetmarkError(f"{path}: damaged (no JSON from {location} on); {self.damaged}") from error
        except KeyError as error:
            raise FleetmarkError(f"{path}: damaged (lacks {error.args[0]}); {self.damaged}") from error
        except ValidationError as error:
            first = error.errors()[0]
            if first["type"] == "missing":
                raise FleetmarkError(f"{path}: damaged (lacks {first['loc'][-1]}); {self.damaged}") from error
            raise FleetmarkError(f"{path}: damaged ({misfit(error, model)}); {self.damaged}") from error
        except (OSError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
            raise FleetmarkError(f"{path}: damaged ({fault(error)}); {self.damaged}") from error


# Defined here because every report checks whether any exist, but few load the modules that read them.
REFERENCES = Shelf("reference", "icelake-2026", "fleetmark reference save NAME --from last", "save the reference again")
BASELINES = Shelf("baseline", "genoa-2026", REFERENCES.made_by, REFERENCES.damaged)  # of earlier versions; read-only
