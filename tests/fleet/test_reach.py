"""SSH to real hosts: sessions, host keys, log-ins, jumps, sudo, and links that die."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from fleetmark.hosts.connect import connect
from fleetmark.hosts.inventory import Host, load_inventory
from fleetmark.hosts.reach import LinkLost, Reach, ReachError
from fleetmark.hosts.ssh.target import UnknownKey, scans
from tests.fleet.hosts import Fleet

pytestmark = pytest.mark.fleet
SOON_S = 90  # patience with a busy machine


@pytest.fixture(scope="module")
def hosts(fleet: Fleet) -> dict[str, Host]:
    return {host.name: host for host in load_inventory([str(fleet.inventory)])}


@pytest.fixture
def reach(hosts: dict[str, Host]) -> Iterator[Reach]:
    with connect(hosts["h1"]) as reach:
        yield reach


@pytest.fixture(autouse=True)
def _says_nothing_of_its_own(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Errors are exceptions: no library writes to our stderr."""
    yield
    assert capfd.readouterr().err == ""


def refused(host: Host, timeout_s: float | None = None) -> str:
    """The one sentence with which ``host`` cannot be reached."""
    with pytest.raises(ReachError) as caught, connect(host, timeout_s) as reach:
        reach.run(["true"])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def hostname(host: Host) -> str:
    with connect(host) as reach:
        return reach.run(["hostname"]).out.decode().strip()


@contextlib.contextmanager
def sshd(fleet: Fleet, host: str, *lines: str) -> Iterator[None]:
    """``host``'s sshd with these lines of configuration before its own."""
    file = "/etc/ssh/sshd_config"
    before = fleet.exec(host, ["cat", file]).stdout

    def configure(text: str) -> None:
        old = fleet.exec(host, ["cat", "/run/sshd.pid"]).stdout.strip()
        fleet.exec(host, ["tee", file], input=text)
        listens = "until [ -s /run/sshd.pid ]; do sleep 0.02; done"  # sshd listens before it writes this
        again = f"kill $0; while [ -d /proc/$0 ]; do sleep 0.02; done; rm -f /run/sshd.pid; /usr/sbin/sshd && {listens}"
        fleet.exec(host, ["sh", "-c", again, old])

    configure("\n".join(lines) + "\n" + before)
    try:
        yield
    finally:
        configure(before)


def with_config(host: Host, path: Path, text: str) -> Host:
    """``host`` by a configuration of its own, of which ``text`` goes before the fleet's."""
    config = host.ssh_args[host.ssh_args.index("-F") + 1]
    path.write_text(f"{text}\nMatch all\nInclude {config}\n")
    return replace(host, ssh_args=("-F", str(path)))


def with_known_hosts(host: Host, file: Path, *options: str) -> Host:
    args = [word for option in (f"UserKnownHostsFile={file}", *options) for word in ("-o", option)]
    return replace(host, ssh_args=(*args, *host.ssh_args))


# ---------------------------------------------------------------- sessions


def test_run(reach: Reach) -> None:
    ran = reach.run(["sh", "-c", "cat; hostname >&2; exit 7"], stdin=b"in\0put")
    assert (ran.rc, ran.out, ran.err) == (7, b"in\0put", b"h1\n")
    assert reach.run(["printf", "%s|", "a b", "$HOME", "'", ""]).out == b"a b|$HOME|'||"
    assert reach.run(["sh", "-c", "kill -9 $$"]).rc == -1
    assert reach.run(["no-such-command"]).rc == 127


def test_much_input_and_much_output(reach: Reach) -> None:
    data = bytes(range(256)) * 40_000
    assert reach.run(["cat"], stdin=data).out == data
    assert reach.run(["true"], stdin=data).rc == 0
    assert len(reach.run(["sh", "-c", "head -c 5000000 /dev/zero >&2"]).err) == 5_000_000


