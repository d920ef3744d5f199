"""Build requests for the sources of workloads, and check within a timeout whether this machine can fetch them."""

from __future__ import annotations

import base64
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from fleetmark.base.redact import access

TIMEOUT_S = 5.0
_MAX_SOURCES = 64
_PARALLEL = 16
_NO_HEAD = (405, 501)  # the server is up, but does not support HEAD requests


def unfetchable(urls: Sequence[str], secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the URLs that cannot be fetched from here, each with the reason.

    ``secrets``: URLs with credentials by the redacted URL (``redact.conceal``).
    """
    requested = list(dict.fromkeys(urls))[:_MAX_SOURCES]
    logins = access({url: secrets[url] for url in requested if url in secrets})
    with ThreadPoolExecutor(_PARALLEL) as pool:
        reasons = pool.map(lambda url: _reason(logins.get(url) or {"url": url}), requested)
    return {url: reason for url, reason in zip(requested, reasons, strict=True) if reason}


def request_for(login: Mapping[str, str], method: str = "GET") -> urllib.request.Request:
    """Return a request for ``login`` (``redact.access``). Redirects to other servers do not carry the credentials."""
    request = urllib.request.Request(login["url"], headers={"User-Agent": "fleetmark"}, method=method)
    if login.get("username"):
        pair = f"{login['username']}:{login.get('password', '')}".encode()
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(pair).decode()}")
    return request


def _reason(login: Mapping[str, str]) -> str:
    """Return why a URL cannot be fetched; empty if it can."""
    try:
        with urllib.request.urlopen(request_for(login, "HEAD"), timeout=TIMEOUT_S):
            return ""
    except urllib.error.HTTPError as error:
        return "" if error.code in _NO_HEAD else f"HTTP status {error.code}"
    except urllib.error.URLError as error:
        return f"does not answer ({getattr(error.reason, 'strerror', None) or error.reason})"
    except TimeoutError:
        return f"did not answer within {TIMEOUT_S:g} s"
    except (OSError, ValueError) as error:
        return f"cannot be requested ({error})"
