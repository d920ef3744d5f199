"""Inventories that are read without Ansible: the result is Ansible's own, to the last key and the order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fleetmark.hosts import ansible, plain

READ = {
    "a.ini": """
lone ansible_host=192.0.2.9 fleetmark_rack=012 fleetmark_slot=7 fleetmark_spare=True fleetmark_off=false
# a comment
[db]
d1 ansible_port=2222 fleetmark_generation=icelake
w2
d1 ansible_user=bob
[web]
w1
w2 fleetmark_rack=r1
[all:vars]
ansible_ssh_common_args=-F /run/a/ssh_config -o User=ops
fleetmark_rack = all
[web:vars]
fleetmark_rack=web
fleetmark_level=1_000
[db:vars]
fleetmark_rack=db
""",
    "b": "[late:vars]\nfleetmark_x=1\n[early]\nh2\nh1\n[late]\nh1\n[none]\n",
    "c.yml": """
all:
  vars: {fleetmark_rack: all, ansible_user: bob, ansible_port: 7}
  hosts:
    lone: {fleetmark_labels: {rack: r12, slot: 7, spare: true}, fleetmark_empty: , fleetmark_part: 1.5}
    d1:
  children:
    web: {hosts: {w2: , w1: {fleetmark_rack: own}}, vars: {fleetmark_rack: web}}
    db:
      hosts: {d1: {fleetmark_a: [1, b]}, w1: {}}
      vars: {fleetmark_rack: db, fleetmark_from: db}
    none:
top: {hosts: {t1: }}
""",
    "h2,h1, 10.0.0.7,": None,
}
LEFT = {
    "range.ini": "w[1:3]\n",
    "quotes.ini": "h1 fleetmark_a='b c'\n",
    "comment.ini": "h1 # here\n",
    "template.ini": "h1 fleetmark_a={{b}}\n",
    "tree.ini": "[a]\nh1\n[b:children]\na\n",
    "undeclared.ini": "h1\n[a:vars]\nfleetmark_x=1\n",
    "here.ini": "localhost\n",
    "tuple.ini": "h1 fleetmark_a=1,2\n",
    "float.ini": "h1 fleetmark_a=1.5\n",
    "key.ini": "h1 port=1\n",
    "same.ini": "[h1]\nh1\n",
    "dash.ini": "[a-b]\nh1\n",
    "empty.ini": "",
    "odd.json": '{"all": {"hosts": {"h1": null}}}',
    "deep.yml": "all: {children: {a: {children: {b: {hosts: {h1: }}}}}}\n",
    "vault.yml": "all: {hosts: {h1: {fleetmark_a: !vault x}}}\n",
    "template.yml": "all: {hosts: {h1: {fleetmark_a: '{{ b }}'}}}\n",
    "date.yml": "all: {hosts: {h1: {fleetmark_a: 2026-01-01}}}\n",
    "plugin.yml": "plugin: ini\n",
    "twice.yml": "all: {hosts: {h1: , h1: }}\n",
    "list.yml": "[h1]\n",
}


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith("ANSIBLE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("source", READ)
def test_what_is_read_is_what_ansible_reads(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if text := READ[source]:
        Path(source).write_text(text)
    ours, settings = ansible.list_inventory([source], None)
    assert plain.read(source)
    assert settings == {}
    monkeypatch.setattr(plain, "read", lambda _: None)
    theirs, _ = ansible.list_inventory([source], None)
    assert list(ours.hosts) == list(theirs.hosts)
    assert ours.hosts == theirs.hosts
    assert {h: ours.groups_of(h) for h in ours.hosts} == {h: theirs.groups_of(h) for h in theirs.hosts}
    assert theirs.warnings == ()


@pytest.mark.parametrize("source", LEFT)
def test_everything_else_is_left_to_ansible(source: str) -> None:
    Path(source).write_text(LEFT[source])
    assert plain.read(source) is None


def test_what_stands_beside_an_inventory_is_ansibles(tmp_path: Path) -> None:
    Path("hosts.ini").write_text("h1\n")
    assert plain.read("hosts.ini")
    Path("group_vars").mkdir()
    assert plain.read("hosts.ini") is None
    assert plain.read("h1,h2") is None
    Path("group_vars").rmdir()
    Path("hosts.ini").chmod(0o755)
    assert plain.read("hosts.ini") is None