def test_run_takes_no_longer_than_it_may(reach: Reach, fleet: Fleet) -> None:
    with pytest.raises(ReachError, match=r"^h1: sleep 60 did not end within 0\.3 s$"):
        reach.run(["sleep", "60"], timeout=0.3)
    assert reach.run(["hostname"]).out == b"h1\n"
    fleet.exec("h1", ["pkill", "-x", "-f", "sleep 60"], check=False)  # it outlives its session


def test_channel(reach: Reach) -> None:
    channel = reach.open(
        ["sh", "-c", "echo start; while read x; do echo got $x; done; printf end; echo bad >&2; exit 3"]
    )
    assert channel.readline(SOON_S) == b"start\n"
    with pytest.raises(TimeoutError):
        channel.readline(0.1)
    channel.write(b"one\ntwo\n")
    assert [channel.readline(SOON_S), channel.readline(SOON_S)] == [b"got one\n", b"got two\n"]
    channel.end_input()
    assert list(channel.lines(SOON_S)) == [b"end"]
    assert channel.wait(SOON_S) == 3
    assert channel.errors() == "bad"
    channel.close()


def test_stderr_that_nobody_reads_blocks_nothing(reach: Reach) -> None:
    channel = reach.open(["sh", "-c", "head -c 9000000 /dev/zero >&2; echo done"])
    assert channel.readline(SOON_S) == b"done\n"
    channel.close()


def test_many_at_once_over_one_connection(reach: Reach, fleet: Fleet) -> None:
    with ThreadPoolExecutor(16) as pool:
        ran = list(pool.map(lambda n: reach.run(["sh", "-c", f"sleep 0.2; echo {n}; wc -c"], b"x" * n), range(16)))
    assert [r.out.split() for r in ran] == [[str(n).encode(), str(n).encode()] for n in range(16)]
    count = "ls /proc/[0-9]*/exe -l | grep -c sshd"
    few = f"for _ in $(seq {10 * SOON_S}); do [ $({count}) -le 3 ] && break; sleep 0.1; done; {count}"
    # The listener, and at most two processes for the one connection, when those of earlier ones have ended.
    assert int(fleet.exec("h1", ["sh", "-c", few]).stdout) <= 3


def test_closed_and_used_again(hosts: dict[str, Host]) -> None:
    reach = connect(hosts["h1"])
    assert reach.run(["hostname"]).out == b"h1\n"
    reach.close()
    reach.close()
    assert reach.run(["hostname"]).out == b"h1\n"
    reach.close()


def test_closing_spares_what_was_detached(hosts: dict[str, Host], fleet: Fleet) -> None:
    reach = connect(hosts["h1"])
    script = "rm -f /tmp/left; (setsid sh -c 'sleep 1; echo > /tmp/left' </dev/null >/dev/null 2>&1 &); echo up; cat"
    channel = reach.open(["sh", "-c", script])
    assert channel.readline(SOON_S) == b"up\n"
    channel.close()
    reach.close()
    soon = f"for _ in $(seq {10 * SOON_S}); do [ -e /tmp/left ] && break; sleep 0.1; done; ls /tmp/left"
    assert fleet.exec("h1", ["sh", "-c", soon]).stdout == "/tmp/left\n"


def test_no_further_session(fleet: Fleet, hosts: dict[str, Host]) -> None:
    with sshd(fleet, "h4", "MaxSessions 1"), connect(hosts["h4"]) as reach:
        held = reach.open(["cat"])
        with pytest.raises(ReachError, match=r"^h4: sshd refuses another session"):
            reach.run(["true"])
        held.close()


