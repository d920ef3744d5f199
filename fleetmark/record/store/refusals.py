"""Explain in one sentence why a store refused a request, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_RIGHTS = {"list": "s3:ListBucket", "read": "s3:GetObject", "write in": "s3:PutObject"}
_KEYS = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_DENIED = ("AccessDenied", "Forbidden", "403", "AllAccessDisabled", "AccountProblem")
_UNKNOWN_KEYS = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken")
_EXPIRED = ("ExpiredToken", "TokenRefreshRequired", "RequestExpired", "UnauthorizedSSOTokenError", "SSOTokenLoadError")
_NO_CREDENTIALS = ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError")
_ADDRESS = ("SSLError", "EndpointResolutionError")
_NO_ANSWER = ("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ConnectionClosedError")


def sentence(error: BaseException, url: str, doing: str) -> str:
    """Return why the store at ``url`` refused an operation (``doing``: "list", "read", "write in"), with advice."""
    bucket = "/".join(url.split("/")[:3])
    chain = list(_chain(error))
    codes = [code for e in chain if (code := _code(e))]
    kinds = [type(e).__name__ for e in chain]
    reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
    if "NoSuchBucket" in codes:
        return f"{bucket}: no such bucket; check its name, or create it: aws s3 mb {bucket}"
    if problem := _of_credentials(codes, kinds, reason):
        return f"{bucket}: {problem}"
    if any(code in _DENIED for code in codes) or any(isinstance(e, PermissionError) for e in chain):
        return f"{url}: no right to {doing} it; ask its owner for {_RIGHTS[doing]} there, or choose another --results"
    if isinstance(error, ValueError) or any(kind in _ADDRESS for kind in kinds):
        return f"{bucket}: the store's address does not work ({reason}); set AWS_ENDPOINT_URL to https://HOST:PORT"
    if any(kind in _NO_ANSWER for kind in kinds) or isinstance(error, (TimeoutError, ConnectionError)):
        return f"{bucket}: the store does not answer ({reason}); check the network, and AWS_ENDPOINT_URL if it is set"
    return f"{url}: cannot {doing} it ({': '.join([*codes[:1], reason])})"


def _of_credentials(codes: Sequence[str], kinds: Sequence[str], reason: str) -> str:
    """Return the problem with the credentials and advice; empty if the credentials are not the reason."""
    if unknown := [code for code in codes if code in _UNKNOWN_KEYS]:
        return f"the store does not accept these credentials ({unknown[0]}); {_KEYS}"
    if expired := [word for word in (*codes, *kinds) if word in _EXPIRED]:
        return f"the credentials have expired ({expired[0]}); log in again (aws sso login), or {_KEYS}"
    if "RequestTimeTooSkewed" in codes:
        return "the store does not accept this machine's time (RequestTimeTooSkewed); set its clock"
    if "ProfileNotFound" in kinds:
        return f"{reason}; set AWS_PROFILE to a profile in ~/.aws/config"
    return f"no credentials; {_KEYS}" if any(kind in _NO_CREDENTIALS for kind in kinds) else ""


def code_of(error: BaseException) -> str:
    """Return the store's error code; empty if there is none."""
    return next((code for e in _chain(error) if (code := _code(e))), "")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _code(error: BaseException) -> str:
    response = getattr(error, "response", None)
    details = response.get("Error") if isinstance(response, dict) else None
    return str(details.get("Code") or "") if isinstance(details, dict) else ""
