"""Inventories in all usual forms, read through the installed Ansible."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.hosts.inventory import Host, load_inventory, this_machine


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No ansible.cfg, no ANSIBLE_* and no home of whoever runs the tests."""
    for name in [n for n in os.environ if n.startswith("ANSIBLE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str, *, mode: int = 0o644) -> str:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return name


def named(hosts: list[Host]) -> dict[str, Host]:
    return {host.name: host for host in hosts}


def silent(warning: str) -> None:
    pytest.fail(f"unexpected warning: {warning}")


INI = """
lone ansible_host=192.0.2.9

[new:children]
web
db

[web]
w[1:2] fleetmark_generation=genoa

[db]
d1 ansible_host=192.0.2.1 ansible_port=2222 ansible_user=bob ansible_ssh_private_key_file=~/.ssh/db
d2 ansible_ssh_host=192.0.2.2 ansible_connection=local ansible_python_interpreter=/opt/py/bin/python

[db:vars]
fleetmark_labels={'rack': 'r12', 'slot': 7, 'spare': True}
fleetmark_generation=icelake
ansible_ssh_common_args=-o ProxyJump=bast -F "/a b/config"
ansible_ssh_extra_args=-4
ansible_become=yes
ansible_become_password=sesame
ansible_password=secret
"""


def test_ini() -> None:
    hosts = load_inventory([write("hosts.ini", INI)], warn=silent)
    assert [h.name for h in hosts] == ["lone", "w1", "w2", "d1", "d2"]
    host = named(hosts)
    assert host["lone"] == Host("lone", "192.0.2.9", "192.0.2.9")
    assert host["w2"].groups == ("new", "web")
    assert host["w2"].labels == {"gen": "genoa"}
    assert host["d1"] == Host(
        name="d1",
        address="192.0.2.1",
        peer_address="192.0.2.1",
        connection="ssh",
        port=2222,
        user="bob",
        key_file="~/.ssh/db",
        ssh_args=("-o", "ProxyJump=bast", "-F", "/a b/config", "-4"),
        password="secret",
        become=True,
        become_password="sesame",
        groups=("db", "new"),
        labels={"rack": "r12", "slot": "7", "spare": "true", "gen": "icelake"},
    )
    assert (host["d2"].connection, host["d2"].address, host["d2"].python) == (
        "local",
        "192.0.2.2",
        "/opt/py/bin/python",
    )
    assert "sesame" not in repr(host["d1"])
    assert "secret" not in repr(host["d1"])


def test_yaml_and_peer_address() -> None:
    path = write(
        "hosts.yml",
        """
all:
  children:
    gpu:
      vars: {fleetmark_labels: {role: train}}
      hosts:
        g2: {fleetmark_address: 10.9.0.2, ansible_host: mgmt-g2, fleetmark_labels: {role: infer, rack: 4}}
        g1:
""",
    )
    g2, g1 = load_inventory([path], warn=silent)
    assert (g2.name, g2.address, g2.peer_address) == ("g2", "mgmt-g2", "10.9.0.2")
    assert g2.labels == {"role": "infer", "rack": "4"}
    assert (g1.name, g1.address, g1.labels) == ("g1", "g1", {"role": "train"})


def test_ports_of_services_that_may_stay() -> None:
    host = named(
        load_inventory([write("p.ini", "a fleetmark_ignored_ports=[9273,'6556']\nb fleetmark_ignored_ports=80\nc\n")])
    )
    assert [host[n].ignored_ports for n in "abc"] == [{9273, 6556}, {80}, frozenset()]


@pytest.mark.parametrize("value", ["nginx", "[0]", "[70000]", "true", "1.5"])
def test_ports_that_are_none_are_refused(value: str) -> None:
    with pytest.raises(FleetmarkError, match=r"a: fleetmark_ignored_ports is .*; write a list of TCP ports, such as"):
        load_inventory([write("p.ini", f"a fleetmark_ignored_ports={value}\n")], warn=silent)


def test_directory_with_group_vars_and_host_vars() -> None:
    write("inv/a.ini", "[web]\nw1\n")
    write("inv/b.yml", "db: {hosts: {d1: }}")
    write("inv/group_vars/web.yml", "fleetmark_generation: genoa\n")
    write("inv/group_vars/all/x.yml", "ansible_user: ops\n")
    write("inv/host_vars/d1.yml", "ansible_user: dba\nfleetmark_labels: {rack: r1}\n")
    host = named(load_inventory(["inv"], warn=silent))
    assert (host["w1"].user, host["w1"].labels) == ("ops", {"gen": "genoa"})
    assert (host["d1"].user, host["d1"].labels) == ("dba", {"rack": "r1"})


def test_script() -> None:
    doc = '{"web": {"hosts": ["s1"]}, "_meta": {"hostvars": {"s1": {"ansible_host": "192.0.2.5"}}}}'
    path = write("cloud.sh", f"#!/bin/sh\necho '{doc}'\n", mode=0o755)
    (host,) = load_inventory([path], warn=silent)
    assert (host.name, host.address, host.groups) == ("s1", "192.0.2.5", ("web",))


def test_names_and_several_sources() -> None:
    hosts = load_inventory(["h9,h1,", write("more", "[web]\nw1\n")], warn=silent)
    assert [h.name for h in hosts] == ["h9", "h1", "w1"]
    assert {h.connection for h in hosts} == {"ssh"}


def test_this_machine_without_inventory() -> None:
    (host,) = load_inventory([])
    assert host == this_machine()
    assert host.connection == "local"
    assert host.name == os.uname().nodename
    with pytest.raises(FleetmarkError, match="--limit web matches no host: without -i, only this machine is used"):
        load_inventory([], "web")


def test_limit() -> None:
    path = write("hosts.ini", INI)
    assert [h.name for h in load_inventory([path], "db:!d2", warn=silent)] == ["d1"]
    assert named(load_inventory([path], "d1"))["d1"].groups == ("db", "new")
    with pytest.raises(FleetmarkError) as caught:
        load_inventory([path], "webb")
    assert str(caught.value) == (
        "--limit webb matches no host in hosts.ini, which has hosts lone, w1, w2, d1, d2; groups db, new, web"
    )


def test_limit_that_matches_in_part_warns() -> None:
    heard: list[str] = []
    assert [h.name for h in load_inventory(["h1,h2,"], "h1,h3", warn=heard.append)] == ["h1"]
    assert heard == ["Could not match supplied host pattern, ignoring: h3"]


def test_the_inventory_of_guests_in_the_docs_gives_labels_to_compare_by() -> None:
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "containers.md").read_text("utf-8")
    example = page.partition("```yaml\nall:\n")[2].partition("```")[0]
    path = write("fleet.yml", f"all:\n{example}")
    labels = {host.name: dict(host.labels) for host in load_inventory([path], warn=silent)}
    assert labels == {"metal1": {"kind": "r7615", "gen": "metal"}, "guest1": {"kind": "r7615", "gen": "kvm"}}


def test_an_unknown_variable_that_looks_like_ours_warns() -> None:
    heard: list[str] = []
    path = write("hosts.ini", "h1 fleetmark_generaton=old\nh2 fleetmark_generation=new\n[all:vars]\nfleetmark_x=1\n")
    assert len(load_inventory([path], warn=heard.append)) == 2
    assert sorted(heard) == [
        "h1, h2: Fleetmark has no inventory variable fleetmark_x (did you mean fleetmark_labels?)",
        "h1: Fleetmark has no inventory variable fleetmark_generaton (did you mean fleetmark_generation?)",
    ]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("hosts.ini", "[web]\nh1\nh2 foo\n", r"hosts\.ini line 3: .*key=value.* foo"),
        ("hosts", "[web]\nh1\n\n[web:vars]\nnonsense\n", r"hosts line 5: .*key=value.* nonsense"),
        ("hosts.ini", "[web:children]\nnogroup\n", r"hosts\.ini line 2: .*undefined group.*nogroup"),
        ("hosts.yml", "all:\n  hosts:\n    h1: {a: 1\n", r"hosts\.yml line 4: .*YAML"),
        ("hosts.yml", "- h1\n- h2\n", r"hosts\.yml: .*should be a dictionary, got: list"),
        ("hosts.yml", "plugin: nowhere.nothing.cloud\n", r"hosts\.yml: .*unknown plugin 'nowhere\.nothing\.cloud'"),
    ],
)
def test_malformed(name: str, text: str, sentence: str) -> None:
    with pytest.raises(FleetmarkError, match=sentence) as caught:
        load_inventory([write(name, text)])
    assert "\n" not in str(caught.value)


