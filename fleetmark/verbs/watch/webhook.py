"""Post messages to a webhook. The webhook's URL is a secret and is never printed."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from fleetmark.base.errors import FleetmarkError

TRIES = 5
FIRST_PAUSE_S, MOST_PAUSE_S = 1.0, 60.0
TIMEOUT_S = 15.0
MOST_LINES = 30  # maximum lines per message
MOST_FILE = 4096  # bytes


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuse redirects, which would send the message to a URL that the user did not give."""

    def redirect_request(self, *_: object) -> None:
        return None


_OPEN = urllib.request.build_opener(_NoRedirect).open


def address_in(file: Path) -> str:
    """Return the URL of a webhook from the first line of a file.

    Raise FleetmarkError, without quoting the URL, if it is invalid.
    """
    try:
        with file.open("rb") as stream:
            words = stream.read(MOST_FILE).decode("ascii").split()
    except (OSError, UnicodeDecodeError) as error:
        raise FleetmarkError(f"--webhook-file {file}: cannot be read as text") from error
    parts = urlsplit(words[0]) if len(words) == 1 else None
    if parts is None or parts.scheme not in ("https", "http") or not parts.hostname:
        raise FleetmarkError(f"--webhook-file {file}: needs one line with an https:// address")
    return words[0]


def body(lines: Sequence[str]) -> bytes:
    """Return a message as Slack-compatible JSON. Escape Slack's markup characters."""
    shown = list(lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        shown.append(f"and {len(lines) - MOST_LINES} more")
    text = "\n".join(shown).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return json.dumps({"text": text}).encode()


def post(address: str, lines: Sequence[str], sleep: Callable[[float], None] = time.sleep) -> str | None:
    """Post ``lines``, with retries and exponential backoff on server errors.

    Return the reason of a failure, or None.
    """
    data, pause, reason = body(lines), FIRST_PAUSE_S, ""
    for attempt in range(TRIES):
        if attempt:
            sleep(pause)
            pause = min(2 * pause, MOST_PAUSE_S)
        request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
        try:
            with _OPEN(request, timeout=TIMEOUT_S):
                return None
        except urllib.error.HTTPError as error:
            error.close()
            reason = f"the server answered {error.code}"
            if error.code != 429 and error.code < 500:
                return reason  # the same request would fail again
            pause = max(pause, _asked(error.headers.get("Retry-After", "")))
        except (OSError, HTTPException, ValueError) as error:  # the text of a ValueError may quote the URL
            reason = f"no connection ({type(error).__name__})"
    return f"{reason} in {TRIES} attempts"


def _asked(header: str) -> float:
    return min(float(header), MOST_PAUSE_S) if header.isascii() and header.isdigit() else 0.0
