"""Implement ``fleetmark serve``: show the record in a browser, read-only."""

from __future__ import annotations

import ipaddress
import logging
import threading
import time
from pathlib import Path
from typing import Any

import typer

from fleetmark.base.errors import FleetmarkError, required
from fleetmark.base.runtime import calculate_in_one_thread
from fleetmark.reports.kit.language import Language
from fleetmark.verbs.serve.application import application
from fleetmark.verbs.serve.guard import Guard
from fleetmark.verbs.serve.pages import Pages

MOST_TOKEN, LEAST_TOKEN = 500, 16  # characters
THREADS = 4  # maximum concurrent requests
_READY_S = 60.0
_LOG = logging.getLogger("fleetmark.serve")
REQUEST_BYTES = 1 << 16  # maximum bytes of a request's header, and of its body, which is not read


def show(root: Path, listen: str, token_file: Path | None, language: Language) -> None:
    """Serve the record under ``root`` until the process is interrupted.

    ``listen``: HOST:PORT. ``token_file``: contains the token that a browser must send. Raise FleetmarkError if the
    address is invalid or in use, or if other machines can reach it and there is no token.
    """
    calculate_in_one_thread()
    host, _ = address(listen)
    pages = Pages(root, language)
    server = listening(pages, listen, token_file)
    shown = f"[{host}]" if ":" in host else host
    start = f"http://{shown}:{server.effective_port}/"
    typer.echo(f"Open {start} to read {root}. Ctrl-C ends the server.")
    if token_file:
        typer.echo(f"The first address needs ?token= with the token in {token_file}.")
    if not _is_loopback(host):
        typer.echo("The connection is not encrypted: put a TLS proxy in front, or listen on 127.0.0.1.")
    threading.Thread(target=_keep_ready, args=(pages,), daemon=True).start()
    try:
        server.run()
    except KeyboardInterrupt:
        pass
    finally:
        server.close()
        pages.close()


def listening(pages: Pages, listen: str, token_file: Path | None) -> Any:
    """Return a listening server of ``pages``. Raise FleetmarkError like ``show``."""
    host, port = address(listen)
    token = _token(token_file) if token_file else None
    if token is None and not _is_loopback(host):
        raise FleetmarkError(
            f"--listen {listen}: other machines can reach this address; add --token-file FILE "
            "(openssl rand -hex 24 > FILE)"
        )
    return serve(pages, host, port, token)


def serve(pages: Pages, host: str, port: int, token: str | None) -> Any:
    """Return a listening server. ``port`` 0 chooses a free port. Raise FleetmarkError if the server cannot listen."""
    waitress = required("waitress.server", "serve", "the server")
    names = None if token else ("localhost", "127.0.0.1", "[::1]", f"[{host}]" if ":" in host else host)
    try:
        return waitress.create_server(
            application(pages, Guard(token, names)),
            host=host,
            port=port,
            threads=THREADS,
            ident="fleetmark",
            max_request_header_size=REQUEST_BYTES,
            max_request_body_size=REQUEST_BYTES,
            channel_timeout=60,
        )
    except OSError as error:
        reason = error.strerror or str(error)
        raise FleetmarkError(f"--listen {host}:{port}: {reason}; choose another address or port") from error


def _keep_ready(pages: Pages) -> None:
    """Build the pages of the newest campaign now, and again within a minute of a change."""
    while True:
        try:
            pages.make_newest()
        except Exception:  # noqa: BLE001  a request for the same page says why
            _LOG.debug("the newest campaign", exc_info=True)
        time.sleep(_READY_S)


def address(text: str) -> tuple[str, int]:
    """Parse host and port from ``HOST:PORT``, ``[::1]:PORT`` or ``PORT``. Raise FleetmarkError for any other form."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise FleetmarkError(f"--listen {text}: write HOST:PORT, such as 127.0.0.1:8300")
    return host, int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token(file: Path) -> str:
    try:
        token = file.read_text("utf-8").strip() if file.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise FleetmarkError(f"--token-file {file}: cannot be read as text") from error
    if not LEAST_TOKEN <= len(token) <= MOST_TOKEN or not (token.isascii() and token.isprintable()):
        raise FleetmarkError(
            f"--token-file {file}: needs one line of {LEAST_TOKEN} to {MOST_TOKEN} printable ASCII characters; "
            f"create it: openssl rand -hex 24 > {file}"
        )
    return token
