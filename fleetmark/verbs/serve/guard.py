"""Decide which requests to answer: only reads, and only to an allowed host name or with the token."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

COOKIE = "fleetmark"
MOST_QUERY = 4000  # characters
MOST_FIELDS = 20


@dataclass(frozen=True, slots=True)
class Refusal:
    """A response without a page: the status, a sentence, and headers."""

    status: str
    sentence: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Guard:
    """Check requests.

    ``token``: the token that a browser must send, or None. ``hosts``: the allowed values of the Host header, or None
    for any. The check prevents DNS rebinding: another web site cannot read the record through a name that resolves to
    this machine.
    """

    token: str | None
    hosts: Collection[str] | None

    def check(self, environ: Mapping[str, Any]) -> Refusal | None:
        """Return why the request in a WSGI environment is refused, or None if it is allowed."""
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return Refusal("405 Method Not Allowed", "This server only reads; use GET.", (("Allow", "GET, HEAD"),))
        if len(environ.get("QUERY_STRING", "")) > MOST_QUERY:
            return Refusal("414 URI Too Long", f"The query is longer than {MOST_QUERY:,} characters; shorten it.")
        if self.hosts is not None and _name(environ.get("HTTP_HOST", "")) not in self.hosts:
            return Refusal("403 Forbidden", "Open this server at the address that fleetmark serve printed.")
        return None if self.token is None else self._checked(self.token, environ)

    def _checked(self, token: str, environ: Mapping[str, Any]) -> Refusal | None:
        fields = fields_of(environ)
        if is_same(fields.get("token", ""), token):  # keep the token out of URLs in history and logs
            rest = urlencode({name: value for name, value in fields.items() if name != "token"})
            place = "/" + quote(environ.get("PATH_INFO", "").lstrip("/\\")) + (f"?{rest}" if rest else "")
            cookie = f"{COOKIE}={digest(token)}; HttpOnly; SameSite=Lax; Path=/"
            return Refusal("303 See Other", "The token is accepted.", (("Location", place), ("Set-Cookie", cookie)))
        bearer = environ.get("HTTP_AUTHORIZATION", "").removeprefix("Bearer ")
        if is_same(bearer, token) or is_same(_cookie(environ), digest(token)):
            return None
        return Refusal(
            "401 Unauthorized",
            "A token is needed: add ?token=TOKEN to the address, with the token of this server.",
            (("WWW-Authenticate", "Bearer"),),
        )


def fields_of(environ: Mapping[str, Any]) -> dict[str, str]:
    """Return the nonempty fields of the query. If a name is repeated, the last value counts."""
    try:
        fields = parse_qs(environ.get("QUERY_STRING", ""), max_num_fields=MOST_FIELDS)
    except ValueError:  # too many fields
        return {}
    return {name: values[-1].strip() for name, values in fields.items() if values[-1].strip()}


def digest(token: str) -> str:
    """Return the digest of the token that the cookie holds."""
    return hashlib.sha256(b"fleetmark serve " + token.encode()).hexdigest()


def is_same(given: str, expected: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(given.encode(), expected.encode())


def _name(host: str) -> str:
    """Return the name in a Host header, without the port."""
    name, colon, port = host.rpartition(":")
    return name.lower() if colon and port.isdigit() else host.lower()


def _cookie(environ: Mapping[str, Any]) -> str:
    try:
        cookies = SimpleCookie(environ.get("HTTP_COOKIE", ""))
    except CookieError:
        return ""
    return cookies[COOKIE].value if COOKIE in cookies else ""
