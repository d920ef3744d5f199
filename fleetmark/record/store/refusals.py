"""Why a store refused, as one sentence with what to type."""

from __future__ import annotations

from collections.abc import Iterator

_RIGHTS = {"list": "s3:ListBucket", "read": "s3:GetObject", "write in": "s3:PutObject"}
_KEYS = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_DENIED = ("AccessDenied", "Forbidden", "403", "AllAccessDisabled", "AccountProblem")
_UNKNOWN_KEYS = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken", "TokenRefreshRequired")
_NO_CREDENTIALS = ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "CredentialRetrievalError")
_NO_ANSWER = ("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ConnectionClosedError")


def sentence(error: BaseException, url: str, doing: str) -> str:
    """Why the store at ``url`` refused to let us ``doing`` ("list", "read", "write in"), and what to do."""
    bucket = "/".join(url.split("/")[:3])
    chain = list(_chain(error))
    codes = [code for e in chain if (code := _code(e))]
    kinds = [type(e).__name__ for e in chain]
    if "NoSuchBucket" in codes:
        return f"{bucket}: there is no such bucket; check its name, or make it: aws s3 mb {bucket}"
    if unknown := [code for code in codes if code in _UNKNOWN_KEYS]:
        return f"{bucket}: the store does not accept these credentials ({unknown[0]}); {_KEYS}"
    if any(code in _DENIED for code in codes) or any(isinstance(e, PermissionError) for e in chain):
        return f"{url}: no right to {doing} it; ask its owner for {_RIGHTS[doing]} there, or choose another --results"
    if any(kind in _NO_CREDENTIALS for kind in kinds):
        return f"{bucket}: no credentials; {_KEYS}"
    reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
    if any(kind in _NO_ANSWER for kind in kinds) or isinstance(error, (TimeoutError, ConnectionError)):
        return (
            f"{bucket}: the store does not answer ({reason}); check the network, and AWS_ENDPOINT_URL where it is set"
        )
    return f"{url}: cannot {doing} it ({reason})"


def code_of(error: BaseException) -> str:
    """The store's own word for an error; empty where it has none."""
    return next((code for e in _chain(error) if (code := _code(e))), "")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _code(error: BaseException) -> str:
    response = getattr(error, "response", None)
    about = response.get("Error") if isinstance(response, dict) else None
    return str(about.get("Code") or "") if isinstance(about, dict) else ""
