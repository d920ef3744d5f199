"""Write and read a document's manifest: one line of ASCII that identifies the record, question and code behind it.

The text is inert in every format: it contains no space, newline, ``<``, ``>`` or ``&``, and does not end a comment.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from fleetmark.base.errors import FleetmarkError, required

VERSION = "fleetmark_manifest"  # the first key of a manifest
KEY = "manifest"  # key of the manifest in a JSON document
MAX_BYTES = 2 << 20  # maximum bytes of a manifest; a workbook part that contains one may have twice as many
CELL = 30_000  # characters of a manifest per cell of a workbook
_BEGIN = f'{{"{VERSION}":1,'.encode()
_BETWEEN = b"</t></si><si><t>"  # separates two texts of a workbook


def written(manifest: Mapping[str, Any]) -> str:
    """Return the manifest as one line."""
    text = json.dumps({VERSION: 1, **manifest}, separators=(",", ":"))
    for sign in "<>& ":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text.replace("--", "-\\u002d")


def parts(manifest: Mapping[str, Any]) -> list[str]:
    """Return the line in parts that fit into cells of a workbook."""
    text = written(manifest)
    return [text[n : n + CELL] for n in range(0, len(text), CELL)]


def attach(pdf: Any, manifest: Mapping[str, Any]) -> None:
    """Attach the manifest to ``pdf``, a ``pydyf.PDF``, as an uncompressed file."""
    pydyf = required("pydyf", "pdf", "a PDF")
    name = pydyf.String("fleetmark.json")
    stream = pydyf.Stream([written(manifest).encode()], {"Type": "/EmbeddedFile", "Subtype": "/application#2Fjson"})
    pdf.add_object(stream)
    description = pydyf.String("How to check the figures: fleetmark verify FILE")
    file = {"Type": "/Filespec", "F": name, "UF": name, "Desc": description, "AFRelationship": "/Data"}
    entry = pydyf.Dictionary({**file, "EF": pydyf.Dictionary({"F": stream.reference})})
    pdf.add_object(entry)
    files = pydyf.Dictionary({"Names": pydyf.Array([name, entry.reference])})
    pdf.add_object(files)
    pdf.catalog.setdefault("Names", pydyf.Dictionary())["EmbeddedFiles"] = files.reference


def read(raw: bytes, kind: str) -> dict[str, Any]:
    """Return the manifest in a document. ``raw`` is untrusted, so every size is bounded.

    ``kind``: html, pdf, xlsx, md or json. Raise FleetmarkError, without the file's name, if there is none.
    """
    try:
        document: Any
        if kind == "json":
            document = json.loads(raw)
            document = document.get(KEY) if isinstance(document, dict) else None
        else:
            source = _texts(raw) if kind == "xlsx" else raw
            begin = source.rfind(_BEGIN)
            text = source[begin : begin + MAX_BYTES].decode("utf-8", "replace") if begin >= 0 else "null"
            document, _ = json.JSONDecoder().raw_decode(text)
    except (
        ValueError,
        RecursionError,
        OSError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
    ) as error:
        raise FleetmarkError(f"it has no manifest that can be read ({type(error).__name__})") from error
    if not isinstance(document, dict):
        raise FleetmarkError("it has no manifest: an older Fleetmark or another program wrote it")
    return document


def _texts(raw: bytes) -> bytes:
    """Return the texts of a workbook that may contain a manifest."""
    with zipfile.ZipFile(io.BytesIO(raw)) as book, book.open("xl/sharedStrings.xml") as file:
        text = b""
        while block := file.read(1 << 20):
            text = (text if _BEGIN in text else text[-len(_BEGIN) :]) + block
            begin = text.rfind(_BEGIN)
            text = text[begin:] if begin > 0 else text
            if len(text) > 2 * MAX_BYTES + (1 << 20):
                break
    return text.replace(_BETWEEN, b"")


def digest(document: Any) -> str:
    """Return a short SHA-256 of a JSON document."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def differing(before: Mapping[str, str], now: Mapping[str, str]) -> Sequence[str]:
    """Return the names of exhibits whose digests differ, in the order of ``now``."""
    names = dict.fromkeys([*now, *before])
    return [name for name in names if before.get(name) != now.get(name)]