def test_sixteen_hosts_are_asked_in_parallel(hosts: dict[str, Host]) -> None:
    reaches = [connect(hosts[f"h{n % 4 + 1}"]) for n in range(16)]  # a connection each
    meet = "mkdir -p /tmp/meet; : >/tmp/meet/$$; until [ $(ls /tmp/meet | wc -l) -ge 4 ]; do sleep 0.05; done; hostname"
    with ThreadPoolExecutor(16) as pool:  # one after another, the first of a host would wait for ever
        ran = list(pool.map(lambda r: r.run(["sh", "-c", meet], timeout=120), reaches))
    assert [r.out for r in ran] == [b"h1\n", b"h2\n", b"h3\n", b"h4\n"] * 4
    for reach in reaches[:4]:
        reach.run(["rm", "-r", "/tmp/meet"])
    for reach in reaches:
        reach.close()


# ---------------------------------------------------------------- host keys


def test_unknown_key_is_refused(hosts: dict[str, Host], fleet: Fleet, tmp_path: Path) -> None:
    file = tmp_path / "none"
    with pytest.raises(UnknownKey) as error:
        hostname(with_known_hosts(hosts["h1"], file))
    assert str(error.value).startswith("h1: its host key (ssh-ed25519 SHA256:")
    assert not file.exists()
    [command] = scans([error.value])
    assert command == f"ssh-keyscan -p 22 {fleet.address('h1')} >> {file}"
    subprocess.run(command, shell=True, capture_output=True, check=True)  # what it says to do helps
    assert hostname(with_known_hosts(hosts["h1"], file)) == "h1"


def test_one_command_adds_all_unknown_keys(fleet: Fleet, tmp_path: Path) -> None:
    """As a newcomer meets it: nobody has logged in to any of the hosts, and the terminal is narrow."""
    common = f"-o UserKnownHostsFile={tmp_path}/known -o StrictHostKeyChecking=yes"
    hosts = "".join(f"{h} ansible_host={fleet.address(h)}\n" for h in fleet.names)
    (tmp_path / "hosts.ini").write_text(
        f"{hosts}[all:vars]\nansible_user=root\nansible_private_key_file={fleet.key}\n"
        f'ansible_ssh_common_args="{common}"\n'
    )
    words = [Path(sys.executable).with_name("fleetmark"), "hosts", "-i", "hosts.ini", "-s", "selftest"]
    env = {**os.environ, "COLUMNS": "80"}

    def survey() -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=120)

    first = survey()
    assert first.returncode == 1
    assert "4 of 4 hosts do not answer" in first.stdout
    [command] = [line for line in first.stdout.splitlines() if "ssh-keyscan" in line]
    assert "network that you trust" in " ".join(first.stdout.split())
    subprocess.run(command, shell=True, capture_output=True, check=True)
    again = survey()
    assert again.returncode == 0, again.stdout + again.stderr


def wrong_key(fleet: Fleet, file: Path) -> Path:
    """A known_hosts that has h2's key under h1's address."""
    lines = fleet.known_hosts.read_text().splitlines()
    h2 = next(line for line in lines if line.startswith("h2,"))
    file.write_text(f"{fleet.address('h1')} {h2.split(maxsplit=1)[1]}\n")
    return file


def test_changed_key_is_refused(hosts: dict[str, Host], fleet: Fleet, tmp_path: Path) -> None:
    file = wrong_key(fleet, tmp_path / "known_hosts")
    for mode in ("yes", "ask", "accept-new"):
        sentence = refused(with_known_hosts(hosts["h1"], file, f"StrictHostKeyChecking={mode}"))
        assert sentence.startswith("h1: its host key CHANGED to SHA256:")
        assert f"ssh-keygen -R {fleet.address('h1')} -f {file}" in sentence
    assert hostname(with_known_hosts(hosts["h1"], file, "StrictHostKeyChecking=no")) == "h1"


def test_new_key_is_kept_where_the_user_accepts_it(hosts: dict[str, Host], fleet: Fleet, tmp_path: Path) -> None:
    for hashed in ("no", "yes"):
        file = tmp_path / f"known_hosts-{hashed}"
        new = with_known_hosts(hosts["h1"], file, "StrictHostKeyChecking=accept-new", f"HashKnownHosts={hashed}")
        assert hostname(new) == "h1"
        assert (fleet.address("h1") in file.read_text()) == (hashed == "no")
        before = file.read_text()
        assert hostname(with_known_hosts(hosts["h1"], file)) == "h1"  # known now, also to ssh
        assert hostname(new) == "h1"
        assert file.read_text() == before


