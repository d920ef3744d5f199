"""Commands on this machine, and the targets of SSH as OpenSSH's client resolves them. No host is reached."""

from __future__ import annotations

import shutil
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import fabric
import pytest

from fleetmark.hosts.connect import connect
from fleetmark.hosts.inventory import Host, this_machine
from fleetmark.hosts.reach import Reach, ReachError
from fleetmark.hosts.ssh.connection import _no_config
from fleetmark.hosts.ssh.known import KnownKey, known_keys
from fleetmark.hosts.ssh.target import resolve

needs_ssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="this machine has no OpenSSH client")


@pytest.fixture
def here() -> Reach:
    return connect(this_machine())


def within(seconds: float, path: Path) -> bool:
    deadline = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return path.exists()


def test_run(here: Reach) -> None:
    ran = here.run(["sh", "-c", "cat; echo two words >&2; exit 7"], stdin=b"in\0put")
    assert (ran.rc, ran.out, ran.err) == (7, b"in\0put", b"two words\n")
    assert here.run(["printf", "%s|", "a b", "$HOME", "'"]).out == b"a b|$HOME|'|"
    assert here.run(["sh", "-c", "kill -9 $$"]).rc == -9


def test_run_neither_blocks_on_much_input_nor_on_much_output(here: Reach) -> None:
    data = bytes(range(256)) * 20_000
    assert here.run(["cat"], stdin=data).out == data
    assert here.run(["true"], stdin=data).rc == 0
    assert len(here.run(["sh", "-c", "head -c 3000000 /dev/zero >&2"]).err) == 3_000_000


def test_run_takes_no_longer_than_it_may(here: Reach) -> None:
    with pytest.raises(ReachError, match=r": sleep 60 did not end within 0\.2 s"):
        here.run(["sleep", "60"], timeout=0.2)


def test_a_command_that_is_not_there(here: Reach) -> None:
    with pytest.raises(ReachError, match="cannot start no-such-command: No such file"):
        here.run(["no-such-command"])


def test_channel(here: Reach) -> None:
    channel = here.open(
        ["sh", "-c", "echo start; while read x; do echo got $x; done; printf end; echo bad >&2; exit 3"]
    )
    assert channel.readline(60) == b"start\n"
    with pytest.raises(TimeoutError):
        channel.readline(0.1)
    channel.write(b"one\ntwo\n")
    assert [channel.readline(60), channel.readline(60)] == [b"got one\n", b"got two\n"]
    channel.end_input()
    assert list(channel.lines(60)) == [b"end"]
    assert channel.readline(60) == b""
    assert channel.wait(60) == 3
    assert channel.errors() == "bad"
    channel.close()
    with pytest.raises(ReachError, match="the process ended"):
        channel.write(b"more\n")


def test_a_line_longer_than_any_buffer(here: Reach) -> None:
    channel = here.open(["sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x; echo; echo next"])
    assert channel.readline(60) == b"x" * 5_000_000 + b"\n"
    assert channel.readline(60) == b"next\n"
    channel.close()


def test_closing_ends_what_listens_and_spares_what_was_detached(here: Reach, tmp_path: Path) -> None:
    listens, detached = tmp_path / "listens", tmp_path / "detached"
    script = f"(sleep 0.5; echo x > {detached}) </dev/null >/dev/null 2>&1 & echo up; cat; echo x > {listens}"
    channel = here.open(["sh", "-c", script])
    assert channel.readline(60) == b"up\n"
    channel.close()
    assert within(5, listens)  # end of input reached it
    assert within(5, detached)


def test_an_unusable_host_says_why() -> None:
    with pytest.raises(ReachError, match="h1: ansible_connection is docker"):
        connect(Host("h1", "h1", "h1", unusable="ansible_connection is docker"))


CONFIG = """
Host web
  HostName 192.0.2.7
  Port 2222
  User ops
  ProxyJump bob@bast:2200,mid
  UserKnownHostsFile ~/kh "/a b/kh"
  IdentityFile ~/.ssh/id_%r@%h
  IdentitiesOnly yes
  ConnectTimeout 4
Host cmd
  HostKeyAlias Pet
  ProxyCommand nc -X 5 %h %p
  StrictHostKeyChecking accept-new
  IdentityAgent ~/agent
Host *
  GlobalKnownHostsFile none
"""


