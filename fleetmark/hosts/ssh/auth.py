"""Log in over SSH with the keys, agents and passwords that OpenSSH uses, in the same order."""

from __future__ import annotations

import base64
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import paramiko
from paramiko.agent import AgentSSH
from paramiko.pkey import UnknownKeyType

from fleetmark.base.text import count
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.reach import ReachError
from fleetmark.hosts.ssh.target import Target


def authenticate(host: Host, target: Target, transport: paramiko.Transport, *, password: str | None) -> None:
    """Log in with OpenSSH's keys, then with the password. Raise ReachError with all attempts on failure."""
    tried: list[str] = []
    try:
        with _keys(target, tried) as keys:
            for label, key in keys:
                tried.append(label)
                with contextlib.suppress(paramiko.AuthenticationException):  # the result is checked below
                    transport.auth_publickey(target.user, key)
                if transport.is_authenticated():
                    return
                if not transport.is_active():
                    raise ReachError(
                        f"{host.name}: the host closed the connection after {count(len(tried), 'key')} "
                        "(MaxAuthTries?); set IdentitiesOnly"
                    )
        if password is not None:
            tried.append("the password")
            with contextlib.suppress(paramiko.AuthenticationException):
                transport.auth_password(target.user, password)
            if transport.is_authenticated():
                return
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise ReachError(f"{host.name}: the log-in as {target.user} was interrupted: {words_of(error)}") from None
    attempts = f"; tried {', '.join(tried)}" if tried else "; there is no key, agent or password to try"
    raise ReachError(f"{host.name}: log-in as {target.user} is refused{attempts}")


@contextlib.contextmanager
def _keys(target: Target, tried: list[str]) -> Iterator[Iterator[tuple[str, paramiko.PKey]]]:
    """Yield keys in OpenSSH's order: configured keys in the agent, other keys in the agent, and keys in files.

    Add unusable files to ``tried``.
    """
    with contextlib.ExitStack() as stack:
        held: list[paramiko.PKey] = []
        if target.agent:
            with contextlib.suppress(OSError, paramiko.SSHException):  # there may be no agent
                agent = _Agent(target.agent)
                stack.callback(agent.close)
                held.extend(agent.get_keys())
        named = [blob for file in target.identities if (blob := _public(file))]
        if target.identities_only:
            held = [key for key in held if key.asbytes() in named]
        held.sort(key=lambda key: named.index(key.asbytes()) if key.asbytes() in named else len(named))
        yield _in_turn(held, target, tried)


def _in_turn(held: list[paramiko.PKey], target: Target, tried: list[str]) -> Iterator[tuple[str, paramiko.PKey]]:
    for key in held:
        yield f"the agent's {key.get_name()} {getattr(key, 'comment', '')}".strip(), key
    for file in target.identities:
        if not file.is_file() or _public(file) in [key.asbytes() for key in held]:
            continue
        try:
            yield str(file), paramiko.PKey.from_path(file)
        except (paramiko.PasswordRequiredException, TypeError):
            tried.append(f"{file} (needs its passphrase: ssh-add it)")
        except (paramiko.SSHException, UnknownKeyType, OSError, ValueError) as error:
            tried.append(f"{file} (cannot be read: {words_of(error)})")


def _public(file: Path) -> bytes | None:
    """Return the public key of a key file from the .pub file next to it."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return base64.b64decode(Path(f"{file}.pub").read_text().split()[1])
    return None


class _Agent(AgentSSH):
    """Connect to the agent at a socket, because paramiko's class uses only $SSH_AUTH_SOCK."""

    def __init__(self, path: str) -> None:
        super().__init__()
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(path)
        except OSError:
            sock.close()
            raise
        self._connect(sock)  # type: ignore[attr-defined]

    def close(self) -> None:
        self._close()  # type: ignore[attr-defined]


def words_of(error: BaseException | None) -> str:
    """Return a short one-line description of an error."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, EOFError):
        return "the host closed the connection"
    text = " ".join(str(error or "").split())
    return text or (type(error).__name__ if error else "no reason given")
