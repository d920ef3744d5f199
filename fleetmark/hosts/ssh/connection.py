"""Connect to a host over SSH with paramiko. Check its key against known_hosts, and detect a dead peer."""

from __future__ import annotations

import contextlib
import functools
import select
import shlex
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

import fabric
import paramiko
from paramiko.buffered_pipe import BufferedPipe

from fleetmark.base.runtime import silence_log
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.reach import CHUNK, Channel, LinkLost, Reach, ReachError, Stalled
from fleetmark.hosts.ssh import hostkey
from fleetmark.hosts.ssh.auth import authenticate, words_of
from fleetmark.hosts.ssh.known import KnownKey, known_keys
from fleetmark.hosts.ssh.target import Target, resolve

CONNECT_TIMEOUT_S = 10.0
AUTH_TIMEOUT_S = 30.0
DEAD_AFTER_S = 15  # a peer that acknowledges no data for this time is dead
QUIET_S = 5  # silence after which a keepalive is sent
_AT_ONE_JUMP = 8  # concurrent handshakes: sshd drops some from 10 on (MaxStartups)

silence_log("paramiko")  # its errors are raised as ReachError


class SshReach(Reach):
    """Run commands on a host over SSH. Several threads can share the connection."""

    def __init__(self, host: Host, timeout_s: float | None = None) -> None:
        super().__init__(host)
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._connection: fabric.Connection | None = None
        self._attempts = 0
        self._failure: ReachError | None = None

    @functools.cached_property
    def target(self) -> Target:
        """Return the address, port and user that OpenSSH would use. Raise ReachError."""
        return resolve(self.host)

    @property
    def is_root(self) -> bool:
        return self.target.user == "root"

    @property
    def _patience_s(self) -> float:
        """Return the timeout for a host's answers: the given one, else that of the SSH configuration."""
        return self._timeout_s or self.target.timeout or CONNECT_TIMEOUT_S

    def close(self) -> None:
        with self._lock:
            self._hang_up()

    def _hang_up(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    def _start(self, argv: Sequence[str]) -> Channel:
        transport = self._connected()
        try:
            session = transport.open_session(timeout=max(CONNECT_TIMEOUT_S, self._patience_s))
            return _SshChannel(self.host.name, transport, session, shlex.join(argv))
        except (paramiko.SSHException, EOFError, OSError) as error:
            if not transport.is_active():
                raise LinkLost(f"{self.host.name}: the connection was lost: {words_of(error)}") from None
            raise ReachError(
                f"{self.host.name}: sshd refuses another session: {words_of(error)} (MaxSessions?)"
            ) from None

    def _connected(self) -> paramiko.Transport:
        before = self._attempts
        with self._lock:
            if self._connection and self._connection.is_connected:
                return _transport(self._connection)
            if self._failure and self._attempts != before:
                raise self._failure  # the awaited attempt's error, so that a dead host costs only one timeout
            self._hang_up()
            self._failure = None
            try:
                connection = fabric.Connection(
                    self.target.hostname, user=self.target.user, port=self.target.port, config=_no_config()
                )
                connection.client = _CheckedClient(self.host, self.target, self._patience_s)
                connection.open()
                self._connection = connection
            except ReachError as error:
                self._failure = error
                raise
            finally:
                self._attempts += 1
            return _transport(connection)


def _transport(connection: fabric.Connection) -> paramiko.Transport:
    transport: paramiko.Transport = connection.transport
    return transport


def _no_config() -> fabric.Config:
    """Return an empty fabric configuration, because addresses and host keys come from OpenSSH itself (``ssh -G``). Each
    connection needs its own object: fabric rebuilds it while reading, which is not thread-safe.
    """
    return fabric.Config(ssh_config=paramiko.SSHConfig(), lazy=True)


class _CheckedClient(paramiko.SSHClient):
    """Replace fabric's client, so that host keys and login keys follow the user's SSH configuration."""

    def __init__(self, host: Host, target: Target, timeout: float) -> None:
        super().__init__()
        self._connect = functools.partial(_connect, host, target, timeout)
        self._link: _Link | None = None

    def connect(self, *_: Any, **__: Any) -> None:
        self._link = self._connect()
        self._transport = self._link.transport

    def close(self) -> None:
        if self._link:
            self._link.close()
        super().close()


@dataclass(slots=True)
class _Link:
    """An authenticated connection and its socket."""

    transport: paramiko.Transport
    wire: _Wire

    def close(self) -> None:
        self.wire.hang_up()  # wakes the reader thread, which then exits
        self.transport.close()
        self.transport.join(1.0)
        self.wire.close()


@dataclass(slots=True)
class _Wire:
    """A socket to the host's sshd: a TCP connection, or the standard streams of a proxy command."""

    sock: socket.socket
    proxy: subprocess.Popen[bytes] | None = None
    stderr: IO[bytes] | None = None  # the proxy's stderr

    def hang_up(self) -> None:
        with contextlib.suppress(OSError):  # the process may already have exited
            self.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.sock.close()
        if self.proxy and self.stderr:
            try:
                self.proxy.wait(1.0)
            except subprocess.TimeoutExpired:
                self.proxy.terminate()
                self.proxy.wait()
            self.stderr.close()

    def complaint(self) -> str:
        """Return the proxy's output on stderr, on one line."""
        if not self.stderr:
            return ""
        self.stderr.seek(0)
        lines = [line.strip() for line in self.stderr.read().decode(errors="replace").splitlines()]
        return "; ".join(line for line in lines if line)[-300:]


def _connect(host: Host, target: Target, timeout: float) -> _Link:
    door = _door(target.through) if target.proxy else contextlib.nullcontext()
    with door:
        deadline = time.monotonic() + timeout
        wire = _proxied(target) if target.proxy else _dialled(host, target, timeout)
        try:
            keys = known_keys(target.key_names, target.known_hosts)
            transport = _handshake(host, target, wire, keys, deadline, timeout)
            try:
                trusted = hostkey.check(host, target, keys, transport.get_remote_server_key())
                authenticate(host, target, transport, password=host.password if trusted else None)
            except BaseException:
                transport.close()
                raise
        except BaseException:
            wire.hang_up()
            wire.close()
            raise
    if target.proxy:
        threading.Thread(target=_watch, args=(transport,), daemon=True).start()
    return _Link(transport, wire)


@functools.cache
def _door(through: str) -> threading.Semaphore:
    return threading.Semaphore(_AT_ONE_JUMP)


def _dialled(host: Host, target: Target, timeout: float) -> _Wire:
    """Open a TCP connection. Several addresses of one name share the timeout."""
    try:
        addresses = socket.getaddrinfo(target.hostname, target.port, target.family, socket.SOCK_STREAM)
    except OSError as error:
        reason = f"its name {target.hostname} does not resolve ({error.strerror})"
        raise ReachError(f"{host.name}: {reason}; check ansible_host or the SSH configuration") from None
    deadline = time.monotonic() + timeout
    refused: OSError | None = None
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        patience = max(0.1, (deadline - time.monotonic()) / (len(addresses) - number))
        try:
            try:
                sock = _call(family, kind, protocol, address, patience)
            except ConnectionResetError:  # a temporary error, such as a link that has just recovered or a busy server
                sock = _call(family, kind, protocol, address, patience)
        except OSError as error:
            refused = error
            continue
        _notice_death(sock)
        return _Wire(sock)
    endpoint = f"{target.hostname} port {target.port}"
    if isinstance(refused, ConnectionRefusedError):
        raise ReachError(f"{host.name}: {endpoint} refuses connections; does sshd run there?")
    if isinstance(refused, TimeoutError):
        raise ReachError(
            f"{host.name}: {endpoint} did not answer within {timeout:g} s; is it up, and is this its address?"
        )
    raise ReachError(f"{host.name}: {endpoint} cannot be reached: {words_of(refused)}")


def _call(family: int, kind: int, protocol: int, address: Any, timeout: float) -> socket.socket:
    sock = socket.socket(family, kind, protocol)
    sock.settimeout(timeout)
    try:
        sock.connect(address)
    except OSError:
        sock.close()
        raise
    return sock


def _notice_death(sock: socket.socket) -> None:
    """Let the kernel detect a dead peer. Unlike SSH keepalives, TCP probes wake no process on a host that runs a
    benchmark.
    """
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {"TCP_KEEPIDLE": QUIET_S, "TCP_KEEPINTVL": 3, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": DEAD_AFTER_S * 1000}
    for name, value in options.items():
        if hasattr(socket, name):  # some systems lack some of these options
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _proxied(target: Target) -> _Wire:
    ours, theirs = socket.socketpair()
    stderr = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the wire
    with theirs:
        # A new session has no terminal, so that no program in it can prompt the user.
        proxy = subprocess.Popen(
            ["/bin/sh", "-c", target.proxy or ""],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=stderr,
            start_new_session=True,
        )
    return _Wire(ours, proxy, stderr)


def _watch(transport: paramiko.Transport) -> None:
    """Close a proxied connection whose peer is silent, because the kernel's TCP probes reach only the proxy."""
    while transport.is_active():
        patience = threading.Timer(DEAD_AFTER_S, transport.close)
        patience.daemon = True
        patience.start()
        with contextlib.suppress(paramiko.SSHException, EOFError, OSError):  # the connection is closed already
            transport.global_request("keepalive@openssh.com", wait=True)
        patience.cancel()
        time.sleep(QUIET_S)


def _handshake(
    host: Host, target: Target, wire: _Wire, keys: Sequence[KnownKey], deadline: float, timeout: float
) -> paramiko.Transport:
    transport = paramiko.Transport(wire.sock)
    transport.banner_timeout = transport.handshake_timeout = timeout + 5  # longer than the deadline below
    transport.auth_timeout = AUTH_TIMEOUT_S
    hostkey.prefer(transport, [key.type for key in keys if not key.marker])
    done = threading.Event()
    transport.start_client(event=done)
    done.wait(max(0.1, deadline - time.monotonic()))
    if done.is_set() and transport.is_active():
        return transport
    error = transport.get_exception()
    transport.close()
    if target.proxy:
        time.sleep(0.05 if done.is_set() else 0)  # a proxy that has exited has written all its output
        if words := wire.complaint():
            raise ReachError(f"{host.name}: cannot connect through {target.proxy_name}: {words}")
    address = f"{target.hostname} port {target.port}" + (f" (through {target.proxy_name})" if target.through else "")
    if not done.is_set():
        raise ReachError(
            f"{host.name}: {address} did not answer within {timeout:g} s; is it up, and is this its address?"
        )
    raise ReachError(f"{host.name}: {address}: the SSH handshake failed: {words_of(error)}")


class _Window(BufferedPipe):  # type: ignore[type-arg]
    """Count the unread input of a channel, because paramiko announces a window but does not enforce it."""

    def feed(self, data: Any) -> None:
        if len(self) > 2 * paramiko.common.DEFAULT_WINDOW_SIZE:
            raise paramiko.SSHException(
                "the host sends more than the window allows"
            )  # the exception ends the connection
        super().feed(data)


class _SshChannel(Channel):
    def __init__(self, host: str, transport: paramiko.Transport, session: paramiko.Channel, command: str) -> None:
        super().__init__(host)
        self._transport = transport
        self._session = session
        session.in_buffer, session.in_stderr_buffer = _Window(), _Window()
        self._poll = select.poll()
        self._poll.register(session.fileno(), select.POLLIN)
        session.exec_command(command)

    def write(self, data: bytes, timeout: float | None = None) -> None:
        try:
            self._session.settimeout(timeout)
            self._session.sendall(data)
        except TimeoutError:  # the host's sshd accepts no more data
            raise Stalled(f"{self.host}: read no input for {timeout:g} s") from None
        except OSError:
            self._if_lost()
            raise ReachError(f"{self.host}: the process ended") from None

    def end_input(self) -> None:
        try:
            self._session.shutdown_write()
        except (EOFError, OSError):
            self._if_lost()

    def wait(self, timeout: float | None = None) -> int:
        if not self._session.status_event.wait(timeout):
            raise TimeoutError(f"{self.host}: the process still runs")
        if self._session.exit_status == -1:  # no exit status arrived: a signal ended the process, or the link was lost
            self._if_lost()
        return self._session.exit_status

    def close(self) -> None:
        with contextlib.suppress(EOFError, OSError):  # the link was lost, which closes the channel
            self._session.close()

    def _fill(self, timeout: float | None) -> bool:
        if not self._poll.poll(None if timeout is None else timeout * 1000):
            return False
        over = self._session.eof_received or self._session.closed  # check before reading, because data arrives first
        if self._session.recv_ready():
            self._out += self._session.recv(CHUNK)
        if self._session.recv_stderr_ready():
            self._err += self._session.recv_stderr(CHUNK)
        if over and not self._session.recv_ready() and not self._session.recv_stderr_ready():
            if not self._session.eof_received:
                self._if_lost()
            self._ended = True
        return True

    def _if_lost(self) -> None:
        """Raise LinkLost if the connection is closed. A connection closes shortly after its channels."""
        self._transport.join(0.2)
        if not self._transport.is_alive():
            error = self._transport.get_exception()
            raise LinkLost(f"{self.host}: the connection was lost" + (f": {words_of(error)}" if error else ""))
