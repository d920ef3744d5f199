"""Define the WSGI application, which answers each request with a page, a file or a refusal."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.verbs.serve.guard import Guard, Refusal, fields_of
from fleetmark.verbs.serve.pages import Missing, Pages, Reply
from fleetmark.verbs.serve.waiting import Waiting

Start = Callable[[str, list[tuple[str, str]]], Any]
_LOG = logging.getLogger("fleetmark.serve")
# Pages contain their own policy. A browser must not run scripts from a raw file.
_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
_NO_PAGE = ("Content-Security-Policy", "default-src 'none'; sandbox")


def application(pages: Pages, guard: Guard) -> Callable[[Mapping[str, Any], Start], Iterable[bytes]]:
    """Return the application that serves ``pages`` for the requests that ``guard`` allows."""

    def reply_or_failure(path: str, fields: Mapping[str, str]) -> Reply:
        try:
            return pages.reply(path, fields)
        except Missing as error:
            return pages.failure(str(error), "404 Not Found")
        except FleetmarkError as error:
            return pages.failure(str(error), "400 Bad Request")
        except Exception:  # noqa: BLE001  a fault of one page must not end the server
            _LOG.exception("%s", path)
            return pages.failure("This page cannot be created; see the server's log.", "500 Internal Server Error")

    waiting = Waiting(reply_or_failure, pages.being_made)

    def answer(environ: Mapping[str, Any], start: Start) -> Iterable[bytes]:
        refusal = guard.check(environ)
        if refusal is not None:
            return _plain(refusal, environ, start)
        fields = {name: value for name, value in fields_of(environ).items() if name != "token"}
        path = environ.get("PATH_INFO", "").encode("latin-1", "replace").decode("utf-8", "replace")
        is_browser = "text/html" in environ.get("HTTP_ACCEPT", "") and "as" not in fields  # browsers get a waiting page
        reply = waiting.reply(path, fields) if is_browser else reply_or_failure(path, fields)
        return _sent(reply, environ, start)

    return answer


def _sent(reply: Reply, environ: Mapping[str, Any], start: Start) -> Iterable[bytes]:
    headers = [("Content-Type", reply.type), ("Content-Length", str(len(reply.body))), *_HEADERS]
    headers += [] if reply.type.startswith("text/html") else [_NO_PAGE]
    headers += [("Refresh", str(reply.refresh_s))] if reply.refresh_s else []
    headers += [("Content-Disposition", f'attachment; filename="{reply.filename}"')] if reply.filename else []
    start(reply.status, headers)
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [reply.body]


def _plain(refusal: Refusal, environ: Mapping[str, Any], start: Start) -> Iterable[bytes]:
    body = f"{refusal.sentence}\n".encode()
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    start(refusal.status, [*headers, *_HEADERS, _NO_PAGE, *refusal.headers])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]
