"""Keep credentials out of files and output: those in URLs, and settings whose name marks them as secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from fleetmark.base.errors import FleetmarkError

MARK = "***"

Settings = Mapping[str, Mapping[str, Any]]  # workload -> parameter -> value

_NAME = r"(?:access_?|api_?|secret_?|private_?)key|token|secret|passw(?:or)?d|pwd|credentials?|signature|sig"
_SECRET_NAME = re.compile(rf"(?:^|[_-])(?:{_NAME})$", re.IGNORECASE)
# For http(s), any userinfo, because a user name without a password may be a token. For other schemes, only userinfo
# with a password, since git@ is no secret. The last form is a password with an unquoted slash.
_USERINFO = re.compile(
    r"(?<=://)(?:(?:(?<=http://)|(?<=https://)|(?=[^/?#\s@]*:))[^/?#\s\"'<>]+|[^/?#\s:@]*:(?!\d*[/?#])[^\s\"'<>@]+)@",
    re.IGNORECASE,
)
_QUERY = re.compile(rf"(?<=[?&])((?:[\w.-]*[_.-])?(?:{_NAME}|key|auth))=[^&#\s\"'<>]*[^&#\s\"'<>:;,.)]", re.IGNORECASE)
_LEFT_OUT = re.compile(rf"://{re.escape(MARK)}@|[?&][\w.-]+={re.escape(MARK)}|^{re.escape(MARK)}$")
# In a command: a variable or option whose name marks its value as secret, unless the value refers to a file or another
# variable. The exact name PWD is the shell's own variable.
_VARIABLE = r"(?!(?:OLD)?PWD=)(?:[A-Z_]\w{0,99}_)?(?:API)?(?:KEY|TOKEN|SECRET|PASSW(?:OR)?D|PWD|CREDENTIALS?)"
_KEYS = "api|access|secret|private|auth"
_TOKENS = "hf|hub|hugging[-_]?face|git[-_]?hub|git[-_]?lab|auth|access|api|secret|bearer|refresh"  # neither max nor eos
_OPTION = (
    rf"--(?:(?:[a-z][a-z0-9_-]{{0,98}}[-_])?(?:(?:{_KEYS})[-_]?key|(?:{_TOKENS})[-_]?token|secret|passw(?:or)?d)|token)"
)
_HEADER = r"(?:Authorization[\"']?\s*:\s*[\"']?(?:Bearer|Basic|Token)(?=\s)|X-(?:API|Auth)-(?:Key|Token)[\"']?\s*:)"
_GIVEN = re.compile(
    rf"(?:(?:^|(?<=[\s;&|(`\"']))(?:(?P<variable>{_VARIABLE})=|(?P<option>{_OPTION})(?:=|\s+))|(?P<header>{_HEADER})\s*)"
    r"(?![\"']?(?:\$[({A-Za-z_]|`|\*{3}|[\s;&|]|$))",
    re.IGNORECASE | re.ASCII,
)


def redact(text: str) -> str:
    """Return ``text`` with ``***`` in place of the credentials in its URLs."""
    if "://" in text:
        text = _USERINFO.sub(f"{MARK}@", text)
    return _QUERY.sub(rf"\1={MARK}", text) if "=" in text else text


def redacted(value: Any) -> Any:
    """Return a JSON document with every string redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {k: redacted(v) for k, v in value.items()}
    return [redacted(v) for v in value] if isinstance(value, list | tuple) else value


def lacks_credentials(value: Any) -> bool:
    """Return whether credentials were removed from a setting, or from a word of a command."""
    if isinstance(value, list | tuple):
        return any(map(lacks_credentials, value))
    return isinstance(value, str) and bool(_LEFT_OUT.search(value))


def conceal(settings: Settings) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return the settings without credentials, and the real values by their redacted values.

    A setting whose name marks it as secret has the key ``workload.parameter`` instead. Raise FleetmarkError if a URL
    has two different credentials, since both redact to the same text, or if a command contains a secret.
    """
    concealed: dict[str, dict[str, Any]] = {}
    secrets: dict[str, str] = {}
    for workload, values in settings.items():
        concealed[workload] = {}
        for name, value in values.items():
            if _SECRET_NAME.search(name) and value not in ("", None, MARK):
                concealed[workload][name] = MARK
                secrets[f"{workload}.{name}"] = str(value)
                continue
            concealed[workload][name] = redacted(value)
            for real in value if isinstance(value, list | tuple) else [value]:
                _refuse_given(f"{workload}.{name}", real)
                if not isinstance(real, str) or (shown := redact(real)) == real:
                    continue
                if secrets.setdefault(shown, real) != real:
                    raise FleetmarkError(f"{workload}.{name}: {shown} is given twice with different credentials")
    return concealed, secrets


def _refuse_given(setting: str, value: Any) -> None:
    """Raise FleetmarkError if a command contains a secret, which would appear in the record and in jobs."""
    match = _GIVEN.search(value) if isinstance(value, str) else None
    if match:
        name = match["variable"] or match["option"] or re.sub(r"[\"']", "", match["header"])
        between = "=" if match["variable"] else " "
        example = '"$(cat FILE)"' if not match["header"] else "$(cat FILE)"  # a header is already in quotes
        raise FleetmarkError(
            f"{setting} contains the value of {name}, which would appear in the record; read it from a file on "
            f"the hosts: {name}{between}{example}"
        )


def access(secrets: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return credentials for a role that downloads: ``url`` (no userinfo), ``username``, ``password``; or ``value``."""
    return {shown: _parts(real) if "://" in real else {"value": real} for shown, real in secrets.items()}


def _parts(url: str) -> dict[str, str]:
    scheme, _, rest = url.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    userinfo, separator, _ = authority.rpartition("@")
    name, _, password = userinfo.partition(":")
    return {
        "url": f"{scheme}://{rest[len(userinfo) + len(separator) :]}",
        "username": unquote(name),
        "password": unquote(password),
    }


def git_credentials(secrets: Mapping[str, str]) -> str:
    """Return HTTP credentials in the format of ``git credential-store``: one URL with userinfo per line."""
    lines = []
    for real in secrets.values():
        if real.startswith(("http://", "https://")) and "@" in (parts := urlsplit(real)).netloc:
            lines.append(f"{parts.scheme}://{parts.netloc}\n")
    return "".join(lines)