def test_key_known_by_name_alias_or_hash(hosts: dict[str, Host], fleet: Fleet, tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    key = (fleet.state / "hostkeys" / "h1.pub").read_text().split()[1]
    file.write_text(f"pet ssh-ed25519 {key}\n")
    assert "is not known" in refused(with_known_hosts(hosts["h1"], file))
    assert hostname(with_known_hosts(hosts["h1"], file, "HostKeyAlias=pet")) == "h1"
    file.write_text(f"{fleet.address('h1')} ssh-ed25519 {key}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    assert file.read_text().startswith("|1|")
    assert hostname(with_known_hosts(hosts["h1"], file)) == "h1"
    file.write_text(f"* ssh-ed25519 {key}\n@revoked * ssh-ed25519 {key}\n")
    assert f"is revoked in {file}" in refused(with_known_hosts(hosts["h1"], file))
    revoked = tmp_path / "revoked"
    revoked.write_text(f"ssh-ed25519 {key}\n")
    file.write_text(f"* ssh-ed25519 {key}\n")
    for strict in ("yes", "no"):
        options = (f"RevokedHostKeys={revoked}", f"StrictHostKeyChecking={strict}")
        assert f"is revoked in {revoked}" in refused(with_known_hosts(hosts["h1"], file, *options))
    file.write_text(f"@cert-authority * ssh-ed25519 {key}\n")
    assert "known by a certificate authority only" in refused(with_known_hosts(hosts["h1"], file))


def test_the_kind_of_key_that_is_known_is_asked_for(hosts: dict[str, Host], fleet: Fleet, tmp_path: Path) -> None:
    for kind in ("rsa", "ecdsa"):
        fleet.exec("h4", ["sh", "-c", f"[ -e /etc/{kind} ] || ssh-keygen -q -t {kind} -N '' -f /etc/{kind}"])
    ed25519 = "HostKey /etc/ssh/ssh_host_ed25519_key"
    file = tmp_path / "known_hosts"
    with sshd(fleet, "h4", "HostKey /etc/rsa", ed25519, "HostKey /etc/ecdsa"):
        for kind in ("rsa", "ecdsa"):
            key = fleet.exec("h4", ["cut", "-d", " ", "-f", "1,2", f"/etc/{kind}.pub"]).stdout
            file.write_text(f"{fleet.address('h4')} {key}")
            assert hostname(with_known_hosts(hosts["h4"], file)) == "h4"
        assert hostname(hosts["h4"]) == "h4"  # known by ed25519 only, while rsa is offered first
    sentence = refused(with_known_hosts(hosts["h4"], file))  # known by ecdsa, which it has no longer
    assert "(ssh-ed25519 SHA256:" in sentence
    assert "is not known" in sentence


def test_another_port(hosts: dict[str, Host], fleet: Fleet, tmp_path: Path) -> None:
    key = (fleet.state / "hostkeys" / "h4.pub").read_text().split()[1]
    file = tmp_path / "known_hosts"
    h4 = replace(with_known_hosts(hosts["h4"], file), port=2222)
    with sshd(fleet, "h4", "Port 22", "Port 2222"):
        file.write_text(f"[{fleet.address('h4')}]:2222 ssh-ed25519 {key}\n")
        assert hostname(h4) == "h4"
        assert "is not known" in refused(replace(h4, port=22))
        file.write_text(f"{fleet.address('h4')} ssh-ed25519 {key}\n")  # without the port it will do, as for ssh
        assert hostname(h4) == "h4"
    assert refused(h4) == f"h4: {fleet.address('h4')} port 2222 refuses connections; does sshd run there?"


# ---------------------------------------------------------------- logging in


def test_wrong_user_names_what_was_tried(hosts: dict[str, Host], fleet: Fleet) -> None:
    assert refused(replace(hosts["h1"], user="nosuch")) == f"h1: log-in as nosuch is refused; tried {fleet.key}"


def test_no_key_at_all(hosts: dict[str, Host], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    keyless = replace(hosts["h1"], ssh_args=("-o", "IdentityFile=/nowhere/key", *_keyless(hosts["h1"], tmp_path)))
    assert refused(keyless) == "h1: log-in as root is refused; there is no key, agent or password to try"


def _keyless(host: Host, folder: Path) -> tuple[str, ...]:
    config = Path(host.ssh_args[host.ssh_args.index("-F") + 1])
    lines = [line for line in config.read_text().splitlines() if "Identit" not in line]
    (folder / "keyless").write_text("\n".join(lines) + "\n")
    return ("-F", str(folder / "keyless"))


@pytest.fixture
def locked_key(fleet: Fleet, tmp_path: Path) -> Path:
    """The fleet's key under a passphrase."""
    key = tmp_path / "locked"
    shutil.copy(fleet.key, key)
    shutil.copy(f"{fleet.key}.pub", f"{key}.pub")
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", str(key)], check=True, capture_output=True
    )
    return key


def test_locked_key_and_agent(
    hosts: dict[str, Host], fleet: Fleet, tmp_path: Path, locked_key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = replace(hosts["h1"], key_file=str(locked_key), ssh_args=_keyless(hosts["h1"], tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    assert f"tried {locked_key} (needs its passphrase: ssh-add it)" in refused(locked)
    socket = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    try:
        while not socket.exists():
            time.sleep(0.02)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        stranger = tmp_path / "stranger"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(stranger)], check=True)
        for key in (stranger, fleet.key):
            subprocess.run(["ssh-add", "-q", str(key)], check=True)
        assert hostname(locked) == "h1"
        with sshd(fleet, "h4", "MaxAuthTries 1"):  # only the key that the configuration names comes first
            assert hostname(replace(locked, address=fleet.address("h4"), name="h4")) == "h4"
        other = replace(locked, key_file=str(stranger))
        assert hostname(other) == "h1"  # the agent has another one that will do
        only = ("-o", "IdentitiesOnly=yes", *other.ssh_args)
        assert "tried the agent's ssh-ed25519" in refused(replace(other, ssh_args=only))
        no_agent = ("-o", "IdentityAgent=none", *other.ssh_args)
        assert refused(replace(other, ssh_args=no_agent)).endswith(f"tried {stranger}")
    finally:
        agent.terminate()
        agent.wait()


def test_password(hosts: dict[str, Host], fleet: Fleet, tmp_path: Path) -> None:
    fleet.exec("h4", ["useradd", "-m", "carol"])
    fleet.exec("h4", ["chpasswd"], input="carol:open sesame\n")
    carol = replace(hosts["h4"], user="carol", password="open sesame", ssh_args=_keyless(hosts["h4"], tmp_path))
    with sshd(fleet, "h4", "PasswordAuthentication yes"):
        with connect(carol) as reach:
            assert reach.run(["id", "-un"]).out == b"carol\n"
        assert refused(replace(carol, password="wrong")) == "h4: log-in as carol is refused; tried the password"
        # A host under a false key is told no password, even where its key is not to be checked.
        file = wrong_key(fleet, tmp_path / "known_hosts")
        file.write_text(file.read_text().replace(fleet.address("h1"), fleet.address("h4")))
        false = with_known_hosts(carol, file, "StrictHostKeyChecking=no")
        assert refused(false) == "h4: log-in as carol is refused; there is no key, agent or password to try"
    fleet.exec("h4", ["userdel", "-r", "carol"], check=False)


# ---------------------------------------------------------------- jumps


@pytest.fixture
def beyond(fleet: Fleet) -> Iterator[Callable[[str], None]]:
    """Hosts made unreachable from this machine, though not from other hosts."""
    done: list[str] = []

    def hide(host: str) -> None:
        fleet.exec(host, ["ip", "route", "add", "blackhole", f"{fleet.address('h0')}/32"])
        done.append(host)

    yield hide
    for host in done:
        fleet.exec(host, ["ip", "route", "del", "blackhole", f"{fleet.address('h0')}/32"])


def test_jumps(hosts: dict[str, Host], fleet: Fleet, tmp_path: Path, beyond: Callable[[str], None]) -> None:
    beyond("h2")
    beyond("h3")
    h2 = hosts["h2"]
    assert "did not answer within 1 s" in refused(h2, 1)
    assert hostname(with_config(h2, tmp_path / "jump", f"Host {h2.address}\n ProxyJump h1")) == "h2"
    assert hostname(replace(h2, ssh_args=(*h2.ssh_args, "-J", "root@h1"))) == "h2"
    assert hostname(replace(h2, ssh_args=(*h2.ssh_args, "-o", "ProxyJump=h1"))) == "h2"
    command = f"ProxyCommand=ssh -F {fleet.ssh_config} -W %h:%p h1"
    assert hostname(replace(h2, ssh_args=(*h2.ssh_args, "-o", command))) == "h2"
    chain = f"Host {hosts['h3'].address}\n ProxyJump h2\nHost h2\n ProxyJump h1"
    assert hostname(with_config(hosts["h3"], tmp_path / "chain", chain)) == "h3"
    assert hostname(replace(hosts["h3"], ssh_args=(*h2.ssh_args, "-J", "h1,h4"))) == "h3"


def test_host_behind_a_jump_is_checked_too(hosts: dict[str, Host], fleet: Fleet, tmp_path: Path) -> None:
    h1 = with_known_hosts(hosts["h1"], wrong_key(fleet, tmp_path / "known_hosts"), "ProxyJump=h2")
    assert "h1: its host key CHANGED" in refused(h1)


def test_jump_host_that_refuses(hosts: dict[str, Host], fleet: Fleet) -> None:
    h2 = hosts["h2"]
    sentence = refused(replace(h2, ssh_args=(*h2.ssh_args, "-J", "nosuch@h1")))
    assert sentence.startswith("h2: cannot connect through nosuch@h1: ")
    assert "Permission denied" in sentence
    nobody = replace(h2, address=f"{fleet.address('h0')}", port=9, ssh_args=(*h2.ssh_args, "-J", "h1"))
    assert "cannot connect through h1: " in refused(nobody)
    sentence = refused(replace(h2, ssh_args=(*h2.ssh_args, "-o", "ProxyCommand=echo no >&2; exit 1 # -p canary")))
    assert sentence == "h2: cannot connect through its ProxyCommand: no"


def test_many_hosts_through_one_jump(hosts: dict[str, Host], fleet: Fleet) -> None:
    h2 = replace(hosts["h2"], ssh_args=(*hosts["h2"].ssh_args, "-J", "h4"))
    reaches = [connect(h2) for _ in range(20)]
    slowly = "#!/bin/sh\nsleep 0.4\ncat /root/.ssh/authorized_keys\n"  # or too few would knock at once
    fleet.exec("h4", ["sh", "-c", "cat > /usr/bin/slowly; chmod 755 /usr/bin/slowly"], input=slowly)
    lines = ["AuthorizedKeysFile none", "AuthorizedKeysCommand /usr/bin/slowly", "AuthorizedKeysCommandUser root"]
    with sshd(fleet, "h4", "PerSourceMaxStartups 10", *lines), ThreadPoolExecutor(20) as pool:  # it drops the eleventh
        assert [r.out for r in pool.map(lambda r: r.run(["hostname"]), reaches)] == [b"h2\n"] * 20
    for reach in reaches:
        reach.close()


# ---------------------------------------------------------------- root


@pytest.fixture(scope="module")
def sudoers(fleet: Fleet, hosts: dict[str, Host], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Host]:
    """h3 as three ordinary users: ``free`` may sudo, ``asked`` may with a password, ``barred`` may not."""
    if fleet.exec("h3", ["which", "sudo"], check=False).returncode:
        folder = tmp_path_factory.mktemp("sudo")
        if shutil.which("apt-get") is None:
            pytest.skip("sudo is not installed, and there is no apt-get to install it on the host")
        got = subprocess.run(
            ["apt-get", "download", "-q", "sudo"], cwd=folder, capture_output=True, text=True, check=False
        )
        packages = list(folder.glob("sudo_*.deb"))
        if not packages:
            pytest.skip(f"sudo is not installed, and cannot be had: {got.stderr.strip()[-200:]}")
        key_options = ["-F", str(fleet.ssh_config), "-q"]
        subprocess.run(["scp", *key_options, str(packages[0]), "h3:/tmp/sudo.deb"], check=True, capture_output=True)
        fleet.exec("h3", ["dpkg", "-i", "/tmp/sudo.deb"])
    script = """
for u in free asked barred; do
  useradd -m -p '*' $u; mkdir -p /home/$u/.ssh; cp /root/.ssh/authorized_keys /home/$u/.ssh; chown -R $u /home/$u
  chmod 700 /home/$u/.ssh
done
echo asked:sesame | chpasswd
printf 'free ALL=(ALL) NOPASSWD: ALL\\nasked ALL=(ALL) ALL\\nDefaults passwd_tries=2\\n' > /etc/sudoers.d/fleet
"""
    fleet.exec("h3", ["sh", "-c", script])
    return {user: replace(hosts["h3"], user=user) for user in ("free", "asked", "barred")}


WHO = ["sh", "-c", "id -un; printenv HOME; cat; echo problem >&2; exit 5"]


def test_sudo_without_password(sudoers: dict[str, Host]) -> None:
    with connect(sudoers["free"]) as reach:
        ran = reach.run(WHO, b"input", sudo=True)
        assert (ran.rc, ran.out, ran.err) == (5, b"root\n/root\ninput", b"problem\n")
        assert reach.run(["id", "-un"]).out == b"free\n"
        channel = reach.open(["cat"], sudo=True)
        channel.write(b"line\n")
        assert channel.readline(SOON_S) == b"line\n"
        channel.close()
        assert reach.run(["no-such-command"], sudo=True).rc == 127


def test_sudo_with_password(sudoers: dict[str, Host]) -> None:
    with connect(replace(sudoers["asked"], become_password="sesame")) as reach:
        for _ in range(2):
            ran = reach.run(WHO, b"input", sudo=True)
            assert (ran.rc, ran.out, ran.err) == (5, b"root\n/root\ninput", b"problem\n")
    # Where no password is wanted, the one that is set goes nowhere, least of all to the command.
    with connect(replace(sudoers["free"], become_password="sesame")) as reach:
        assert reach.run(["cat"], b"input", sudo=True).out == b"input"


def test_sudo_refuses(sudoers: dict[str, Host], hosts: dict[str, Host], fleet: Fleet) -> None:
    def refusal(host: Host) -> str:
        with pytest.raises(ReachError) as caught, connect(host) as reach:
            reach.run(["true"], sudo=True)
        return str(caught.value)

    password_needed = "h3: sudo needs a password; set ansible_become_password, or allow sudo without one there"
    assert refusal(sudoers["asked"]) == password_needed
    wrong = "h3: sudo rejects the password; check ansible_become_password"
    assert refusal(replace(sudoers["asked"], become_password="wrong")) == wrong
    assert refusal(sudoers["barred"]).startswith("h3: sudo ")


def test_root_needs_no_sudo(hosts: dict[str, Host], fleet: Fleet) -> None:
    fleet.lacks("h2", "sudo")
    with connect(hosts["h2"]) as reach:
        assert reach.run(["id", "-un"], sudo=True).out == b"root\n"


def test_no_sudo_there(hosts: dict[str, Host], fleet: Fleet) -> None:
    fleet.lacks("h2", "sudo")
    fleet.exec("h2", ["sh", "-c", "useradd -m -p '*' dan; cp -r /root/.ssh /home/dan; chown -R dan /home/dan"])
    with (
        pytest.raises(ReachError, match=r"^h2: the host has no sudo"),
        connect(replace(hosts["h2"], user="dan")) as r,
    ):
        r.run(["true"], sudo=True)


# ---------------------------------------------------------------- links that die


def test_dead_host_costs_its_timeout_once(hosts: dict[str, Host], fleet: Fleet) -> None:
    fleet.cut("h3")
    try:
        reaches = {name: connect(host, 2.0 if name == "h3" else None) for name, host in hosts.items()}
        began = time.monotonic()
        with ThreadPoolExecutor(8) as pool:  # two threads ask the dead one
            attempts = {n: pool.submit(r.run, ["hostname"]) for n, r in [*reaches.items(), ("again", reaches["h3"])]}
        assert time.monotonic() - began > 1.9
        error = attempts.pop("h3").exception()
        assert str(error).startswith(f"h3: {fleet.address('h3')} port 22 did not answer within 2 s")
        assert attempts.pop("again").exception() is error, "both waited for one attempt"
        assert {n: a.result().out for n, a in attempts.items()} == {"h1": b"h1\n", "h2": b"h2\n", "h4": b"h4\n"}
    finally:
        fleet.heal("h3")
    assert patiently(reaches["h3"], ["hostname"]) == b"h3\n"
    for reach in reaches.values():
        reach.close()


@pytest.mark.parametrize("route", ["direct", "jump"])
def test_cut_link_is_noticed_and_comes_back(route: str, hosts: dict[str, Host], fleet: Fleet) -> None:
    host = hosts["h2"] if route == "direct" else replace(hosts["h2"], ssh_args=(*hosts["h2"].ssh_args, "-J", "h1"))
    reach = connect(host)
    idle = reach.open(["sh", "-c", "echo up; cat"])
    busy = reach.open(["sh", "-c", "while sleep 0.1; do echo tick; done"])
    assert idle.readline(SOON_S) == b"up\n"
    assert busy.readline(SOON_S) == b"tick\n"
    fleet.cut("h2")
    try:
        began = time.monotonic()
        noticed: dict[str, float] = {}

        def wait(name: str) -> None:
            with pytest.raises(LinkLost, match="h2: the connection was lost"):
                for _ in (idle if name == "idle" else busy).lines():
                    pass
            noticed[name] = time.monotonic() - began

        threads = [threading.Thread(target=wait, args=(name,)) for name in ("idle", "busy")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SOON_S)
        assert set(noticed) == {"idle", "busy"}
        assert max(noticed.values()) < SOON_S
        with pytest.raises(LinkLost):
            idle.write(b"x\n")
    finally:
        fleet.heal("h2")
    assert patiently(reach, ["hostname"]) == b"h2\n"
    reach.close()


def patiently(reach: Reach, argv: list[str], patience: float = SOON_S) -> bytes:
    """What ``argv`` prints, tried again as a campaign does: a link that just came back may still reset a connection."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return reach.run(argv).out
        except ReachError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def test_power_cut(hosts: dict[str, Host], fleet: Fleet) -> None:
    reach = connect(hosts["h3"])
    channel = reach.open(["sh", "-c", "echo up; cat"])
    assert channel.readline(SOON_S) == b"up\n"
    fleet.power_off("h3")
    fleet.power_on("h3")  # back before we asked: it knows nothing of our connection, and says so
    with pytest.raises(LinkLost):
        channel.readline(SOON_S)
    assert reach.run(["hostname"]).out == b"h3\n"
    reach.close()