def test_malformed_beside_a_good_one_is_no_smaller_fleet() -> None:
    with pytest.raises(FleetmarkError, match=r"bad\.ini line 1: .*foo"):
        load_inventory(["h1,", write("bad.ini", "h2 foo\n")])


def test_script_that_fails() -> None:
    path = write("cloud.sh", "#!/bin/sh\necho no credentials >&2\nexit 3\n", mode=0o755)
    with pytest.raises(FleetmarkError, match=r"cloud\.sh: Ansible cannot read it: .*: no credentials"):
        load_inventory([path])


def test_directory_warns_of_what_it_leaves_out() -> None:
    write("inv/good.ini", "h1\n")
    write("inv/bad.ini", "h2 foo\n")
    heard: list[str] = []
    assert [h.name for h in load_inventory(["inv"], warn=heard.append)] == ["h1"]
    assert len(heard) == 1
    assert "bad.ini line 1: Ansible cannot read it" in heard[0]


def test_missing_and_empty() -> None:
    with pytest.raises(FleetmarkError, match="no inventory nope: no such file"):
        load_inventory(["nope"])
    with pytest.raises(FleetmarkError, match=r"^empty: no hosts in this inventory$"):
        load_inventory([write("empty", "")])


def test_unusable_hosts_are_kept_with_their_reason() -> None:
    path = write(
        "hosts.ini",
        "h1 ansible_connection=community.docker.docker\nh2 ansible_connection=winrm\n"
        "h3 ansible_become=true ansible_become_method=doas\nh4 ansible_become=true ansible_become_user=db\n"
        "h5 ansible_become_method=doas\nh6 ansible_connection=ansible.builtin.ssh\n",
    )
    reason_by_host = {h.name: h.unusable for h in load_inventory([path])}
    assert (
        reason_by_host["h1"] == "ansible_connection is community.docker.docker; Fleetmark reaches hosts by ssh or local"
    )
    assert "winrm" in (reason_by_host["h2"] or "")
    assert "ansible_become_method is doas" in (reason_by_host["h3"] or "")
    assert "ansible_become_user is db" in (reason_by_host["h4"] or "")
    assert reason_by_host["h5"] is None
    assert reason_by_host["h6"] is None