@needs_ssh
def test_target_is_what_openssh_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    config = tmp_path / "config"
    config.write_text(CONFIG)
    home = Path("~").expanduser()
    web = resolve(Host("h1", "web", "web", ssh_args=("-F", str(config))))
    assert (web.hostname, web.port, web.user, web.timeout) == ("192.0.2.7", 2222, "ops", 4.0)
    assert (web.strict, web.agent, web.identities_only) == ("yes", "/run/agent", True)
    assert web.key_names == ("[192.0.2.7]:2222", "192.0.2.7")
    assert web.known_hosts == (home / "kh", Path("/a b/kh"))
    assert web.identities == (home / ".ssh/id_ops@192.0.2.7",)
    assert web.through == "bob@bast:2200,mid"
    jump = f"exec ssh -o BatchMode=yes -o ClearAllForwardings=no -o ConnectTimeout=4 -F {config} -J bob@bast:2200"
    assert web.proxy == f"{jump} -W '[192.0.2.7]:2222' ssh://mid"
    cmd = resolve(Host("h2", "cmd", "cmd", ssh_args=("-F", str(config))))
    assert (cmd.proxy, cmd.strict, cmd.key_names) == ("nc -X 5 cmd 22", "accept-new", ("pet",))
    assert (cmd.agent, cmd.timeout) == (str(home / "agent"), None)


@needs_ssh
def test_what_the_inventory_says_comes_first(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(CONFIG)
    args = ("-F", str(config), "-o", "ProxyJump=none", "-o", "StrictHostKeyChecking=no", "-o", "ProxyJump=late")
    target = resolve(Host("h1", "web", "web", port=22, user="root", key_file="/keys/my key", ssh_args=args))
    assert (target.port, target.user, target.strict, target.proxy) == (22, "root", "no", None)
    assert target.identities[0] == Path("/keys/my key")
    assert target.key_names == ("192.0.2.7",)


@needs_ssh
def test_openssh_refusing_its_configuration() -> None:
    with pytest.raises(ReachError, match=r"h1: ssh refuses its configuration: .*[Bb]ad configuration option"):
        resolve(Host("h1", "h1", "h1", ssh_args=("-F", "/dev/null", "-o", "Nonsense=1")))
    with pytest.raises(ReachError, match=r"h1: ssh refuses its configuration: .*nowhere"):
        resolve(Host("h1", "h1", "h1", ssh_args=("-F", "/nowhere")))


def keys_of(host: Host) -> list[KnownKey]:
    target = resolve(host)
    return known_keys(target.key_names, target.known_hosts)


@needs_ssh
def test_known_keys_by_pattern_marker_and_port(tmp_path: Path) -> None:
    key = "AAAAC3NzaC1lZDI1NTE5AAAAIAPM0Ipd1Zz3Yy4Ht8jzv3L1lNqJcYV2i1VYyPzFb2QG"
    file = tmp_path / "known_hosts"
    file.write_text(
        f"*.lab,!x.lab ssh-ed25519 {key}\n@revoked * ssh-ed25519 {key}\n[p.net]:22022 ssh-ed25519 {key} c\n"
    )
    args = ("-F", "/dev/null", "-o", f"UserKnownHostsFile={file}", "-o", "GlobalKnownHostsFile=/dev/null")
    host = Host("h1", "a.lab", "a.lab", ssh_args=args)
    assert [(k.marker, k.type) for k in keys_of(host)] == [("", "ssh-ed25519"), ("@revoked", "ssh-ed25519")]
    assert [k.marker for k in keys_of(replace(host, address="x.lab"))] == ["@revoked"]
    assert [k.marker for k in keys_of(replace(host, address="p.net", port=22022))] == ["@revoked", ""]


@needs_ssh
def test_refused_connection_and_unknown_name() -> None:
    with socket.socket() as held:  # bound, and not listening
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        host = Host("h1", "127.0.0.1", "127.0.0.1", port=port, ssh_args=("-F", "/dev/null"))
        with pytest.raises(
            ReachError, match=rf"h1: 127\.0\.0\.1 port {port} refuses connections; does sshd run there\?"
        ):
            connect(host).run(["true"])
    with pytest.raises(ReachError, match=r"h1: its name no\.such\.invalid does not resolve"):
        connect(Host("h1", "no.such.invalid", "", ssh_args=("-F", "/dev/null"))).run(["true"])


@needs_ssh
def test_something_else_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        host = Host("h1", "127.0.0.1", "127.0.0.1", port=port, ssh_args=("-F", "/dev/null"))
        took = []
        for _ in range(3):  # a busy machine may be late, though not each time
            began = time.monotonic()
            with pytest.raises(ReachError, match=r"h1: .* did not answer within 0\.5 s"):
                connect(host, 0.5).run(["true"])
            took.append(time.monotonic() - began)
            if took[-1] < 20:
                break
        assert min(took) < 20


def test_connections_of_many_threads_share_no_configuration() -> None:
    """fabric empties a configuration while it reads it; a thread that reads the same one then ends with an error."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            connections = list(
                pool.map(lambda _: fabric.Connection("h", user="u", port=22, config=_no_config()), range(200))
            )
    finally:
        sys.setswitchinterval(usual)
    assert len({id(c.config) for c in connections}) == len(connections)