def test_templates_are_worked_out_by_ansible() -> None:
    path = write(
        "hosts.yml",
        """
all:
  vars: {zone: lab, ansible_host: "{{ inventory_hostname }}.{{ zone }}"}
  hosts:
    h1: {fleetmark_labels: {rack: "{{ 'r%02d' | format(7) }}"}}
    h2: {ansible_host: 192.0.2.2, ansible_user: "{{ nobody_set_this }}"}
""",
    )
    h1, h2 = load_inventory([path])
    assert (h1.address, h1.labels, h1.unusable) == ("h1.lab", {"rack": "r07"}, None)
    assert "nobody_set_this" in (h2.unusable or "")


def vault(*words: str) -> str:
    argv = [sys.executable, "-m", "ansible", "vault", *words, "--vault-password-file", "pw"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def test_vault(monkeypatch: pytest.MonkeyPatch) -> None:
    write("pw", "open\n", mode=0o600)
    secret = vault("encrypt_string", "s3cret").replace("\n", "\n      ")
    path = write("hosts.yml", f"all:\n  hosts:\n    h1:\n      ansible_become_password: {secret}")
    vault("encrypt", write("group_vars/all.yml", "fleetmark_generation: rome\n"))
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "pw")
    (host,) = load_inventory([path], warn=silent)
    assert (host.become_password, host.labels) == ("s3cret", {"gen": "rome"})
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE")
    with pytest.raises(FleetmarkError, match=r"hosts\.yml: .*[Vv]ault"):
        load_inventory([path])


def test_ansible_cfg() -> None:
    write(
        "ansible.cfg",
        """
[defaults]
remote_user = ops
private_key_file = /keys/ops
host_key_checking = False
timeout = 7
[privilege_escalation]
become = True
[ssh_connection]
ssh_args = -o ProxyJump=bast
""",
    )
    h1, h2 = load_inventory([write("hosts.ini", "h1\nh2 ansible_user=bob ansible_host_key_checking=true\n")])
    assert (h1.user, h1.key_file, h1.become) == ("ops", "/keys/ops", True)
    assert h1.ssh_args == ("-o", "ProxyJump=bast", "-o", "StrictHostKeyChecking=no", "-o", "ConnectTimeout=7")
    assert h2.user == "bob"
    assert h2.ssh_args == ("-o", "ProxyJump=bast", "-o", "ConnectTimeout=7")


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_HOST_KEY_CHECKING", "False")
    monkeypatch.setenv("ANSIBLE_BECOME_PASSWORD_FILE", write("pw", "sesame\n"))
    (host,) = load_inventory(["h1,"], warn=silent)
    assert host.ssh_args == ("-o", "StrictHostKeyChecking=no")
    assert host.become_password == "sesame"


@pytest.mark.parametrize("locale", ["C", "POSIX", "xx_XX.ISO-8859-1", ""])
def test_a_locale_that_ansible_refuses(locale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LC_ALL", locale)
    assert [h.name for h in load_inventory(["h1,"], warn=silent)] == ["h1"]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("h1 fleetmark_labels=r12", r"h1: fleetmark_labels is 'r12'; write a mapping"),
        ("h1 fleetmark_labels=\"{'rack': ['a']}\"", r"h1: fleetmark_labels\.rack is \['a'\]; a label is one word"),
        ("h1 ansible_port=ssh", r"h1: ansible_port is 'ssh', not a number"),
        ('h1 ansible_ssh_common_args="-o \'x"', r"h1: its ansible_ssh_\*args are invalid: No closing quotation$"),
    ],
)
def test_values_that_mean_nothing(line: str, sentence: str) -> None:
    with pytest.raises(FleetmarkError, match=sentence):
        load_inventory([write("hosts.ini", line)])
